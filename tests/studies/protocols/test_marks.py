"""Error marks: sentences, codebooks, what a page asks, refuses and stores."""

import pytest

from annotators.models import Response
from annotators.pages.presentation import build_shown_page, responses_as_form_data
from annotators.pages.record import record_page_answers, save_page_draft_and_extend_deadline
from studies.design.checklist import find_design_problems
from studies.models import Output, Question, Study
from studies.protocols import REGISTRY
from studies.protocols.marks import (
    DEFAULT_CATEGORIES,
    DEFAULT_SEVERITIES,
    ERRORS,
    ErrorMarkField,
    parse_categories,
    parse_codebook,
    parse_severities,
    split_sentences,
)
from tests.builders import add_marks, draft_study, launched
from tests.players import claimed, form, open_page

pytestmark = pytest.mark.django_db
TEXT = "One is here. Two is “there”! Three is 3.5 m long,\n\nfour, e.g. this one. 五在这里。六也在。"
SLOT, SCORE = "s1.q1.i1.A.p", "s1.q2.i1.A"


def draft(*, settings=None, m=1, **columns) -> Study:
    study = draft_study(instructions="", **columns)
    add_marks(study, m=m, **(settings or {}))
    Output.objects.filter(system__study=study).update(text=TEXT)
    return study


def found(study, blocking=True):
    return {problem.key for problem in find_design_problems(study) if problem.is_blocking == blocking}


# Sentences


def test_a_text_is_cut_in_any_script_and_its_parts_are_the_text():
    parts = split_sentences(TEXT)
    assert [part.text for part in parts] == [
        "One is here.",
        "Two is “there”!",
        "Three is 3.5 m long,",
        "four, e.g. this one.",
        "五在这里。",
        "六也在。",
    ]
    assert [part.number for part in parts] == [1, 2, 3, 4, 5, 6]
    assert "".join(part.gap + part.text for part in parts) == TEXT


@pytest.mark.parametrize(
    "text, n",
    [
        ("", 0),
        (" \n\t ", 0),
        ("\u200b", 0),
        ("no end", 1),
        ("- a\n- b\n\n- c\n", 3),
        ("Why?! Because… so. Dr. No came.", 3),
        ("هل هذا؟ نعم.", 2),
        ("यह है। वह भी।", 2),
        ("...", 1),
    ],
)
def test_sentences_at_the_edge(text, n):
    assert len(split_sentences(text)) == n


# Codebooks


@pytest.mark.parametrize(
    "read, text, words",
    [
        (parse_categories, "", "at least one"),
        (parse_categories, "a", "Line 1: write"),
        (parse_categories, "a | A\n\n | B", "Line 3: write a key"),
        (parse_categories, "a | A\na | B", "occurs twice"),
        (parse_categories, "a | A\nb | a", "occurs twice"),
        (parse_categories, "a | A | b | c", "Line 1: write"),
        (parse_categories, "a\x00 | A", "This list"),
        (parse_categories, 7, "This list"),
        (parse_severities, "a | A", "Line 1: write"),
        (parse_severities, "a | A | 0", "above 0"),
        (parse_severities, "a | A | -1", "above 0"),
        (parse_severities, "a | A | 1e3", "above 0"),
        (parse_severities, "a | A | NaN", "above 0"),
        (parse_severities, "a | A | 101", "at most 100"),
        (parse_severities, "a | A | 1\nb | B | 1.0", "same weight"),
        (parse_severities, f"{'k' * 51} | A | 1", "at most 50"),
    ],
)
def test_a_codebook_that_cannot_be_used_is_refused_with_its_line(read, text, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        read(text)


def test_the_codebook_to_begin_with_can_be_read():
    book = parse_codebook(DEFAULT_CATEGORIES, DEFAULT_SEVERITIES)
    assert len(book.categories) == 8 and [one.weight for one in book.severities] == [1, 5]
    assert all(one.explanation for one in (*book.categories, *book.severities))


def test_settings_of_any_kind_from_a_file_end_in_words():
    study = draft()
    section = study.sections.get()
    for name in ("categories", "severities", "max_marks", "noun"):
        for wrong in ([], {}, "x", None, 4, "\u2028", 1e300, -1):
            section.settings = {name: wrong}
            section.save()
            list(find_design_problems(study))
            assert REGISTRY[section.protocol].cleaned_settings(section)["max_marks"]


@pytest.mark.parametrize(
    "columns, words",
    [
        ({"key": "faults"}, "with the key “errors”"),
        ({"scale": {"kind": "percent"}}, "“a whole number” from 0"),
        ({"scale": {"kind": "number", "minimum": 0, "maximum": 4}}, "must reach up to 5"),
        ({"skip_reasons": [{"key": "no", "label": "No"}]}, "has reasons to skip"),
    ],
)
def test_what_a_section_lacks_is_named(columns, words):
    study = draft()
    assert not found(study)
    Question.objects.filter(section__study=study, key=ERRORS).update(**columns)
    assert any(words in problem for problem in found(study)), found(study)


def test_outputs_without_sentences_and_a_missing_score_are_named():
    study = draft()
    Output.objects.filter(pk=Output.objects.first().pk).update(format="markdown")
    Question.objects.filter(section__study=study, key="score").delete()
    first = Output.objects.select_related("system", "prompt").first()
    where = f"The first: {first.system.name} for prompt {first.prompt.key}, format “markdown”."
    assert any("1 outputs are Markdown" in problem and where in problem for problem in found(study)), found(study)
    assert "no_score:1" in found(study, blocking=False)


# A page


@pytest.fixture
def assignment():
    study = draft()
    assignment = claimed(launched(study), "w")
    label = open_page(assignment)[1].items[0].exposures[0][0]
    assert label == "A"
    return assignment


def row(number, where="", category="", severity="", words=""):
    names = {"where": where, "category": category, "severity": severity, "words": words}
    return {f"{SLOT}{number}.{name}": value for name, value in names.items()}


def send(assignment, *rows, score="80", **more):
    fields = {SCORE: score} | more
    for each in rows:
        fields |= each
    open_page(assignment, "s1.p1")
    return record_page_answers(assignment, "s1.p1", form(**fields))


def stored():
    return [
        (r.slot, r.choice, r.value, r.part) for r in Response.objects.filter(slot__startswith=SLOT).order_by("slot")
    ]


def test_a_mark_is_a_row_with_category_weight_and_place(assignment):
    _, page, asks = open_page(assignment)
    rows = (row(1, "2", "style", "minor", "0-3"), row(2, "0", "accuracy", "major"), row(4, "2", "style", "major"))
    assert send(assignment, *rows).sent is None
    assert stored() == [
        (f"{SLOT}1", "style", 1, "2:0-3"),
        (f"{SLOT}2", "accuracy", 5, "0"),
        (f"{SLOT}4", "style", 5, "2"),
    ]
    texts = responses_as_form_data(asks, page, Response.objects.all())
    assert {name: texts[name] for each in rows for name in each} == {k: v for each in rows for k, v in each.items()}
    assert send(assignment, *rows).sent is None and Response.objects.count() == 4, "sent twice it is stored once"


def test_no_error_is_said_and_stored_as_nought(assignment):
    assert send(assignment).sent.errors == {f"{SLOT}0": "Please mark an error, or tick that there is no error."}
    both = send(assignment, row(1, "1", "style", "minor"), **{f"{SLOT}0": "1"})
    assert both.sent.errors == {f"{SLOT}0": "You marked errors. Please remove them, or remove this tick."}
    assert send(assignment, **{f"{SLOT}0": "1"}).sent is None
    assert stored() == [(f"{SLOT}0", "", 0, "")]


def test_one_look_tells_all_that_is_wrong(assignment):
    nothing = send(assignment, score="")
    assert nothing.sent.errors == {
        f"{SLOT}0": "Please mark an error, or tick that there is no error.",
        SCORE: "Please give a whole number from 0 to 100.",
    }
    # A mark that was begun is a mark: what it lacks is said, and not that there is none.
    begun = row(1, "1")
    assert send(assignment, begun).sent.errors.keys() == {f"{SLOT}1"}
    assert send(assignment, begun, **{f"{SLOT}0": "1"}).sent.errors.keys() == {f"{SLOT}0", f"{SLOT}1"}
    same = row(2, "1", "style", "minor"), row(3, "1", "style", "minor")
    assert send(assignment, begun, *same, row(4, "9", "style", "minor"), score="x").sent.errors.keys() == {
        f"{SLOT}1",
        f"{SLOT}3",
        f"{SLOT}4",
        SCORE,
    }
    assert not Response.objects.exists()


def test_bad_marks_are_refused_by_name_and_nothing_is_lost(assignment):
    for wrong, words in (
        (row(1, "1"), "Please say its category and its severity, or remove the error."),
        (row(1, "", "style", "minor"), "Please say where it is, or remove the error."),
        (row(1, "7", "style", "minor"), "Please choose one of the sentences."),
        (row(1, "9999", "style", "minor"), "Please choose one of the sentences."),
        (row(1, "-1", "style", "minor"), "Please choose from what is offered."),
        (row(1, "01", "style", "minor"), "Please choose from what is offered."),
        (row(1, "1", "spelling", "minor"), "Please choose from what is offered."),
        (row(1, "1", "style", "5"), "Please choose from what is offered."),
        (row(1, "١", "style", "minor"), "Please choose from what is offered."),
    ):
        outcome = send(assignment, wrong)
        assert outcome.sent.errors == {f"{SLOT}1": words}, wrong
        shown = build_shown_page(assignment, outcome.step.page, outcome.asks, form=outcome.sent)
        assert [(where, field.text) for where, field in shown.located_errors] == [("Story A", "Error 1")]
    twice = send(assignment, row(1, "1", "style", "minor"), row(2, "1", "style", "minor"))
    assert twice.sent.errors == {f"{SLOT}2": "This error is marked twice. Please remove one of the two."}
    assert send(assignment, row(7, "1", "style", "minor")).sent.non_field_errors
    assert send(assignment, row(1, "1", "style", "minor"), score="101").sent.errors.keys() == {SCORE}
    assert not Response.objects.exists()


@pytest.mark.parametrize(
    "words, part", [("9-3", "1"), ("0-99999", "1"), ("x", "1"), ("1-1", "1"), ("3-12", "1:3-12"), ("3-13", "1")]
)
def test_words_that_the_sentence_does_not_have_leave_the_sentence(assignment, words, part):
    send(assignment, row(1, "1", "style", "minor", words))
    assert stored()[0][3] == part


def test_a_mark_with_a_severity_alone_is_none_and_a_draft_comes_back(assignment):
    key = open_page(assignment)[1].key
    save_page_draft_and_extend_deadline(assignment, key, form(**row(1, "3", "style")))
    _, page, asks = open_page(assignment)
    shown = build_shown_page(assignment, page, asks, draft_form_data=assignment.visits.get(key=key).draft)
    marks = [field for field in shown.all_fields if isinstance(field.field, ErrorMarkField)]
    assert marks[0].values["where"] == "3" and marks[0].values["category"] == "style" and len(marks) == 6
    assert send(assignment, row(1, "", "", "minor")).sent.errors.keys() == {f"{SLOT}0"}


def test_each_output_has_a_page_and_the_errors_may_be_left_open_where_the_question_says_so():
    study = draft(m=2)
    Question.objects.filter(section__study=study).update(required=False)
    assignment = claimed(launched(study), "w")
    keys = []
    while True:
        _, page, asks = open_page(assignment)
        keys.append((page.key, page.items[0].exposures[0][0], page.items[0].position))
        if record_page_answers(assignment, page.key, form()).next_key is None:
            break
        assignment = type(assignment).objects.select_related("study").get(pk=assignment.pk)
    assert keys == [(f"s1.p{n + 1}", "ABC"[n % 3], n // 3 + 1) for n in range(6)]
    assert not Response.objects.exists()


# The report
