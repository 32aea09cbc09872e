"""Places: never one too many, never "full" while one is or may become free for this person."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotators.models import Annotator, Assignment, PageVisit, PanelIdentity, Response
from annotators.models.identity import get_person_id, store_person_id
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import assign, places
from studies.models import AuditEvent, Batch, Study
from studies.services import lifecycle
from tests.builders import panel, spa_draft, spa_study
from tests.players import claimed, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def study():
    return spa_study(target_n=2)


def claim(study, person, **options):
    return assign.claim_batch(study, assign.get_or_create_annotator("panel", person), **options)


def counts_are_true(study):
    """``claimed`` of each batch is the number of its assignments that hold a place."""
    for batch in Batch.objects.filter(study=study):
        assert batch.claimed == Assignment.objects.filter(batch=batch, released_at=None).count()
    return True


def test_a_second_claim_gives_the_same_assignment(study):
    first = claimed(study, "w")
    assert claimed(study, "w").pk == first.pk and counts_are_true(study)


def test_no_place_right_now_is_not_full(study):
    claimed(study, "a"), claimed(study, "b")
    assert claim(study, "c").outcome == "wait"
    assert not Assignment.objects.filter(released_reason="full").exists()


def test_full_is_a_row_too_and_only_one(study):
    submitted(study, "a"), submitted(study, "b")
    first, again = claim(study, "c"), claim(study, "c")
    assert first.outcome == again.outcome == "full" and first.assignment.pk == again.assignment.pk
    assert first.assignment.batch_id is None and first.assignment.released_reason == "full"


def test_who_has_done_it_reads_so_and_finds_the_receipt(study):
    done = submitted(study, "a")
    again = claim(study, "a")
    assert again.outcome == "done" and again.assignment.pk == done.pk


def test_the_batch_claimed_least_comes_first_then_the_lowest_number():
    study = spa_study(target_n=4, annotators_per_batch=2)
    assert study.batches.count() == 2
    numbers = [claimed(study, person).batch.number for person in "abcd"]
    assert numbers == [0, 1, 0, 1] and counts_are_true(study)


def test_a_new_person_arrives_with_six_statements_and_their_transaction(client):
    door = panel(spa_study(target_n=2, consent=""))
    client.post(f"/e/{door.key}/?who=a", {"start": "1"})
    with CaptureQueriesContext(connection) as seen:
        assert client.post(f"/e/{door.key}/?who=b", {"start": "1"}).status_code == 302
    statements = [query["sql"].split()[0] for query in seen.captured_queries]
    assert statements == ["SELECT", "SELECT", "SAVEPOINT", "INSERT", "UPDATE", "INSERT", "INSERT", "RELEASE"]
    assert counts_are_true(door.study) and Assignment.objects.count() == 2


def test_a_new_person_gets_no_place_of_a_study_that_was_paused_after_it_was_read(study):
    design = study.designs.get()
    lifecycle.pause(Study.objects.get(pk=study.pk), by=None)
    assert study.state == Study.State.LAUNCHED
    assert assign.claim_batch(study, assign.find_annotator("panel", "a"), design=design).outcome == "paused"
    assert not Assignment.objects.exists() and counts_are_true(study)


def test_places_beyond_open_to_are_not_given():
    study = spa_study(target_n=2)
    lifecycle.open_more_places(study, 1, by=None)
    assert study.batches.count() == 3
    models_open_to = Study.objects.get(pk=study.pk).open_to
    Study.objects.filter(pk=study.pk).update(open_to=2)
    claimed(study, "a"), claimed(study, "b")
    assert claim(study, "c").outcome == "wait"
    Study.objects.filter(pk=study.pk).update(open_to=models_open_to)
    assert claim(study, "c").outcome == "claimed"


def test_a_released_place_goes_to_the_next_and_returns_to_its_own_person(study):
    first = claimed(study, "a")
    claimed(study, "b")
    assign.release_assignment(first.pk, "expired")
    assert claim(study, "a").assignment.pk == first.pk  # revived, not claimed anew
    assign.release_assignment(first.pk, "expired")
    other = claimed(study, "c")
    assert other.batch_id == first.batch_id
    assert claim(study, "a").outcome == "wait" and counts_are_true(study)


def test_a_release_is_given_once(study):
    assignment = claimed(study, "a")
    assert assign.release_assignment(assignment.pk, "returned") and not assign.release_assignment(
        assignment.pk, "returned"
    )
    done = submitted(study, "b")
    assert not assign.release_assignment(done.pk, "expired") and counts_are_true(study)


def test_the_sweeper_releases_what_is_over_and_nothing_else(study):
    over, kept = claimed(study, "a"), claimed(study, "b")
    Assignment.objects.filter(pk=over.pk).update(reserved_until=timezone.now() - timedelta(seconds=1))
    assert assign.release_expired_places() == 1 and assign.release_expired_places() == 0
    assert Assignment.objects.get(pk=over.pk).released_reason == "expired"
    assert Assignment.objects.get(pk=kept.pk).released_at is None and counts_are_true(study)


def test_more_time_is_given_while_the_place_is_held(study):
    assignment = claimed(study, "a")
    assert places.extend_reservation(assignment)
    assert Assignment.objects.get(pk=assignment.pk).reserved_until > assignment.reserved_until + timedelta(minutes=15)
    assign.release_assignment(assignment.pk, "expired")
    assert not places.extend_reservation(assignment)


def test_an_item_already_given_is_not_given_again():
    """Ready-made batches that share an item: an annotator who had the first is not given the second."""
    study = spa_draft(target_n=3, batches_per_annotator=3, prompts=4)
    from tests.builders import launched

    study = launched(study)  # 4 prompts, m = 4: every batch holds the same items
    first = submitted(study, "a")
    assert first.batch_id
    assert claim(study, "a").outcome in ("wait", "full")
    assert claim(study, "b").outcome == "claimed"


def test_several_batches_a_person_up_to_the_limit():
    study = spa_study(target_n=4, batches_per_annotator=2, prompts=16)
    first, second = submitted(study, "a"), submitted(study, "a")
    assert first.batch_id != second.batch_id and (first.ordinal, second.ordinal) == (1, 2)
    assert claim(study, "a").outcome == "done"


def test_paused_and_closed_give_nothing(study):
    inside = claimed(study, "a")
    lifecycle.pause(study, by=None)
    assert claim(study, "b").outcome == "paused" and claim(study, "a").assignment.pk == inside.pk
    lifecycle.resume(study, by=None)
    assert claim(study, "b").outcome == "claimed"
    lifecycle.start_closing(study, by=None)
    assert claim(study, "c").outcome == "closed"


def test_people_of_the_origin_and_of_the_group_are_kept_out(study):
    submitted(study, "a")
    clone = spa_study(target_n=2, title="clone")
    Study.objects.filter(pk=clone.pk)
    from django.db.models import QuerySet

    QuerySet(Study).filter(pk=clone.pk).update(clone_of=study.pk)
    assert claim(clone, "a").outcome == "done" and claim(clone, "b").outcome == "claimed"
    QuerySet(Study).filter(pk=clone.pk).update(keeps_origin_out=False)
    assert claim(clone, "a").outcome == "claimed"
    QuerySet(Study).filter(pk=study.pk).update(exclusion_group="tales")
    grouped = spa_study(target_n=2, title="grouped", exclusion_group="tales")
    assert claim(grouped, "a").outcome == "done"


def test_who_was_turned_away_because_full_may_join_elsewhere(study):
    submitted(study, "a"), submitted(study, "b")
    claim(study, "c")
    from django.db.models import QuerySet

    QuerySet(Study).filter(pk=study.pk).update(exclusion_group="tales")
    grouped = spa_study(target_n=2, title="grouped", exclusion_group="tales")
    assert claim(grouped, "c").outcome == "claimed"


def test_withdrawing_before_submission_frees_the_place_and_blanks_words(study):
    assignment = submitted(study, "a", comment="I am Kim", until="s4")
    PageVisit.objects.filter(assignment=assignment, key="s4").update(draft={"s4.q1": ["I am Kim"]})
    store_person_id(assignment.annotator, "kim-77")
    assert get_person_id(assignment.annotator) == "kim-77"
    withdraw_annotator_and_erase_texts(assignment)
    assignment = Assignment.objects.get(pk=assignment.pk)
    assert assignment.released_reason == "withdrawn" and assignment.withdrawn_at
    assert get_person_id(assignment.annotator) is None and counts_are_true(study)
    assert not PageVisit.objects.filter(assignment=assignment).exclude(draft=None).exists()
    assert claim(study, "a").outcome == "barred" and claim(study, "b").outcome == "claimed"
    assert AuditEvent.objects.filter(verb="withdraw", assignment_code=assignment.code).count() == 1


@pytest.mark.parametrize("blanks", [False, True])
def test_withdrawing_after_submission_keeps_the_place(blanks):
    study = spa_study(target_n=2, withdrawal_blanks_ratings=blanks)
    assignment = submitted(study, "a", comment="I am Kim")
    before = Response.objects.filter(assignment=assignment).count()
    assert withdraw_annotator_and_erase_texts(assignment) == 1 and withdraw_annotator_and_erase_texts(assignment) == 0
    rows = Response.objects.filter(assignment=assignment)
    assert rows.count() == before and not rows.exclude(text="").exists()
    assert rows.filter(value__isnull=False).exists() is not blanks
    assert Batch.objects.get(pk=assignment.batch_id).claimed == 1 and counts_are_true(study)


def test_the_raw_id_is_stored_enciphered_alone():
    annotator = assign.get_or_create_annotator("panel", "worker-A1B2")
    store_person_id(annotator, "worker-A1B2"), store_person_id(annotator, "worker-A1B2")
    row = PanelIdentity.objects.get()
    assert b"A1B2" not in bytes(row.ciphertext) and "A1B2" not in annotator.external_id
    assert assign.get_or_create_annotator("panel", "worker-A1B2").pk == annotator.pk
    assert assign.get_or_create_annotator("elsewhere", "worker-A1B2").pk != annotator.pk
    assert assign.get_or_create_annotator("open_link", "").pk != assign.get_or_create_annotator("open_link", "").pk
    assert Annotator.objects.count() == 4


def test_a_cap_is_never_passed(study):
    assert study.cap == 3
    lifecycle.open_more_places(study, 1, by=None)
    with pytest.raises(lifecycle.ActionRefused, match="capped at 3"):
        lifecycle.open_more_places(study, 1, by=None)
    assert Batch.objects.filter(study=study).aggregate(n=Sum("wanted"))["n"] == 3


def test_who_was_given_nothing_is_not_compared_with_what_batches_hold():
    # PostgreSQL planned that comparison anew for each placement of a study that it had no statistics of: minutes for 100 batches.
    study = spa_study(target_n=4, with_surveys=False)
    new = assign.get_or_create_annotator("panel", "new")
    with CaptureQueriesContext(connection) as asked:
        assert assign.claim_batch(study, new).outcome == "claimed"
    (choice,) = [q["sql"] for q in asked if "ORDER BY" in q["sql"] and "claimed" in q["sql"] and "LIMIT 1" in q["sql"]]
    assert "EXISTS" not in choice
