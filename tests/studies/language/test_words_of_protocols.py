"""What protocols and their fields say to annotators is in the language of the page: in a pseudo language, in Greek letters."""

import re
from decimal import Decimal

import pytest

from studies.language import (
    ENGLISH,
    PageLanguage,
    format_amount,
    format_duration,
    format_list,
    format_number,
    in_language,
)
from studies.protocols import REGISTRY, Answer, Page, PageItem, PageQuestion, PageSection
from studies.protocols.base.fields import (
    AnswerRefused,
    ChoiceField,
    ExposureChoiceField,
    Option,
    RewriteField,
    ScalePointsField,
    TextField,
    TickBoxField,
    WholeNumberField,
    parse_scale,
)
from studies.protocols.base.pages import output_name, shown_noun, shown_setting
from studies.protocols.humanlike import PAIR_TEXT
from studies.protocols.marks import DEFAULT_CATEGORIES, DEFAULT_SEVERITIES, ErrorMarkField
from studies.protocols.two_choice import TIE_TEXT
from studies.stimuli.texts import TextRefused, clean_text
from tests.pseudo_language import in_pseudo, pseudo_page_language

PSEUDO = pseudo_page_language()
WHOLE, POINTS = WholeNumberField(), ScalePointsField(points=(Option("1", "α"), Option("2", "ω")))
MARK = {"where": "1", "category": "style", "severity": "minor", "words": ""}


def said(act, refusal=AnswerRefused) -> str:
    """Return what is refused in English and in the pseudo language: the same sentence."""
    with pytest.raises(refusal) as english:
        act()
    with in_language(PSEUDO), pytest.raises(refusal) as foreign:
        act()
    # Values, such as U+0001, are not translated.
    values = re.findall(r"U\+\w+|[0-9]+", str(english.value))
    assert not re.search("[A-Za-z]", re.sub(r"U\+\w+", "", str(foreign.value)))
    assert values == re.findall(r"U\+\w+|[0-9]+", str(foreign.value))
    return str(english.value)


@pytest.mark.parametrize(
    ("field", "raw", "words"),
    [
        (WHOLE, "", "Please give a whole number from 0 to 100."),
        (WHOLE, "101", "Please give a whole number from 0 to 100."),
        (WHOLE, "1,000", "without a comma, point or space between its digits."),
        (WHOLE, "1.5", "This scale takes whole numbers only. Please give a whole number from 0 to 100."),
        (WHOLE, "5 %", "Please give a whole number from 0 to 100, without “%”."),
        (POINTS, "", "Please choose one of the points."),
        (ChoiceField(options=(Option("α", "α"),)), "", "Please choose one of the answers."),
        (ExposureChoiceField(exposures=(("A", 1),)), "", "Please choose one of them."),
        (TickBoxField(), "", "Please tick this box to go on."),
        (TextField(), " ", "Please write a few words."),
        (TextField(maximum_length=2), "абв", "Please use at most 2 characters; these are 3."),
        (TextField(minimum_length=4), "абв", "Please write at least 4 characters."),
        (TextField(), "а\x00б", "text: contains a NUL character at character 2. Remove it."),
        (RewriteField(original="аб"), "", "The field is empty. Please write the text as you would have it."),
        (RewriteField(original="аб"), "аб", "This is the text as it was shown. Please change it, then go on."),
        (ErrorMarkField(), MARK | {"where": ""}, "Please say where it is, or remove the error."),
        (ErrorMarkField(), MARK | {"category": ""}, "Please say its category, or remove the error."),
        (ErrorMarkField(), MARK | {"severity": ""}, "Please say its severity, or remove the error."),
        (ErrorMarkField(), MARK | {"where": "", "severity": ""}, "Please say where it is and its severity, or remove the error."),
        (ErrorMarkField(), MARK | {"category": "", "severity": ""}, "Please say its category and its severity, or remove the error."),
        (ErrorMarkField(), MARK | {"category": "no"}, "Please choose from what is offered."),
    ],
)  # fmt: skip
def test_a_field_refuses_in_the_language_of_the_page(field, raw, words):
    assert words in said(lambda: field.clean(raw))


def test_a_text_is_refused_in_the_language_of_the_page():
    assert said(lambda: clean_text("а\x01"), TextRefused) == (
        "text: contains a control character (U+0001) at character 2. Remove it."
    )
    # Researchers' columns keep their names.
    with in_language(PSEUDO), pytest.raises(TextRefused, match="^prompt: "):
        clean_text("а\x01", field="prompt")


def both(act):
    english = act()
    with in_language(PSEUDO):
        return english, act()


def test_the_programs_own_words_are_translated_and_a_researchers_are_kept():
    assert both(lambda: shown_noun({"noun": "text"})) == both(lambda: shown_noun({})) == ("Text", in_pseudo("Text"))
    assert both(lambda: output_name({"noun": "writer"}, "B")) == ("Writer B", f"{in_pseudo('Writer')} B")
    assert both(lambda: output_name({"noun": "récit"}, "B")) == ("Récit B", "Récit B")
    assert both(lambda: shown_setting(TIE_TEXT, TIE_TEXT)) == (TIE_TEXT, in_pseudo(TIE_TEXT))
    assert both(lambda: shown_setting("Égaux", TIE_TEXT)) == ("Égaux", "Égaux")
    spa = REGISTRY["spa"].settings_form.base_fields["explanation"].initial
    # A form strips the text that it stores.
    assert both(lambda: shown_setting(spa.strip(), spa))[1] == in_pseudo(spa.strip())


def page(step, questions, settings, letters="AB"):
    asked = tuple(
        PageQuestion(n, n, key, "ερώτηση", "", parse_scale(scale)) for n, (key, scale) in enumerate(questions, 1)
    )
    item = PageItem(1, 1, tuple((letter, n) for n, letter in enumerate(letters, 1)))
    return Page("s1.p1", PageSection(1, 1, settings, asked), (item,), asked, step=step)


def test_the_words_of_marks_are_translated_unless_the_researcher_wrote_them():
    own = DEFAULT_CATEGORIES.splitlines()[0] + "\nstyle | Stil | Ungeschickt"
    settings = {"categories": own, "severities": DEFAULT_SEVERITIES, "max_marks": 2, "noun": "story"}
    marks = REGISTRY["marks"]
    shown = page("marks", [("errors", {"kind": "number", "maximum": 5})], settings, "A")
    english, foreign = both(lambda: list(marks.page_fields(shown).values()))
    assert [ask.field.option.label for ask in (english[0], foreign[0])] == [
        "There is no error",
        in_pseudo("There is no error"),
    ]
    assert (english[1].text, foreign[2].text) == ("Error 1", f"{in_pseudo('Error')} 2")
    labels = [[entry.label for entry in asks[1].field.codebook.categories] for asks in (english, foreign)]
    assert labels == [["Accuracy", "Stil"], [in_pseudo("Accuracy"), "Stil"]]
    assert foreign[1].field.displayed_text("2", "where") == "sentence 2"  # in English again
    assert both(lambda: foreign[1].field.displayed_text("2", "where"))[1] == f"{in_pseudo('sentence')} 2"


@pytest.mark.parametrize(
    ("step", "questions", "data", "settings", "words"),
    [
        ("ranking", [("place", {"kind": "number"})], (1, None), {}, "Please give each of them a place, or none."),
        ("ranking", [("place", {"kind": "number"})], (1, 1), {"allows_ties": False}, "The same place as "),
        ("best_worst", [("best", {"kind": "output"}), ("worst", {"kind": "output"})], (1, 1), {}, "A cannot be the best and the worst."),
        ("best_worst", [("best", {"kind": "output"}), ("worst", {"kind": "output"})], (1, None), {}, "Please choose the best one and the worst one"),
    ],
)  # fmt: skip
def test_a_page_refuses_in_its_language(step, questions, data, settings, words):
    shown, protocol = page(step, questions, settings), REGISTRY[step]

    def errors():
        slots = list(protocol.page_fields(shown))
        values = [
            value if value is None or step != "ranking" else Answer(value=Decimal(value), text=str(value))
            for value in data
        ]
        return list(protocol.complete_data_and_find_errors(shown, dict(zip(slots, values, strict=True))).values())

    english, foreign = both(errors)
    assert words in english[0] and not re.search("[A-Za-z]{2}", foreign[0])


def test_the_right_answer_is_told_in_the_language_of_the_page():
    likert = {"kind": "likert", "labels": ["α", "β", "γ", "δ"]}
    rated, two = page("rating", [("q", likert)], {}), page("humanlike", [("source", likert)], {})
    (points,), (source,) = rated.questions, two.questions
    number = PageQuestion(1, 1, "n", "", "", parse_scale({"kind": "percent"}))
    for protocol, shown, question, expected, words in (
        ("rating", rated, points, (1.0, 3.0), "The answer is α, β or γ."),
        ("rating", rated, points, "B", "The answer is B."),
        ("rating", rated, number, (5.0, 5.0), "The answer is 5."),
        ("rating", rated, number, (5.0, 7.0), "The answer is from 5 to 7."),
        ("humanlike", two, source, "B", "A machine wrote B, a person wrote the other one."),
        ("humanlike", two, source, (1.0, 2.0), "A person wrote this."),
        ("humanlike", two, source, (3.0, 4.0), "A machine wrote this."),
    ):
        english, foreign = both(lambda p=protocol, a=(shown, question, expected): REGISTRY[p].expected_answer_text(*a))
        assert english == words and not re.search("[A-Za-z]{2}", foreign)
    (pair,) = both(lambda: REGISTRY["humanlike"].page_fields(two))[1].values()
    assert pair.text == in_pseudo(PAIR_TEXT)


def test_numbers_amounts_times_and_lists_have_the_form_of_the_language():
    def written():
        return (
            format_number(Decimal("1234.50")),
            format_number(12),
            format_amount(Decimal("2.50"), "EUR"),
            format_duration(125),
            format_duration(0),
            format_list(["A", "B", "C"]),
            format_list(["A", "B"], "or"),
        )

    assert written() == ("1,234.50", "12", "2.50 EUR", "2 minutes and 5 seconds", "0 seconds", "A, B and C", "A or B")
    with in_language(PageLanguage("de", "de")):
        assert written() == (
            "1.234,50",
            "12",
            "2,50 EUR",
            "2 Minuten und 5 Sekunden",
            "0 Sekunden",
            "A, B und C",
            "A oder B",
        )
    with in_language(ENGLISH):
        assert written()[0] == "1,234.50"
