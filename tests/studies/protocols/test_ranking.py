"""Rankings: what is missing, what a page asks, refuses and stores."""

from decimal import Decimal

import pytest

from annotators.models import PageVisit, Response
from annotators.pages.presentation import build_shown_page, responses_as_form_data
from annotators.pages.record import record_page_answers
from studies.design.checklist import find_design_problems
from studies.models import Question, Study
from studies.protocols import REGISTRY, PageItem, PageQuestion, PageSection
from studies.protocols.base.fields import Answer, parse_scale
from tests.builders import add_ranking, draft_study, launched
from tests.players import claimed, form, open_page, submitted

pytestmark = pytest.mark.django_db
RANKING = REGISTRY["ranking"]
QUESTION = PageQuestion(1, 1, "place", "The place of {label}", "", parse_scale({"kind": "number"}))
ITEM = PageItem(1, 1, (("A", 1), ("B", 2)))
A, B, C = (f"s1.q1.i1.{label}" for label in "ABC")


def draft(*, m=2, settings=None, **columns) -> Study:
    study = draft_study(instructions="", **columns)
    add_ranking(study, m=m, **(settings or {}))
    return study


def found(study, blocking=True):
    return {problem.key for problem in find_design_problems(study) if problem.is_blocking == blocking}


# What is missing


def test_a_sound_draft_has_no_problem():
    assert not found(draft())


@pytest.mark.parametrize(
    "columns, words",
    [
        ({"scale": {"kind": "percent"}}, "must have the scale “a whole number”"),
        ({"scale": {"kind": "number", "minimum": 1, "maximum": 2}}, "numbers from 1 to 3"),
        ({"scale": {"kind": "number", "minimum": 2, "maximum": 9}}, "numbers from 1 to 3"),
        ({"skip_reasons": [{"key": "no", "label": "I cannot"}]}, "has reasons to skip"),
    ],
)
def test_a_question_that_takes_no_places_is_named(columns, words):
    study = draft()
    Question.objects.filter(section__study=study).update(**columns)
    assert any(words in problem for problem in found(study)), found(study)


def test_too_few_and_too_many_systems_are_named():
    assert any("at least two systems" in problem for problem in found(draft(systems=("alpha",))))
    assert "many_to_rank:1" in found(draft(systems=[f"s{n}" for n in range(8)]), blocking=False)


def test_settings_of_any_kind_from_a_file_end_in_words():
    study = draft()
    section = study.sections.get()
    for name in ("allows_ties", "labels", "layout", "noun"):
        for wrong in ([], {}, "x", None, 4, "\u2028", 1e300):
            section.settings = {name: wrong}
            section.save()
            list(find_design_problems(study))
            (page,) = RANKING.pages(PageSection(1, 1, section.settings, (QUESTION,)), [ITEM], {})
            data = {"s1.q1.i1.A": Answer(Decimal(1), text="1"), "s1.q1.i1.B": Answer(Decimal(1), text="1")}
            RANKING.complete_data_and_find_errors(page, data), RANKING.page_fields(page)


# A page


def send(assignment, *places, **more):
    key = open_page(assignment)[1].key
    typed = {slot: place for slot, place in zip((A, B, C), places, strict=False) if place is not None}
    return record_page_answers(assignment, key, form(**typed, **more))


@pytest.mark.parametrize(
    "typed, ranks",
    [
        (("2", "1", "3"), ("2", "1", "3")),
        (("1", "2", "2"), ("1", "2.5", "2.5")),
        (("1", "3", "3"), ("1", "2.5", "2.5")),  # a gap says nothing
        (("1", "1", "3"), ("1.5", "1.5", "3")),
        (("3", "3", "3"), ("2", "2", "2")),
    ],
)
def test_a_ranking_is_stored_as_typed_and_as_mid_ranks(typed, ranks):
    assignment = claimed(launched(draft()), "w")
    _, page, asks = open_page(assignment)
    assert send(assignment, *typed).sent is None
    stored = list(Response.objects.order_by("slot"))
    assert [(r.slot, r.value, r.text) for r in stored] == [
        (slot, Decimal(rank), place) for slot, rank, place in zip((A, B, C), ranks, typed, strict=True)
    ]
    assert [(r.label, r.exposure_id) for r in stored] == list(page.items[0].exposures)
    assert responses_as_form_data(asks, page, stored) == dict(zip((A, B, C), typed, strict=True))
    send_again = record_page_answers(assignment, "s1.p1", form(**dict(zip((A, B, C), typed, strict=True))))
    assert send_again.sent is None and Response.objects.count() == 3


def test_a_place_that_is_none_is_refused_naming_its_output():
    assignment = claimed(launched(draft()), "w")
    wanted = "Please give a whole number from 1 to 3."
    for wrong in ("1.5", "", "0", "4", "-1", "first", "1e0", " ", "1\x00"):
        outcome = send(assignment, "1", wrong, "2")
        why = "This scale takes whole numbers only. " if wrong == "1.5" else ""
        assert outcome.sent.errors == {B: why + wanted}, wrong
    shown = build_shown_page(assignment, outcome.step.page, outcome.asks, form=outcome.sent)
    assert [(where, field.text) for where, field in shown.located_errors] == [("Story B", "The place of B")]
    assert not Response.objects.exists()


def test_without_ties_two_in_one_place_are_both_named():
    assignment = claimed(launched(draft(settings={"allows_ties": False})), "w")
    assert send(assignment, "1", "2", "2").sent.errors == {
        B: "The same place as C. Please decide.",
        C: "The same place as B. Please decide.",
    }
    # What is wrong with one place hides nothing about the others, and keeps its own words.
    assert send(assignment, "2", "9", "2").sent.errors == {
        A: "The same place as C. Please decide.",
        B: "Please give a whole number from 1 to 3.",
        C: "The same place as A. Please decide.",
    }
    assert send(assignment, "1", "3", "2").sent is None


def test_a_prompt_may_be_left_empty_where_that_is_allowed_but_not_in_part():
    study = draft()
    Question.objects.filter(section__study=study).update(required=False)
    assignment = claimed(launched(study), "w")
    assert send(assignment, "1", None, "2").sent.errors == {B: "Please give each of them a place, or none."}
    assert send(assignment).sent is None and not Response.objects.exists()


def test_more_than_the_page_asks_and_two_of_one_field_are_refused():
    assignment = claimed(launched(draft()), "w")
    assert send(assignment, "1", "2", "3", **{"s1.q1.i1.D": "1"}).sent.non_field_errors
    assert send(assignment, "1", ["2", "3"], "3").sent.errors == {B: "Please give only one answer."}


def test_fixed_letters_stand_for_the_same_system_everywhere():
    study = launched(draft(settings={"labels": "fixed"}, target_n=3))
    for person in "abc":
        submitted(study, person)
    letters = Response.objects.values_list("exposure__output__system__name", "label").distinct()
    assert set(letters) == {("alpha", "A"), ("beta", "B"), ("gamma", "C")}
    assert PageVisit.objects.count() == 6


# The report
