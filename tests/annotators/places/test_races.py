"""Many at once: nothing lost, nothing doubled, no place given twice, no deadlock. On SQLite and on PostgreSQL."""

import random
from collections import Counter
from datetime import timedelta
from threading import Event

import pytest
from django.db import connection, connections, transaction
from django.test import Client
from django.utils import timezone

from annotators.models import Annotator, Assignment, PageVisit, Response
from annotators.pages.record import AssignmentClosed, ConflictingAnswers, PageOutOfOrder, full_page_state
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import assign, places
from annotators.places.barrings import bar_annotator, is_barred
from tests.annotators.places.sending import came_of
from tests.builders import humanlike_draft, launched, recruitment, spa_study, user
from tests.players import answered, claimed, open_page, plausible, submitted
from tests.races import all_at_once, counts_are_true

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]


def claim(study):
    """A claim as a link's page makes it: it creates a person who is new, too."""
    design = study.designs.get()
    return lambda person: assign.claim_batch(study, assign.find_annotator("panel", person), design=design).outcome


def test_every_person_gets_one_place_however_many_tabs_they_open():
    study = spa_study(target_n=12)
    tabs = [f"p{n % 12}" for n in range(36)]
    random.Random(1).shuffle(tabs)
    assert set(all_at_once(claim(study), tabs, 12)) == {"claimed"}
    assert Assignment.objects.filter(study=study).count() == 12 and counts_are_true(study)
    assert Annotator.objects.count() == 12


@pytest.mark.slow
def test_no_more_people_than_places():
    study = spa_study(target_n=5, annotators_per_batch=2)
    outcomes = Counter(all_at_once(claim(study), [f"p{n}" for n in range(30)], 12))
    assert outcomes == {"claimed": 6, "wait": 24} and counts_are_true(study)


def test_who_cannot_wait_and_presses_twice_or_gets_a_place_at_that_moment_has_one_row():
    study = spa_study(target_n=6)
    door = recruitment(study)

    def acts(at):
        person, leaves = at
        annotator = assign.get_or_create_annotator("panel", person)
        if leaves:
            return assign.record_turned_away_annotator(study, annotator, door).pk
        return assign.claim_batch(study, annotator, door).assignment.pk

    # Six people press twice; in two other tabs four of them get one of the six places.
    tabs = [(f"p{n}", True) for n in range(6) for _ in range(2)] + [
        (f"p{n}", False) for n in range(4) for _ in range(2)
    ]
    random.Random(2).shuffle(tabs)
    all_at_once(acts, tabs, 12)
    rows = Counter(Assignment.objects.filter(study=study).values_list("annotator", "released_reason"))
    assert set(rows.values()) == {1} and counts_are_true(study)
    assert sum(reason == "" for _, reason in rows) == 4


def places_by_arm(study):
    """How many places of each arm are taken: by who has submitted and who is at work."""
    held = Assignment.objects.filter(study=study, released_at=None).values_list("batch__arm__name", flat=True)
    return Counter(held)


@pytest.mark.slow
def test_conditions_stay_balanced_over_who_finished_and_who_is_at_work():
    conditions = ("none", "instructions", "examples", "comparison")
    study = launched(humanlike_draft(conditions=conditions, domains=("news",), target_n=32))
    assert set(all_at_once(claim(study), [f"a{n}" for n in range(20)], 10)) == {"claimed"}
    assert sorted(places_by_arm(study).values()) == [5, 5, 5, 5]
    # Seven leave, all those of one condition among them; those who come next take their places, not new ones.
    gone = list(Assignment.objects.filter(study=study, batch__arm__condition="comparison"))
    gone += list(Assignment.objects.filter(study=study, batch__arm__condition="none").order_by("pk")[:2])
    all_at_once(lambda pk: assign.release_assignment(pk, "returned"), [a.pk for a in gone], 7)
    all_at_once(claim(study), [f"b{n}" for n in range(7)], 7)
    assert sorted(places_by_arm(study).values()) == [5, 5, 5, 5] and counts_are_true(study)
    all_at_once(claim(study), [f"c{n}" for n in range(12)], 12)
    assert sorted(places_by_arm(study).values()) == [8, 8, 8, 8]
    arms = Assignment.objects.filter(study=study).values_list("annotator", "batch__arm").distinct()
    assert arms.count() == Assignment.objects.filter(study=study).values("annotator").distinct().count()


def test_a_page_that_is_sent_while_its_draft_is_being_saved_is_stored_whole():
    study = spa_study(target_n=8)
    begun = [submitted(study, f"w{n}", until="s2.ask") for n in range(8)]
    sent = {one.code: plausible(one, rng=random.Random(one.pk)) for one in begun}

    def acts(at):
        code, is_draft = at
        return came_of(code, "s2.ask", sent[code] | ({"save": "auto"} if is_draft else {}))

    for one in begun:
        assert Client().get(f"/p/{one.code}/s2.ask/").status_code == 200
    acting = [(one.code, is_draft) for one in begun for is_draft in (True, False, True)]
    outcomes = Counter(all_at_once(acts, acting, 12))
    # Too late for a draft: 409.
    assert outcomes["s3.p1"] == 8 and set(outcomes) <= {"s3.p1", 200, 409}
    for visit in PageVisit.objects.filter(assignment__in=begun, key="s2.ask"):
        assert visit.recorded_at and visit.draft is None
    assert Response.objects.filter(assignment__in=begun, slot__startswith="s2.").count() == 8 * 4


def test_a_page_sent_by_many_at_once_is_stored_once():
    study = spa_study(target_n=1)
    assignment = submitted(study, "w", until="s2.ask")
    _, page, asks = open_page(assignment)
    answers = [plausible(assignment, rng=random.Random(n % 2)) for n in range(12)]
    outcomes = Counter(all_at_once(lambda data: came_of(assignment.code, page.key, data), answers, 12))
    assert outcomes == {"s3.p1": 6, 409: 6}
    assert Response.objects.filter(assignment=assignment, slot__startswith="s2").count() == len(asks)


@pytest.mark.slow
def test_last_pages_race_the_sweeper_and_nothing_is_lost():
    """Each finished answer set is either in time or late, never gone; the place is given to at most one."""
    study = spa_study(target_n=10)
    people = [submitted(study, f"p{n}", until="s4") for n in range(10)]
    for assignment in people:
        open_page(assignment)
    Assignment.objects.update(reserved_until=timezone.now() - timedelta(seconds=1))

    def act(what):
        kind, assignment = what
        if kind == "sweep":
            return assign.release_expired_places()
        if kind == "claim":
            return assign.claim_batch(study, assign.get_or_create_annotator("panel", f"new{assignment.pk}")).outcome
        return answered(assignment, "s4").next_key

    acts = [(kind, assignment) for assignment in people for kind in ("send", "sweep", "claim")]
    random.Random(5).shuffle(acts)
    all_at_once(act, acts, 10)
    assert Assignment.objects.filter(pk__in=[a.pk for a in people], submitted_at__isnull=False).count() == 10
    assert counts_are_true(study)


@pytest.mark.only_on("postgresql")  # one writer at a time cannot lock another out
def test_sixty_last_pages_race_sixty_takeovers_of_their_places():
    """Every lapsed place is wanted by its person, who sends the last page, and by a newcomer: all work is stored, in time or late."""
    study = spa_study(target_n=60)
    people = [submitted(study, f"p{n}", until="s4") for n in range(60)]
    for assignment in people:
        open_page(assignment)
    Assignment.objects.update(reserved_until=timezone.now() - timedelta(seconds=1))

    def act(what):
        kind, assignment = what
        if kind == "send":
            return answered(assignment, "s4").next_key
        assign.release_assignment(assignment.pk, "expired", only_if_expired=True)
        return assign.claim_batch(study, assign.get_or_create_annotator("panel", f"new{assignment.pk}")).outcome

    acts = [(kind, assignment) for assignment in people for kind in ("send", "take over")]
    random.Random(6).shuffle(acts)
    outcomes = Counter(all_at_once(act, acts, 60))
    finished = Assignment.objects.filter(pk__in=[a.pk for a in people], submitted_at__isnull=False)
    assert finished.count() == 60 and counts_are_true(study)
    assert outcomes[None] == 60 and outcomes["claimed"] + outcomes["wait"] + outcomes["full"] == 60
    # Whose place a newcomer has is late, and nobody else.
    assert finished.filter(is_late=True).count() == finished.exclude(released_at=None).count() <= outcomes["claimed"]


def play(study, seed):
    """One person who does as people do: starts, dawdles, loses the place, comes back, finishes or leaves."""
    rng = random.Random(seed)
    outcome = "?"
    for _ in range(3):
        claim = assign.claim_batch(study, assign.get_or_create_annotator("panel", f"p{rng.randint(0, 25)}"))
        outcome = claim.outcome
        if outcome != "claimed":
            continue
        assignment = claim.assignment
        for _ in range(rng.randint(1, 8)):
            act = rng.random()
            try:
                if act < 0.6:
                    loaded = Assignment.objects.select_related("study").get(pk=assignment.pk)
                    key = full_page_state(loaded).next_key
                    if key is None:
                        break
                    answered(loaded, key)
                elif act < 0.75:
                    assign.release_assignment(assignment.pk, "expired")
                elif act < 0.85:
                    assign.revive_assignment(assignment.pk)
                elif act < 0.9:
                    assign.release_expired_places()
                elif act < 0.95:
                    places.extend_reservation(Assignment.objects.select_related("study").get(pk=assignment.pk))
                else:
                    withdraw_annotator_and_erase_texts(Assignment.objects.select_related("study").get(pk=assignment.pk))
                    break
            except (AssignmentClosed, PageOutOfOrder, ConflictingAnswers):
                continue
    return outcome


@pytest.mark.parametrize("people, threads", [(24, 8), pytest.param(300, 30, marks=pytest.mark.slow)])
def test_people_doing_everything_at_once(people, threads):
    study = spa_study(target_n=15, annotators_per_batch=2)
    all_at_once(lambda seed: play(study, seed), range(people), threads)
    assert counts_are_true(study)
    late = Assignment.objects.filter(study=study, is_late=True)
    assert not late.filter(released_at=None).exists()
    doubled = Counter(Response.objects.filter(assignment__study=study).values_list("assignment", "slot"))
    assert not doubled or max(doubled.values()) == 1
    finished = Assignment.objects.filter(study=study, submitted_at__isnull=False, withdrawn_at=None)
    assert all(full_page_state(a).next_key is None for a in finished)


@pytest.mark.only_on("postgresql")  # SQLite has no row locks to skip
def test_full_is_not_said_while_a_claim_may_yet_be_undone():
    """A transaction that holds the last place and rolls back: the other person waits for it, and gets the place."""
    from threading import Event, Thread

    from django.db import transaction

    study = spa_study(target_n=1)
    held, outcomes = Event(), []

    def hold_and_undo():
        try:
            with transaction.atomic():
                claimed(study, "first")
                held.set()
                connection.cursor().execute("SELECT pg_sleep(0.5)")
                raise RuntimeError
        except RuntimeError:
            pass
        finally:
            connections.close_all()

    holder = Thread(target=hold_and_undo)
    holder.start()
    assert held.wait(10)
    outcomes.append(claim(study)("second"))
    holder.join()
    assert outcomes == ["claimed"] and counts_are_true(study)


@pytest.mark.slow
def test_a_claim_waits_for_a_barring_that_is_being_made():
    """Without the lock of the annotator, the claim would not see the barring, and give a further batch."""
    researcher = user("researcher")
    study = spa_study(researcher, target_n=9, batches_per_annotator=3)
    annotator = submitted(study, "a").annotator
    is_made, may_end = Event(), Event()

    def bar():
        with transaction.atomic():
            bar_annotator(study, annotator, "Copies.", researcher)
            is_made.set()
            may_end.wait(3)
        return "barred"

    def come_back():
        assert is_barred(study, annotator.pk) is False  # opens the connection, which takes long
        is_made.wait(30)
        return assign.claim_batch(study, annotator).outcome

    assert all_at_once(lambda act: act(), [bar, come_back], 2) == ["barred", "no_further"]
