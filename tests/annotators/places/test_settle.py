"""Labelling strategies while a study runs: a third label for those in disagreement alone, one worker for all where that is wanted."""

import random
from collections import Counter

import pytest
from django.db.models import Count

from annotators.models import Assignment, Response
from annotators.pages.record import full_page_state
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import assign, monitor
from annotators.places.exclusions import exclude_assignments
from studies.models import AuditEvent, Batch, Item, Study
from studies.services import lifecycle
from tests.annotators.places.claiming import outcome
from tests.builders import choice_study, spa_study, user
from tests.players import MAX_THREE, answered, choosing, claimed, open_page, submitted
from tests.races import all_at_once, counts_are_true

pytestmark = pytest.mark.postgres


def labels_of(study) -> Counter:
    """How many labels each item has that count."""
    rows = Response.objects.filter(assignment__in=monitor.submitted_and_not_replaced_assignments(study))
    return Counter(rows.values_list("item", flat=True))


def places_of(study) -> Counter:
    found = Counter()
    for item, wanted in Item.objects.filter(study=study).values_list("pk", "placements__batch__wanted"):
        found[item] += wanted or 0
    return found


@pytest.mark.django_db
def test_only_items_in_disagreement_get_a_third_label():
    study = choice_study(prompts=4, m=2, target_n=4, **MAX_THREE)
    disputed = Item.objects.filter(study=study).order_by("number").first().pk
    for person in "abcd":
        # a and c have the first batch: claims go to the batch with the fewest people.
        choosing(study, person, lambda item, p=person: "beta" if item == disputed and p == "c" else "alpha")
    assert outcome(study, "e") == "wait"  # nobody has looked yet, so an item may need a third
    assert monitor.settle_or_top_up_study_items(study) == 1
    settled = set(Item.objects.filter(settled_at__isnull=False).values_list("pk", flat=True))
    assert settled == set(Item.objects.filter(study=study).values_list("pk", flat=True)) - {disputed}
    (top_up,) = Batch.objects.filter(origin="top_up")
    assert (top_up.wanted, [p.item_id for p in top_up.placements.all()]) == (1, [disputed])
    assert monitor.settle_or_top_up_study_items(study) == 0  # its place is open: nothing is asked for twice
    # Those who had the item are not given it again; somebody new is.
    third = choosing(study, "f", lambda item: "beta")
    assert third.submitted_at and third.batch == top_up
    assert outcome(study, "g") == "wait"
    assert monitor.settle_or_top_up_study_items(study) == 0 and not Item.objects.filter(settled_at=None).exists()
    assert outcome(study, "g") == "full"
    assert labels_of(study)[disputed] == 3 and set(labels_of(study).values()) == {2, 3}
    assert AuditEvent.objects.filter(study=study, verb="top up").count() == 1


@pytest.mark.django_db
def test_a_top_up_waits_for_m_items_while_other_places_are_open():
    study = choice_study(prompts=8, m=2, target_n=8, **MAX_THREE)
    choosing(study, "a", lambda item: "alpha")
    disputed = []

    def against(item):
        disputed.append(item)
        return "beta" if len(disputed) == 1 else "alpha"

    # e shares the first batch with a.
    for person in "bcd":
        choosing(study, person, lambda item: "alpha")
    choosing(study, "e", against)
    assert monitor.settle_or_top_up_study_items(study) == 0 and not Batch.objects.filter(origin="top_up").exists()
    disputed.clear()
    choosing(study, "f", against)
    assert monitor.settle_or_top_up_study_items(study) == 2
    assert Batch.objects.get(origin="top_up").placements.count() == 2


@pytest.mark.django_db
def test_a_withdrawal_does_not_unsettle_and_a_replacement_does():
    study = choice_study(prompts=2, m=2, target_n=2, withdrawal_blanks_ratings=True, **MAX_THREE)
    owner = user("owner", is_superuser=True)
    first, second = (choosing(study, person, lambda item: "alpha") for person in "ab")
    monitor.settle_or_top_up_study_items(study)
    withdraw_annotator_and_erase_texts(first)
    assert monitor.settle_or_top_up_study_items(study) == 0 and not Item.objects.filter(settled_at=None).exists()
    exclude_assignments([second], "technical", by=owner, should_reopen_places=True)
    assert monitor.settle_or_top_up_study_items(study) == 0
    assert Item.objects.filter(settled_at=None).count() == 2
    choosing(study, "c", lambda item: "beta")
    monitor.settle_or_top_up_study_items(study)
    assert max(labels_of(study).values()) <= 3


@pytest.mark.django_db
def test_a_late_answer_is_no_label():
    study = choice_study(prompts=2, m=2, target_n=2, **MAX_THREE)
    late = choosing(study, "late", lambda item: "beta", until="s1.p2")
    open_page(late)
    assign.release_assignment(late.pk, "expired")
    for person in "ab":
        choosing(study, person, lambda item: "alpha")
    answered(late, "s1.p2")
    assert Assignment.objects.get(pk=late.pk).is_late
    assert monitor.settle_or_top_up_study_items(study) == 0 and not Item.objects.filter(settled_at=None).exists()


@pytest.mark.django_db
def test_a_retired_item_and_other_strategies_keep_nobody_waiting():
    study = choice_study(prompts=2, m=2, target_n=1)
    submitted(study, "a")
    assert monitor.settle_or_top_up_study_items(study) == 0 and outcome(study, "b") == "full"
    assert monitor.settle_or_top_up_study_items(spa_study(target_n=1)) == 0


@pytest.mark.django_db
def test_a_closed_study_is_not_topped_up():
    study = choice_study(prompts=2, m=2, target_n=2, **MAX_THREE)
    choosing(study, "a", lambda item: "alpha"), choosing(study, "b", lambda item: "beta")
    lifecycle.start_closing(study, by=None)
    assert monitor.settle_or_top_up_study_items(study) == 0 and not Batch.objects.filter(origin="top_up").exists()


@pytest.mark.django_db
def test_third_places_are_beyond_the_cap_and_do_not_count_as_places():
    study = choice_study(prompts=2, m=2, target_n=2, target_cap=2, **MAX_THREE)
    choosing(study, "a", lambda item: "alpha"), choosing(study, "b", lambda item: "beta")
    assert (
        monitor.settle_or_top_up_study_items(study) == 2
        and lifecycle.count_opened_places_towards_cap(Study.objects.get(pk=study.pk)) == 2
    )
    assert outcome(study, "c") == "claimed"


@pytest.mark.django_db
def test_the_fixed_worker_gets_every_batch_in_order_and_nobody_else_any():
    study = choice_study(
        prompts=8, m=2, target_n=4, batches_per_annotator=4, settings={"strategy": "fixed", "stopping": "none"}
    )
    first = claimed(study, "a")
    assert first.batch.number == 0 and outcome(study, "b") == "wait"
    numbers = []
    for _ in range(4):
        numbers.append(submitted(study, "a").batch.number)
        assert outcome(study, "b") == ("wait" if len(numbers) < 4 else "full")
    assert numbers == [0, 1, 2, 3]


@pytest.mark.django_db
def test_a_fixed_worker_who_leaves_early_makes_room_for_another():
    study = choice_study(
        prompts=8, m=2, target_n=4, batches_per_annotator=4, settings={"strategy": "fixed", "stopping": "none"}
    )
    first = claimed(study, "a")
    assign.release_assignment(first.pk, "returned")
    assert claimed(study, "b").batch.number == 0 and outcome(study, "c") == "wait"


@pytest.mark.django_db(transaction=True)
def test_one_of_many_becomes_the_fixed_worker():
    study = choice_study(
        prompts=8, m=2, target_n=4, batches_per_annotator=4, settings={"strategy": "fixed", "stopping": "none"}
    )
    found = Counter(all_at_once(lambda person: outcome(study, person), [f"p{n}" for n in range(12)], 12))
    assert found == {"claimed": 1, "wait": 11}


@pytest.mark.parametrize("people, threads", [(40, 8), pytest.param(200, 24, marks=pytest.mark.slow)])
@pytest.mark.django_db(transaction=True)
def test_an_item_never_gets_a_fourth_label_in_a_race(people, threads):
    """People choose at random, dawdle and lose their places, while settling runs at the same time, often twice at once."""
    study = choice_study(prompts=12, m=3, target_n=8, **MAX_THREE)

    def act(n):
        rng = random.Random(n)
        if n % 3 == 0:
            return monitor.settle_or_top_up_study_items(study)
        claim = assign.claim_batch(Study.objects.get(pk=study.pk), assign.get_or_create_annotator("panel", f"p{n}"))
        if claim.outcome != "claimed":
            return claim.outcome
        assignment = claim.assignment
        while (key := full_page_state(assignment).next_key) is not None:
            if rng.random() < 0.1:
                assign.release_assignment(assignment.pk, "expired")
            answered(assignment, key, rng)
            assignment = Assignment.objects.select_related("study").get(pk=assignment.pk)
        return "submitted"

    all_at_once(act, range(people), threads)
    for n in range(60):  # the rest, one after the other, until nobody is wanted any more
        monitor.settle_or_top_up_study_items(study)
        if act(1000 + 3 * n + 1) == "full":
            break
    else:
        raise AssertionError("the study never filled")
    assert counts_are_true(study)
    assert set(labels_of(study).values()) <= {2, 3} and len(labels_of(study)) == 12
    assert max(places_of(study).values()) <= 3
    for item in Item.objects.filter(study=study).annotate(n=Count("placements")):
        rows = Response.objects.filter(
            assignment__in=monitor.submitted_and_not_replaced_assignments(study), item=item
        ).order_by("received_at", "pk")
        chosen = list(rows.values_list("chosen__output__system", flat=True))
        assert (len(chosen) == 3) == (chosen[0] != chosen[1]), chosen
        assert item.settled_at
