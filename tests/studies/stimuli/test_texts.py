import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.stimuli.texts import (
    TextRefused,
    clean_name,
    clean_text,
    is_blank,
    name_key,
    reading_minutes,
    word_count,
    word_starts,
)


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("a\r\nb\rc\nd", "a\nb\nc\nd"),
        ("\tcode\n", "\tcode\n"),
        ("", ""),
        ("  kept  ", "  kept  "),
        ("A\u2028B\u2029C", "A\u2028B\u2029C"),
        ("\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c", "\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c"),
        ("\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f469\u200d\U0001f467"),
        ("Z\u0351\u0352\u0353algo", "Z\u0351\u0352\u0353algo"),
        ("=SUM(A1)", "=SUM(A1)"),
        ("None", "None"),
        ("NA", "NA"),
        ("{{ x }} {% y %} \\frac{1}{2} <b>", "{{ x }} {% y %} \\frac{1}{2} <b>"),
    ],
)
def test_a_text_keeps_all_but_its_line_breaks(given_text, stored):
    assert clean_text(given_text) == stored


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("abc\0d", "story: contains a NUL character at character 4. Remove it."),
        ("\ud800", "U+D800"),
        ("a\udfffb", "half of a surrogate pair"),
        ("a\x1bb", "control character (U+001B) at character 2"),
        ("a\x0bb", "U+000B"),
        ("a\x0cb", "U+000C"),
        ("a\x7f", "U+007F"),
        ("a\u0085b", "U+0085"),
        (None, "must be a text, not nothing"),
        (3, "not a number"),
        (True, "not true or false"),
        (["a"], "not a list"),
        (b"a", "not bytes"),
    ],
)
def test_what_is_not_stored_is_refused_with_its_place(value, message):
    with pytest.raises(TextRefused) as refused:
        clean_text(value, field="story")
    assert message in str(refused.value)
    assert str(refused.value).startswith("story: ")


@pytest.mark.parametrize(
    "blank", ["", " ", "\n\t", "\u200b", "\ufeff", "\u200b\u200d\u2060", "\u0301\u0302", "\u3164", "\u00a0", "\u202e"]
)
def test_what_nobody_could_see_is_blank_and_refused_where_required(blank):
    assert is_blank(blank)
    assert clean_text(blank) == blank.replace("\r", "\n")
    with pytest.raises(TextRefused, match="must not be empty"):
        clean_text(blank, is_required=True)


@pytest.mark.parametrize("seen", ["0", "False", "-", "\U0001f600", "\u5b57", "\u0e01"])
def test_what_can_be_seen_is_not_blank(seen):
    assert clean_text(seen, is_required=True) == seen


def test_length_is_counted_in_code_points_after_line_breaks():
    assert clean_text("\U0001f600\r\n", max_length=2) == "\U0001f600\n"
    with pytest.raises(TextRefused, match="has 3 characters. At most 2 are allowed"):
        clean_text("abc", max_length=2)


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "a\u202eb", "a\u200bb", "a\u2028b", " \u200b ", "x" * 201])
def test_a_name_is_one_visible_line(name):
    with pytest.raises(TextRefused):
        clean_name(name)


def test_a_name_is_composed_and_without_blanks_around_it():
    assert clean_name("  re\u0301sume\u0301 ") == "r\u00e9sum\u00e9"
    assert clean_name("007") == "007"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("GPT-3", "gpt-3"),
        ("r\u00e9sum\u00e9", "re\u0301sume\u0301"),
        ("\uff27\uff30\uff34", "gpt"),
        (" a  b ", "a b"),
        ("Stra\u00dfe", "STRASSE"),
        ("a\u200bb", "ab"),
    ],
)
def test_names_that_read_the_same_share_a_key(one, other):
    assert name_key(one) == name_key(other)


def test_names_that_read_differently_do_not_share_a_key():
    assert len({name_key(each) for each in ("a", "a1", "a b", "ab", "\u0430")}) == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("   ", 0),
        ("It's a well-known fact.", 4),
        ("one\ntwo\u00a0three", 3),
        ("\u6211\u559c\u6b22\u8bfb\u4e66\u3002", 5),
        ("GPT\u306f\u3059\u3054\u3044", 5),
        ("H\u8ecd\u306f\u9d8f", 4),
        ("\uc548\ub155 \uc138\uacc4", 2),
        ("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01", 3),
        ("\u0e01\u0e02\u0e04\u0e07\u0e08", 2),
        ("\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440", 2),
        ("\u0645\u0631\u062d\u0628\u0627 \u0628\u0643", 2),
    ],
)
def test_words_are_counted_in_scripts_with_and_without_blanks(text, words):
    assert word_count(text) == words
    assert len(list(word_starts(text))) == words


@given(st.text(max_size=60))
def test_word_starts_and_word_count_agree(text):
    assert len(list(word_starts(text))) == word_count(text)


def test_reading_minutes_at_a_stated_speed():
    assert reading_minutes(3_687) == pytest.approx(15.36, abs=0.01)
    assert reading_minutes(100, words_per_minute=200) == 0.5
    assert reading_minutes(0) == 0


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf")])
def test_no_speed_that_is_none(speed):
    with pytest.raises(ValueError, match="words_per_minute"):
        reading_minutes(10, speed)


@pytest.mark.parametrize("hostile", ["\u0301" * 100_000, "\u4e00" * 100_000, " " * 100_000, "a\u200b" * 50_000])
def test_long_hostile_texts_take_no_time(hostile):
    began = time.process_time()
    clean_text(hostile)
    is_blank(hostile)
    word_count(hostile)
    assert time.process_time() - began < 0.5
