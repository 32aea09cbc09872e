import gzip
import json
import time

import pytest

from studies.stimuli.surface import (
    SURFACE_MARKS,
    RepeatedPrompt,
    find_repeated_prompts,
    has_non_latin_letters,
    longest_repeated_character_run,
    surface_warnings_from_profiles,
)
from tests.studies.stimuli.surfaces import surface_profiles

PLAIN = "She walked home and said nothing."


@pytest.mark.parametrize(
    ("mark", "bearing", "bare"),
    [
        ("tokeniser_quotes", "``Go,'' he said.", '"Go," he said.'),
        ("straight_quotes", 'He said "Go".', "He said ``Go''."),
        ("curly_quotes", "It\u2019s late.", "It's late."),
        ("tokenised_spacing", "He ran ; she stayed.", "He ran; she stayed."),
        ("tokenised_spacing", "He ran ( far ).", "He ran (far)."),
        ("blanks_before_marks", "He ran , she stayed.", "Wait ... what."),
        (
            "other_scripts",
            "He said \u041f\u0440\u0438\u0432\u0435\u0442.",
            "Caf\u00e9 na\u00efve \u0142\u00f3d\u017a 1\u00ba.",
        ),
        ("markup", "The end.</story>", "3 < 4 and 5 > 4"),
        ("markup", "a <<light>", "I <3 you"),
        ("entities", "Tom &amp; Jerry", "Q&A; AT&T"),
        ("markdown", "He read *The Departed* again.", "2 * 3 * 4 = 24"),
        ("addresses", "See www.example.org now", "See the site now"),
        ("damaged_encoding", "It\u00e2\u20ac\u2122s", "It\u2019s"),
        ("single_line_breaks", "a\nb", "a\n\nb"),
        ("blank_lines", "a\r\n\r\nb", "a\nb"),
        ("carriage_returns", "a\r\nb", "a\nb"),
        ("edge_blanks", "a ", "a"),
        ("capitals_only", "THIS IS ALL I HAVE TO SAY", "NASA"),
        ("long_run", "No" + "o" * 20, "No" + "o" * 18),
        ("cut_off", "She walked home and", PLAIN),
        ("no_text", " \u200b", PLAIN),
    ],
)
def test_each_mark_is_seen_and_not_imagined(mark, bearing, bare):
    assert SURFACE_MARKS[mark].is_present(bearing)
    assert not SURFACE_MARKS[mark].is_present(bare)


def test_every_mark_has_a_case_of_its_own():
    cases = {case[0] for case in test_each_mark_is_seen_and_not_imagined.pytestmark[0].args[1]}
    assert cases == set(SURFACE_MARKS)


def test_the_system_that_differs_from_the_others_is_named_and_nobody_else():
    texts = {name: [PLAIN] * 100 for name in "abcd"} | {"human": [PLAIN] * 60 + ["``Go,'' he said to her today."] * 40}
    found = {each.mark: each for each in surface_warnings_from_profiles(surface_profiles(texts))}
    assert set(found) == {"tokeniser_quotes"}
    warning = found["tokeniser_quotes"]
    assert (warning.systems, warning.value, warning.others_value, warning.n, warning.others_n) == (
        ("human",),
        0.4,
        0,
        100,
        400,
    )
    assert "40.0% of the texts of human" in warning.text


def test_between_two_systems_the_one_that_bears_the_mark_is_named():
    texts = {"a": [PLAIN] * 50, "b": ["``Go,'' she said to him today."] * 50}
    assert [
        each.systems
        for each in surface_warnings_from_profiles(surface_profiles(texts))
        if each.mark == "tokeniser_quotes"
    ] == [("b",)]


def test_two_groups_of_systems_are_distinguished():
    texts = {name: [PLAIN] * 50 for name in "abc"} | {name: [PLAIN + " "] * 50 for name in "de"}
    assert [each.systems for each in surface_warnings_from_profiles(surface_profiles(texts))] == [("d", "e")]


def test_a_system_that_lacks_what_all_others_have_is_named():
    texts = {name: [PLAIN + " "] * 50 for name in "abc"} | {"d": [PLAIN] * 50}
    warning = surface_warnings_from_profiles(surface_profiles(texts))[0]
    assert (warning.systems, warning.value, warning.others_value) == (("d",), 0.0, 1.0)
    assert warning.statistic < 0


def test_length_is_compared_by_ratio():
    short, long = " ".join(["word"] * 20) + ".", " ".join(["word"] * 30) + "."
    texts = {"a": [short, short + " x."] * 20, "b": [short, short + " x."] * 20, "c": [long, long + " x."] * 20}
    found = {each.mark: each for each in surface_warnings_from_profiles(surface_profiles(texts))}
    assert found["words"].systems == ("c",)
    assert found["words"].value == 30.5


@pytest.mark.parametrize("n", [1, 19])
def test_few_texts_warn_of_nothing(n):
    assert surface_warnings_from_profiles(surface_profiles({"a": [PLAIN] * n, "b": [PLAIN + " "] * n})) == ()


def test_chance_warns_of_nothing():
    texts = {"a": [PLAIN] * 95 + [PLAIN + " "] * 5, "b": [PLAIN] * 90 + [PLAIN + " "] * 10}
    assert surface_warnings_from_profiles(surface_profiles(texts)) == ()


@pytest.mark.parametrize(
    "texts", [{}, {"a": [PLAIN] * 30}, {"a": [], "b": [PLAIN] * 30}, {"a": [""] * 30, "b": [""] * 30}]
)
def test_nothing_to_compare_is_no_warning(texts):
    assert surface_warnings_from_profiles(surface_profiles(texts)) == ()


def test_texts_are_read_once_from_any_iterable():
    profiles = surface_profiles({"a": (text for text in [PLAIN, "x"])})
    assert (profiles["a"].n, profiles["a"].mean("words"), profiles["a"].share("cut_off")) == (2, 3.5, 0.5)
    assert surface_profiles({"a": []})["a"].share("cut_off") is None


def test_a_prompt_twice_in_one_batch_is_found():
    assert find_repeated_prompts([("1", ["p", "q"]), ("2", ["p", "q", "p"])]) == (RepeatedPrompt("2", "p", 2),)


@pytest.mark.parametrize(
    "hostile",
    ["<a" * 50_000, "*a" * 50_000, "_a" * 50_000, "&a" * 50_000, "." * 100_000, "\u4e00" * 100_000, "`" * 100_000],
)
def test_hostile_texts_take_no_time(hostile):
    began = time.process_time()
    surface_profiles({"a": [hostile]})
    assert time.process_time() - began < 2


@pytest.fixture(scope="module")
def stories(shared):
    with gzip.open(shared / "spa_stories.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def profiles(stories):
    return surface_profiles({writer: [row["texts"][writer] for row in stories] for writer in "ABCDE"})


@pytest.mark.shared
def test_the_published_stories_betray_their_human_author(profiles):
    found = {each.mark: each for each in surface_warnings_from_profiles(profiles)}
    assert found["tokeniser_quotes"].systems == found["tokenised_spacing"].systems == ("E",)
    assert found["tokeniser_quotes"].value == pytest.approx(0.520, abs=5e-4)
    assert found["tokenised_spacing"].value == pytest.approx(0.203, abs=5e-4)
    assert found["words"].systems == ("E",)
    assert found["other_scripts"].systems == ("A",)
    assert found["straight_quotes"].systems == ("E",) and found["straight_quotes"].value == 0


@pytest.mark.shared
def test_the_published_stories_have_the_recorded_counts(stories, profiles):
    texts = {writer: [row["texts"][writer] for row in stories] for writer in "ABCDE"}
    machines = [profiles[writer].share("tokeniser_quotes") for writer in "ABCD"]
    assert min(machines) > 0.01 and max(machines) < 0.035
    assert max(profiles[writer].share("tokenised_spacing") for writer in "ABCD") < 0.006
    assert [round(profiles[writer].mean("words")) for writer in "ABCDE"] == [144, 133, 128, 143, 193]
    assert [profiles[writer].mark_counts["other_scripts"] for writer in "ABCDE"] == [33, 1, 1, 0, 1]
    assert [profiles[writer].mark_counts["markup"] for writer in "ABCDE"] == [4, 0, 0, 0, 0]
    assert [profiles[writer].mark_counts["entities"] for writer in "ABCDE"] == [1, 0, 0, 0, 0]
    assert sum(longest_repeated_character_run(text) > 60 for each in texts.values() for text in each) == 1
    assert sum(has_non_latin_letters(text) for each in texts.values() for text in each) == 36


@pytest.mark.shared
def test_three_readers_of_the_published_stories_got_a_prompt_twice(stories):
    batches: dict[int, list[str]] = {}
    for row in stories:
        batches.setdefault(row["reader_id"], []).append(row["prompt_id"])
    assert [each.batch for each in find_repeated_prompts(batches.items())] == [42, 62, 79]


def test_the_only_other_system_is_named():
    texts = {"ours": ["First a short text.\n\nThen another one."] * 40, "baseline": ["First a short text."] * 40}
    said = " ".join(warning.text for warning in surface_warnings_from_profiles(surface_profiles(texts)))
    assert "of those of baseline" in said or "of those of ours" in said, said
    assert "the others'" not in said
