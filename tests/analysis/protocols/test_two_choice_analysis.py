"""The report of two choices: known answers in, the decision, its cost, agreement and sides out."""

import random
from datetime import timedelta

import pytest
from django.db.models import F

from analysis.report.build import build_report
from analysis.report.stopping import apply_stopping_rules
from annotators.models import PageVisit, Response
from annotators.places import monitor
from annotators.places.exclusions import exclude_assignments
from studies.models import Batch, Item, Question, Study
from studies.services import lifecycle
from tests.attention import play, study_with_checks
from tests.builders import add_choice, choice_study, draft_study, launched, user
from tests.players import choosing, claimed, many, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]
FAST = {"resamples": 99}


def closed(study):
    study = Study.objects.get(pk=study.pk)
    if study.state in ("launched", "paused"):
        lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return Study.objects.get(pk=study.pk)


def report_of(study):
    result = build_report(closed(study), FAST)
    assert not result["problems"], result["problems"]
    return result, {one["name"]: one for one in result["tables"]}


def block(result, name, mode="recommended"):
    return next(b for b in result["blocks"] if b["name"] == name and b["mode"] == mode)


@pytest.mark.slow
def test_an_anytime_valid_decision_with_the_papers_beside_it():
    study = choice_study(target_n=40, prompts=200, m=5, margin=0.1)
    many(study, 12, 0.95)
    apply_stopping_rules(study)
    result, tables = report_of(study)
    (row,) = tables["choices"]["rows"]
    assert (row["rule"], row["outcome"], row["recovered"], row["logged"]) == (
        "anytime-valid",
        "x is better",
        "recovered",
        "x is better",
    )
    assert row["stopped"] <= 12 and row["paper_outcome"] == "x is better" and row["stays_n"] >= row["paper_n"] >= 14
    (said,) = result["conclusions"]
    assert (
        said["claim"] == "beta was chosen over alpha on naturalness, for exactly these 60 prompts."
        and "stopping rule decided after" in said["text"]
    )
    assert "confidence sequence" in said["text"]
    assert "stopped" in {notice["code"] for notice in result["notices"]}
    assert "below_target" not in {notice["code"] for notice in result["notices"]}
    (effort,) = tables["choice_effort"]["rows"]
    assert effort["labels"] == effort["items"] == 60 and effort["each"] == 1 and effort["open"] == 0
    assert effort["overrun"] == 5 * (12 - row["stopped"])
    assert any(one["name"] == "choices" for one in result["figures"])
    beside = block(result, "choice.preference")["estimates"][0]["sensitivity"][0]
    assert beside["test"] is None and beside["estimate"] > 0.9


@pytest.mark.slow
def test_a_fixed_n_is_tested_as_one():
    study = choice_study(target_n=20, prompts=100, m=5, settings={"stopping": "none"})
    many(study, 20, 0.8)
    result, tables = report_of(study)
    (row,) = tables["choices"]["rows"]
    assert (row["rule"], row["outcome"], row["stopped"]) == ("fixed n", "x is better", None)
    estimate = block(result, "choice.preference")["estimates"][0]
    assert estimate["test"]["family"] == "primary" and "stopping rule" not in result["conclusions"][0]["text"]


@pytest.mark.slow
def test_equivalence_at_a_fixed_n_is_at_the_level_of_its_comparison():
    study = draft_study(systems=("alpha", "beta"), prompts=60, target_n=12, instructions="")
    add_choice(study, m=5, margin=0.2, stopping="none")
    study.contrasts.update(level=0.1)
    study = launched(study)
    many(study, 12, 0.5)
    result, _ = report_of(study)
    (estimate,) = block(result, "choice.preference")["estimates"]
    tost = next(one for one in estimate["sensitivity"] if one["analysis"] == "choice.preference.equivalence")
    assert tost["settings"]["significance"] == 0.1 and tost["interval"]["level"] == pytest.approx(0.8)


def test_a_budget_that_ran_out_is_said():
    study = choice_study(target_n=6, prompts=12, m=2, margin=0.05)
    many(study, 6, 0.5)
    apply_stopping_rules(study)
    result, tables = report_of(study)
    (row,) = tables["choices"]["rows"]
    assert row["outcome"] == row["logged"] == "not decided by all planned annotators"
    assert "and the stopping rule has not decided" in result["conclusions"][0]["text"]


@pytest.mark.slow
def test_a_budget_is_that_of_the_study_and_not_of_a_pair():
    """With m = 2 of three pairs nobody has seen them all; with third labels more people come than the target says."""
    study = choice_study(systems=("alpha", "beta", "gamma"), target_n=6, prompts=12, m=2)
    many(study, 6, 0.5)
    apply_stopping_rules(study)
    _, tables = report_of(study)
    rows = [row for row in tables["choices"]["rows"] if row["rule"] == "anytime-valid"]
    assert (
        [row["outcome"] for row in rows]
        == [row["logged"] for row in rows]
        == ["not decided by all planned annotators"] * 2
    )
    study = choice_study(prompts=4, m=2, target_n=4, annotators_per_batch=2, settings={"strategy": "max_three"})
    # The first and the third have one batch; what they disagree on goes to the top-up, and the fourth place stays open.
    for person, system in (("first", "alpha"), ("second", "alpha"), ("third", "beta")):
        choosing(study, person, lambda item, system=system: system)
    assert monitor.settle_or_top_up_study_items(study) == 2
    batches = [claimed(study, person).batch.origin for person in ("fourth", "fifth")]
    assert sorted(batches) == ["drawn", "top_up"]
    choosing(study, ("fourth", "fifth")[batches.index("top_up")], lambda item: "beta")
    _, tables = report_of(study)
    assert [row["outcome"] for row in tables["choices"]["rows"]] == ["open"]


@pytest.mark.slow
def test_third_labels_decide_items_and_no_share():
    study = choice_study(
        prompts=40, m=10, target_n=8, annotators_per_batch=2, settings={"strategy": "max_three", "stopping": "none"}
    )
    many(study, 8, 0.5, seed=9)
    thirds = monitor.settle_or_top_up_study_items(study)
    person = 0
    while Batch.objects.filter(study=study, claimed=0).exists():
        choosing(study, f"third{person}", lambda item: "beta")
        person += 1
        assert monitor.settle_or_top_up_study_items(study) == 0
    result, tables = report_of(study)
    (effort,) = tables["choice_effort"]["rows"]
    assert effort["labels"] == 80 + thirds and effort["items"] == effort["answered"] == 40 and effort["open"] == 0
    share = block(result, "choice.preference")["estimates"][0]
    # Those who gave third labels, all of them for beta, are not among them.
    assert (share["n"], share["n_rows"]) == (8, 80) and thirds > 10


def test_a_third_label_stays_one_when_the_first_is_left_out():
    """That it is the second of those who are left does not make it one that was asked for whatever the others said."""
    study = choice_study(
        prompts=2, m=2, target_n=2, annotators_per_batch=2, settings={"strategy": "max_three", "stopping": "none"}
    )
    first = choosing(study, "first", lambda item: "alpha")
    choosing(study, "second", lambda item: "beta")
    assert monitor.settle_or_top_up_study_items(study) == 2
    choosing(study, "third", lambda item: "beta")
    exclude_assignments([first], "too_fast", user("administrator", is_superuser=True))
    result, _ = report_of(study)
    share = block(result, "choice.preference")["estimates"][0]
    assert (share["n"], share["n_rows"], share["estimate"]) == (1, 2, 1.0)


def test_an_annotator_who_replaces_a_third_label_gives_one():
    """The place of a third label that is opened again is one: it enters no share, no stopping rule, and asks nothing else."""
    study = choice_study(
        prompts=2, m=2, target_n=2, target_cap=2, annotators_per_batch=2, settings={"strategy": "max_three"}
    )
    for person, system in (("first", "alpha"), ("second", "beta")):
        choosing(study, person, lambda item, system=system: system)
    monitor.settle_or_top_up_study_items(study)
    for person in ("third", "stand-in"):
        assignment = choosing(study, person, lambda item: "beta")
        exclude_assignments(
            [assignment], "technical", user("administrator", is_superuser=True), should_reopen_places=True
        )
    choosing(study, "last", lambda item: "beta")
    assert set(Batch.objects.filter(study=study, number__gt=0).values_list("origin", flat=True)) == {"top_up"}
    result, _ = report_of(study)
    (estimate,) = block(result, "choice.preference")["estimates"]
    beside = estimate["sensitivity"][0]
    assert estimate["n"] == beside["n"] == 2 and (beside["estimate"], beside["n_rows"]) == (0.5, 4)


@pytest.mark.slow
def test_while_third_labels_are_missing_the_papers_bound_ends_at_the_first_open_item(same_orders):
    """Items without a third label are those in disagreement: the others alone would look unanimous."""
    study = choice_study(
        prompts=40, m=10, target_n=8, annotators_per_batch=2, settings={"strategy": "max_three", "stopping": "none"}
    )
    numbers = dict(Item.objects.filter(study=study).values_list("pk", "number"))
    for number in range(8):  # the first four have a batch each, the others share them
        choosing(study, f"p{number}", lambda item, n=number: "beta" if n > 3 and numbers[item] % 3 == 0 else "alpha")
    result, tables = report_of(study)
    (paper,) = block(result, "choice.preference", "paper")["estimates"]
    (effort,) = tables["choice_effort"]["rows"]
    assert (effort["open"], effort["answered"], paper["detail"]["n_answers"]) == (13, 27, 2)
    assert "open_items" in {warning["code"] for warning in paper["warnings"]}


@pytest.mark.slow
def test_an_item_that_lacks_a_label_has_no_answer_yet():
    """Of three, two that agree would be one and two that differ none: what is left of a person's items would look unanimous."""
    study = choice_study(
        prompts=24,
        m=6,
        target_n=12,
        annotators_per_batch=3,
        settings={"strategy": "majority", "workers": 3, "stopping": "none"},
    )
    rng = random.Random(3)
    made = [choosing(study, f"p{number}", lambda item: rng.choice(["alpha", "beta", "beta"])) for number in range(12)]
    exclude_assignments([made[0]], "technical", user("administrator", is_superuser=True))
    result, tables = report_of(study)
    (paper,) = block(result, "choice.preference", "paper")["estimates"]
    (effort,) = tables["choice_effort"]["rows"]
    assert (effort["items"], effort["open"], effort["answered"], paper["detail"]["n_answers"]) == (24, 6, 18, 18)
    labels = {}
    for answer in Response.objects.exclude(assignment=made[0]).select_related("chosen__output__system"):
        labels.setdefault(answer.item_id, []).append(answer.chosen.output.system.name == "beta")
    full = [sum(mine) > 1 for mine in labels.values() if len(mine) == 3]
    assert paper["estimate"] == pytest.approx(sum(full) / 18) and len(full) == 18
    assert len({tuple(sorted(mine)) for mine in labels.values() if len(mine) == 2}) > 1


@pytest.mark.slow
def test_ties_count_half_and_are_no_answer_of_an_item():
    study = choice_study(prompts=40, m=5, target_n=8, settings={"allows_tie": True, "stopping": "none"})
    for number in range(8):
        turns = iter(["beta", "tie", "tie", "beta", "alpha"])
        choosing(study, f"p{number}", lambda item, turns=turns: next(turns))
    result, tables = report_of(study)
    estimate = block(result, "choice.preference")["estimates"][0]
    assert estimate["estimate"] == pytest.approx(0.6) and estimate["detail"]["n_ties"] == 16
    (effort,) = tables["choice_effort"]["rows"]
    assert effort["answered"] == 24 and effort["labels"] == 40


def test_agreement_is_coded_by_side_and_by_system():
    study = choice_study(
        prompts=30,
        m=10,
        target_n=9,
        annotators_per_batch=3,
        settings={"strategy": "majority", "workers": 3, "stopping": "none"},
    )
    many(study, 9, 0.9)
    result, tables = report_of(study)
    rows = {row["what"]: row for row in tables["choice_agreement"]["rows"]}
    # Nine in ten agree on the system: by its own uneven shares kappa is near 0, by sides, which change, it is the observed agreement's.
    by_system, by_side = (rows[f"Fleiss' kappa by {word}"] for word in ("system", "side of the screen"))
    assert by_system["estimate"] < 0.35 and by_system["observed"] > 0.7
    assert rows["Gwet's AC1 by system"]["estimate"] > by_system["estimate"]
    assert by_side["n"] == 30
    (effort,) = tables["choice_effort"]["rows"]
    assert effort["labels"] == 90 and effort["answered"] == 30
    assert {row["strategy"] for row in tables["choice_replays"]["rows"]} == {
        "one worker",
        "max three workers",
        "3 workers",
    }


@pytest.mark.slow
def test_an_annotator_who_chooses_a_side_is_seen():
    study = choice_study(prompts=100, m=10, target_n=10, settings={"stopping": "none"})
    for number in range(10):
        choosing(study, f"p{number}", lambda item: "A")
    _, tables = report_of(study)
    (row,) = tables["choice_sides"]["rows"]
    assert row["first"] == 1.0 and row["balanced"] == pytest.approx(0.5)


@pytest.mark.slow
def test_three_systems_are_ranked_and_unplanned_pairs_are_reported():
    study = choice_study(
        systems=("alpha", "beta", "gamma"), prompts=60, m=6, target_n=20, settings={"stopping": "none"}
    )
    rng = random.Random(2)
    worth = {"alpha": 0, "beta": 1, "gamma": 2}

    def prefer(item):
        from studies.models import Exposure

        names = sorted(Exposure.objects.filter(item=item).values_list("output__system__name", flat=True), key=worth.get)
        return names[1] if rng.random() < 0.85 else names[0]

    for number in range(20):
        choosing(study, f"p{number}", prefer)
    result, tables = report_of(study)
    assert [row["x"] + row["y"] for row in tables["choices"]["rows"]] == ["betaalpha", "gammabeta", "alphagamma"]
    assert len(result["conclusions"]) == 2
    assert [row["system"] for row in tables["ranking"]["rows"]] == ["gamma", "beta", "alpha"]


def test_an_interval_is_beside_the_level_of_its_rule():
    study = choice_study(systems=("alpha", "beta", "gamma"), prompts=24, m=3, target_n=8)
    for number in range(8):
        submitted(study, f"p{number}")
    _, tables = report_of(study)
    # Two planned comparisons decide at half the error each; the third decides nothing.
    held = {row["x"] + row["y"]: (row["rule"], row["level"]) for row in tables["choices"]["rows"]}
    assert held["betaalpha"] == held["gammabeta"] == ("anytime-valid", "97.5 %")
    assert held["alphagamma"] == ("fixed n", "95 %")


def test_several_criteria_are_compared_each_apart():
    from studies.models import Contrast, Section
    from tests.builders import add_choice, draft_study, launched

    study = draft_study(systems=("alpha", "beta"), prompts=30, target_n=6, instructions="")
    section = add_choice(study, m=5, stopping="none")
    Question.objects.create(
        section=section,
        position=2,
        key="overall",
        text="Which is better?",
        scale={"kind": "output"},
        help="All in all.",
        criterion="overall",
    )
    assert Section.objects.count() == 1 and Contrast.objects.count() == 1
    study = launched(study)
    many(study, 6, 0.8)
    _, tables = report_of(study)
    assert [row["about"] for row in tables["choices"]["rows"]] == ["naturalness", "overall"]


def test_nobody_yet_is_no_error():
    study = choice_study(target_n=4)
    result = build_report(closed(study), FAST)
    assert not result["problems"] and not [b for b in result["blocks"] if b["name"].startswith("choice.")]


def test_the_same_data_give_the_same_bytes():
    from analysis.stats.results import json_safe

    study = choice_study(target_n=10, prompts=50, m=5)
    many(study, 10, 0.6)
    study = closed(study)
    assert json_safe(build_report(study, FAST)) == json_safe(build_report(study, FAST))


def test_the_work_time_of_a_label_is_that_of_its_page():
    study = choice_study(systems=("alpha", "beta", "gamma"), prompts=24, m=3, target_n=4, settings={"stopping": "none"})
    people = [submitted(study, f"p{number}") for number in range(4)]
    for seconds, person in zip((8, 10, 14, 0), people, strict=True):
        PageVisit.objects.filter(assignment=person).update(active_seconds=seconds)
    # The browser of the last one counted nothing, and it is unknown when one page was shown.
    visits = PageVisit.objects.filter(assignment=people[3], key__startswith="s1.p")
    visits.update(recorded_at=F("shown_at") + timedelta(seconds=30))
    visits.filter(key="s1.p2").update(shown_at=None)
    result, tables = report_of(study)
    *rows, total = tables["choice_times"]["rows"]
    # 8, 10 and 14 three times each, 30 twice.
    assert (total["contrast"], total["median"], total["n"], total["people"], total["untimed"]) == (
        "all comparisons",
        10.0,
        11,
        4,
        1,
    )
    assert total["mean"] == pytest.approx(156 / 11) and total["quartiles"] == [9, 14]
    assert len(rows) == 3 and sum(row["n"] for row in rows) == 11 and sum(row["untimed"] for row in rows) == 1
    assert block(result, "choice.times")["estimates"][-1]["unit"] == "label"


def test_labels_that_share_a_page_have_no_time_of_their_own():
    study = draft_study(systems=("alpha", "beta"), prompts=12, target_n=3, instructions="")
    section = add_choice(study, m=4, stopping="none")
    question = section.questions.get()
    question.pk, question.key, question.position = None, "second", question.position + 1
    question.save()
    study = launched(study)
    for number in range(3):
        PageVisit.objects.filter(assignment=submitted(study, f"p{number}")).update(active_seconds=9)
    _, tables = report_of(study)
    for row in tables["choice_times"]["rows"]:
        assert row["median"] is None and row["n"] == 0 and "share its time" in row["reason"] and row["untimed"]


def test_a_page_with_an_attention_check_has_no_work_time():
    study = study_with_checks("two_choice")
    person = play(claimed(study, "p"), 0)
    PageVisit.objects.filter(assignment=person).update(active_seconds=9)
    # An archive keeps no page as it was shown.
    PageVisit.objects.filter(assignment=person).update(shown={})
    _, tables = report_of(study)
    n_labels = person.responses.filter(question__section__protocol="two_choice").count()
    rows = [row for row in tables["choice_times"]["rows"] if row["contrast"] != "all comparisons"]
    assert sum(row["untimed"] for row in rows) == 3 and sum(row["n"] for row in rows) == n_labels - 3 > 0
