"""A judge's check: what is drawn, what is computed from answers, and when a result is stale."""

from dataclasses import replace
from random import Random

import pytest

from analysis.metrics import store
from analysis.metrics.judge_check import measuring
from analysis.metrics.judge_check.measuring import (
    compute_result,
    draw_check,
    draw_sample,
    find_state,
    inclusion_probabilities,
    newest_check,
    read_sampled_rows,
)
from analysis.models import JudgeCheckOutput
from studies.models import Arm, Batch, Item, Section, Study
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused
from tests.analysis.report.populations import numbers_with_intervals, places_of_numbers

from .builders import JUDGE, checked_study, chosen, closed, judged_draft, store_judge

pytestmark = pytest.mark.django_db


def test_each_output_is_drawn_as_often_as_its_probability_says():
    sizes = {unit: 1 + unit % 4 for unit in range(12)} | {99: 200.0}
    wanted = inclusion_probabilities(sizes, 5)
    assert sum(wanted.values()) == pytest.approx(5) and wanted[99] == 1
    times = dict.fromkeys(sizes, 0)
    for seed in range(4000):
        drawn = draw_sample(wanted, 5, Random(seed))
        assert len(set(drawn)) == 5
        for unit in drawn:
            times[unit] += 1
    assert {unit: n / 4000 for unit, n in times.items()} == pytest.approx(wanted, abs=0.04)


def test_only_sampled_outputs_become_items_and_a_new_draw_replaces_them():
    study = judged_draft()
    judge = store_judge(study)
    draw_check(study, study.owner, chosen(study, judge, n_test=30))
    check = draw_check(study, study.owner, chosen(study, judge, n_test=12, n_development=5, certainty_ratio=4))
    shown = Item.objects.filter(study=study).values_list("exposures__output", flat=True)
    sampled = dict(JudgeCheckOutput.objects.filter(judge_check=check).values_list("output", "part"))
    assert set(shown) == set(sampled) and sorted(sampled.values()) == ["development"] * 5 + ["test"] * 12
    study.refresh_from_db()
    assert (study.batches.count(), study.annotators_per_batch, study.target_n) == (2, 3, 6)
    probabilities = JudgeCheckOutput.objects.filter(judge_check=check).values_list("probability", flat=True)
    assert len({round(p, 6) for p in probabilities}) > 1 and newest_check(study) == check


@pytest.mark.slow
@pytest.mark.parametrize(
    "judges_say, verdict",
    [(lambda output, person, is_yes: is_yes, "good"), (lambda output, person, is_yes: not is_yes, "not_good")],
)
def test_a_judge_is_good_enough_if_every_interval_ends_above_what_was_declared(judges_say, verdict):
    study, check = checked_study(
        says=lambda output, person, is_yes: judges_say(output, person, is_yes) != ((output + person) % 11 == 0),
        n_test=35,
        n_development=5,
        min_true_positive_rate=0.6,
        needs_alternative_test=True,
        certainty_ratio=2,
    )
    assert find_state(check).state == "open"
    result = compute_result(closed(study), study.owner)
    assert result.verdict == verdict, result.result["criteria"]
    assert result.n_labels == 35 * 6 and result.result["n_people"] == 6
    assert result.result["development"]["n_labels"] == 5 * 6
    assert find_state(check).state == verdict
    test = result.result["test"]
    assert test["agreement"]["agreement"]["settings"]["is_weighted"]
    assert {group["group"] for group in test["groups"]["system"]["groups"]} == {"alpha", "beta"}
    sampled = JudgeCheckOutput.objects.filter(judge_check=check, part="test").values_list("output__text", flat=True)
    lengths = sorted(map(len, sampled))
    n_long = sum(length > lengths[17] for length in lengths)
    by_length = {one["group"]: one["agreement"]["n_rows"] for one in test["groups"]["length"]["groups"]}
    assert n_long > 0 and by_length == {"long texts": 6 * n_long, "short texts": 6 * (35 - n_long)}
    assert test["probes"]["family"] and test["probes"]["length"] and test["probes"]["repeat"] is None


@pytest.mark.slow
def test_a_newer_judge_or_another_guideline_makes_the_result_stale():
    study, check = checked_study(min_agreement=0.4)
    lifecycle.unblind(study, study.owner, "The judge is checked.")
    study = Study.objects.get(pk=study.pk)
    assert compute_result(study, study.owner).verdict == find_state(check).state == "good"
    newer = store_judge(study, replace(JUDGE, version="v2", parameters={"prompt": "Is it?"}), lambda n: 5 - n % 5)
    assert find_state(check).state == "stale" and "newer version, v2" in find_state(check).reason
    assert compute_result(study, study.owner).judge == newer and find_state(check).state == "not_good"
    store.discard(newer, study.owner)
    assert find_state(check).state == "stale"
    compute_result(study, study.owner)
    assert find_state(check).state == "good"
    changes = {"question": {check.question_id: {"help": "Be strict."}}}
    lifecycle.amend(study, changes, study.owner, "The guideline was unclear.")
    assert find_state(newest_check(study)).reason == "the guideline changed"


REFUSALS = [
    ({"n_test": 99}, "The sample has 99 outputs, but the judge scored 40"),
    ({"threshold": 9}, "Enter a score from 1 to 5"),
]


@pytest.mark.parametrize("declared, words", REFUSALS)
def test_what_cannot_be_drawn_is_refused(declared, words):
    study = judged_draft()
    with pytest.raises(ActionRefused, match=words):
        draw_check(study, study.owner, chosen(study, store_judge(study), **declared))
    assert newest_check(study) is None


def test_a_study_that_cannot_hold_the_sample_is_refused():
    study = judged_draft(prompts=6)
    declared = chosen(study, store_judge(study), n_test=5)
    other = Arm.objects.create(study=study, name="other")
    with pytest.raises(ActionRefused, match="one arm"):
        draw_check(study, study.owner, declared)
    batch = Batch.objects.create(study=study, arm=other, number=0, origin="imported", key="of a file")
    Arm.objects.filter(name="all").delete()
    with pytest.raises(ActionRefused, match="ready-made batches of a file"):
        draw_check(study, study.owner, declared)
    Batch.objects.filter(pk=batch.pk).delete()
    Section.objects.create(study=study, position=2, protocol="rating", m=1, settings={})
    with pytest.raises(ActionRefused, match="Only one section may show outputs"):
        draw_check(study, study.owner, declared)


@pytest.mark.slow
def test_each_number_of_a_check_names_its_population():
    study, _ = checked_study(
        says=lambda output, person, is_yes: is_yes != ((output + person) % 11 == 0), n_test=35, n_development=5
    )
    named = list(places_of_numbers(compute_result(closed(study), study.owner).result).values())
    assert None not in named and named.count("people and prompts") > 8


def estimates(result) -> dict[str, float]:
    """Every estimate of a stored result by its place, without the tests of single people."""
    return {
        path: one["estimate"]
        for path, one in numbers_with_intervals(result)
        if one.get("estimate") is not None and ".people." not in path
    }


@pytest.mark.slow
def test_every_number_about_all_outputs_weighs_each_by_its_draw(monkeypatch):
    study, _ = checked_study(
        says=lambda output, person, is_yes: is_yes != (Random(f"{output} {person}").random() < 0.25),
        n_test=35,
        n_development=5,
        certainty_ratio=2,
    )
    study = closed(study)
    before = estimates(compute_result(study, study.owner).result)

    def with_other_weights(check, judge):
        rows = read_sampled_rows(check, judge)
        weights = [Random(output).uniform(1, 3) for output in rows.labels["output"]]
        return replace(rows, labels=rows.labels.assign(weight=weights))

    monkeypatch.setattr(measuring, "read_sampled_rows", with_other_weights)
    after = estimates(compute_result(study, study.owner).result)
    assert before.keys() == after.keys() and len(before) > 12
    # The alternative annotator test compares people with the judge in the sample. A share of none or all has no weights.
    moved = {name: value for name, value in before.items() if ".alternative." not in name and 0 < value < 1}
    assert not [name for name, value in moved.items() if value == after[name]] and len(moved) > 12


@pytest.mark.slow
def test_a_judge_turned_round_gives_the_same_check():
    """A judge whose high scores are good, and the same one whose low scores are good, with the threshold at the same place."""

    def checked(described, score, threshold):
        study, check = checked_study(
            says=lambda output, person, is_yes: is_yes != (person == 0),
            described=described,
            score=score,
            threshold=threshold,
            n_test=20,
            n_people=4,
            certainty_ratio=6,
        )
        columns = ("output__prompt__key", "output__system__name", "part", "probability")
        drawn = [(*facts, round(p, 9)) for *facts, p in check.outputs.values_list(*columns).order_by(*columns)]
        return drawn, estimates(compute_result(closed(study), study.owner).result["test"])

    high_drawn, high = checked(JUDGE, lambda number: 1 + number % 5, 4.0)
    low_drawn, low = checked(replace(JUDGE, is_lower_better=True), lambda number: 5 - number % 5, 2.0)
    assert len({p for *_, p in high_drawn}) > 2, "uncertain outputs are drawn more often"
    assert high_drawn == low_drawn
    assert high == pytest.approx(low) and len(high) > 12
