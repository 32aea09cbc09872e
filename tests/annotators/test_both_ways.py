"""The short way of storing a page and the long one, played against each other.

What people do, drawn by chance, is played twice from the same beginning: as it is, and with every page looked at as a whole.
What is answered and what is stored are the same. The clock stands still within an act, so that moments are compared too.
"""

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

import pytest
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.db.models import BinaryField
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from annotators import assign, at_once, exclude, pages
from annotators.models import Annotator, Assignment, PageVisit
from annotators.pages import page_as_shown
from annotators.prepared import Update
from annotators.record import standing_of
from annotators.views import pages as page_views
from studies import lifecycle
from studies.models import Question, Section, Study
from studies.protocols import Ask
from studies.robots import Robot
from tests.builders import (
    COMMENT,
    SCREENING,
    add_choice,
    add_marks,
    add_ranking,
    add_rating,
    add_relative,
    add_spa,
    add_survey,
    draft_study,
    humanlike_draft,
    launched,
    panel,
    spa_draft,
    user,
)

pytestmark = pytest.mark.django_db
PEOPLE = ("anna", "ben")
BEGINNING = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Clock:
    """The same moment for Python and the database, until it is moved."""

    def __init__(self):
        self.now = BEGINNING

    def __call__(self) -> datetime:
        return self.now

    def tick(self, seconds: int = 0) -> None:
        self.now = self.now + timedelta(seconds=seconds) if seconds else BEGINNING
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('clock.now', %s, true)", [self.now.isoformat()])


@pytest.fixture
def clock(monkeypatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(timezone, "now", made)
    connection.ensure_connection()
    if connection.vendor == "postgresql":
        _on_postgresql()
        made.tick()
        yield made
        return

    def written(*asked) -> str:
        return made.now.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

    _on_sqlite(written)
    yield made
    # A function of ours that is taken away leaves none: from now on another connection is asked for its own.
    untouched = sqlite3.connect(":memory:", check_same_thread=False)
    _on_sqlite(lambda *asked: untouched.execute("SELECT strftime(?, ?)", asked).fetchone()[0])


def _on_sqlite(written) -> None:
    """Statements stay ready with the function that they were prepared with: enough others push them out."""
    connection.connection.create_function("STRFTIME", 2, written)
    for n in range(500):
        connection.connection.execute(f"SELECT {n}")


def _on_postgresql() -> None:
    """A function of ours is found before the server's own. The tables' defaults have found theirs already. All goes with the test."""
    defaults = [
        f"ALTER TABLE {model._meta.db_table} ALTER {one.column} SET DEFAULT statement_timestamp()"
        for model in apps.get_models() for one in model._meta.concrete_fields if isinstance(one.db_default, Now)
    ]  # fmt: skip
    statements = [
        "CREATE SCHEMA clocks",
        "CREATE FUNCTION clocks.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS "
        "$$ SELECT current_setting('clock.now')::timestamptz $$",
        "SET LOCAL search_path = clocks, public, pg_catalog",
        *defaults,
    ]
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _unmarked(study: Study, *adding) -> Study:
    for position, add in enumerate(adding, 1):
        add(study, position=position)
    return launched(study)


def _draft(**columns) -> Study:
    return draft_study(**{"systems": ("alpha", "beta"), "prompts": 24, "target_n": 3} | columns)


def _questionnaire(study: Study, position: int) -> Section:
    """Each kind of question, each with a way not to answer it."""
    skips = [{"key": "unsure", "label": "I am not sure"}]
    options = [{"key": "a", "label": "A"}, {"key": "b", "label": "B"}]
    scales = [
        {"kind": "percent"}, {"kind": "choice", "options": options}, {"kind": "multiple", "options": options}, {"kind": "text"},
        {"kind": "likert", "labels": ["bad", "middling", "good"]},
    ]  # fmt: skip
    return add_survey(study, position=position, questions=[
        {"key": f"k{n}", "text": f"Question {n}?", "scale": scale, "required": n % 2 == 0}
        | ({"skip_reasons": skips} if scale["kind"] != "multiple" else {})
        for n, scale in enumerate(scales)
    ])  # fmt: skip


def _surveys() -> Study:
    study = _draft(section_order="counterbalanced")
    for position in (1, 2):
        add_survey(study, position=position, purpose="screening", questions=[SCREENING])
    for position in (3, 4):
        _questionnaire(study, position)
    add_rating(study, position=5, m=2)
    add_spa(study, position=6, m=2)
    add_survey(study, position=7, questions=[COMMENT])
    return launched(study)


def _humanlike(condition: str, asks_why: bool = False) -> Study:
    """Where reasons are asked for, answers determine the pages, and no page goes the short way."""
    study = humanlike_draft(conditions=(condition,), domains=("news",), texts=20, m=8, target_n=3)
    if not asks_why:
        Question.objects.filter(section__study=study).exclude(key="source").delete()
    return launched(study)


STUDIES = {
    "spa": lambda: launched(spa_draft(target_n=3)),
    "surveys": _surveys,
    "rating": lambda: _unmarked(_draft(), lambda study, position: add_rating(study, position=position, m=8)),
    "two choices": lambda: _unmarked(
        _draft(), lambda study, position: add_choice(study, position=position, m=8, allows_tie=True)
    ),
    "ranking": lambda: _unmarked(
        _draft(systems=("alpha", "beta", "gamma")), lambda study, position: add_ranking(study, position=position, m=8)
    ),
    "marks": lambda: _unmarked(_draft(), lambda study, position: add_marks(study, position=position, m=4)),
    "relative": lambda: _unmarked(_draft(), lambda study, position: add_relative(study, position=position, m=8)),
    "human or machine": lambda: _humanlike("none"),
    "asked why": lambda: _humanlike("none", asks_why=True),
    "trained by examples": lambda: _humanlike("examples"),
    "trained by comparison": lambda: _humanlike("comparison"),
}  # fmt: skip
ACTS = {
    "goes on": 30, "sends": 10, "sends again": 4, "sends otherwise": 4, "looks": 5, "saves": 3, "chooses a layout": 2, "asks for time": 2,
    "comes back": 2, "loses the place": 2, "is replaced": 2, "writes otherwise": 1, "pauses": 1, "resumes": 2, "closes": 0.3,
    "leaves": 0.4, "loses the visit": 2, "is excluded": 1, "amends": 2, "another process": 1,
}  # fmt: skip
ODD = (
    "", " ", "-1", "0", "3", " 3 ", "3.0", "03", "101", "\u0663", "A", "B", "tie", "yes", "no", "a", "x" * 3000, "caf\u00e9 \u2603 \U0001f600",
    "a\x00b", "\ufffd", "\u200b", "\r\n",
)  # fmt: skip


@dataclass
class Played:
    """What came of it: each answer, what is stored in the end, and how many pages went the short way."""

    answers: list[tuple] = field(default_factory=list)
    stored: dict[str, list[dict]] = field(default_factory=dict)
    short: int = 0


class Play:
    """Two people at the doors of a study, and a researcher. All chance comes from the seed and from what is stored."""

    def __init__(self, study: Study, door, clock: Clock, researcher, seed: int):
        self.study, self.door, self.clock, self.researcher = study, door, clock, researcher
        self.rng = random.Random(seed)
        self.client = Client(raise_request_exception=False)
        self.answers: list[tuple] = []
        self.sent: dict[str, tuple[str, dict]] = {}

    def act(self, name: str, person: str) -> None:
        self.clock.tick(self.rng.randint(1, 20))
        self.answers.append((name, person))
        getattr(self, f"_{name.replace(' ', '_')}")(person)

    def _asked(self, method: str, path: str, data=None) -> None:
        answer = getattr(self.client, method)(path, data or {})
        self.answers.append(
            (method, path, repr(data), answer.status_code, sorted(answer.headers.items()), answer.content)
        )  # fmt: skip

    def _mine(self, person: str) -> Assignment | None:
        known = assign.pool_key("panel", person)
        return Assignment.objects.filter(annotator__external_id=known).order_by("-pk").first()

    def _comes_back(self, person):
        self._asked("post", f"/e/{self.door.key}/?who={person}&session=s", {"agree": "1"})

    def _place(self, person: str):
        """Their assignment, its pages, and the number of the next; they come in where they have none yet."""
        mine = self._mine(person)
        if mine is None:
            self._comes_back(person)
            mine = self._mine(person)
        if mine is None or mine.batch_id is None:
            return None
        standing = standing_of(mine)
        keys = list(standing.steps)
        return mine, standing, keys, keys.index(standing.next_key) if standing.next_key else len(keys) - 1

    def _asks(self, standing, key: str) -> tuple[dict[str, Ask], dict[str, str]]:
        """What a page asks, and an answer to it."""
        step = standing.steps[key]
        visit = standing.visits.get(key)
        page = page_as_shown(step.page, visit.shown) if visit else step.page
        asks = step.protocol.asks(page)
        sent = Robot(self.rng, "Because.").answers(step.protocol, asks)
        if step.purpose == "screening" and self.rng.random() < 0.1:
            sent = dict.fromkeys(sent, "no")
        return asks, sent

    def _goes_on(self, person):
        if place := self._place(person):
            mine, standing, keys, next_place = place
            key = keys[next_place]
            self._asked("get", f"/p/{mine.code}/{key}/")
            # What was drawn of the answers before may have changed what this page asks.
            self._send(person, mine, key, self._asks(standing_of(mine), key)[1] | {"active": "7"})

    def _opens(self, person):
        if place := self._place(person):
            mine, _, keys, next_place = place
            self._asked("get", f"/p/{mine.code}/{keys[next_place]}/")

    def _types(self, person):
        if place := self._place(person):
            mine, _, keys, next_place = place
            self._asked("post", f"/p/{mine.code}/{keys[next_place]}/", {"save": "auto", "active": "30"})

    def _answers(self, person, **changes):
        """What they have open already."""
        if place := self._place(person):
            mine, standing, keys, next_place = place
            data = self._asks(standing, keys[next_place])[1] | {"active": "7"}
            self._send(person, mine, keys[next_place], {name: changes.get("all", data[name]) for name in data})

    def _says_no(self, person):
        self._answers(person, all="no")

    def _send(self, person, mine, key, data):
        self.sent[person] = key, data
        self._asked("post", f"/p/{mine.code}/{key}/", data)

    def _near(self, keys, next_place) -> str:
        if self.rng.random() < 0.08:
            return self.rng.choice((keys[0], keys[-1], "s99.p1", "start", "nonsense"))
        return keys[min(len(keys) - 1, max(0, next_place + self.rng.choice((0, 0, 0, 0, 1, -1, -2, 2))))]

    def _sends(self, person):
        if place := self._place(person):
            mine, standing, keys, next_place = place
            key = self._near(keys, next_place)
            if self.rng.random() < 0.7:
                self._asked("get", f"/p/{mine.code}/{key}/")
            asks, data = self._asks(standing_of(mine), key) if key in standing.steps else ({}, {"s1.q1": "3"})
            for _ in range(self.rng.choice((0, 1, 1, 2))):
                data = self._spoilt(asks, data)
            self._send(person, mine, key, data)

    def _spoilt(self, asks, data: dict) -> dict:
        name = self.rng.choice([*data, *asks, "s1.q1"])
        match self.rng.choice(
            ("gone", "odd", "odd", "twice", "strange", "skipped", "active", "padded", "file", "part")
        ):
            case "gone":
                return {other: value for other, value in data.items() if other != name}
            case "odd":
                return data | {name: self.rng.choice(ODD)}
            case "twice":
                return data | {name: [data.get(name, "3"), self.rng.choice((data.get(name, "3"), "4"))]}
            case "strange":
                return data | {self.rng.choice(("s1.q9", "x", "", "s1.q1.i1.A.p9", "go")): self.rng.choice(ODD)}
            case "skipped":
                skipped = data | {f"{name}.skip": self.rng.choice(("unsure", "", "no such"))}
                return skipped | ({name: ""} if self.rng.random() < 0.7 else {})
            case "active":
                return data | {"active": self.rng.choice(("0", "-3", "999999", "9999999", "\u0663", "x", " 5"))}
            case "padded":
                return data | {name: f" {data.get(name, '')} "}
            case "part":
                return data | {
                    f"{name}.{self.rng.choice(('where', 'category', 'severity', 'words'))}": self.rng.choice(ODD)
                }
        return data | {"upload": SimpleUploadedFile("a.txt", b"a")} if self.rng.random() < 0.3 else data

    def _sends_again(self, person):
        mine = self._mine(person)
        if mine and person in self.sent:
            self._asked("post", f"/p/{mine.code}/{self.sent[person][0]}/", self.sent[person][1])

    def _sends_otherwise(self, person):
        place = self._place(person)
        if place and person in self.sent:
            mine, standing, _, _ = place
            key = self.sent[person][0]
            if key in standing.steps:
                self._send(person, mine, key, self._asks(standing, key)[1])

    def _looks(self, person):
        if place := self._place(person):
            mine, _, keys, next_place = place
            key = self.rng.choice((self._near(keys, next_place), "", "done", "withdraw", "parts"))
            self._asked("get", f"/p/{mine.code}/{key}/" if key else f"/p/{mine.code}/")

    def _saves(self, person):
        if place := self._place(person):
            mine, standing, keys, next_place = place
            key = self._near(keys, next_place)
            data = self._asks(standing, key)[1] if key in standing.steps else {}
            self._asked(
                "post", f"/p/{mine.code}/{key}/", data | {"save": self.rng.choice(("auto", "1")), "active": "30"}
            )

    def _chooses_a_layout(self, person):
        if place := self._place(person):
            mine, standing, keys, next_place = place
            self._asked(
                "post", f"/p/{mine.code}/{keys[next_place]}/", {"layout": self.rng.choice(("side", "one", "x"))}
            )

    def _asks_for_time(self, person):
        if place := self._place(person):
            mine, standing, keys, next_place = place
            data = self._asks(standing, keys[next_place])[1]
            self._asked("post", f"/p/{mine.code}/time/?page={keys[next_place]}", data)

    def _loses_the_place(self, person):
        mine = self._mine(person)
        if mine and not mine.submitted_at and not mine.released_at:
            Assignment.objects.filter(pk=mine.pk).update(reserved_until=self.clock.now - timedelta(seconds=1))
            self.answers.append(("swept", assign.sweep()))

    def _is_replaced(self, person):
        self._loses_the_place(person)
        other = assign.claim_batch(Study.objects.get(pk=self.study.pk), assign.annotator_of("panel", f"for {person}"))
        self.answers.append(("replaced", other.outcome))

    def _writes_otherwise(self, person):
        """A page was shown in another order, by an earlier release."""
        if (place := self._place(person)) and (visit := place[1].visits.get(place[2][place[3]])):
            items = [
                [place, item, [[label, shown] for (label, _), (_, shown) in zip(given, reversed(given), strict=True)]]
                for place, item, given in visit.shown["items"]
            ]  # fmt: skip
            shown = {"items": items, "questions": list(reversed(visit.shown["questions"]))}
            PageVisit.objects.filter(pk=visit.pk).update(shown=shown)

    def _loses_the_visit(self, person):
        """A crash of the database took the row of the page that they look at."""
        if place := self._place(person):
            mine, _, keys, next_place = place
            PageVisit.objects.filter(assignment=mine, key=keys[next_place], recorded_at=None).delete()

    def _leaves(self, person):
        if mine := self._mine(person):
            self._asked("post", f"/p/{mine.code}/withdraw/")

    def _is_excluded(self, person):
        mine = self._mine(person)
        self._tried(exclude.exclude, [mine] if mine else [], "other", self.researcher, "Why not.", reopen=True)

    def _pauses(self, person):
        self._tried(lifecycle.pause, Study.objects.get(pk=self.study.pk), None)

    def _resumes(self, person):
        self._tried(lifecycle.resume, Study.objects.get(pk=self.study.pk), None)

    def _closes(self, person):
        self._tried(lifecycle.close, Study.objects.get(pk=self.study.pk), None)

    def _amends(self, person):
        times = {self.rng.choice(("idle_seconds", "minutes")): self.rng.choice((12, 13, 900, 7200))}
        self._tried(lifecycle.amend, Study.objects.get(pk=self.study.pk), {"study": {None: times}}, None, "Slow.")

    def _another_process(self, person):
        forget()

    def _tried(self, work, *arguments, **named):
        try:
            work(*arguments, **named)
        except lifecycle.NotNow as refused:
            self.answers.append(("refused", str(refused)))


def forget() -> None:
    """As a process that has just begun."""
    at_once._times.clear()
    pages._settled.cache_clear()


def stored() -> dict[str, list[dict]]:
    """All rows of what annotators do and of what counts it: links by place, for ids go on where a transaction was rolled back."""
    models = [*apps.get_app_config("annotators").get_models(), *(apps.get_model("studies", name) for name in ("Study", "Batch", "AuditEvent"))]  # fmt: skip
    rows = {model: list(model._base_manager.order_by("pk").values()) for model in models}
    places = {model: {row["id"]: n for n, row in enumerate(found)} for model, found in rows.items()}
    for model, found in rows.items():
        for one in model._meta.concrete_fields:
            if one.related_model in places:
                for row in found:
                    row[one.attname] = places[one.related_model].get(row[one.attname])
            elif one.primary_key:
                for place, row in enumerate(found):
                    row[one.attname] = place
            elif isinstance(one, BinaryField):  # enciphered anew each time
                for row in found:
                    row[one.attname] = row[one.attname] is not None
    return {model.__name__: found for model, found in rows.items()}


class Both:
    """A study at which the same is played twice."""

    def __init__(self, study: Study, clock: Clock, monkeypatch):
        self.study, self.clock, self.monkeypatch = study, clock, monkeypatch
        self.door, self.researcher = panel(study), user()

    def play(self, seed: int, script, way) -> Played:
        """Play it by this way, and undo it all."""
        made = Played()

        def counted(code, key, data):
            found = way(code, key, data)
            made.short += found is not None
            return found

        point = transaction.savepoint()
        self._begin_anew(counted)
        play = Play(self.study, self.door, self.clock, self.researcher, seed)
        for name, person in script:
            play.act(name, person)
        made.answers, made.stored = play.answers, stored()
        transaction.savepoint_rollback(point)
        return made

    def _begin_anew(self, way) -> None:
        forget()
        self.clock.tick()
        self.monkeypatch.setattr(page_views, "record_at_once", way)
        numbers = count(1000)
        for model, name, made in (
            (Assignment, "seed", lambda: next(numbers)),
            (Assignment, "code", lambda: f"code{next(numbers):018}"),
            (Annotator, "code", lambda: UUID(int=next(numbers))),
        ):
            self.monkeypatch.setattr(model._meta.get_field(name), "_get_default", made)


@pytest.fixture
def both_at(clock, monkeypatch):
    return lambda kind: Both(STUDIES[kind](), clock, monkeypatch)


def script_of(seed: int, length: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    people = PEOPLE[: 1 + seed % 2]
    return [(rng.choices(list(ACTS), list(ACTS.values()))[0], rng.choice(people)) for _ in range(length)]


def stores_nothing(code, key, data):
    """The long way alone."""


SHORT = at_once.record_at_once
NO_VISIT = Update(
    lambda *values: (
        PageVisit.objects.filter(pk=values[1], recorded_at=None, key__in=values[2:], pk__lt=0),
        {"active_seconds": values[0]},
    ),
    int, int, str, str, str,
)  # fmt: skip


def keeps_the_place(monkeypatch):
    """The long way, behind the one thing that the short way does where it stores nothing: the place is kept for longer."""

    def way(code, key, data):
        with monkeypatch.context() as patched:
            patched.setattr(at_once, "_recording", NO_VISIT)
            assert SHORT(code, key, data) is None

    return way


def compare(both: Both, seed: int, script, monkeypatch) -> Played:
    short = both.play(seed, script, SHORT)
    same(short, both.play(seed, script, keeps_the_place(monkeypatch)), seed)
    if seed % 3 == 0:
        same(but_for_times(short), but_for_times(both.play(seed, script, stores_nothing)), seed)
    return short


def search(both: Both, seeds, length: int, monkeypatch) -> Counter:
    taken: Counter = Counter()
    for seed in seeds:
        short = compare(both, seed, script_of(seed, length), monkeypatch)
        taken["short"] += short.short
        taken.update(f"{one[0]} {one[3]}" for one in short.answers if one[0] in ("get", "post"))
    return taken


def but_for_times(played: Played) -> Played:
    """Without what says for how long a place is kept."""
    for row in played.stored["Assignment"]:
        del row["reserved_until"]
    answers = [
        (*one[:4], [header for header in one[4] if header[0] != "Content-Length"], re.sub(rb'<span id="kept".*?</span>', b"", one[5]))
        if one[0] in ("get", "post") else one
        for one in played.answers
    ]  # fmt: skip
    return Played(answers, played.stored, played.short)


def same(one: Played, other: Played, seed) -> None:
    for n, (mine, theirs) in enumerate(zip(one.answers, other.answers, strict=False)):
        assert mine == theirs, f"seed {seed}, answer {n}"
    assert len(one.answers) == len(other.answers), seed
    for name, rows in one.stored.items():
        assert rows == other.stored[name], f"seed {seed}, {name}"


# Whoever is asked why meets pages that answers determine.
GOES_LONG = {"asked why"}


# Each condition of the short way, once where it holds and once where it does not.
USUAL_AND_UNUSUAL = (
    "anna opens, anna answers, anna opens, anna types, anna answers, anna sends again, anna sends otherwise, ben opens, ben answers, "
    "ben opens, ben says no, anna opens, anna writes otherwise, anna answers, anna opens, anna amends, anna answers, anna opens, "
    "anna loses the visit, anna answers, anna opens, anna loses the visit, anna types, anna answers, "
    "anna opens, anna is replaced, anna answers, anna opens, anna another process, anna answers, anna goes on, anna goes on, ben opens, ben answers, "
    "anna opens, anna closes, anna answers, ben opens, ben leaves, ben answers" + 6 * ", anna goes on"
)


@pytest.mark.parametrize("kind", ["rating", "surveys", "trained by examples"])
def test_pages_are_stored_the_same_by_both_ways(kind, both_at, monkeypatch):
    script = [tuple(reversed(act.split(" ", 1))) for act in USUAL_AND_UNUSUAL.split(", ")]
    assert compare(both_at(kind), 9, script, monkeypatch).short >= 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", STUDIES)
def test_pages_are_stored_the_same_by_both_ways_whatever_is_done(kind, both_at, monkeypatch):
    taken = search(both_at(kind), range(60), 40, monkeypatch)
    assert (taken["short"] > 100) == (kind not in GOES_LONG)
    # Each way to end is met.
    assert all(taken[f"post {status}"] for status in (200, 302, 409, 422))
