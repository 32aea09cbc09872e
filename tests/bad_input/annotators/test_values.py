"""A value that is no answer is refused at its field."""

import pytest

from annotators.models import PageVisit
from annotators.pages.form_data import parse_active_seconds, parse_page_form
from studies.protocols import Page, PageField, Protocol
from studies.protocols.base.fields import ExposureChoiceField, parse_scale
from tests.bad_input.annotators.assignments import at_questions
from tests.players import form

pytestmark = pytest.mark.postgres


OPTIONS = [{"key": "yes", "label": "Yes"}, {"key": "no", "label": "No"}]
FIELDS = {
    "percent": parse_scale({"kind": "percent"}).field(),
    "likert": parse_scale({"kind": "likert", "maximum": 5}).field(),
    "continuous": parse_scale({"kind": "continuous", "minimum": 0, "maximum": 10}).field(),
    "number": parse_scale({"kind": "number", "minimum": 0, "maximum": 10}).field(),
    "choice": parse_scale({"kind": "choice", "options": OPTIONS}).field(),
    "exposure": ExposureChoiceField(exposures=(("A", 481), ("B", 977))),
    "acknowledgement": parse_scale({"kind": "acknowledgement"}).field(),
    "box": parse_scale({"kind": "multiple", "options": OPTIONS}).option_fields()[0][1],
    "text": parse_scale({"kind": "text", "minimum_length": 3, "maximum_length": 2000}).field(),
}
# Spellings of 3 that are none, and what is no number at all.
NO_NUMBERS = [
    "-0", "-1", "101", "3.5", "3,5", "3e0", "3 4", "0_3", "0x3", "³", "NaN", "inf", "-inf", "1e309", "9" * 5000,
    "3\x00", "3\n", "\u200b3", "\ufeff3", "on", "null", "A",
]  # fmt: skip
# Spellings that a field for a number takes, and that are no key of a point.
SPELLINGS = ["3.0", "+3", "٣", "３", "\u00a03"]
REFUSED = {
    "percent": NO_NUMBERS,
    "likert": [*NO_NUMBERS, *SPELLINGS, "0", "6", "03", " 3"],
    "continuous": [*NO_NUMBERS, "11"],
    "number": [*NO_NUMBERS, "11"],
    "choice": ["maybe", "YES", " yes", "yes\x00", "Yes", "yes,no", "0"],
    "exposure": ["C", "a", "481", "AB", "A ", "\u0410"],
    "acknowledgement": ["0", "2", "on", "true", "1 ", "１"],
    "box": ["0", "2", "on", "true", "1 ", "１"],
    "text": [
        "x" * 2001,
        "😀" * 2001,
        "x" * 1_000_000,
        "ab",
        "a\x00bc",
        "a\ud800bc",
        "a\x1bbc",
        "a\x85bc",
        "   ",
        " \n\t",
        "\u200b" * 5,
        "\u3164" * 5,
        "\u0301" * 5,
    ],
}
TAKEN = {
    "percent": {"0": 0, "100": 100, " 40 ": 40, "03": 3, "40 %": 40} | dict.fromkeys(SPELLINGS, 3),
    "likert": {"1": 1, "5": 5},
    "continuous": {"0": 0, "10": 10} | dict.fromkeys(SPELLINGS, 3),
    "number": {"0": 0, "10": 10} | dict.fromkeys(SPELLINGS, 3),
    "choice": {"no": "no"},
    "exposure": {"B": 977},
    "acknowledgement": {"1": 1},
    "box": {"": 0, "1": 1},
    "text": {
        "x" * 2000: "x" * 2000,
        "😀" * 2000: "😀" * 2000,
        "\u202eabc\u202c": "\u202eabc\u202c",
        " abc\r\nd ": "abc\nd",
    },
}


def sent(kind, *values):
    """What is found in a page with one field."""
    asks = {"s1.q1": PageField(FIELDS[kind], 1)}
    return parse_page_form(
        type("Step", (), {"protocol": Protocol(), "page": Page}), asks, form(**{"s1.q1": list(values)})
    )


@pytest.mark.parametrize(
    ("kind", "value"),
    [(kind, value) for kind, values in REFUSED.items() for value in values],
    ids=lambda value: ascii(value)[:24],
)
def test_what_is_not_an_answer_is_refused_at_its_field(kind, value):
    found = sent(kind, value)
    assert list(found.errors) == ["s1.q1"] and found.errors["s1.q1"].endswith((".", "allowed.")) and not found.values
    assert not found.non_field_errors and found.typed["s1.q1"] == value  # it comes back to be corrected


@pytest.mark.parametrize("kind", FIELDS)
def test_two_answers_count_as_none_and_the_page_asks_for_a_missing_answer(kind):
    good = next(value for value in TAKEN[kind] if value)
    for values in ([good, good], ["", good], [good, ""]):
        assert sent(kind, *values).errors == {"s1.q1": "Please give only one answer."}
    for values in ([], [""]):
        assert (list(sent(kind, *values).errors) == ["s1.q1"]) is FIELDS[kind].required


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [(kind, value, stored) for kind, values in TAKEN.items() for value, stored in values.items()],
    ids=lambda value: ascii(value)[:24],
)
def test_what_is_an_answer_is_taken_as_it_was_meant(kind, value, stored):
    found = sent(kind, value)
    assert found.is_valid and found.values == {"s1.q1": stored}


def test_a_text_that_may_be_left_out_and_cannot_be_seen_was_left_out():
    assert parse_scale({"kind": "text"}).field(required=False).clean(" \u200b ") is None


@pytest.mark.parametrize("active", ["-1", "1.5", "1e309", "NaN", "٣", "9" * 5000, "", "-", "1\n", "0x9"])
def test_seconds_that_a_browser_cannot_have_counted_are_none(active):
    assert parse_active_seconds(form(active=active)) == 0


def test_seconds_of_a_browser_are_at_most_a_day_and_may_be_absent(study, client):
    assert (parse_active_seconds(form(active="999999")), parse_active_seconds(form())) == (86_400, 0)
    assignment, address, good = at_questions(study)
    client.post(address, {"save": "auto", "active": "70"})
    client.post(address, good | {"active": "-5"})
    # Less than was counted before is no more believed than the rest.
    assert PageVisit.objects.get(assignment=assignment, key="s2.ask").active_seconds == 70
