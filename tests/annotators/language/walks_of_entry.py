"""Walks to the first page: links of every channel, what the page says, and why a person gets no place."""

import re
from datetime import timedelta
from html import unescape

from django.test import Client
from django.utils import timezone

from annotators.models import Recruitment
from annotators.pay.decisions import answer_appeal
from annotators.places.barrings import bar_annotator, bar_flagged_annotators, lift_barring
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.generic import invitation_token
from studies.models import Arm, Qualification, Study, StudyMember
from studies.services import lifecycle
from tests import builders
from tests.annotators.views.visitors import DECLINE, DOORS, START, door_of
from tests.builders import panel, promised, recruitment, user
from tests.players import claimed

from .foreign import launched_abroad
from .walking import LONG, WORDS, answer_all, time_goes, walk
from .walks_of_work import quiz

FACTS = {
    "content_warning": "Wolves.",
    "institution": "A university",
    "approval_number": "A number",
    "retention": "Kept for ten years.",
}


def short_draft(**columns) -> Study:
    """A draft with pages of two kinds, and consent."""
    return builders.spa_draft(
        systems=("alpha", "beta"), m=2, prompts=12, with_rating=False, **{"target_n": 8} | columns
    )


def knock(door: Recruitment, person: str = "anna", **posted):
    path = f"/e/{door.key}/?who={person}&session=S1"
    Client().get(path)
    return Client().post(path, posted or START)


@walk
def first_pages() -> None:
    rules = {"full": "0.10", "screened_out": "nothing", "failed_checks": "all", "fault": "all", "withdrawn": "share"}
    for columns in (
        {},
        FACTS | {"asks_to_share_preferences": True, "bars_flagged_annotators": True, "joins_rounds": True},
        {"minimum_width": 900, "needs_mouse": True},
        {"minimum_width": 900, "contact": ""},
        {"needs_mouse": True},
        {"reward": "0", "consent": ""},
        {"minutes": 1, "reward": None},
    ):
        study = launched_abroad(short_draft(**columns))
        for door in (promised(recruitment(study), **rules), promised(panel(study), **rules)):
            path = f"/e/{door.key}/?who=anna"
            Client().get(path)
            Client().post(path, {"start": "1", "share": "1"})
            Client().post(path, DECLINE)
            Client().post(path, START | {"share": "1"})
            Client().get(path)


@walk
def first_pages_that_promise_a_range() -> None:
    for rewards, minutes in (((1, 2), (5, 10)), ((3, 3), (5, 10)), ((1, 2), (1, 2))):
        draft = quiz()
        draft.arms.update(name="one", reward=rewards[0], minutes=minutes[0])
        Arm.objects.create(study=draft, name="two", reward=rewards[1], minutes=minutes[1])
        from tests.attention import add_attention

        add_attention(draft, position=3)
        door = promised(panel(launched_abroad(draft)), full="0.10", screened_out="0.20", failed_checks="share")
        person = f"p{rewards}"
        knock(door, person)
        Client().get(f"/e/{door.key}/?who={person}")
        one = door.assignments.get()
        Client().get(f"/p/{one.code}/", follow=True)
        answer_all(one)
        Client().get(f"/p/{one.code}/done/")


@walk
def links_of_every_channel() -> None:
    study = launched_abroad(short_draft())
    wrong: dict[str, list[dict[str, str]]] = {
        "generic": [{}, {"participant": "{{id}}"}, {"participant": "я" * 300}, {"participant": "ы", "k": "ы"}],
        "invitation": [{}, {"i": "1-ы"}],
        "prolific": [
            {},
            {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"},
            {"PROLIFIC_PID": "1", "STUDY_ID": "2"},
            {"PROLIFIC_PID": "1"},
        ],
        "connect": [
            {},
            {"participantId": "{{id}}"},
            {"participantId": "ы", "assignmentId": "ы"},
            {"participantId": "ы"},
        ],
        "sona": [{}, {"survey_code": "%SURVEY_CODE%"}, {"survey_code": "ы"}],
    }
    for name in DOORS:
        channel, door = door_of(study, name)
        path = f"/e/{door.key}/"
        for parameters in wrong.get(channel.slug, [{}, {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}]):
            Client().get(path, parameters)
        Client().get(f"{path}?who=1&who=2")
        Client().get(f"{path}?who=%00")
    _, door = door_of(study, "generic")
    door.settings |= {"key_parameter": "k", "key_value": "secret"}
    door.save()
    Client().get(f"/e/{door.key}/?participant=1")
    _, door = door_of(study, "invitation")
    door.settings |= {"revoked": "1", "people": 3}
    door.save()
    Client().get(f"/e/{door.key}/?i={invitation_token(door.key, 1)}")


@walk
def links_that_are_not_open() -> None:
    study = launched_abroad(short_draft())
    soon = timezone.now() + timedelta(days=1)
    for columns in (
        {"opens_at": soon},
        {"closes_at": timezone.now() - timedelta(days=1)},
        {"stopped_at": timezone.now()},
    ):
        knock(panel(study, **columns))
    incomplete = panel(study)
    incomplete.outcome_pays.all().delete()
    knock(incomplete)
    door = panel(study)
    lifecycle.pause(study, by=None)
    knock(door)
    lifecycle.resume(Study.objects.get(pk=study.pk), by=None)
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    knock(door)


@walk
def no_place() -> None:
    for pays in ("nothing", "0.10"):
        study = launched_abroad(short_draft(target_n=1))
        claimed(study, "inside")
        door = promised(panel(study), full=pays)
        answer = knock(door)
        token = re.search(r'name="waiting_token" value="([^"]+)"', answer.content.decode())
        Client().get(
            Client().post(f"/e/{door.key}/?who=anna&session=S1", {"leave": "1", "waiting_token": token[1]}).url,
            follow=True,
        )
        knock(door)
        answer_all(study.assignments.get(batch__isnull=False))
        knock(door, "bert")
        Client().get(f"/e/{door.key}/?who=bert", follow=True)
        without = recruitment(study, "open_link")
        Client().post(f"/e/{without.key}/", START)
    study = launched_abroad(short_draft(target_n=1))
    claimed(study, "inside")
    for name in ("open_link", "invitation"):
        channel, door = door_of(study, name)
        address, _ = channel.rehearsal_entry(door, f"/e/{door.key}/", 1)
        Client().post(address, START)


@walk
def who_has_not_passed_a_test() -> None:
    owner = user("owner")
    training = quiz(owner=owner)
    training.sections.filter(pass_mark=2).update(
        qualification=Qualification.objects.create(owner=owner, name="trained", valid_days=30)
    )
    training = launched_abroad(training, owner)
    for columns in ({}, {"reward": "3.00"}):
        study = launched_abroad(short_draft(owner=owner, required_qualification="trained", **columns), owner)
        door = promised(panel(study), full="0.20", screened_out="0.10")
        knock(door)
        Client().get(f"/p/{study.assignments.get().code}/done/")
    Client().get(f"/e/{recruitment(study).key}/")


@walk
def people_who_return() -> None:
    study = launched_abroad(short_draft())
    for name in ("generic", "invitation", "prolific", "external_question"):
        channel, door = door_of(study, name)
        address, _ = channel.rehearsal_entry(door, f"/e/{door.key}/", 1)
        address = re.sub(r"\{\{%(\w+)%\}\}", lambda found: f"{found[1]}1".encode().hex()[-24:].zfill(24), address)
        came = Client().post(address, START)
        assert came.status_code == 302, (name, address)
        Client().get(came.url, follow=True)
        Client().get(address)
        Client().get(Client().post(address, START).url, follow=True)
        Client().post(address, DECLINE)
        one = answer_all(door.assignments.get())
        limited = Client().get(address, follow=True)
        for rest in ("", "question/", "question/?sent=1", "consent/", "done/", "parts/", "appeal/", "withdraw/"):
            Client().get(limited.request["PATH_INFO"].replace("done/", "") + rest, follow=True)
        Client().get(f"/p/{one.code}/done/")


@walk
def another_task_of_the_panel(patched) -> None:
    study = launched_abroad(short_draft())
    _, door = door_of(study, "generic")
    path = f"/e/{door.key}/?participant=anna"
    Client().post(path, START)
    one = answer_all(door.assignments.get())
    channel = type(REGISTRY["generic"])
    patched.setattr(channel, "is_retaken_task", lambda *_: True)
    Client().get(path)
    patched.setattr(channel, "is_retaken_task", lambda *_: False)
    Client().get(path)
    bar_annotator(study, one.annotator, WORDS, user("owner", is_superuser=True))
    Client().get(path)
    gone = door_of(study, "generic")[1]
    other = f"/e/{gone.key}/?participant=bert"
    Client().post(other, START)
    left = gone.assignments.get()
    Client().post(f"/p/{left.code}/withdraw/", {"leave": "1"})
    Client().get(other)


def _barred(person: str, ground: str):
    owner = user("owner")
    first, second = (launched_abroad(short_draft(owner=owner, exclusion_group=person), owner) for _ in range(2))
    done = claimed(first, person, panel(first))
    if ground == "rule":
        (barring,) = bar_flagged_annotators(first, {done.annotator_id: 1}, 1)
    else:
        barring = bar_annotator(first, done.annotator, WORDS, owner)
    return barring, panel(second)


@walk
def barred_by_another_study() -> None:
    for person, ground, is_upheld in (("anna", "rule", False), ("bert", "person", True), ("cara", "person", False)):
        barring, door = _barred(person, ground)
        address = _address_to_object_at(door, person)
        for text in (" ", LONG, "ы\x01", WORDS, WORDS * 2):
            Client().get(address)
            Client().post(address, {"text": text})
        time_goes(20)
        Client().get(address)
        second = user("second")
        StudyMember.objects.get_or_create(study=barring.study, user=second, defaults={"role": "editor"})
        answer_appeal(barring.appeal, WORDS, is_upheld, second)
        Client().get(address)
        Client().post(address, {"text": WORDS * 3})
        knock(door, person)
    barring, door = _barred("dora", "person")
    address = _address_to_object_at(door, "dora")
    lift_barring(barring, WORDS, user("owner"))
    Client().get(address)
    Client().post(address, {"text": WORDS})


def _address_to_object_at(door: Recruitment, person: str) -> str:
    (address,) = re.findall(r'href="(/e/[^"]+/appeal/[^"]+)"', unescape(knock(door, person).content.decode()))
    return address
