"""Periodic work: expired places, ended grace periods, erased ids, counts that must be true."""

from datetime import timedelta

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from annotators import tasks
from annotators.models import Assignment
from annotators.models.identity import get_person_id, store_person_id
from annotators.places import assign
from studies.models import Batch, Item, Study
from studies.services import lifecycle
from tests.annotators.closed_studies import closed_long_ago
from tests.builders import choice_study, spa_study
from tests.players import MAX_THREE, choosing, claimed, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def test_raw_ids_go_when_the_last_of_a_persons_studies_is_over():
    first, second = spa_study(title="one", erase_after_days=30), spa_study(title="two", erase_after_days=30)
    assignment = submitted(first, "kim", external_ids={"session": "S1"})
    store_person_id(assignment.annotator, "kim")
    submitted(second, "kim")
    closed_long_ago(first, 31)
    assert tasks.erase_due_person_and_panel_ids() == 0 and get_person_id(assignment.annotator) == "kim"
    assert Assignment.objects.get(pk=assignment.pk).external_ids == {}
    closed_long_ago(second, 29)
    assert tasks.erase_due_person_and_panel_ids() == 0
    QuerySet(Study).filter(pk=second.pk).update(
        closed_at=timezone.now() - timedelta(days=31),
        launched_at=timezone.now() - timedelta(days=40),
        closing_at=timezone.now() - timedelta(days=32),
    )
    assert tasks.erase_due_person_and_panel_ids() == 1 and get_person_id(assignment.annotator) is None
    assert tasks.erase_due_person_and_panel_ids() == 0


def test_places_go_back_and_grace_periods_end():
    study = spa_study(grace_seconds=60)
    assignment = claimed(study, "a")
    Assignment.objects.filter(pk=assignment.pk).update(reserved_until=timezone.now() - timedelta(seconds=1))
    assert tasks.release_expired_places() == 1
    lifecycle.start_closing(study, by=None)
    assert tasks.end_due_grace_periods_and_release_places() == 0


def closing_since(study, seconds: int) -> Study:
    lifecycle.start_closing(study, by=None)
    then = timezone.now() - timedelta(seconds=seconds)
    QuerySet(Study).filter(pk=study.pk).update(launched_at=then - timedelta(hours=1), closing_at=then)
    return study


def state_of(study) -> str:
    return Study.objects.get(pk=study.pk).state


def test_a_closing_study_closes_when_nobody_is_inside():
    """People who are still inside have the grace period; a study just closed waits for people who claim in this moment."""
    study = spa_study(target_n=4, grace_seconds=7200)
    inside = claimed(study, "a")
    closing_since(study, 90)
    assert tasks.end_due_grace_periods_and_release_places() == 0 and state_of(study) == "closing"
    assign.release_assignment(inside.pk, "expired")
    assert tasks.end_due_grace_periods_and_release_places() == 1 and state_of(study) == "closed"
    just_now = closing_since(spa_study(target_n=4, grace_seconds=7200, title="just now"), 1)
    assert tasks.end_due_grace_periods_and_release_places() == 0 and state_of(just_now) == "closing"


def test_a_closing_study_waits_for_third_labels():
    study = choice_study(prompts=4, m=2, target_n=4, grace_seconds=7200, **MAX_THREE)
    for person in "abcd":
        choosing(study, person, lambda item, p=person: "beta" if p == "c" else "alpha")
    closing_since(study, 90)
    assert tasks.end_due_grace_periods_and_release_places() == 0 and state_of(study) == "closing"
    Item.objects.filter(study=study).update(settled_at=timezone.now())
    assert tasks.end_due_grace_periods_and_release_places() == 1 and state_of(study) == "closed"


def test_a_wrong_count_is_found():
    study = spa_study()
    claimed(study, "a")
    assert tasks.log_miscounted_batches() == 0 and assign.find_miscounted_batches() == []
    Batch.objects.filter(study=study, claimed=1).update(claimed=0)
    assert tasks.log_miscounted_batches() == 1
