"""The contract holds what later protocols need without a new column: each example is a small protocol of its own, played.

Several answers of a list, a follow-up that depends on an answer, and "cannot judge". Rankings and error marks are protocols now.
"""

import pytest

from annotators.models import Response
from annotators.pages.record import record_page_answers
from studies.models import Question, Section
from studies.protocols import REGISTRY, Page, Protocol, question_fields
from tests.builders import COMMENT, add_survey, draft_study, launched
from tests.players import claimed, form, open_page

pytestmark = pytest.mark.django_db


class FollowUp(Protocol):
    slug = "follow_up_example"
    label = "follow-up"

    def pages(self, section, items, answers):
        by_key = {question.key: question for question in section.questions}
        source, why, change = (by_key[key] for key in ("source", "why", "change"))
        pages = []
        for item in items:
            page = Page(f"s{section.position}.p{item.position}", section, (item,), (source,))
            pages.append(page)
            answer = answers.get(page.slot(source, item, item.exposures[0][0]))
            if answer is not None:
                pages.append(Page(f"{page.key}f", section, (item,), (why if answer <= 2 else change,)))
        return pages

    def page_fields(self, page):
        (item,) = page.items
        label, exposure = item.exposures[0]
        return {s: a for q in page.questions for s, a in question_fields(page, q, item, label, exposure).items()}


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
    return record_page_answers(
        type(assignment).objects.select_related("study").get(pk=assignment.pk), key, form(**fields)
    )


def rows(assignment):
    return list(Response.objects.filter(assignment=assignment).order_by("slot"))


@pytest.mark.parametrize("answer, asked", [("1", "why"), ("4", "change")])
def test_a_follow_up_depends_on_the_answer(with_example, answer, asked):
    assignment = with_example(
        FollowUp,
        {"key": "source", "scale": {"kind": "likert", "maximum": 4}},
        {"key": "why", "scale": {"kind": "text"}},
        {"key": "change", "scale": {"kind": "text"}},
    )
    following = send(assignment, **{"s1.q1.i1.A": answer}).next_key
    assert following == "s1.p1f"
    _, page, asks = open_page(assignment)
    assert [question.key for question in page.questions] == [asked]
    assert send(assignment, **{next(iter(asks)): "because"}).next_key is None
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
        ("s1.q1.o1", "a", 1),
        ("s1.q1.o2", "b", 0),
        ("s1.q1.o3", "c", 1),
    ]


def test_cannot_judge_is_a_skip_reason_and_no_value():
    study = draft_study(target_n=1, instructions="")
    reasons = [{"key": "cannot_judge", "label": "I cannot judge this"}]
    add_survey(study, position=1, questions=[COMMENT | {"required": True, "skip_reasons": reasons}])
    assignment = claimed(launched(study), "w")
    assert send(assignment).sent.errors and send(assignment, **{"s1.q1.skip": "because"}).sent.errors
    assert send(assignment, **{"s1.q1": "words", "s1.q1.skip": "cannot_judge"}).sent.errors
    send(assignment, **{"s1.q1.skip": "cannot_judge"})
    assert [(r.value, r.text, r.skip_reason) for r in rows(assignment)] == [(None, "", "cannot_judge")]
