"""No answer to a POST of answers drops what was typed: it is stored, or the page that comes back shows it again with the reason.

Every state of an assignment, every page, every body and every way to send it. Bodies that are refused unread are the exception.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import product
from random import Random

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, transaction
from django.test import Client, RequestFactory

from annotators.models import Assignment, Inquiry, PageVisit, Response
from annotators.pages import record
from annotators.pages.forms import CONTROLS, SKIP
from annotators.pages.record import NotStored, standing_of
from annotators.pages.sequence import page_as_shown
from annotators.pages.show import stored_texts
from annotators.participation.withdraw import withdraw
from annotators.places import assign
from annotators.views import pages as page_views
from annotators.views import urls
from heval_site.middleware import unavailable
from studies.models import Study
from studies.protocols import REGISTRY
from studies.protocols.base.robots import Robot
from studies.services import lifecycle
from tests import ROOT
from tests.builders import COMMENT, add_rating, add_survey, draft_study, launched, recruitment
from tests.players import answered, claimed, sent_from
from tests.robots import Page as Forms
from tests.samples import sample_draft

pytestmark = pytest.mark.django_db
WORDS = "What I wrote, with “quotes”, <b>marks</b> & a line\nbelow."


# What came back


class Shown(HTMLParser):
    """What a person can read or correct on a page: filled fields, listed answers, and the reason."""

    def __init__(self, html: str):
        super().__init__()
        self.fields: set[tuple[str, str]] = set()
        self.listed: list[str] = []
        self.reasons: list[str] = []
        self.again: set[tuple[str, str]] = set()
        self._into: list[str] | None = None
        self._name = self._select = self._tag = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        name, value = a.get("name") or "", a.get("value") or ""
        if "disabled" in a:
            name = ""  # what is stored, and not what was sent
        if tag == "input" and a.get("type") == "hidden":
            (self.fields if name.endswith(".words") else self.again).add((name, value))
        elif tag == "input" and (a.get("type") not in ("radio", "checkbox") or "checked" in a):
            self.fields.add((name, value))
        elif tag == "select":
            self._select = name
        elif tag == "option" and "selected" in a:
            self.fields.add((self._select, value))
        elif tag in ("textarea", "dd", "li", "p", "h1", "h2"):
            self._into, self._tag, self._name = [], tag, name
            self._is_reason = a.get("id") == "refused" or "wrong" in (a.get("class") or "")

    def handle_data(self, data):
        if self._into is not None:
            self._into.append(data)

    def handle_endtag(self, tag):
        if self._into is None or tag != self._tag:
            return
        words = "".join(self._into)
        if tag == "textarea":
            self.fields.add((self._name, words.removeprefix("\n")))
        elif tag in ("dd", "li"):
            self.listed.append(plain(words))
        elif self._is_reason and words.strip():
            self.reasons.append(plain(words))
        self._into = None


def plain(words: str) -> str:
    return " ".join(words.replace("\x00", "").split())


def typed_in(data: dict) -> set[tuple[str, str]]:
    """What a person typed or chose."""
    pairs = (
        (name, value) for name, values in data.items() for value in (values if isinstance(values, list) else [values])
    )
    return {(name, value) for name, value in pairs if name not in CONTROLS and isinstance(value, str) and value.strip()}


def labels_in(asks) -> dict[tuple[str, str], str]:
    """The words beside each thing that may be chosen, by the name and the value of its input."""
    found = {}
    for slot, ask in asks.items():
        for options in ("options", "points"):
            for option in getattr(ask.field, options, ()):
                found[slot, option.key] = option.label
        if option := getattr(ask.field, "option", None):
            found[slot, "1"] = option.label or "Yes"
        if getattr(ask.field, "tie", ""):
            found[slot, "tie"] = ask.field.tie
        for name, words in ask.skip_reasons:
            found[slot + SKIP, name] = words
        if book := getattr(ask.field, "codebook", None):
            found |= {(f"{slot}.category", one.key): one.label for one in book.category_options}
            found |= {(f"{slot}.severity", one.key): one.label for one in book.severity_options}
            found[f"{slot}.where", "0"] = "in no sentence"
    return found


def asks_of(assignment: Assignment, key: str):
    standing = standing_of(assignment)
    step, visit = standing.steps.get(key), standing.visits.get(key)
    if step is None:
        return {}, None
    page = page_as_shown(step.page, visit.shown) if visit else step.page
    return step.protocol.asks(page), page


def is_stored(assignment: Assignment, key: str, typed: set) -> bool:
    """Whether all of it is in the database, as a draft or as answers."""
    visit = PageVisit.objects.filter(assignment=assignment, key=key).first()
    if visit is None:
        return False
    kept = visit.draft or {}
    if all(plain(value) in map(plain, kept.get(name, ())) for name, value in typed):
        return True
    asks, page = asks_of(assignment, key)
    texts = stored_texts(asks, page, Response.objects.filter(assignment=assignment, slot__in=list(asks)))
    return visit.recorded_at is not None and all(plain(texts.get(name, "")) == plain(value) for name, value in typed)


def not_shown(response, asks, typed: set) -> set:
    """What of it the page that came back does not show."""
    shown, labels = Shown(response.content.decode()), labels_in(asks)
    fields = {(name, plain(value)) for name, value in shown.fields}

    def is_there(name, value):
        words = plain(value)
        label = plain(labels.get((name, value), words))
        return (name, words) in fields or bool({words, label, f"{words} ({label})"} & set(shown.listed))

    assert response.status_code < 400 or shown.reasons, response.content.decode()
    return {one for one in typed if not is_there(*one)}


def assert_kept(response, assignment: Assignment, key: str, data: dict, where) -> str:
    """Stored, or shown with the reason. Says which."""
    typed = typed_in(data)
    fresh = Assignment.objects.get(pk=assignment.pk)
    # A saved draft is answered with the line of the place, which is no page.
    is_saved = response.status_code == 200 and b"<html" not in response.content
    if response.status_code == 302 or is_saved:
        assert not typed or is_stored(fresh, key, typed), (where, response.status_code, typed)
        return "stored"
    assert response.status_code in (404, 409, 422, 500, 503), (where, response.status_code)
    asks, _ = asks_of(fresh, key) if fresh.batch_id else ({}, None)
    lacking = not_shown(response, asks, typed)
    assert not lacking, (where, response.status_code, lacking, response.content.decode())
    return "shown"


# States, pages, bodies and ways


QUESTIONS = [
    {"key": f"k{n}", "text": f"Question {n}?", "scale": scale, "required": n % 2 == 0}
    | ({"skip_reasons": [{"key": "unsure", "label": "I am not sure"}]} if scale["kind"] != "multiple" else {})
    for n, scale in enumerate([
        {"kind": "percent"},
        {"kind": "choice", "options": [{"key": "a", "label": "Apple"}, {"key": "b", "label": "Bread"}]},
        {"kind": "multiple", "options": [{"key": "a", "label": "Air"}, {"key": "b", "label": "Bus"}]},
        {"kind": "text"},
        {"kind": "likert", "labels": ["bad", "middling", "good"]},
    ])
]  # fmt: skip


def study_of() -> Study:
    """Three pages of questions and one of texts: the second is neither the first nor the last, and may go the short way."""
    study = draft_study(systems=("alpha", "beta"), prompts=6, instructions="", target_n=1)
    for position in (1, 2):
        add_survey(study, position=position, questions=QUESTIONS)
    add_rating(study, position=3, m=1)
    add_survey(study, position=4, questions=[COMMENT])
    return launched(study)


def release(reason: str, is_taken: bool):
    def act(assignment: Assignment) -> None:
        assign.release(assignment.pk, reason)
        if is_taken:
            claimed(assignment.study, "somebody else")

    return act


def close(assignment: Assignment) -> None:
    lifecycle.close(assignment.study, by=None)


def close_and_sweep(assignment: Assignment) -> None:
    close(assignment)
    lifecycle.finish(assignment.study, by=None)
    assign.sweep()


def finish(assignment: Assignment) -> None:
    while (key := standing_of(Assignment.objects.get(pk=assignment.pk)).next_key) is not None:
        assert answered(assignment, key).sent is None


def finish_and_withdraw(assignment: Assignment) -> None:
    finish(assignment)
    withdraw(Assignment.objects.select_related("study").get(pk=assignment.pk))


def lose_everything_light(assignment: Assignment) -> None:
    PageVisit.objects.filter(assignment=assignment, recorded_at=None).delete()
    Assignment.objects.filter(pk=assignment.pk).update(started_at=None)


REASONS_TO_RELEASE = [reason for reason in Assignment.Released if reason not in ("full", "withdrawn")]
STATES = {
    "at work": lambda a: None,
    "at work, the beginning lost": lose_everything_light,
    "withdrawn": lambda a: withdraw(a),
    "submitted": finish,
    "submitted and withdrawn": finish_and_withdraw,
    "paused": lambda a: lifecycle.pause(a.study, by=None),
    "closed, in the period of grace": close,
    "closed, and that is over": close_and_sweep,
    **{
        f"released: {reason}, the place is {'taken' if is_taken else 'free'}": release(reason, is_taken)
        for reason in REASONS_TO_RELEASE for is_taken in (False, True)
    },
}  # fmt: skip
NEVER_AT_WORK = {"not begun": "", "full": Assignment.Released.FULL}
# In which a page that was not sent before is never stored.
ENDED = {name for name in STATES if re.search("withdrawn|submitted|screened_out|failed_checks", name)} | {"full"}
PLACES = ("next", "next, its visit lost", "earlier, the same", "earlier, otherwise", "later", "unknown")
WAYS = {
    "send": {"go": "1"}, "autosave": {"save": "auto"}, "save for later": {"save": "1"}, "switch the layout": {"layout": "one"},
    "more time": None,
}  # fmt: skip


def changed(data: dict, **changes) -> dict:
    return {**data, **changes}


def text_slot(data: dict) -> str:
    return next((name for name, value in data.items() if value == WORDS), "s2.q4")


BODIES = {
    "valid": lambda data: data,
    "strange names": lambda data: changed(data, **{"s9.q9": "of an earlier time", "x" * 100: "long", "s2.q1.skip": "no such"}),
    "one missing": lambda data: dict(list(data.items())[1:]),
    "too long": lambda data: changed(data, **{text_slot(data): "y" * 2500}),
    "not offered": lambda data: {name: "9999" if name != text_slot(data) else value for name, value in data.items()},
    "a file": lambda data: changed(data, upload=SimpleUploadedFile("a.txt", b"a")),
    "a file beside too little": lambda data: {text_slot(data): WORDS, "upload": SimpleUploadedFile("a.txt", b"a")},
    "nothing": lambda data: {},
    "too many fields for a draft": lambda data: data | {f"f{n}": str(n) for n in range(1_001)},
    "too long for a draft": lambda data: changed(data, **{text_slot(data): "words " * 33_400}),
    "null bytes": lambda data: changed(data, **{text_slot(data): "a\x00b"}),
    "two values": lambda data: {name: [value, f"{value} more"] for name, value in data.items()},
    "answered and skipped": lambda data: data | {"s2.q4.skip": "unsure", "s2.q1.skip": "unsure"},
}  # fmt: skip
FEW_BODIES = ("valid", "strange names")
# In these every body, beside "at work".
FULL_STATES = ("withdrawn", "closed, and that is over")


@dataclass
class Cell:
    """Somebody at work on the second page, or who never was."""

    assignment: Assignment
    keys: list[str]
    at: int
    sent: dict[str, dict] = field(default_factory=dict)

    def page(self, place: str) -> str | None:
        """The key of a page, or None where there is none of this kind."""
        if place == "unknown":
            return "s99.p1"
        number = self.at + {"earlier": -1, "later": 1}.get(place.partition(",")[0], 0)
        return self.keys[number] if 0 <= number < len(self.keys) else None


def at_work(study: Study) -> Cell:
    client, assignment = Client(), claimed(study, "w", recruitment(study))
    assignment = Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)
    keys = list(standing_of(assignment).walk.keys)
    client.get(f"/p/{assignment.code}/{keys[0]}/")
    cell = Cell(assignment, keys, 1)
    cell.sent[keys[0]] = good(assignment, keys[0])
    assert client.post(f"/p/{assignment.code}/{keys[0]}/", cell.sent[keys[0]]).status_code == 302
    assert client.get(f"/p/{assignment.code}/{keys[1]}/").status_code == 200
    return cell


def good(assignment: Assignment, key: str, seed=1) -> dict[str, str]:
    standing = standing_of(assignment)
    asks, _ = asks_of(assignment, key)
    return Robot(Random(seed), WORDS).answers(standing.steps[key].protocol, asks) if asks else {}


def never_at_work(study: Study, reason: str) -> Cell:
    if reason:
        claimed(study, "somebody else")
        place = recruitment(study)
        found = assign.turn_away(study, assign.annotator_of("panel", "w"), place)
        return Cell(found, ["s1", "s2"], 0)
    assignment = claimed(study, "w", recruitment(study))
    return Cell(assignment, list(standing_of(assignment).walk.keys), 0)


def cells(bodies, states=None, ways=tuple(WAYS)) -> Iterator[tuple[tuple, Cell, str, dict, str]]:
    """Each state, page, body and way. What one cell does is undone before the next."""
    wanted = (
        {**STATES, **NEVER_AT_WORK} if states is None else {name: {**STATES, **NEVER_AT_WORK}[name] for name in states}
    )
    for state, act in wanted.items():
        begun = transaction.savepoint()
        study = study_of()
        if state in NEVER_AT_WORK:
            cell = never_at_work(study, act)
        else:
            cell = at_work(study)
            act(cell.assignment)
        for place, body, way in product(PLACES, bodies, ways):
            key = cell.page(place)
            if key is None:
                continue
            point = transaction.savepoint()
            if place == "next, its visit lost":
                PageVisit.objects.filter(assignment=cell.assignment, key=key).delete()
            data = (
                cell.sent[key]
                if place == "earlier, the same"
                else good(cell.assignment, key, 2)
                if cell.assignment.batch_id
                else {}
            )
            data = BODIES[body](data or {"s2.q4": WORDS, "s2.q1": "40"})
            yield (state, place, body, way), cell, key, data, way
            transaction.savepoint_rollback(point)
        transaction.savepoint_rollback(begun)


def sent_by(cell: Cell, key: str, data: dict, way: str):
    code = cell.assignment.code
    client = Client(raise_request_exception=False)
    if WAYS[way] is None:
        return client.post(f"/p/{code}/time/?page={key}", data)
    return client.post(f"/p/{code}/{key}/", data | WAYS[way])


def snapshot(assignment: Assignment) -> tuple:
    answers = Response.objects.filter(assignment=assignment).order_by("pk")
    visits = PageVisit.objects.filter(assignment=assignment).order_by("pk")
    return list(answers.values_list("slot", "text", "value", "choice")), list(
        visits.values_list("key", "draft", "recorded_at")
    )


def walk_through(found, refusals) -> Counter:
    came: Counter = Counter()
    for where, cell, key, data, way in found:
        before = snapshot(cell.assignment)
        response = sent_by(cell, key, data, way)
        outcome = assert_kept(response, cell.assignment, key, data, where)
        if where[0] in ENDED:
            assert snapshot(cell.assignment) == before, where
        elif where[1].startswith("next") and where[2] == "valid":
            assert outcome == "stored", where
        came[outcome, response.status_code] += 1
    assert refusals  # what was refused was refused in words that are known
    return came


@pytest.fixture
def refusals(monkeypatch) -> Counter:
    """How often each reason was met."""
    met: Counter = Counter()
    original = page_views._not_stored

    def counted(request, code, key, refusal):
        met[type(refusal)] += 1
        return original(request, code, key, refusal)

    monkeypatch.setattr(page_views, "_not_stored", counted)
    return met


def all_below(cls) -> set[type]:
    return (
        {cls, *(below for one in cls.__subclasses__() for below in all_below(one))} if cls.__subclasses__() else {cls}
    )


def test_whatever_is_sent_in_whatever_state_is_stored_or_shown_again(refusals):
    came = walk_through(cells(FEW_BODIES), refusals)
    assert sum(came.values()) > 800 and {outcome for outcome, _ in came} == {"stored", "shown"}
    assert {status for _, status in came} == {200, 302, 409, 422}


@pytest.mark.parametrize("state", FULL_STATES)
def test_bodies_of_every_kind_are_stored_or_shown_again(state, refusals):
    came = walk_through(
        cells([body for body in BODIES if body not in FEW_BODIES], [state], ["send", "more time"]), refusals
    )
    assert sum(came.values()) >= 100


@pytest.mark.slow
def test_every_body_in_every_state_is_stored_or_shown_again(refusals):
    assert sum(walk_through(cells(BODIES), refusals).values()) > 5_000
    assert set(refusals) == all_below(NotStored) - {NotStored}


def test_every_reason_for_which_answers_are_not_stored_has_its_words_and_its_case(refusals):
    wanted = {"at work": BODIES, "submitted": ["valid"]}
    for state, bodies in wanted.items():
        walk_through(cells(bodies, [state]), refusals)
    reasons = all_below(NotStored) - {NotStored}
    assert len(reasons) >= 5 and set(refusals) == reasons
    assert set(page_views.REASONS) | {record.Conflict, record.Closed} == reasons


# Every protocol


def filled(page: str) -> dict[str, str]:
    """Every field of a page filled in, with the last that is offered."""
    form = next(form for form in Forms(page).forms if "go" in dict(form.buttons))
    data = {}
    for name, values in form.fields.items():
        kind = form.kinds[name]
        if name in CONTROLS or kind == "hidden" or name.endswith(SKIP):
            continue
        values = [value for value in values if value]
        if values or kind in ("text", "textarea"):
            data[name] = {"textarea": WORDS, "text": "77"}.get(kind) or values[-1]
    return data


def broken(*args, **kwargs):
    raise OperationalError("the connection is lost")


def faulty(*args, **kwargs):
    raise RuntimeError("a fault of ours")


@pytest.mark.parametrize("slug", sorted(REGISTRY))
def test_each_field_of_each_protocol_is_shown_again(slug, monkeypatch):
    study = launched(sample_draft(slug, 3, 1))
    client = Client(raise_request_exception=False)
    assignment = claimed(study, "w", recruitment(study))
    path, pages = client.get(f"/p/{assignment.code}/")["Location"], 0
    while True:
        page = client.get(path).content.decode()
        if (valid := sent_from(path)) is None:
            break
        key, everything = path.split("/")[3], filled(page)
        fresh = Assignment.objects.select_related("study").get(pk=assignment.pk)
        if everything:
            pages += 1
            point = transaction.savepoint()
            withdraw(fresh)
            assert assert_kept(client.post(path, everything), fresh, key, everything, (path, "left")) == "shown"
            transaction.savepoint_rollback(point)
            strange = everything | {"of.another.page": WORDS}
            assert assert_kept(client.post(path, strange), fresh, key, strange, (path, "strange")) == "shown"
            for fault, status in ((broken, 503), (faulty, 500)):
                with monkeypatch.context() as patched:
                    patched.setattr(page_views, "record_page", fault)
                    response = client.post(path, everything)
                assert response.status_code == status and not raw_lacking(response, everything)
                assert Shown(response.content.decode()).again == set(everything.items()), "it can be sent again"
        following = client.post(path, valid)
        assert following.status_code == 302
        if everything and {name: value for name, value in valid.items() if name != "go"} != everything:
            assert assert_kept(client.post(path, everything), fresh, key, everything, (path, "otherwise")) == "shown"
        path = following["Location"]
    assert pages


# Where no page can be drawn


def raw_lacking(response, data: dict) -> set:
    """What a page that knows no questions does not list."""
    listed = set(Shown(response.content.decode()).listed)
    return {value for _, value in typed_in(data) if plain(value) not in listed}


DATA = {"s1.q1": "40", "s1.q2": WORDS}


@pytest.mark.parametrize("path", ["/p/nobody/s1/", "/p/nobody/time/?page=s1", "/p/x/s1/more/", "/p/%00/s1/"])
def test_an_address_that_is_none_shows_what_was_sent_to_it(path):
    response = Client().post(path, DATA)
    assert response.status_code == 404 and not raw_lacking(response, DATA)
    assert "What you sent" not in Client().get(path.partition("?")[0]).content.decode()


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "templates").glob("[45]*.html")))
def test_every_page_about_a_fault_shows_what_an_annotator_sent_and_nothing_of_anybody_else(name):
    shown = unavailable.answer_of(RequestFactory().post("/p/some-code/s1/", DATA), int(name), title="A fault")
    assert not raw_lacking(shown, DATA)
    other = unavailable.answer_of(RequestFactory().post("/admin/login/", DATA), int(name), title="A fault")
    assert "marks" not in other.content.decode()


UNREAD = {
    "too many fields": (lambda: "&".join(f"f{n}=1" for n in range(5_001)), "application/x-www-form-urlencoded"),
    "too many bytes": (lambda: "s1.q2=" + "x" * (2**20 + 1), "application/x-www-form-urlencoded"),
    "not a form": (lambda: "--x\r\n", "multipart/form-data"),
    "another character set": (lambda: "s1.q1=40", "application/x-www-form-urlencoded; charset=utf-16"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_refused_unread_says_so(name, settings):
    """The exception: nobody knows what was typed. A page of ours sends nothing of the kind."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20
    cell = at_work(study_of())
    body, kind = UNREAD[name]
    before = snapshot(cell.assignment)
    response = Client().generic("POST", f"/p/{cell.assignment.code}/s2/", body(), kind)
    assert response.status_code == 400 and Shown(response.content.decode()).reasons
    assert snapshot(cell.assignment) == before


# The addresses


ANSWERS = {"page", "more_time"}
# What somebody writes that is not an answer: each is in the test below.
OTHER_WORDS = {"inquire", "appeal"}
# A press of a button, and nothing typed.
NOTHING_TYPED = {"withdraw", "another"}


def test_every_address_of_an_assignment_that_takes_a_form_is_known_here():
    cell = at_work(study_of())
    takes = set()
    for one in urls.of_an_assignment:
        point = transaction.savepoint()
        path = str(one.pattern).replace("<str:key>", "s2").replace("<str:name>", "x")
        if Client().post(f"/p/{cell.assignment.code}/{path}", {"text": "Hello"}).status_code != 405:
            takes.add(one.callback.__name__)
        transaction.savepoint_rollback(point)
    assert takes == ANSWERS | OTHER_WORDS | NOTHING_TYPED


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", sorted(OTHER_WORDS))
def test_other_words_are_stored_or_shown_again(name, state):
    cell = at_work(study_of())
    STATES[state](cell.assignment)
    path = next(str(one.pattern) for one in urls.of_an_assignment if one.callback.__name__ == name)
    response = Client().post(f"/p/{cell.assignment.code}/{path}", {"text": WORDS, "kind": "question"})
    stored = [plain(one.text) for one in Inquiry.objects.filter(assignment=cell.assignment)]
    assert plain(WORDS) in stored or not not_shown(response, {}, {("text", WORDS)}), response.content.decode()
