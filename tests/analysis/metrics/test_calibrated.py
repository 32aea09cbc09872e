"""Combined numbers of people and judges: what the job stores, what the page says, and what it refuses."""

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from analysis.metrics.calibrated.options import CalibrationOptions, families_by_name
from analysis.metrics.calibrated.run import calibrate, latest_results, request_calibration
from analysis.metrics.files import ScoresFileSettings
from analysis.metrics.store import MetricDescription, upload_scores
from analysis.models import CalibratedResult
from studies.models import Job, Output
from studies.models.guards import AppendOnlyViolation
from studies.services import jobs, lifecycle
from studies.services.lifecycle import ActionRefused
from tests.analysis.api.rest import api_of
from tests.analysis.report.populations import places_of_numbers
from tests.boards.builders import choice_template
from tests.builders import user

from .collected_studies import STRENGTHS, closed, collected, page_of
from .judges import store_judge
from .scores import client_of, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return closed()


@pytest.mark.slow
def test_people_come_first_and_a_judge_who_knows_saves_answers(study):
    store_judge(study)
    (row,) = calibrate(study, CalibrationOptions(n_outputs=6000), study.owner)
    by_system = {one["system"]: one["result"] for one in row.result["systems"]}
    assert row.result["n_labelled"] == 70 and row.result["n_items"] == 180
    other = by_system["other"]
    assert other["n_labels"] == other["human"]["n_rows"] == 23
    assert other["width_ratio"] < 0.9 and other["labels_saved"] > 3 and not other["fallback"]
    assert other["money_saved"] == pytest.approx(other["labels_saved"] * row.result["price"])
    assert row.result["price"] == pytest.approx(14 * 1.0 / 70)  # a batch of five answers costs 1.00
    (judge,) = row.result["judges"]
    assert judge["correlation"] == pytest.approx(1) and judge["verdicts"] == {"useful": 3}
    warned = {(pair["first"], pair["second"]) for pair in row.result["pairs"] if pair["own_family"]}
    assert warned == {("human", "llama-7b"), ("llama-7b", "other")}
    assert [one["group"] for one in row.result["bias_by_system"] if one["is_own_family"]] == ["llama-7b"]
    text = page_of(study)
    assert text.index("People (95 % interval)") < text.index("People and judges (95 % interval)")
    assert "Same family: “judge v1” of “llama-7b”" in text
    assert "useful: it saves at least a tenth of the answers" in text and "<polyline" in text


@pytest.mark.slow
def test_a_judge_at_random_is_called_useless_and_changes_nothing(study):
    store_judge(study, knows=False)
    (row,) = calibrate(study, CalibrationOptions(widths=(20.0, 10.0)), study.owner)
    for one in row.result["systems"]:
        assert one["result"]["width_ratio"] > 0.9
    assert row.result["plan"]["widths"] == [0.2, 0.1]
    assert set(row.result["judges"][0]["verdicts"]) <= {"useless", "unclear"}


@pytest.mark.slow
def test_a_chosen_part_rules_out_combined_numbers_and_unknown_people_rule_out_other_people(study):
    store_judge(study)
    (chosen,) = calibrate(study, CalibrationOptions(sample="chosen"), study.owner)
    assert all(one["result"]["combined"] is None for one in chosen.result["systems"] + chosen.result["pairs"])
    assert "People judged a chosen part of the outputs. This rules out combined numbers" in page_of(study)
    (unknown,) = calibrate(study, CalibrationOptions(sample="unknown", are_people_known=False), study.owner)
    assert {one["result"]["human"]["unit"] for one in unknown.result["systems"]} == {"prompt"}
    text = page_of(study)
    assert "The answers do not say who gave them. This rules out statements about other people" in text
    assert "Nobody said how the labelled outputs were selected" in text


@pytest.mark.slow
def test_a_judge_without_a_score_of_an_output_is_left_out_with_the_reason(study):
    store_judge(study, skips=("p003",))
    (row,) = calibrate(study, CalibrationOptions(), study.owner)
    assert row.result["status"] == "no_data" and "scored all items" in row.result["reason"]
    assert row.result["left_out"] == [{"name": "judge v1", "reason": "It has no score for 3 of 180 items."}]
    assert "No metric or judge scored all items" in page_of(study)


@pytest.mark.slow
def test_the_page_starts_one_job_says_when_it_is_stale_and_refuses_other_values(study):
    store_judge(study)
    address = reverse("study_calibrated", args=[study.pk])
    sent = {"sample": "random", "are_people_known": "on", "widths": "20 10", "token": "abc"}
    assert client_of(study).post(address, sent).status_code == 403
    assert client_of(study, "coder").get(address).status_code == 403
    editor = client_of(study, "editor")
    for changed in ({"widths": "20 wide"}, {"widths": "1 2 3 4 5 6 7"}, {"n_outputs": "3"}, {"sample": "best"}):
        assert editor.post(address, sent | changed).status_code == 400
    for _ in range(2):
        assert editor.post(address, sent).status_code == 302
    assert Job.objects.filter(kind="calibrate").count() == 1
    jobs.run_waiting_jobs()
    assert CalibratedResult.objects.count() == 1
    assert "Compute again." not in page_of(study)
    store_judge(study, knows=False, name="another")
    (latest,) = latest_results(study)
    assert latest.is_stale and "Compute again." in page_of(study)
    (shown,) = api_of(study.owner).get(f"studies/{study.code}/calibrated/").json()["results"]
    assert shown["is_stale"] and shown["result"] == latest.stored.result
    refused = api_of(study.owner).post(f"studies/{study.code}/calibrated/", {"sample": "random", "widths": [0]})
    assert refused.status_code == 400 and "is not a width" in refused.content.decode()
    with pytest.raises(AppendOnlyViolation):
        CalibratedResult.objects.filter(pk=latest.stored.pk).update(n_assignments=1)


@pytest.mark.slow
def test_while_outcomes_are_hidden_there_is_nothing():
    study = collected()
    store_judge(study)
    lifecycle.unblind(study, None, "a look")
    study.refresh_from_db()
    calibrate(study, CalibrationOptions(), study.owner)
    type(study).objects.filter(pk=study.pk).update(unblinded_at=None)
    study.refresh_from_db()
    with pytest.raises(PermissionDenied):
        request_calibration(study, study.owner, CalibrationOptions())
    text = page_of(study, "editor")
    assert "This page is empty until outcomes are shown" in text
    assert "<form" not in text and not any(name in text for name in STRENGTHS)
    assert api_of(study.owner).get(f"studies/{study.code}/calibrated/").status_code == 403


def test_a_study_without_scores_is_refused(study):
    with pytest.raises(ActionRefused, match="no scores of a metric or judge"):
        request_calibration(study, study.owner, CalibrationOptions())


@pytest.mark.slow
def test_preferences_are_combined_by_pairs_and_a_judge_of_outputs_prefers_the_higher_score():
    study = closed(choice_template(user("ada"), prompts=30, m=5, systems=tuple(STRENGTHS)))
    rows = []
    for system, prompt in Output.objects.filter(system__study=study).values_list("system__name", "prompt__key"):
        rows.append({"system": system, "prompt": prompt, "rule": STRENGTHS[system]})
    described = MetricDescription("metric", "1")
    upload_scores(study, study.owner, "scores.csv", table(rows), ScoresFileSettings(), described)
    (row,) = calibrate(study, CalibrationOptions(), study.owner)
    assert row.result["left_out"] == [] and row.result["systems"] == []
    first = {(pair["first"], pair["second"]): pair["result"]["human"]["estimate"] for pair in row.result["pairs"]}
    assert first["human", "llama-7b"] > 0.7 and len(first) == 3
    assert "human over llama-7b" in page_of(study)


@pytest.mark.parametrize(
    ("family", "system", "is_own"),
    [
        ("Llama", "llama-2-7b", True),
        ("llama", "my llama", True),
        ("GPT", "chatgpt", False),
        ("gpt", "gpt-4", True),
        ("", "a", False),
    ],
)
def test_a_system_belongs_to_a_family_whose_words_its_name_has(family, system, is_own):
    found = families_by_name({"judge": family}, [system])
    assert (found.get(system) is not None and found.get(system) == found.get("judge")) == is_own


@pytest.mark.slow
def test_each_number_of_people_and_judges_names_its_population(study):
    store_judge(study)
    (row,) = calibrate(study, CalibrationOptions(), study.owner)
    named = list(places_of_numbers(row.result).values())
    assert None not in named and named.count("people and prompts") > 5
