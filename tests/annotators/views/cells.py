"""States of an assignment, pages, bodies and ways to send them: a cell for each."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from random import Random

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client

from annotators.models import Assignment, PageVisit, Response
from annotators.pages.record import DRAFT_TAB, full_page_state
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import assign
from studies.models import Study
from studies.protocols.base.fields import Robot
from studies.services import lifecycle
from tests.annotators.views.kept import WORDS, asks_of, assert_kept
from tests.builders import COMMENT, add_rating, add_survey, draft_study, launched, recruitment
from tests.players import answered, claimed

QUESTIONS = [
    {"key": f"k{n}", "text": f"Question {n}?", "scale": scale, "required": n % 2 == 0}
    | ({"skip_reasons": [{"key": "unsure", "label": "I am not sure"}]} if scale["kind"] != "multiple" else {})
    for n, scale in enumerate(
        [
            {"kind": "percent"},
            {"kind": "choice", "options": [{"key": "a", "label": "Apple"}, {"key": "b", "label": "Bread"}]},
            {"kind": "multiple", "options": [{"key": "a", "label": "Air"}, {"key": "b", "label": "Bus"}]},
            {"kind": "text"},
            {"kind": "likert", "labels": ["bad", "middling", "good"]},
        ]
    )
]


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
        assign.release_assignment(assignment.pk, reason)
        if is_taken:
            claimed(assignment.study, "somebody else")

    return act


def close(assignment: Assignment) -> None:
    lifecycle.start_closing(assignment.study, by=None)


def close_and_sweep(assignment: Assignment) -> None:
    close(assignment)
    lifecycle.end_grace_period(assignment.study, by=None)
    assign.release_expired_places()


def finish(assignment: Assignment) -> None:
    while (key := full_page_state(Assignment.objects.get(pk=assignment.pk)).next_key) is not None:
        assert answered(assignment, key).sent is None


def finish_and_withdraw(assignment: Assignment) -> None:
    finish(assignment)
    withdraw_annotator_and_erase_texts(Assignment.objects.select_related("study").get(pk=assignment.pk))


def lose_everything_light(assignment: Assignment) -> None:
    PageVisit.objects.filter(assignment=assignment, recorded_at=None).delete()
    Assignment.objects.filter(pk=assignment.pk).update(started_at=None)


REASONS_TO_RELEASE = [reason for reason in Assignment.Released if reason not in ("full", "withdrawn")]
STATES = {
    "at work": lambda a: None,
    "at work, the beginning lost": lose_everything_light,
    "withdrawn": lambda a: withdraw_annotator_and_erase_texts(a),
    "submitted": finish,
    "submitted and withdrawn": finish_and_withdraw,
    "paused": lambda a: lifecycle.pause(a.study, by=None),
    "closed, in the period of grace": close,
    "closed, and that is over": close_and_sweep,
    **{
        f"released: {reason}, the place is {'taken' if is_taken else 'free'}": release(reason, is_taken)
        for reason in REASONS_TO_RELEASE
        for is_taken in (False, True)
    },
}
NEVER_AT_WORK = {"not begun": "", "full": Assignment.Released.FULL}
# In which a page that was not sent before is never stored.
ENDED = {name for name in STATES if re.search("withdrawn|submitted|screened_out|failed_checks|fault", name)} | {"full"}
OLDER = "this, from an older tab than its draft"
PLACES = ("next", "next, its visit lost", "earlier, the same", "earlier, otherwise", "later", "unknown", OLDER)
WAYS = {
    "send": {"go": "1"},
    "autosave": {"save": "auto"},
    "save for later": {"save": "1"},
    "switch the layout": {"layout": "one"},
    "more time": None,
}


def changed(data: dict, **changes) -> dict:
    return {**data, **changes}


def text_slot(data: dict) -> str:
    return next((name for name, value in data.items() if value == WORDS), "s2.q4")


BODIES = {
    "valid": lambda data: data,
    "strange names": lambda data: changed(
        data, **{"s9.q9": "of an earlier time", "x" * 100: "long", "s2.q1.skip": "no such"}
    ),
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
}


@dataclass
class Cell:
    """Somebody at work on the second page, or who never was."""

    assignment: Assignment
    keys: list[str]
    at: int
    sent: dict[str, dict] = field(default_factory=dict)

    def page(self, place: str) -> str | None:
        """The key of a page, or None where there is not one of this kind."""
        if place == "unknown":
            return "s99.p1"
        number = self.at + {"earlier": -1, "later": 1}.get(place.partition(",")[0], 0)
        return self.keys[number] if 0 <= number < len(self.keys) else None


def at_work(study: Study) -> Cell:
    client, assignment = Client(), claimed(study, "w", recruitment(study))
    assignment = Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)
    keys = list(full_page_state(assignment).sequence.keys)
    client.get(f"/p/{assignment.code}/{keys[0]}/")
    cell = Cell(assignment, keys, 1)
    cell.sent[keys[0]] = good(assignment, keys[0])
    assert client.post(f"/p/{assignment.code}/{keys[0]}/", cell.sent[keys[0]]).status_code == 302
    assert client.get(f"/p/{assignment.code}/{keys[1]}/").status_code == 200
    return cell


def good(assignment: Assignment, key: str, seed=1) -> dict[str, str]:
    standing = full_page_state(assignment)
    asks, _ = asks_of(assignment, key)
    return Robot(Random(seed), WORDS).answers(standing.steps[key].protocol, asks) if asks else {}


def never_at_work(study: Study, reason: str) -> Cell:
    if reason:
        claimed(study, "somebody else")
        place = recruitment(study)
        found = assign.record_turned_away_annotator(study, assign.get_or_create_annotator("panel", "w"), place)
        return Cell(found, ["s1", "s2"], 0)
    assignment = claimed(study, "w", recruitment(study))
    return Cell(assignment, list(full_page_state(assignment).sequence.keys), 0)


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
            if place == OLDER:
                open_visit = PageVisit.objects.filter(assignment=cell.assignment, key=key, recorded_at=None)
                open_visit.update(draft={DRAFT_TAB: ["newer"]})
                data |= {"tab": "older", "seen": ""}
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
