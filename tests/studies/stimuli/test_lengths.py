import gzip
import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.stimuli.normalising import (
    SENTENCE_END_RULES,
    TrimmedText,
    trim_after_words,
    trim_to_characters,
    trim_to_longest_of_others,
)
from studies.stimuli.texts import SettingsRefused
from tests import ROOT

STORIES = ROOT.parent / "shared" / "data" / "spa_stories.jsonl.gz"


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("One. Two. Three.", 9, "One. Two."),
        ("One. Two. Three.", 10, "One. Two."),
        ("One. Two. Three.", 8, "One."),
        ("One! Two? Three.", 12, "One! Two?"),
        ('She said "Go." He went away then.', 20, 'She said "Go."'),
        ("``Go.'' He went away then.", 12, "``Go.''"),
        ("\u201cGo.\u201d He went away.", 8, "\u201cGo.\u201d"),
        ("It cost 3.50 dollars. Then more.", 25, "It cost 3.50 dollars."),
        ("I saw Mr. Smith today. He ran off.", 24, "I saw Mr. Smith today."),
        ("Hello. I saw Mr. Smith today.", 17, "Hello."),
        ("Hello. J. R. R. Tolkien wrote.", 20, "Hello."),
        ("Go on. Wait... what was that?", 15, "Go on."),
        ("Go on. Use e.g. this or that.", 16, "Go on."),
        ("Wait... what was that? Nothing at all.", 25, "Wait... what was that?"),
        ('"Stop!" he said. And on it went.', 18, '"Stop!" he said.'),
        ("\u4e00\u4e8c\u3002\u4e09\u56db\uff01\u4e94\u516d\u4e03\u3002", 7, "\u4e00\u4e8c\u3002\u4e09\u56db\uff01"),
        ("\u0643\u064a\u0641\u061f \u0646\u0639\u0645 \u0646\u0639\u0645.", 8, "\u0643\u064a\u0641\u061f"),
        ("\u300c\u4e00\u3002\u300d\u4e8c\u4e09\u56db\u3002", 5, "\u300c\u4e00\u3002\u300d"),
        ("First.\n\nSecond one here.", 12, "First."),
    ],
)
def test_a_text_is_cut_at_the_last_sentence_end_within_the_limit(text, limit, expected):
    trimmed = trim_to_characters(text, limit)
    assert trimmed == TrimmedText(expected, is_changed=True)
    assert len(trimmed.text) <= limit


def test_a_decimal_point_at_the_very_limit_is_no_sentence_end():
    assert trim_to_characters("Yes. It is 3.5 of them.", 13).text == "Yes."


def test_the_published_rule_can_be_had_to_the_letter():
    assert trim_to_characters("Yes. It is 3.5 of them.", 13, sentence_end_rule="paper").text == "Yes. It is 3."
    assert trim_to_characters("``Go.'' He went.", 8, sentence_end_rule="paper").text == "``Go."
    assert trim_to_characters('"Go." He went.', 8, sentence_end_rule="paper").text == '"Go."'


@pytest.mark.parametrize(("text", "limit"), [("No end here at all", 5), ("Long. And so on", 3), ("Some text.", 0)])
def test_a_text_is_never_emptied_in_silence(text, limit):
    trimmed = trim_to_characters(text, limit)
    assert trimmed.text == text
    assert not trimmed.is_changed
    assert f"no sentence end within the limit of {limit} characters: not shortened" in trimmed.warning


def test_a_text_within_the_limit_is_left_alone():
    assert trim_to_characters("cut off in the mid", 18) == TrimmedText("cut off in the mid")


@pytest.mark.parametrize(
    ("text", "words", "expected", "warning"),
    [
        ("One two. Three four. Five.", 1, "One two.", ""),
        ("One two. Three four. Five.", 2, "One two.", ""),
        ("One two. Three four. Five.", 3, "One two. Three four.", ""),
        ("One two. Three four. Five.", 5, "One two. Three four. Five.", ""),
        ("One two. Three four. Five.", 6, "One two. Three four. Five.", "has fewer than 6 words: not shortened"),
        ("One two three four", 2, "One two three four", "no sentence end after word 2: not shortened"),
        ("``One.'' Two three. Four.", 1, "``One.''", ""),
        ("\u4e00\u4e8c\u3002\u4e09\u56db\u3002\u4e94\u3002", 3, "\u4e00\u4e8c\u3002\u4e09\u56db\u3002", ""),
    ],
)
def test_a_text_is_cut_at_the_first_sentence_end_after_so_many_words(text, words, expected, warning):
    assert trim_after_words(text, words) == TrimmedText(expected, is_changed=expected != text, warning=warning)


@pytest.mark.parametrize("limit", [-1, 1.5, True, "9", None])
def test_a_limit_is_a_whole_number(limit):
    with pytest.raises(SettingsRefused, match="limit must be a whole number from 0"):
        trim_to_characters("One. Two.", limit)


def test_an_unknown_rule_is_refused_by_name():
    with pytest.raises(SettingsRefused, match="paper, whole"):
        trim_to_characters("One. Two.", 5, sentence_end_rule="nltk")


def test_only_the_trimmed_systems_are_brought_to_the_longest_of_the_others():
    texts = {"human": "One. Two. Three. Four.", "a": "Short.", "b": "Longer one"}
    trimmed = trim_to_longest_of_others(texts, ["human"])
    assert {system: each.text for system, each in trimmed.items()} == texts | {"human": "One. Two."}
    assert [system for system, each in trimmed.items() if each.is_changed] == ["human"]


def test_without_other_systems_nothing_is_cut_and_it_is_said():
    assert "no other system" in trim_to_longest_of_others({"human": "One. Two."}, ["human"])["human"].warning
    assert "not shortened" in trim_to_longest_of_others({"human": "One. Two.", "a": ""}, ["human"])["human"].warning


@given(
    st.text(alphabet="ab .!?\u3002\"'\n", max_size=80), st.integers(0, 80), st.sampled_from(sorted(SENTENCE_END_RULES))
)
def test_trimming_twice_changes_nothing_more(text, limit, ends):
    once = trim_to_characters(text, limit, ends)
    assert text.startswith(once.text)
    assert trim_to_characters(once.text, limit, ends).text == once.text
    assert bool(once.text) == bool(text)


@pytest.mark.parametrize("hostile", ["." * 100_000, ". " * 50_000, "A. " * 30_000, " " * 100_000 + "a", ".'" * 50_000])
@pytest.mark.parametrize("ends", sorted(SENTENCE_END_RULES))
def test_hostile_texts_take_no_time(hostile, ends):
    began = time.process_time()
    trim_to_characters(hostile, 99_000, ends)
    trim_after_words(hostile, 20_000, ends)
    assert time.process_time() - began < 2


@pytest.mark.shared
def test_the_published_human_stories_are_as_this_rule_leaves_them():
    with gzip.open(STORIES, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line)["texts"] for line in lines]
    assert len(rows) == 750
    changed = 0
    for texts in rows:
        assert not any(each.is_changed for each in trim_to_longest_of_others(texts, ["E"], "paper").values())
        shorter = trim_to_characters(texts["E"], len(texts["E"]) * 2 // 3, "paper")
        changed += shorter.is_changed
        assert shorter.text or not texts["E"]
        assert shorter.warning or not texts["E"] or re.search(r'[.?!]"?$', shorter.text)
    assert changed > 700
