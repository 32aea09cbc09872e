"""The demo's texts as they are shipped, and the words around them."""

import re

import pytest

from heval_site.management import demo_texts
from heval_site.management.demo_texts import SYSTEMS, load_demo_texts
from studies.stimuli.markdown import render_markdown
from studies.stimuli.surface import surface_warnings_from_profiles
from studies.stimuli.texts import clean_text
from tests.studies.stimuli.surfaces import surface_profiles
from tools.demo_texts.make import HUMAN, LENGTH_SLACK, MAX_WORDS, MIN_WORDS, is_suitable_word
from tools.demo_texts.ngrams import detokenise, tokenise

BEFORE_THE_END = [
    demo_texts.PUBLIC_TITLE,
    demo_texts.PURPOSE,
    demo_texts.INSTRUCTIONS,
    demo_texts.consent_text(),
    demo_texts.CONTENT_WARNING,
    demo_texts.SPA_EXPLANATION,
    demo_texts.SPA_QUESTION,
    demo_texts.LIKERT_QUESTION,
    *demo_texts.LIKERT_LABELS,
    demo_texts.SCREENING_QUESTION,
    *demo_texts.SCREENING_ANSWERS.values(),
    demo_texts.CLOSING_QUESTION,
]


def outputs():
    return [(record, system, text) for record in load_demo_texts() for system, text in record["outputs"].items()]


def test_every_prompt_has_one_output_by_each_system():
    lines = load_demo_texts()
    assert len(lines) == 24
    assert len({line["key"] for line in lines}) == 24
    assert all(tuple(line["outputs"]) == SYSTEMS for line in lines)
    assert all(re.search(r"\.\"?$", line["prompt"]) and "?" not in line["prompt"] for line in lines)


def test_an_output_has_its_length_and_ends_with_a_sentence():
    for record, system, text in outputs():
        words, human = len(text.split()), len(record["outputs"][HUMAN].split())
        assert MIN_WORDS <= words <= MAX_WORDS, (record["key"], system)
        assert abs(words - human) <= LENGTH_SLACK * human + 1, (record["key"], system)
        assert re.search(r"[.!?]\"?$", text), (record["key"], system)


def test_an_output_is_set_like_every_other():
    for record, system, text in outputs():
        where = (record["key"], system)
        assert clean_text(text, is_required=True) == text.strip(), where
        assert text.isascii() and "\n" not in text and "  " not in text and text.count('"') % 2 == 0, where
        assert not re.search(r" [.,;:!?]|[.,;:][.,;:!?]|\w\"", text), where
        assert text.lstrip('"')[0].isupper() and detokenise(tokenise(text)) == text, where
        assert all(is_suitable_word(word) for word in re.findall(r"[\w'-]+", text)), where
        assert ('"' in text) == ('"' in record["outputs"][HUMAN]), where


def test_no_writer_is_betrayed_by_the_surface():
    by_system = {system: [line["outputs"][system] for line in load_demo_texts()] for system in SYSTEMS}
    assert surface_warnings_from_profiles(surface_profiles(by_system)) == ()
    texts = [text.strip() for _, _, text in outputs()]
    assert len(set(texts)) == len(texts)


def test_the_questions_have_places_for_the_labels():
    assert demo_texts.SPA_QUESTION.format(x="A", y="B").count("writer A is a better writer than writer B") == 1
    assert len(set(demo_texts.LIKERT_LABELS)) == 5
    assert set(demo_texts.SCREENING_PASSES) < set(demo_texts.SCREENING_ANSWERS)


@pytest.mark.parametrize("value", ["0", "50", "100"])
def test_the_explanation_says_what_each_end_and_the_middle_mean(value):
    assert f"- **{value}**:" in demo_texts.SPA_EXPLANATION


@pytest.mark.parametrize("text", BEFORE_THE_END)
def test_nothing_before_the_debriefing_tells_what_is_expected(text):
    assert not re.search(r"n-?gram|order|expect|four of|Townsend|Aesop|\b1867\b", text, re.IGNORECASE)


def test_the_debriefing_tells():
    assert "Four of the five writers were small computer programs" in demo_texts.DEBRIEFING


def test_consent_names_what_people_must_know():
    text = demo_texts.consent_text()
    for word in ("18 or older", "minutes", "Risks", "paid", "voluntary", "Leave the study", "deleted"):
        assert word in text
    assert "research@example.org" in text


def test_consent_promises_no_way_back_that_an_open_link_does_not_have():
    """A person who opens the demo's link again is somebody new: only the page's own address knows them."""
    said = demo_texts.CONSENT["How long it takes"]
    assert "open the address of the page" in said and "link" not in said


@pytest.mark.parametrize("text", [demo_texts.INSTRUCTIONS, demo_texts.SPA_EXPLANATION, demo_texts.DEBRIEFING])
def test_pages_are_markdown_that_the_house_renders(text):
    html = render_markdown(text)
    assert "**" not in html and "##" not in html
    assert "<strong>" in html
