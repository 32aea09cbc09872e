"""Files of scores become whole versions of metrics, or nothing; every fault is named with its row."""

from dataclasses import replace

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from analysis.metrics import computed, store
from analysis.metrics.beside_people import read_beside_people, scored_questions
from analysis.metrics.files import ScoresFileSettings, ScoresRefused
from analysis.metrics.store import MetricDescription, upload_scores
from analysis.models import Metric, MetricScore, PairScore
from studies.models import Output, Prompt
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from tests.boards.builders import rating_template
from tests.builders import user

from .scores import rows_of, table

pytestmark = pytest.mark.django_db
JUDGE = MetricDescription("judge", "v1", {"prompt": "Rate it."}, family="acme", scale_low=1, scale_high=5)
RATED = ScoresFileSettings(scale_low=1, scale_high=5)


@pytest.fixture
def study():
    return rating_template(user("ada"), prompts=3, systems=("human", "good"), keys=("clear", "true"))


def send(study, rows, chosen=RATED, described=JUDGE):
    return upload_scores(study, study.owner, "scores.csv", table(rows), chosen, described)


def problems(study, rows, chosen=RATED, described=JUDGE):
    with pytest.raises(ScoresRefused) as refused:
        send(study, rows, chosen, described)
    assert not Metric.objects.exists() and not MetricScore.objects.exists()
    return [str(problem) for problem in refused.value.problems]


def test_each_column_becomes_a_judge_and_a_repeated_file_changes_nothing(study):
    rows = rows_of(study, strict=1, kind=3)
    first = send(study, rows)
    assert [metric.name for metric in first] == ["strict", "kind"]
    assert [metric.n_scores for metric in first] == [6, 6]
    assert [metric.pk for metric in send(study, rows)] == [metric.pk for metric in first]
    assert MetricScore.objects.count() == 12
    with pytest.raises(ActionRefused, match="already has scores of version “v1”"):
        send(study, rows_of(study, strict=2))
    again = send(study, rows_of(study, strict=2), described=replace(JUDGE, version="v2"))
    assert again[0].fingerprint != first[0].fingerprint


def test_a_discarded_judge_makes_room_for_a_corrected_file(study):
    (wrong,) = send(study, rows_of(study, strict=1))
    assert store.discard(wrong, study.owner) and not store.discard(wrong, study.owner)
    (right,) = send(study, rows_of(study, strict=2))
    assert list(store.metrics_in_use(study)) == [right]
    assert MetricScore.objects.filter(metric=wrong).count() == 6


def test_a_column_with_the_question_says_what_the_scores_are_about(study):
    rows = [row | {"question": key} for key in ("clear", "true") for row in rows_of(study, strict=1)]
    assert [metric.question.key for metric in send(study, rows)] == ["clear", "true"]


def test_every_fault_is_named_with_its_row_and_nothing_is_stored(study):
    rows = rows_of(study, strict=1)
    rows[0] |= {"strict": "inf", "version": "1"}
    rows[1] |= {"strict": "7", "version": "2"}
    rows[2] |= {"system": "unknown"}
    rows[3] |= {"strict": "good"}
    rows[4] |= {"run": "0"}
    rows.append(rows[5])
    found = problems(study, rows)
    assert [text.split(":")[0] for text in found] == [
        "column “strict”",
        "row 2, column “strict”",
        "row 3, column “version”",
        "row 3, column “strict”",
        "row 4, column “system”",
        "row 5, column “strict”",
        "row 6, column “run”",
        "row 8",
    ]
    assert "2 of 6 outputs have no score" in found[0] and "Row 7 already has scores" in found[-1]


def test_half_of_the_outputs_must_be_declared(study):
    half = rows_of(study, strict=1)[:3]
    assert "3 of 6 outputs have no score" in problems(study, half)[0]
    assert send(study, half, replace(RATED, is_partial=True))[0].n_scores == 3


def test_constant_scores_are_refused(study):
    rows = [row | {"strict": 3} for row in rows_of(study)]
    assert "All scores (rows 2 to 7) are 3" in problems(study, rows)[0]


def test_a_question_that_does_not_exist_is_refused(study):
    text = problems(study, rows_of(study, strict=1), replace(RATED, question="funny"))[0]
    assert "“funny” is not a question of this study. Use one of: “clear”, “true”." in text


def test_a_scale_needs_two_ends_in_order(study):
    with pytest.raises(ValidationError, match="both ends"):
        send(study, rows_of(study, strict=1), ScoresFileSettings(), replace(JUDGE, scale_high=None))


def test_verdicts_about_pairs_are_shares_or_names(study):
    rows = [
        {"first": "good", "second": "human", "prompt": "p000", "judge": "good"},
        {"first": "human", "second": "good", "prompt": "p000", "judge": "tie"},
        {"first": "good", "second": "human", "prompt": "p001", "judge": ".25"},
    ]
    (metric,) = send(study, rows, ScoresFileSettings(), replace(JUDGE, scale_low=None, scale_high=None))
    assert sorted(PairScore.objects.filter(metric=metric).values_list("value", flat=True)) == [0.25, 0.5, 1.0]


@pytest.mark.parametrize("value", [float("inf"), 1e13])
def test_the_database_refuses_a_score_that_is_not_finite(study, value):
    (metric,) = send(study, rows_of(study, strict=1))
    output = Output.objects.filter(system__study=study).first()
    with pytest.raises(IntegrityError), transaction.atomic():
        MetricScore.objects.create(metric=metric, output=output, run=2, value=value)


def test_metrics_are_computed_beside_the_reference(study):
    Output.objects.filter(system__name="good", prompt__key="p000").update(
        text=Output.objects.get(system__name="human", prompt__key="p000").text
    )
    stored = computed.compute_metrics(study, study.owner, ["exact_match", "token_f1", "chrf", "rouge_l"])
    copied = MetricScore.objects.filter(metric__in=stored, output__prompt__key="p000")
    assert dict(copied.values_list("metric__name", "value")) == {
        "exact_match": 1.0,
        "token_f1": 1.0,
        "chrf": pytest.approx(100.0),
        "rouge_l": 1.0,
    }
    assert {metric.n_scores for metric in stored} == {3}  # the reference itself has no score
    assert all(metric.version for metric in stored)


def test_the_language_is_that_of_the_reference_or_of_the_prompt(study):
    outputs, prompts = Output.objects.filter(prompt__key="p000"), Prompt.objects.filter(key="p000")

    def languages() -> set[str]:
        return {one.language for one in computed.outputs_with_references(study) if one.prompt == "p000"}

    assert languages() == {""}
    prompts.update(language="en")
    assert languages() == {"en"}
    outputs.filter(system__name="human").update(language="nl", text="The old houses")
    outputs.filter(system__name="good").update(text="an old house")
    assert languages() == {"nl"}
    (stored,) = computed.compute_metrics(study, study.owner, ["rouge_1"])
    # English words without their endings would be two of three.
    assert MetricScore.objects.get(metric=stored, output__prompt__key="p000").value == pytest.approx(1 / 3)


def test_slow_metrics_come_after_the_others_and_are_returned_in_the_order_of_the_request(study):
    said = []
    stored = computed.compute_metrics(study, study.owner, ["ter", "token_f1"], lambda *report: said.append(report))
    assert [metric.name for metric in stored] == ["ter", "token_f1"] and stored[1].pk < stored[0].pk
    assert said == [
        (0, 3, "Computing F1 of words"),
        (3, 3, "Computing F1 of words"),
        (0, 3, "Computing TER"),
        (3, 3, "Computing TER"),
    ]


def test_a_metric_that_fails_on_one_output_is_not_stored_at_all_and_names_it(study, monkeypatch):
    def fails(text, references):
        if "3" in text or "2" in text:
            raise ZeroDivisionError("no words")
        return 1.0

    broken = computed.PlugIn("broken", "broken", lambda: "1", lambda: fails)
    monkeypatch.setattr(computed, "available_metrics", lambda: computed.BUILT_IN | {"broken": broken})
    Output.objects.filter(system__name="good", prompt__key="p001").update(text="tale 3")
    with pytest.raises(
        jobs.UserFacingError, match="“broken” failed on the output of “good” for “p00.”: ZeroDivisionError"
    ):
        computed.compute_metrics(study, study.owner, ["broken", "exact_match"])
    whole = Metric.objects.get()
    assert (whole.name, MetricScore.objects.count()) == ("exact_match", whole.n_scores)


def test_scores_are_turned_and_scaled_beside_the_answers(study):
    send(study, rows_of(study, strict=1), described=replace(JUDGE, is_lower_better=True))
    questions = scored_questions(study)
    assert [question.key for question in questions] == ["clear", "true"]
    found, _ = read_beside_people(study, questions)
    assert set(found.scores["value"]) == {1.0, 0.75, 0.5} and found.people.empty
