"""Walks to and behind the last page: every outcome, pay, ways back, decisions, objections, messages, parts, and the place on the way."""

import re
from datetime import timedelta

from django.test import Client
from django.utils import timezone

from annotators.models import (
    Appeal,
    Assignment,
    Inquiry,
    PanelOrder,
    PanelSubmission,
    PanelTask,
    Payment,
    Verdict,
)
from annotators.models.identity import store_person_id
from annotators.participation.withdrawal import answer_inquiry
from annotators.pay.decisions import answer_appeal, create_appeal, create_rejection_reversal
from annotators.places import assign
from annotators.places.barrings import bar_annotator, bar_flagged_annotators, lift_barring
from annotators.places.batch_plan import create_test_batch_and_assignment
from annotators.places.places import new_limited_address
from annotators.recruitment.channels.generic import invitation_token
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from studies.models import Arm, Study, StudyMember
from studies.services import lifecycle
from tests import builders
from tests.annotators.places.passing_time import close, give_away, pass_time
from tests.annotators.recruitment.channels.sona.stand_in import SECRETS as SONA_SECRETS
from tests.annotators.recruitment.channels.sona.stand_in import SETTINGS as SONA_SETTINGS
from tests.annotators.views.visitors import DOORS, ENDS, Person, door_of, undone
from tests.attention import add_attention, wrong_answers
from tests.builders import panel, promised, recruitment, user
from tests.players import claimed
from tests.pseudo_language import give_pseudo_language
from tests.samples import sample_draft

from .foreign import in_foreign_letters, launched_abroad
from .walking import LONG, WORDS, answer_all, fresh, look, next_key, path_of, send, time_goes, walk
from .walks_of_entry import FACTS
from .walks_of_work import fail_the_test, quiz

AFTER = ("done/", "withdraw/", "question/", "consent/", "appeal/", "parts/")


def brief_draft(**columns) -> Study:
    """A draft with three pages."""
    draft = builders.draft_study(systems=("alpha", "beta"), prompts=12, instructions="", **{"target_n": 8} | columns)
    builders.add_rating(draft, position=1, m=3)
    return draft


@walk
def ends_by_every_channel() -> None:
    study = launched_abroad(brief_draft())
    for name in DOORS:
        for end in ("finished", "released: withdrawn", "released: full") if name != "generic" else ENDS:
            with undone():
                channel, door = door_of(study, name)
                person = Person(channel, door)
                mine = ENDS[end][0](person)
                look(mine, "done/")
                if mine.batch_id is None:
                    Client().post(path_of(mine, "s1/"), {"ы": WORDS})


@walk
def ends_of_many_kinds() -> None:
    for columns in (FACTS | {"withdrawal_blanks_ratings": True}, {"contact": "", "debriefing": "", "consent": ""}):
        study = launched_abroad(brief_draft(**columns))
        for pays in ({}, {"withdrawn": "share", "fault": "all", "screened_out": "0.10", "full": "0.10"}):
            for channel in ("generic", "open_link") if pays else ("generic",):
                door = promised(recruitment(study, channel, settings={"return_complete": ""}), **pays)
                for end in (
                    "finished",
                    "finished late",
                    "finished and left",
                    "released: withdrawn",
                    "closed before an answer",
                ):
                    with undone():
                        ending = ENDS[end][0](Person(*_door(channel, door)))
                        look(ending, "done/")
                        Client().post(path_of(ending, "question/"), {"text": WORDS})


def _door(slug, door):
    from annotators.recruitment.channels import REGISTRY

    return REGISTRY[slug], door


@walk
def ends_without_a_link() -> None:
    study = launched_abroad(brief_draft())
    look(answer_all(claimed(study, "anna")), *AFTER)
    two = claimed(study, "bert")
    look(two, "withdraw/")
    Client().post(path_of(two, "withdraw/"), {"leave": "1"})
    look(two, *AFTER)


@walk
def parts_of_different_pay() -> None:
    draft = brief_draft()
    draft.arms.update(name="one", reward=1, minutes=1)
    Arm.objects.create(study=draft, name="two", reward=2, minutes=2)
    study = launched_abroad(draft)
    for person in ("anna", "bert", "cara"):
        for door in (recruitment(study), recruitment(study, reward="3.00")):
            one = claimed(study, f"{person}{door.pk}", door)
            look(one, "")
            look(answer_all(one), "done/")


@walk
def leaving() -> None:
    for columns in ({}, {"withdrawal_blanks_ratings": True, "contact": ""}):
        study = launched_abroad(brief_draft(**columns))
        for promise in ("share", "nothing", "0.20"):
            for n_sent in (0, 1, 2, 3) if promise == "share" else (1, 3):
                door = promised(panel(study), withdrawn=promise) if n_sent else recruitment(study, promises="")
                one = claimed(study, f"{promise}{n_sent}", door, is_consented=True, external_ids={"session": "S"})
                if n_sent == 2:
                    store_person_id(one.annotator, "W")
                for _ in range(n_sent):
                    send(one)
                look(one, "withdraw/")
                if n_sent == 1:
                    _inquire(one)
                Client().post(path_of(one, "withdraw/"), {"leave": "1"})
                look(one, "done/")
                if n_sent == 1:
                    _inquire(one)
    study, other = launched_abroad(brief_draft()), launched_abroad(brief_draft())
    one = claimed(study, "anna", panel(study))
    claimed(other, "anna", panel(other))
    store_person_id(one.annotator, "W")
    look(one, "withdraw/")
    Client().post(path_of(one, "withdraw/"), {"leave": "1"})
    look(one, "done/")


def _inquire(one: Assignment) -> None:
    for kind, text in (
        ("question", WORDS),
        ("report", " "),
        ("report", LONG),
        ("question", "ы\x01"),
        ("report", WORDS * 2),
    ):
        Client().post(path_of(one, "question/?page=s1.p1"), {"kind": kind, "text": text}, follow=True)


@walk
def messages_to_the_researchers(patched) -> None:
    from annotators.views import pages

    owner = user("owner")
    for columns in ({"owner": owner}, {"owner": owner, "contact": ""}):
        study = launched_abroad(brief_draft(**columns), owner)
        one = claimed(study, f"anna{len(columns)}", panel(study), is_consented=True)
        look(one, "question/", "question/?page=s1.p1")
        _inquire(one)
        first, second, *_ = Inquiry.objects.filter(assignment=one).order_by("pk")
        answer_inquiry(first, WORDS, owner)
        Inquiry.objects.filter(pk=second.pk).update(handled_at=timezone.now())
        look(one, "question/")
        patched.setattr(pages, "MAX_INQUIRIES", 2)
        Client().post(path_of(one, "question/"), {"text": WORDS})
        patched.undo()


@walk
def consent_read_again() -> None:
    for shares in (False, True):
        study = launched_abroad(brief_draft(asks_to_share_preferences=True, **FACTS))
        for is_consented in (False, True):
            one = claimed(
                study, f"anna{is_consented}", panel(study), is_consented=is_consented, shares_preferences=shares
            )
            look(one, "consent/", "")
    look(claimed(launched_abroad(brief_draft(consent="")), "anna"), "consent/")


def _at_work(study: Study, person: str, door) -> Assignment:
    one = claimed(study, person, door)
    look(one, "")
    send(one)
    look(one, "")
    return one


def _look_at_the_place(one: Assignment) -> None:
    look(one, "")
    key = next_key(one)
    Client().post(path_of(one, f"{key}/"), {"save": "auto"})
    Client().post(path_of(one, f"time/?page={key}"), {}, follow=True)


@walk
def time_of_the_place() -> None:
    study = launched_abroad(brief_draft(target_n=30))
    for n, (minutes, seconds) in enumerate(((0, 0), (31, 0), (34, 30), (35, 30), (36, 0), (40, 0))):
        one = _at_work(study, f"p{n}", promised(panel(study)) if n % 2 else recruitment(study, promises=""))
        pass_time(one, minutes=minutes, seconds=seconds)
        _look_at_the_place(one)
    assign.release_expired_places()
    for n, act in enumerate((lambda one: assign.release_assignment(one.pk, "expired"), give_away)):
        one = _at_work(study, f"q{n}", panel(study))
        act(one)
        _look_at_the_place(one)
        look(answer_all(one), "done/")


@walk
def another_part_begun() -> None:
    study = launched_abroad(brief_draft(batches_per_annotator=3))
    door = panel(study)
    one = _at_work(study, "anna", door)
    give_away(one)
    assert claimed(study, "anna", door) != one
    _look_at_the_place(one)


@walk
def closing() -> None:
    for columns in ({"grace_seconds": 3 * 86400}, {"grace_seconds": 86400 + 600}, {"grace_seconds": 1800}):
        study = launched_abroad(brief_draft(**columns))
        people = [_at_work(study, f"p{n}", panel(study)) for n in range(3)]
        people += [claimed(study, "idle", panel(study)), claimed(study, "by nobody")]
        assign.release_assignment(people[2].pk, "expired")
        close(people[0])
        for one in people:
            look(one, "")
        if columns["grace_seconds"] == 86400 + 600:
            Assignment.objects.filter(pk=people[1].pk).update(reserved_until=timezone.now() + timedelta(days=5))
            look(people[1], "")
        for seconds in (28 * 60 + 30, 60):
            pass_time(people[0], seconds=seconds)
            look(people[0], "")
        pass_time(people[0], minutes=10)
        for one in people:
            _look_at_the_place(one)
        lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
        for one in people:
            _look_at_the_place(one)
            look(one, "done/")
        look(answer_all(people[0]), "done/")


def _over_days(study: Study, number: int = 1, days: int = 14):
    door = recruitment(study, "invitation", settings={"people": 5, "days": days, "revoked": ""})
    return door, f"/e/{door.key}/?i={invitation_token(door.key, number)}"


def _start_part(address: str) -> None:
    page = Client().get(address).content.decode()
    action = re.search(r'action="([^"]+another/)"', page)
    Client().post(action[1] if action else address, {"start": "1", "agree": "1"}, follow=True)
    Client().get(address)


@walk
def parts_over_days() -> None:
    for columns in ({}, {"reward": "0", "minutes": 1}, {"minutes": None, "batches_per_annotator": 1}):
        study = launched_abroad(brief_draft(**{"batches_per_annotator": 3, "target_n": 6} | columns))
        door, address = _over_days(study)
        for _ in range(3):
            _start_part(address)
            one = door.assignments.latest("pk")
            if fresh(one).submitted_at is None:
                look(one, "", "parts/")
                send(one)
                Client().get(address)
                answer_all(one)
            look(one, "done/", "parts/")
            Client().get(address)
        Client().post(path_of(door.assignments.earliest("pk"), "another/"), {"start": "1"}, follow=True)


@walk
def parts_that_cannot_be_had() -> None:
    owner = user("owner")
    study = launched_abroad(brief_draft(batches_per_annotator=3, target_n=2, owner=owner), owner)
    door, address = _over_days(study)
    _start_part(address)
    one = answer_all(door.assignments.get())
    claimed(study, "other")
    Client().get(address)
    look(one, "done/")
    Client().post(path_of(one, "another/"), {"start": "1"}, follow=True)
    lifecycle.pause(study, by=None)
    Client().get(address)
    Client().post(path_of(one, "another/"), {"start": "1"}, follow=True)
    lifecycle.resume(Study.objects.get(pk=study.pk), by=None)
    barring = bar_annotator(study, one.annotator, WORDS, owner)
    Client().get(address)
    Client().post(path_of(one, "another/"), {"start": "1"}, follow=True)
    look(one, "done/")
    lift_barring(barring, WORDS, owner)
    close(one)
    Client().get(address)
    study = launched_abroad(brief_draft(batches_per_annotator=3, target_n=3))
    door, address = _over_days(study)
    _start_part(address)
    one = door.assignments.get()
    pass_time(one, days=30)
    assign.release_expired_places()
    Client().get(address)
    look(one, "")


@walk
def further_parts_by_a_panel() -> None:
    study = launched_abroad(brief_draft(batches_per_annotator=3, target_n=3))
    door = panel(study)
    path = f"/e/{door.key}/?who=anna&session=S1"
    Client().post(path, {"start": "1", "agree": "1"}, follow=True)
    one = answer_all(door.assignments.get())
    look(one, "done/", "parts/")
    Client().get(path)
    Client().get(Client().post(path, {"start": "1"}).url, follow=True)
    two = door.assignments.latest("pk")
    look(one, "done/")
    answer_all(two)
    look(one, "done/")
    look(two, "done/")
    Client().post(path_of(two, "another/"), {"start": "1"}, follow=True)
    Client().get(two_again := f"/p/{new_limited_address(two)}/done/")
    Client().get(two_again.replace("done", "question"))
    look(answer_all(door.assignments.latest("pk")), "done/")
    Client().get(path, follow=True)
    study = launched_abroad(brief_draft(batches_per_annotator=3, target_n=2))
    with_code = panel(study)
    with_code.settings |= {"return_complete": "7"}
    with_code.save()
    one = answer_all(claimed(study, "anna", with_code))
    look(one, "done/")
    for person in ("bert", "cara"):
        assign.claim_batch(study, assign.get_or_create_annotator("panel", person), with_code)
    look(one, "done/")


@walk
def failed_checks_and_objections() -> None:
    owner = user("owner")
    for is_test in (False, True):
        for is_upheld in (None, False, True):
            for contact in ("somebody", "") if is_upheld else ("somebody",):
                draft = quiz(owner=owner, contact=contact) if is_test else _checked(owner, contact)
                study = launched_abroad(draft, owner)
                door = promised(panel(study), failed_checks="0.20", screened_out="0.10", fault="all")
                one = claimed(study, "anna", door, is_consented=True)
                _fail(one, is_test)
                look(one, "done/", "withdraw/")
                for text in (" ", LONG, "ы\x01", WORDS, WORDS * 2):
                    Client().post(path_of(one, "appeal/"), {"text": text, "about": "checks"})
                look(one, "done/", "withdraw/")
                time_goes(20)
                look(one, "done/")
                if is_upheld is None:
                    Client().post(path_of(one, "withdraw/"), {"leave": "1"})
                else:
                    answer_appeal(Appeal.objects.get(assignment=one), WORDS, is_upheld, _second(study))
                look(one, "done/")


def _checked(owner, contact: str) -> Study:
    draft = sample_draft("rating", 4, 2)
    Study.objects.filter(pk=draft.pk).update(owner=owner, contact=contact, reward=2)
    StudyMember.objects.create(study=draft, user=owner, role="owner")
    add_attention(draft)
    return Study.objects.get(pk=draft.pk)


def _fail(one: Assignment, is_test: bool) -> None:
    if is_test:
        fail_the_test(one)
        return
    while not fresh(one).released_at and (key := next_key(one)) is not None:
        send(one, key, **wrong_answers(fresh(one), key))


def _second(study: Study):
    second = user("second")
    StudyMember.objects.get_or_create(study=study, user=second, defaults={"role": "editor"})
    return second


@walk
def a_test_run_that_fails() -> None:
    draft = in_foreign_letters(_checked(user("owner"), "somebody"))
    draft = give_pseudo_language(draft)
    one = create_test_batch_and_assignment(draft, draft.arms.get(), seed=1)
    _fail(one, is_test=False)
    look(one, "done/")
    Client().post(path_of(one, "appeal/"), {"text": WORDS, "about": "checks"})


@walk
def barred_after_a_part() -> None:
    owner = user("owner")
    for ground in ("rule", "person"):
        for is_upheld in (False, True, None):
            study = launched_abroad(
                brief_draft(owner=owner, batches_per_annotator=3, contact="" if is_upheld else "c"), owner
            )
            door, address = _over_days(study)
            _start_part(address)
            one = answer_all(door.assignments.get())
            if ground == "rule":
                (barring,) = bar_flagged_annotators(study, {one.annotator_id: 1}, 1)
            else:
                barring = bar_annotator(study, one.annotator, WORDS, owner)
            for text in (" ", WORDS, WORDS * 2):
                Client().post(path_of(one, "appeal/"), {"text": text, "about": "barring"})
                look(one, "done/", "parts/")
            time_goes(20)
            look(one, "done/")
            if is_upheld is None:
                Client().post(path_of(one, "withdraw/"), {"leave": "1"})
            else:
                answer_appeal(barring.appeal, WORDS, is_upheld, _second(study))
            look(one, "done/", "parts/")
            Client().get(address)
            if is_upheld:
                Client().post(path_of(one, "appeal/"), {"text": WORDS * 3, "about": "barring"})


EVIDENCE = (
    {"checks": 3, "failed": 2, "seconds": 125, "minutes": 12, "z": -4.0, "people": 30, "answers": 5},
    {"checks": 1, "failed": 1, "seconds": 60, "z": 3.5, "people": 20, "answers": 0},
    {"checks": 2, "failed": 0, "seconds": 61, "minutes": 1, "z": None, "people": 1, "answers": 1},
    {"checks": 3, "failed": 1, "seconds": 1, "answers": 0},
    {"seconds": 3, "answers": 2},
    {"seconds": 121, "answers": 2},
    {"seconds": 0, "answers": 2},
    {"answers": 2},
)


def _work(study: Study, door, person: str, state: str) -> tuple[Assignment, PanelSubmission]:
    one = answer_all(claimed(study, person, door))
    store_person_id(one.annotator, person)
    task, _ = PanelTask.objects.get_or_create(recruitment=door, external_id="T")
    submission = PanelSubmission.objects.create(
        recruitment=door,
        task=task,
        external_id=f"S-{person}",
        annotator=one.annotator,
        assignment=one,
        state=state,
        source="file",
        decided_at=timezone.now(),
    )
    return one, submission


@walk
def decisions_about_the_work() -> None:
    owner = user("owner")
    study = launched_abroad(brief_draft(owner=owner, target_n=40), owner)
    door = recruitment(study, "generic", pool="panel", settings={"file_person": "id", "person_parameter": "who"})
    for n, evidence in enumerate(EVIDENCE):
        one, submission = _work(study, door, f"r{n}", "rejected")
        verdict = Verdict.objects.create(
            submission=submission,
            assignment=one,
            kind="reject",
            category="c",
            message=WORDS,
            by=owner,
            evidence=evidence,
        )
        look(one, "done/")
        if n > 3:
            continue
        for text in (" ", LONG, WORDS, WORDS * 2):
            Client().post(path_of(one, "appeal/"), {"text": text})
        look(one, "done/")
        time_goes(20)
        look(one, "done/")
        if n == 2:
            create_rejection_reversal(verdict, owner)
        else:
            answer_appeal(verdict.appeal, WORDS, n == 1, _second(study))
        look(one, "done/")
        PanelSubmission.objects.filter(pk=submission.pk).update(state="approved")
        look(one, "done/")
        Client().post(path_of(one, "appeal/"), {"text": WORDS * 3})
    for contact in ("somebody", ""):
        other = launched_abroad(brief_draft(owner=owner, contact=contact), owner)
        theirs = recruitment(other, "generic", pool="panel", settings={"file_person": "id", "person_parameter": "who"})
        one, _ = _work(other, theirs, f"at panel {contact}", "rejected")
        look(one, "done/")
        Client().post(path_of(one, "appeal/"), {"text": " "})
        create_appeal(one, WORDS)
        look(one, "done/")
        time_goes(20)
        look(one, "done/")


@walk
def states_of_the_work() -> None:
    owner = user("owner")
    study = launched_abroad(brief_draft(owner=owner, target_n=40), owner)
    door = recruitment(study, "generic", pool="panel", settings={"file_person": "id", "person_parameter": "who"})
    for state in ("submitted", "approved", "returned", "expired", "working", "screened_out"):
        one, submission = _work(study, door, state, state)
        look(one, "done/")
        Assignment.objects.filter(pk=one.pk).update(
            started_at=timezone.now() - timedelta(hours=3), submitted_at=timezone.now() - timedelta(hours=2)
        )
        look(one, "done/")
        if state == "approved":
            for kind, way, ended in (
                ("base", "approval", "due"),
                ("bonus", "bonus", "due"),
                ("compensation", "bonus", "ordered"),
                ("outcome", "hand", "paid"),
                ("difference", "hand", "due"),
            ):
                order = (
                    PanelOrder.objects.create(recruitment=door, operation="bonus", token=f"p-{kind}")
                    if ended == "ordered"
                    else None
                )
                Payment.objects.create(
                    assignment=one,
                    kind=kind,
                    way=way,
                    state=ended,
                    amount=1,
                    currency="USD",
                    reason="r",
                    order=order,
                    ended_at=timezone.now() if ended == "paid" else None,
                )
            look(one, "done/")
    one = claimed(study, "unfinished", door)
    PanelSubmission.objects.create(
        recruitment=door,
        task=PanelTask.objects.get(recruitment=door),
        external_id="S-u",
        annotator=one.annotator,
        assignment=one,
        state="submitted",
        source="file",
        submitted_at=timezone.now(),
    )
    Client().post(path_of(one, "withdraw/"), {"leave": "1"})
    look(one, "done/")
    made = Verdict.objects.create(assignment=answer_all(claimed(study, "by hand", door)), kind="approve", by=owner)
    look(made.assignment, "done/")


@walk
def pay_of_every_channel() -> None:
    study = launched_abroad(brief_draft(target_n=40))
    for n, slug in enumerate(("prolific", "generic", "sona", "mturk", "connect")):
        channel, door = door_of(study, slug)
        for end in (
            "finished",
            "released: screened_out",
            "released: failed_checks",
            "released: withdrawn",
            "released: fault",
        ):
            with undone():
                look(ENDS[end][0](Person(channel, door, n + 1)), "done/")


@walk
def credit(patched) -> None:
    from annotators.recruitment.panels import alerts

    study = launched_abroad(brief_draft())
    channel, door = door_of(study, "sona")
    door.settings |= SONA_SETTINGS
    door.save()
    store_or_delete_secrets(door, SONA_SECRETS, by=None)
    for status in (alerts.GIVEN, alerts.COMING, ""):
        with undone():
            person = Person(channel, door)
            one = ENDS["finished"][0](person)
            patched.setattr(alerts, "credit_status", lambda _, status=status: status)
            look(one, "done/")
