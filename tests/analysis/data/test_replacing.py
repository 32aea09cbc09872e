"""Whoever leaves the count is replaced once, up to the cap, and nobody else is."""

import pytest

from analysis import tasks
from analysis.data import planned_labels
from annotators.models import Assignment
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import exclusions
from studies.models import AuditEvent, Batch, Study
from studies.services import lifecycle
from tests import builders
from tests.analysis.protocols.answers import answer

pytestmark = pytest.mark.django_db
FAST = [("too_fast", {"words_per_minute": 700, "z": None})]


def opened(study):
    return study.batches.filter(origin=Batch.Origin.REPLACEMENT)


def study_of(**columns):
    return builders.spa_study(builders.user(), with_surveys=False, rules=FAST, target_n=4, **columns)


def test_a_target_of_people_kept_replaces_whom_a_blind_rule_finds():
    study = study_of(target_kind="kept")
    answer(study, 2)
    fast = answer(study, 1, seconds=1)
    assert tasks.open_places_replacing_excluded_annotators() == 1
    assert [batch.copy_of_id for batch in opened(study)] == [fast[0].batch_id]
    assert AuditEvent.objects.get(verb="reopen").assignment_code == fast[0].code
    assert tasks.open_places_replacing_excluded_annotators() == 0 and opened(study).count() == 1


def test_a_target_of_people_submitted_replaces_none_of_them_unless_excluded_by_hand():
    study = study_of(replaces_excluded=True)
    (fast,) = answer(study, 1, seconds=1)
    assert tasks.open_places_replacing_excluded_annotators() == 0
    exclusions.exclude_assignments([fast], "technical", study.owner)
    assert tasks.open_places_replacing_excluded_annotators() == 1


def test_a_study_that_wants_no_replacement_gets_none():
    study = study_of()
    exclusions.exclude_assignments(answer(study, 1), "technical", study.owner)
    assert tasks.open_places_replacing_excluded_annotators() == 0


def test_a_rule_that_looks_at_outcomes_replaces_nobody():
    study = builders.spa_study(
        builders.user(), with_surveys=False, rules=[("incoherent", {"tau": 1.1})], target_n=4, target_kind="kept"
    )
    answer(study, 2, percent=lambda person, x, y: 90)
    assert planned_labels.uncounted_submitted_assignment_ids(study) == set()


def test_who_withdrew_after_submitting_is_replaced_where_people_kept_are_counted():
    study = study_of(target_kind="kept")
    (gone,) = answer(study, 1)
    withdraw_annotator_and_erase_texts(gone)
    assert tasks.open_places_replacing_excluded_annotators() == 1


def test_robots_and_late_answers_are_not_replaced():
    study = study_of(target_kind="kept")
    answer(study, 1, seconds=1, origin="robot")
    (late,) = answer(study, 1, seconds=1)
    Assignment.objects.filter(pk=late.pk).update(is_late=True, released_at=late.submitted_at, released_reason="expired")
    assert tasks.open_places_replacing_excluded_annotators() == 0


def test_the_cap_holds_and_who_comes_first_is_replaced_first():
    study = study_of(target_kind="kept", target_cap=5)
    everybody = answer(study, 3, seconds=1)
    assert tasks.open_places_replacing_excluded_annotators() == 1
    assert Assignment.objects.get(replaced_at__isnull=False) == everybody[0]
    assert tasks.open_places_replacing_excluded_annotators() == 0
    assert lifecycle.count_opened_places_towards_cap(Study.objects.get(pk=study.pk)) == 5


def test_a_place_opened_by_hand_is_not_opened_again():
    study = study_of(target_kind="kept")
    exclusions.exclude_assignments(answer(study, 1), "technical", study.owner, should_reopen_places=True)
    assert tasks.open_places_replacing_excluded_annotators() == 0 and opened(study).count() == 1


def test_nothing_is_opened_while_a_study_is_paused_or_closed():
    study = study_of(target_kind="kept")
    answer(study, 1, seconds=1)
    lifecycle.pause(study, by=None)
    assert tasks.open_places_replacing_excluded_annotators() == 0
    assert planned_labels.create_replacement_places(study) == 0
    lifecycle.resume(study, by=None)
    assert tasks.open_places_replacing_excluded_annotators() == 1


def test_the_collecting_page_says_who_counts(client):
    study = study_of(target_kind="kept", target_cap=5)
    answer(study, 2)
    answer(study, 2, seconds=1)
    tasks.open_places_replacing_excluded_annotators()
    client.force_login(study.owner)
    page = client.get(f"/admin/studies/study/{study.pk}/collecting/").content.decode()
    assert "<b>3</b> of 4 submitted and not replaced" in page
    assert "The cap of 5 places is reached" in page
