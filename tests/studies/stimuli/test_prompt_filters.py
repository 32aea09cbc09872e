import json
import time

import pytest

from studies.stimuli.normalising import (
    FILTERS,
    BeginsWith,
    BeginsWithTag,
    CopiesAtMost,
    EndsInPunctuation,
    HasNoneOf,
    HasNoQuestion,
    HasNoTagResidue,
    WordLimits,
    filter_as_json,
    parse_prompt_filter,
    per_prompt_filter_results,
)
from studies.stimuli.texts import SettingsRefused

# Appendix A of the paper on system-level probabilistic assessment.
PAPER_FILTERS = (BeginsWithTag(("WP",)), HasNoQuestion(), EndsInPunctuation())


@pytest.mark.parametrize(
    ("each", "kept", "dropped", "reason"),
    [
        (BeginsWithTag(("WP",)), "[ wp ] You wake.", "[EU] You wake.", "does not begin with [WP]"),
        (BeginsWithTag(("WP", "TT")), "(TT) You wake.", "You wake [WP].", "[WP] or [TT]"),
        (BeginsWith("Once upon a time"), " once Upon a time, x", "Once, x", "does not begin with “Once upon a time”"),
        (HasNoQuestion(), "You wake.", "Who are you? Say.", "has a question mark"),
        (HasNoQuestion(), "You wake!", "\u8ab0\uff1f", "has a question mark"),
        (EndsInPunctuation(), "You wake.", "You wake", "does not end in punctuation"),
        (EndsInPunctuation(), "He said ``Run.'' ", "He said ``Run''", "does not end in punctuation"),
        (EndsInPunctuation(), "\u4f60\u9192\u4e86\u3002", "", "does not end in punctuation"),
        (EndsInPunctuation(marks="!"), "Run!", "Run.", "does not end in punctuation"),
        (HasNoTagResidue(), "Children are named.", ": Children are named.", "begins with “:”"),
        (HasNoTagResidue(), "``Hello'', he said.", "[ Horror ] You wake.", "begins with the tag [ Horror ]"),
        (WordLimits(minimum=3), "one two three", "one two", "has 2 words, fewer than 3"),
        (WordLimits(maximum=3), "one two three", "one two three four", "has 4 words, more than 3"),
        (HasNoneOf(("covid", "corona")), "A fair opens.", "COVID again.", "has “covid”"),
        (CopiesAtMost(("a b c d e f g h",), 0.8, 3), "x y z u v w", "a b c d e f", "copies 100% of a reference"),
    ],
)
def test_each_filter_keeps_and_drops_with_a_reason(each, kept, dropped, reason):
    assert each.reason_to_drop(kept) == ""
    assert reason in each.reason_to_drop(dropped)


def test_prompts_are_dropped_by_the_first_filter_they_fail_in_the_order_given():
    prompts = [
        ("p1", "[WP] You wake up."),
        ("p2", "[WP] Who are you?"),
        ("p3", "[EU] You wake up?"),
        ("p4", "[WP] You wake up"),
    ]
    found = per_prompt_filter_results(prompts, PAPER_FILTERS)
    assert [(each.key, each.passes, each.filter) for each in found] == [
        ("p1", True, ""),
        ("p2", False, "has_no_question"),
        ("p3", False, "begins_with_tag"),
        ("p4", False, "ends_in_punctuation"),
    ]
    assert all(bool(each.reason) is not each.passes for each in found)


def test_every_filter_survives_being_written_down():
    every = [
        BeginsWithTag(("WP",)),
        BeginsWith("Once"),
        HasNoQuestion(),
        EndsInPunctuation(),
        HasNoTagResidue(),
        WordLimits(1, 9),
        HasNoneOf(("x",)),
        CopiesAtMost(("y",)),
    ]
    assert {each.name for each in every} == set(FILTERS)
    for each in every:
        assert parse_prompt_filter(json.loads(json.dumps(filter_as_json(each))), "prompt_filters[1]") == each


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("begins_with", "must be an object"),
        ({}, "filter must be one of begins_with_tag"),
        ({"filter": "regex"}, "not 'regex'"),
        ({"filter": ["begins_with"]}, "filter must be one of"),
        ({"filter": "begins_with"}, "begins_with: text is missing"),
        ({"filter": "begins_with", "text": 3}, "begins_with.text: must be a text, not 3"),
        ({"filter": "begins_with_tag", "tags": "WP"}, "tags: must be a list of texts"),
        ({"filter": "begins_with_tag", "tags": [""]}, "tags: must be a list of texts"),
        ({"filter": "has_no_question", "marks": "?"}, "unknown names marks. Remove them. Allowed are: none"),
        ({"filter": "word_limits", "minimum": True}, "minimum: must be a whole number"),
        ({"filter": "word_limits", "minimum": 9, "maximum": 3}, "minimum not above maximum"),
        ({"filter": "copies_at_most", "references": ["a"], "share": 1.5}, "share must lie between 0 and 1"),
    ],
)
def test_settings_that_cannot_be_carried_out_are_refused_by_name(settings, message):
    with pytest.raises(SettingsRefused) as refused:
        parse_prompt_filter(settings, "prompt_filters[2]")
    assert message in str(refused.value)


@pytest.mark.parametrize("text", ["(" + " " * 20_000, "[x" + " " * 20_000, " " * 20_000])
def test_a_bracket_with_many_blanks_is_no_tag_and_is_seen_to_be_none_at_once(text):
    begun = time.process_time()
    assert BeginsWithTag(tags=("WP",)).reason_to_drop(text) and HasNoTagResidue().reason_to_drop(text) == ""
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize("prompt", ["[WP] Go.", " ( wp ) Go.", "[wp\t]", "[\u00a0WP]"])
def test_blanks_around_a_tag_are_passed_over(prompt):
    assert BeginsWithTag(tags=("WP",)).reason_to_drop(prompt) == ""
