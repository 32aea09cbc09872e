import json
import time

import pytest

from studies.stimuli.normalising import (
    BeginsWithTag,
    HasNoQuestion,
    LengthControl,
    Normalisation,
    NormalisedText,
    Preparation,
    normalise_text,
    prepared_outputs,
)
from studies.stimuli.texts import SettingsRefused


@pytest.mark.parametrize(
    ("switch", "text", "expected"),
    [
        ("byte_order_mark", "\ufeffOnce.", "Once."),
        ("line_breaks", "a\r\nb\rc", "a\nb\nc"),
        ("composed", "cafe\u0301", "caf\u00e9"),
        ("leading_tag", "[ WP ] : You wake.", "You wake."),
        ("leading_tag", ": Children are named.", "Children are named."),
        ("tokeniser_quotes", "``Go,'' he said.", '"Go," he said.'),
        ("straight_quotes", "\u201cIt\u2019s\u201d", '"It\'s"'),
        (
            "tokenised_spacing",
            "He ran ; she ( too ) did n't , he 's gone . End !",
            "He ran; she (too) didn't, he's gone. End!",
        ),
        ("trailing_blanks", "\n\na  \nb\t\r\nc \u00a0\n\n", "a\nb\r\nc"),
    ],
)
def test_each_switch_removes_its_own_difference_and_no_other(switch, text, expected):
    assert normalise_text(text, Normalisation(**{switch: True})) == NormalisedText(expected, (switch,))
    others = {name: name != switch for name in Normalisation.__dataclass_fields__}
    assert switch not in normalise_text(text, Normalisation(**others)).changed_by


@pytest.mark.parametrize(
    ("switch", "text"),
    [
        ("tokenised_spacing", "Wait ... what ... (no)"),
        ("tokenised_spacing", "- a list\n  indented"),
        ("leading_tag", "-5 degrees outside."),
        ("leading_tag", "[WP]"),
        ("trailing_blanks", "  indented"),
        ("tokeniser_quotes", "it's `code`"),
    ],
)
def test_what_only_looks_like_it_stays(switch, text):
    assert normalise_text(text, Normalisation(**{switch: True})).text == text


def test_nothing_is_normalised_unless_declared():
    text = "\ufeff``Go'' ;\r\n  "
    assert normalise_text(text, Normalisation()) == NormalisedText(text)


def test_normalisation_never_leaves_nothing_of_something():
    assert normalise_text("`` ''", Normalisation(tokeniser_quotes=True)).text == '" "'
    assert normalise_text("", Normalisation(trailing_blanks=True)) == NormalisedText("")


@pytest.mark.parametrize(
    "hostile",
    [
        " " * 100_000 + "x",
        "x" + " " * 100_000 + "x",
        "x" + "\t" * 100_000 + ";",
        "( " * 50_000,
        " ;" * 50_000,
        "`" * 100_000,
        "a \n" * 30_000,
    ],
)
def test_hostile_texts_take_no_time(hostile):
    began = time.process_time()
    normalise_text(hostile, Normalisation(*[True] * 8))
    assert time.process_time() - began < 1


SETTINGS = {
    "prompt_filters": [{"filter": "begins_with_tag", "tags": ["WP"]}, {"filter": "has_no_question"}],
    "normalisation": {"tokeniser_quotes": True},
    "length": {"manner": "longest_of_others", "trimmed": ["human"], "ends": "paper"},
}


def test_settings_are_read_and_written_without_loss():
    preparation = Preparation.from_json(SETTINGS)
    assert preparation == Preparation(
        (BeginsWithTag(("WP",)), HasNoQuestion()),
        Normalisation(tokeniser_quotes=True),
        LengthControl("longest_of_others", trimmed=("human",), ends="paper"),
    )
    assert Preparation.from_json(json.loads(json.dumps(preparation.as_json()))) == preparation
    assert Preparation.from_json({}) == Preparation()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "settings: must be an object"),
        (
            {"lenght": {}},
            "settings: unknown names lenght. Remove them. Allowed are: length, normalisation, output_filters, prompt_filters",
        ),
        ({"prompt_filters": {}}, "prompt_filters: must be a list"),
        (
            {"prompt_filters": [{"filter": "has_no_question"}, {"filter": "x"}]},
            "prompt_filters[2]: filter must be one of",
        ),
        ({"normalisation": {"line_breaks": 1}}, "normalisation.line_breaks: must be true or false"),
        ({"length": {"manner": "half"}}, "length: manner must be none"),
        ({"length": {"manner": "characters"}}, "length: limit must be a whole number from 1, not 0"),
        ({"length": {"manner": "words", "limit": -4}}, "length: limit must be a whole number from 1"),
        ({"length": {"manner": "longest_of_others"}}, "needs “trimmed”"),
        ({"length": {"ends": "best"}}, "ends must be one of paper, whole"),
    ],
)
def test_wrong_settings_are_refused_and_name_the_part(settings, message):
    with pytest.raises(SettingsRefused) as refused:
        Preparation.from_json(settings)
    assert message in str(refused.value)


def test_outputs_are_normalised_before_their_length_is_taken():
    texts = {"human": "``One.'' Two. Three.", "machine": '"Once."  It  '}
    prepared = prepared_outputs(texts, Preparation.from_json(SETTINGS))
    assert prepared["human"].text == '"One." Two.'
    assert prepared["human"].notes == ("tokeniser_quotes", "trimmed")
    assert prepared["machine"].text == texts["machine"]
    assert not prepared["machine"].is_changed


def test_a_text_that_cannot_be_cut_is_kept_with_a_warning():
    prepared = prepared_outputs({"human": "no end anywhere", "machine": "Hm."}, Preparation.from_json(SETTINGS))
    assert prepared["human"].text == "no end anywhere"
    assert prepared["human"].warnings == ("no sentence end within the limit of 3 characters: not shortened",)


def test_a_limit_in_words_or_characters_holds_for_all_unless_systems_are_named():
    texts = {"a": "One two. Three.", "b": "One two. Three."}
    for settings in ({"manner": "words", "limit": 1}, {"manner": "characters", "limit": 9}):
        every = prepared_outputs(texts, Preparation.from_json({"length": settings}))
        assert {each.text for each in every.values()} == {"One two."}
        one = prepared_outputs(texts, Preparation.from_json({"length": settings | {"trimmed": ["b"]}}))
        assert one["a"].text == texts["a"] and one["b"].text == "One two."
