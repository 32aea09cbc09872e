"""The contract holds what later protocols need without a new column: each example is a small protocol of its own, played.

Several answers of a list, a follow-up that depends on an answer, marked errors, and "cannot judge". A ranking is one of the
protocols now.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import pytest

from annotators.models import Response
from annotators.record import record_page
from annotators.show import stored_texts
from studies.fields import Answer, Field, Refused
from studies.models import Question, Section
from studies.protocols import REGISTRY, Ask, Page, Protocol, question_asks
from tests.builders import COMMENT, add_survey, draft_study, launched
from tests.players import claimed, form, open_page

pytestmark = pytest.mark.django_db


@dataclass(frozen=True, slots=True)
class Mark(Field):
    """An error: its category, its severity and where it is."""

    inputs: ClassVar[tuple[str, ...]] = ("category", "severity", "where")

    def clean(self, sent):
        if not any(sent.values()):
            return None
        if sent["category"] not in ("accuracy", "fluency") or sent["severity"] not in ("1", "5") or not sent["where"]:
            raise Refused("Please say what kind of error it is, how bad, and where.")
        return Answer(value=Decimal(sent["severity"]), choice=sent["category"], part=sent["where"])

    def as_sent(self, row):
        return {"category": row.choice, "severity": f"{row.value.normalize():f}", "where": row.part}


class Marks(Protocol):
    slug = "marks_example"
    label = "marks"
    max_marks = 3

    def asks(self, page):
        (question,) = page.questions
        return {
            page.slot(question, item, label, part=n): Ask(
                Mark(required=False),
                question.id,
                item_id=item.id,
                exposure_id=exposure,
                label=label,
                position=item.position,
            )
            for item in page.items
            for label, exposure in item.exposures[:1]
            for n in range(self.max_marks + 1)
        }

    def clean(self, page, data):
        """No mark at all is said too: row p0 with value 0."""
        if not any(data.values()):
            data[next(iter(data))] = Answer(value=Decimal(0))
        return {}


class FollowUp(Protocol):
    slug = "follow_up_example"
    label = "follow-up"

    def pages(self, section, items, answers):
        source, why, change = section.questions_by_key("source", "why", "change")
        pages = []
        for item in items:
            page = Page(f"s{section.position}.p{item.position}", section, (item,), (source,))
            pages.append(page)
            answer = answers.get(page.slot(source, item, item.exposures[0][0]))
            if answer is not None:
                pages.append(Page(f"{page.key}f", section, (item,), (why if answer <= 2 else change,)))
        return pages

    def asks(self, page):
        (item,) = page.items
        label, exposure = item.exposures[0]
        return {s: a for q in page.questions for s, a in question_asks(page, q, item, label, exposure).items()}


@pytest.fixture
def with_example(monkeypatch):
    def add(protocol, *questions):
        monkeypatch.setitem(REGISTRY, protocol.slug, protocol())
        study = draft_study(target_n=1)
        section = Section.objects.create(study=study, position=1, protocol=protocol.slug, m=1)
        for n, columns in enumerate(questions, 1):
            Question.objects.create(section=section, position=n, **{"text": "?"} | columns)
        study.instructions = ""
        study.save()
        return claimed(launched(study), "w")

    return add


def send(assignment, **fields):
    key = open_page(assignment)[1].key
    return record_page(type(assignment).objects.select_related("study").get(pk=assignment.pk), key, form(**fields))


def rows(assignment):
    return list(Response.objects.filter(assignment=assignment).order_by("slot"))


def test_an_error_mark_is_a_row_with_category_severity_and_place(with_example):
    assignment = with_example(Marks, {"key": "errors"})
    slot = "s1.q1.i1.A.p"
    assert list(send(assignment, **{f"{slot}0.category": "accuracy"}).sent.errors) == [f"{slot}0"]
    step, page, asks = open_page(assignment)
    send(assignment, **{
        f"{slot}0.category": "accuracy", f"{slot}0.severity": "5", f"{slot}0.where": "2",
        f"{slot}1.category": "fluency", f"{slot}1.severity": "1", f"{slot}1.where": "4-5",
    })  # fmt: skip
    stored = rows(assignment)
    assert [(r.slot, r.choice, r.value, r.part) for r in stored] == [
        (f"{slot}0", "accuracy", 5, "2"), (f"{slot}1", "fluency", 1, "4-5"),
    ]  # fmt: skip
    assert stored_texts(asks, page, stored)[f"{slot}1.where"] == "4-5"


def test_no_error_is_said_too(with_example):
    assignment = with_example(Marks, {"key": "errors"})
    send(assignment)
    assert [(r.slot, r.value, r.choice) for r in rows(assignment)] == [("s1.q1.i1.A.p0", 0, "")]


@pytest.mark.parametrize("answer, asked", [("1", "why"), ("4", "change")])
def test_a_follow_up_depends_on_the_answer(with_example, answer, asked):
    assignment = with_example(
        FollowUp,
        {"key": "source", "scale": {"kind": "likert", "maximum": 4}},
        {"key": "why", "scale": {"kind": "text"}},
        {"key": "change", "scale": {"kind": "text"}},
    )
    following = send(assignment, **{"s1.q1.i1.A": answer}).following
    assert following == "s1.p1f"
    _, page, asks = open_page(assignment)
    assert [question.key for question in page.questions] == [asked]
    assert send(assignment, **{next(iter(asks)): "because"}).following is None
    assert [(r.question.key, r.text) for r in rows(assignment)] == [("source", ""), (asked, "because")]


def test_several_of_a_list_are_one_row_an_option():
    study = draft_study(target_n=1, instructions="")
    options = [{"key": "a", "label": "Tea"}, {"key": "b", "label": "Coffee"}, {"key": "c", "label": "Water"}]
    add_survey(
        study, position=1, questions=[{"key": "drinks", "text": "?", "scale": {"kind": "multiple", "options": options}}]
    )
    assignment = claimed(launched(study), "w")
    assert send(assignment, **{"s1.q1.o1": "2"}).sent.errors
    send(assignment, **{"s1.q1.o1": "1", "s1.q1.o3": "1"})
    assert [(r.slot, r.choice, r.value) for r in rows(assignment)] == [
        ("s1.q1.o1", "a", 1), ("s1.q1.o2", "b", 0), ("s1.q1.o3", "c", 1),
    ]  # fmt: skip


def test_cannot_judge_is_a_skip_reason_and_no_value():
    study = draft_study(target_n=1, instructions="")
    reasons = [{"key": "cannot_judge", "label": "I cannot judge this"}]
    add_survey(study, position=1, questions=[COMMENT | {"required": True, "skip_reasons": reasons}])
    assignment = claimed(launched(study), "w")
    assert send(assignment).sent.errors and send(assignment, **{"s1.q1.skip": "because"}).sent.errors
    assert send(assignment, **{"s1.q1": "words", "s1.q1.skip": "cannot_judge"}).sent.errors
    send(assignment, **{"s1.q1.skip": "cannot_judge"})
    assert [(r.value, r.text, r.skip_reason) for r in rows(assignment)] == [(None, "", "cannot_judge")]
