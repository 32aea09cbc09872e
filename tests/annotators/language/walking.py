"""Walks: people who visit the pages of annotators in as many states as there are. Whatever a test client gets is recorded."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from inspect import signature
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.utils import timezone

from annotators.models import Assignment, PageVisit
from annotators.pages.record import full_page_state
from tests.frozen import forget_frozen_designs
from tests.players import sent_from

from .foreign import foreign
from .seen import Seen

Walk = Callable[..., None]
WALKS: dict[str, Walk] = {}
# What people type and write who cannot write in Latin letters.
WORDS = foreign("Some words of mine.")
LONG = foreign("much too long ") * 400
# Answers that no field takes, each for another reason.
WRONG = ("", "?", "1.5", "1,000", "7 %", "-99999", LONG, f"{WORDS}\x01", f"{WORDS}\x00", "я")


def walk(made: Walk) -> Walk:
    WALKS[made.__name__] = made
    return made


@contextmanager
def recorded(seen: Seen, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Record every page that a test client gets."""
    request = Client.request

    def requested(self, **sent):
        response = request(self, **sent)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            seen.add(
                f"{name}: {sent['REQUEST_METHOD']} {sent['PATH_INFO']} {response.status_code}",
                response.content.decode(),
            )
        return response

    with monkeypatch.context() as patched:
        patched.setattr(Client, "request", requested)
        yield


def walk_all(seen: Seen, monkeypatch: pytest.MonkeyPatch, media: Path) -> None:
    """Take all walks. What one of them does is undone before the next."""
    for name, steps in WALKS.items():
        point = transaction.savepoint()
        forget_frozen_designs()  # of a walk that was undone
        with recorded(seen, name, monkeypatch), monkeypatch.context() as patched:
            offered = {"seen": seen, "media": media, "patched": patched}
            steps(**{name: offered[name] for name in signature(steps).parameters})
        transaction.savepoint_rollback(point)


def fresh(assignment: Assignment) -> Assignment:
    return Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)


def next_key(assignment: Assignment) -> str | None:
    return full_page_state(fresh(assignment)).next_key


def path_of(assignment: Assignment, rest: str = "") -> str:
    return f"/p/{assignment.code}/{rest}"


def look(assignment: Assignment, *rests: str) -> None:
    for rest in rests:
        Client().get(path_of(assignment, rest), follow=True)


def send(assignment: Assignment, key: str | None = None, **changes):
    """Answer a page, the next one if no key is given, as a careful person would."""
    path = path_of(assignment, f"{key or next_key(assignment)}/")
    return Client().post(path, in_own_words(sent_from(path, random.Random(3)) or {"go": "1"}) | changes)


def in_own_words(answers: dict[str, str]) -> dict[str, str]:
    """Let robots write their texts in Cyrillic letters. The answers that a page offers stay."""
    return {name: foreign(value) if " " in value else value for name, value in answers.items()}


def answer_all(assignment: Assignment, until: str | None = None) -> Assignment:
    while (key := next_key(assignment)) is not None and key != until:
        send(assignment, key)
        if fresh(assignment).submitted_at or fresh(assignment).released_at:
            break
    return fresh(assignment)


def explore(assignment: Assignment, *, is_thorough: bool = True) -> Assignment:
    """Look at every page, send it empty, wrongly, with too much, and at last as it should be; then look at what is stored."""
    shapes: set[tuple] = set()
    conflicts: set[tuple] = set()
    while (key := next_key(assignment)) is not None:
        path, client = path_of(assignment, f"{key}/"), Client()
        client.get(path)
        fields = full_page_state(fresh(assignment)).steps[key].page_fields()
        shape = (key.partition(".")[0], key[-1:].isdigit(), len(fields))
        if is_thorough and fields and shape not in shapes:
            shapes.add(shape)
            send_wrongly(client, path, fields)
            client.post(path, {"layout": "one"}, follow=True)
            client.get(path)
            client.post(path, {"layout": "side"})
        answers = in_own_words(sent_from(path, random.Random(3)) or {"go": "1"})
        client.post(path, answers)
        if fresh(assignment).released_at:
            break
        client.get(path)
        if is_thorough and fields and shape not in conflicts:
            conflicts.add(shape)
            for other in ("0", "1", "2"):
                client.post(path, dict.fromkeys(inputs_of(fields), other) | {"go": "1"})
    return fresh(assignment)


def inputs_of(fields) -> list[str]:
    return [
        name for slot, ask in fields.items() for name in ([f"{slot}.{part}" for part in ask.field.inputs] or [slot])
    ]


def send_wrongly(client: Client, path: str, fields) -> None:
    names = inputs_of(fields)
    for wrong in WRONG:
        client.post(path, dict.fromkeys(names, wrong) | {"go": "1"})
    skips = {f"{slot}.skip": key for slot, ask in fields.items() for key, _ in ask.skip_reasons[:1]}
    good = in_own_words(sent_from(path, random.Random(3)) or {})
    client.post(path, good | skips)
    client.post(path, {name: [value, "1"] for name, value in good.items()})
    client.post(path, good | {foreign("no such field"): "1", "unseen.ы": "1", "upload": SimpleUploadedFile("ы", b"1")})
    client.post(path, dict(list(good.items())[:2]))
    client.post(path, good | {"save": "auto"})


def time_goes(days: float) -> None:
    """Let objections be overdue."""
    from annotators.models import Appeal

    for appeal in Appeal.objects.all():
        Appeal.objects.filter(pk=appeal.pk).update(
            at=appeal.at - timedelta(days=days), due_at=appeal.due_at - timedelta(days=days)
        )


def forget_visits(assignment: Assignment) -> None:
    PageVisit.objects.filter(assignment=assignment, recorded_at=None).delete()


def now():
    return timezone.now()
