"""Stopping rules while a study runs: claims in order, what may be seen, and that a study closes itself once."""

import json
import random

import pytest

from analysis.data.planned_labels import assign_claim_queue_numbers, read_planned_labels_of_claimed_batches
from analysis.report import stopping
from analysis.report.build import build_report
from analysis.report.stopping import apply_stopping_rules, compute_stopping_state, submit_stopping_checks
from annotators.models import Assignment
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import assign, monitor
from annotators.places.exclusions import create_exclusion_reversal, exclude_assignments
from studies.models import AuditEvent, Job, Study
from studies.services import jobs, lifecycle
from tests.builders import choice_study, spa_study, user
from tests.players import MAX_THREE, answered, choosing, claimed, many, open_page, submitted
from tests.races import all_at_once

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]


def now(study):
    return Study.objects.get(pk=study.pk)


def test_claims_are_numbered_in_their_order_and_keep_their_numbers():
    study = choice_study(target_n=5, prompts=12)
    first, second = claimed(study, "a"), claimed(study, "b")
    assert assign_claim_queue_numbers(study) == 2 and assign_claim_queue_numbers(study) == 0
    third = claimed(study, "c")
    assert assign_claim_queue_numbers(study) == 1
    numbers = dict(Assignment.objects.values_list("pk", "queue_number"))
    assert numbers == {first.pk: 1, second.pk: 2, third.pk: 3}


def test_units_wait_for_the_first_open_claim():
    study = choice_study(target_n=5, prompts=12)
    slow = claimed(study, "slow")
    choosing(study, "quick", lambda item: "beta")
    apply_stopping_rules(study)
    assert compute_stopping_state(now(study)).statuses[0].evidence == ()
    assign.release_assignment(slow.pk, "expired")
    assert len(compute_stopping_state(now(study)).statuses[0].evidence) == 1  # who left without a word is passed over


def test_a_released_claim_counts_with_what_it_had_said_and_half_for_the_rest():
    study = choice_study(target_n=5, prompts=12, m=2)
    left = choosing(study, "left", lambda item: "beta", until="s1.p2")
    assign.release_assignment(left.pk, "expired")
    (found,) = compute_stopping_state(now(study)).statuses
    assert found.estimate.estimate == 0.75 and len(found.evidence) == 1
    # The place goes to somebody else; what is sent afterwards is late, and was not there when the claim was passed.
    assert claimed(study, "next").batch_id == left.batch_id
    open_page(left, "s1.p2")
    answered(left, "s1.p2")
    assert Assignment.objects.get(pk=left.pk).is_late
    claims = read_planned_labels_of_claimed_batches(now(study)).rows
    assert claims["is_given"].tolist().count(True) == 1


def test_a_withdrawn_claim_stays_in_its_place_and_says_nothing():
    study = choice_study(target_n=5, prompts=12, m=2)
    gone = choosing(study, "gone", lambda item: "beta")
    apply_stopping_rules(study)
    withdraw_annotator_and_erase_texts(gone)
    assert read_planned_labels_of_claimed_batches(now(study)).rows["is_given"].sum() == 0


def units_of(study):
    return len(compute_stopping_state(now(study)).statuses[0].evidence)


def test_who_failed_the_checks_is_no_unit_and_holds_nobody_up():
    study = choice_study(target_n=5, prompts=12, m=2)
    failed = choosing(study, "failed", lambda item: "beta", until="s1.p2")
    choosing(study, "good", lambda item: "beta")
    assert units_of(study) == 0
    assign.release_assignment(failed.pk, "failed_checks")
    apply_stopping_rules(study)
    assert units_of(study) == 1
    judged = dict(
        Assignment.objects.filter(judged_at__isnull=False).values_list("annotator__external_id", "judged_out")
    )
    assert sorted(judged.values()) == ["", "failed_checks"]


def test_a_claim_is_judged_when_the_rule_passes_it_and_never_again():
    by = user()
    study = choice_study(target_n=9, prompts=20, m=2, by=by)
    early = choosing(study, "early", lambda item: "beta")
    exclude_assignments([early], "own_wish", by)
    later = choosing(study, "later", lambda item: "beta")
    apply_stopping_rules(study)
    before = compute_stopping_state(now(study)).statuses[0]
    assert len(before.evidence) == 1
    exclude_assignments([later], "own_wish", by)
    create_exclusion_reversal(early.exclusions.get(), by)
    choosing(study, "last", lambda item: "alpha")
    apply_stopping_rules(study)
    after = compute_stopping_state(now(study)).statuses[0]
    assert after.evidence[:1] == before.evidence and len(after.evidence) == 2
    lifecycle.start_closing(now(study), by=None)
    lifecycle.end_grace_period(now(study), by=None)
    result = build_report(now(study), {"resamples": 99})
    (notice,) = (one["text"] for one in result["notices"] if one["code"] == "excluded_later")
    assert notice.startswith("1 annotator was excluded after the stopping rule had counted them.")
    (headline,) = (one for block in result["blocks"] for one in block["estimates"] if "sequential" in one["analysis"])
    companion = next(one for one in headline["sensitivity"] if one["analysis"].endswith("all_labels"))
    # The rule counted "later" and "last"; the rules of today keep "early" and "last".
    assert (headline["n"], companion["n"]) == (2, 2)


def test_a_place_that_is_taken_again_changes_nothing_that_the_rule_passed():
    study = choice_study(target_n=5, prompts=12, m=2)
    left = choosing(study, "left", lambda item: "beta", until="s1.p2")
    assign.release_assignment(left.pk, "expired")
    apply_stopping_rules(study)
    (before,) = compute_stopping_state(now(study)).statuses
    answered(Assignment.objects.select_related("study", "recruitment").get(pk=left.pk), "s1.p2")
    assert Assignment.objects.get(pk=left.pk).submitted_at and not Assignment.objects.get(pk=left.pk).released_at
    (after,) = compute_stopping_state(now(study)).statuses
    assert (
        (before.estimate.estimate, before.evidence)
        == (after.estimate.estimate, after.evidence)
        == (0.75, before.evidence)
    )


def test_a_study_that_was_launched_before_counts_as_it_did(settings):
    study = choice_study(target_n=5, prompts=12, m=2, counting_version=1)
    assert "counting_version" not in json.loads(study.designs.get().canonical)
    failed = choosing(study, "failed", lambda item: "beta", until="s1.p2")
    assign.release_assignment(failed.pk, "failed_checks")
    apply_stopping_rules(study)
    assert units_of(study) == 1 and not Assignment.objects.filter(judged_at__isnull=False).exists()
    newer = choice_study(target_n=5, prompts=12, m=2)
    assert json.loads(newer.designs.get().canonical)["counting_version"] == 2


def test_third_labels_stand_outside_the_queue():
    study = choice_study(prompts=2, m=2, target_n=2, **MAX_THREE)
    choosing(study, "a", lambda item: "alpha"), choosing(study, "b", lambda item: "beta")
    monitor.settle_or_top_up_study_items(study)
    choosing(study, "c", lambda item: "beta")
    assign_claim_queue_numbers(study)
    assert Assignment.objects.filter(queue_number=None).count() == 1
    claims = read_planned_labels_of_claimed_batches(now(study)).rows
    assert claims["is_top_up"].sum() == 2
    (found,) = compute_stopping_state(now(study)).statuses
    assert len(found.evidence) == 2


def test_the_study_closes_itself_when_one_is_better_and_tells_the_log_once():
    study = choice_study(target_n=40, prompts=200, m=5)
    many(study, 12, 0.95)
    shown = apply_stopping_rules(study)
    assert shown["is_over"] and now(study).state == "closing"
    apply_stopping_rules(study)
    (event,) = AuditEvent.objects.filter(study=study, verb="decide")
    (told,) = event.data["outcomes"]
    assert told["verdict"] == "a_better" and told["comparison"].startswith("beta > alpha") and told["stopped_at"] <= 12
    assert AuditEvent.objects.filter(study=study, verb="close").count() == 1


@pytest.mark.slow
def test_without_a_difference_it_says_equivalent():
    study = choice_study(target_n=60, prompts=600, m=10, margin=0.15)
    for number in range(60):
        state = [number % 2]

        def alternating(item, state=state):
            state[0] += 1
            return "beta" if state[0] % 2 else "alpha"

        choosing(study, f"p{number}", alternating)
        if number % 10 == 9 and apply_stopping_rules(study)["is_over"]:
            break
    (event,) = AuditEvent.objects.filter(study=study, verb="decide")
    assert event.data["outcomes"][0]["verdict"] == "equivalent"


def test_a_spent_budget_closes_it_too():
    study = choice_study(target_n=4, prompts=8, m=2)
    many(study, 4, 0.5)
    assert apply_stopping_rules(study)["is_over"]
    assert AuditEvent.objects.get(study=study, verb="decide").data["outcomes"][0]["verdict"] == "budget_exhausted"


def test_a_budget_is_not_spent_while_an_item_wants_a_third_label():
    study = choice_study(prompts=2, m=2, target_n=2, **MAX_THREE)
    choosing(study, "a", lambda item: "alpha"), choosing(study, "b", lambda item: "beta")
    assert not apply_stopping_rules(study)["is_over"] and now(study).state == "launched"
    monitor.settle_or_top_up_study_items(study)
    assert not apply_stopping_rules(study)["is_over"]
    choosing(study, "c", lambda item: "beta")
    monitor.settle_or_top_up_study_items(study)
    assert apply_stopping_rules(study)["is_over"]


def test_the_papers_rule_closes_at_the_first_crossing_in_item_order():
    study = choice_study(target_n=30, prompts=60, m=2, settings={"stopping": "first", "delta": 0.01})
    many(study, 4, 1.0)
    assert not apply_stopping_rules(study)["is_over"]
    many(study, 2, 1.0, first=4)  # ten unanimous answers decide at delta .01
    shown = apply_stopping_rules(study)
    assert shown["is_over"] and shown["looks"][0]["points"][-1][1] > 1 and shown["looks"][0]["unit"] == "item"
    (told,) = AuditEvent.objects.get(study=study, verb="decide").data["outcomes"]
    assert (told["verdict"], told["stopped_at"]) == ("a_better", 10)


def test_the_papers_rule_waits_for_the_first_item_that_is_not_answered():
    study = choice_study(target_n=30, prompts=60, m=2, settings={"stopping": "first", "delta": 0.01})
    claimed(study, "slow")
    many(study, 8, 1.0)
    assert apply_stopping_rules(study)["looks"][0]["n"] == 0


def test_what_is_shown_while_blind_tells_no_side():
    """The same answers for either system give the same look, byte for byte."""
    shown = []
    for chance in (0.8, 0.2):
        study = choice_study(target_n=40, prompts=120, m=3)
        rng = random.Random(3)
        for number in range(8):
            better, worse = ("beta", "alpha") if chance > 0.5 else ("alpha", "beta")
            choosing(study, f"p{number}", lambda item, b=better, w=worse, r=rng: b if r.random() < 0.8 else w)
        result = apply_stopping_rules(study)["looks"][0]
        result.pop("remaining")
        shown.append(json.dumps(result))
        assert "verdict" not in result and "estimate" not in result
    assert shown[0] == shown[1]


@pytest.mark.parametrize("rule", ["none", "stays"])
def test_without_a_rule_nobody_looks(rule):
    study = choice_study(target_n=2, prompts=8, m=2, settings={"stopping": rule})
    many(study, 2, 1.0)
    assert submit_stopping_checks() == 0 and apply_stopping_rules(study) == {"looks": [], "is_over": False}
    assert now(study).state == "launched"


def test_a_look_is_asked_for_once_for_what_has_come_and_the_last_one_is_kept():
    study = choice_study(target_n=30, prompts=60, m=2)
    submitted(spa_study(target_n=2), "a")
    assert submit_stopping_checks() == 0
    many(study, 1, 0.5)
    assert submit_stopping_checks() == 1 and submit_stopping_checks() == 1  # it still waits
    jobs.run_waiting_jobs()
    assert submit_stopping_checks() == 0
    many(study, 1, 0.5, first=1)
    assert submit_stopping_checks() == 1
    jobs.run_waiting_jobs()
    (job,) = Job.objects.filter(kind=stopping.KIND)
    assert job.state == "done" and job.result["looks"][0]["n"] == 2
    assert job.result["looks"][0]["remaining"]["labels_left"] == 56


def test_labels_of_other_pairs_are_not_among_those_that_are_left():
    """Of three pairs each annotator sees one: of the thirty that may come a third say something of a comparison."""
    study = choice_study(systems=("alpha", "beta", "gamma"), target_n=30, prompts=60, m=1)
    people = 9
    for number in range(people):
        submitted(study, f"p{number}")
    shown = apply_stopping_rules(study)["looks"]
    rows = read_planned_labels_of_claimed_batches(study).rows
    assert len(shown) == 2 and set(rows.groupby("annotator")["pair"].nunique()) == {1}
    for one in shown:
        assert 2 <= one["n"] < people
        assert one["remaining"]["labels_left"] == round(30 * one["n"] / people) - one["n"]


def test_a_paused_study_may_decide_and_a_closed_one_is_left_alone():
    study = choice_study(target_n=40, prompts=200, m=5)
    many(study, 12, 0.95)
    lifecycle.pause(now(study), by=None)
    assert apply_stopping_rules(now(study))["is_over"] and now(study).state == "closing"
    assert apply_stopping_rules(now(study)) == {"looks": [], "is_over": True}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_many_looks_at_once_close_it_once():
    study = choice_study(target_n=40, prompts=200, m=5)
    many(study, 12, 0.95)
    all_at_once(lambda _: apply_stopping_rules(study), range(6), 6)
    assert AuditEvent.objects.filter(study=study, verb="decide").count() == 1
    assert AuditEvent.objects.filter(study=study, verb="close").count() == 1
    numbers = Assignment.objects.filter(study=study).order_by("pk").values_list("queue_number", flat=True)
    assert list(numbers) == list(range(1, 13))
