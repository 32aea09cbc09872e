"""Numbers as people type them: what each kind of number field takes, read alike by the server and by the sliders' script."""

import sys
import unicodedata
from decimal import Decimal

import pytest

from annotators.models import PageVisit, Response
from studies.protocols import REGISTRY
from studies.protocols.base.fields import SCALE_KINDS, AnswerRefused, ScaleSpec, WholeNumberField
from studies.protocols.ranking import RankField
from tests.browsing import until
from tests.builders import add_survey, draft_study, launched


def number_fields(kind: str, **ends: int) -> list[WholeNumberField]:
    """The field of a kind of scale, where it is one for a number."""
    try:
        field = ScaleSpec(kind, **ends).field()
    except ValueError:  # a kind that has several fields, or whose field belongs to its page
        return []
    return [field] if isinstance(field, WholeNumberField) else []


# Every kind of scale that has a number field, above and below zero; and the field of a protocol's own.
NUMERIC = {
    f"{kind} {minimum}": field
    for kind in SCALE_KINDS
    for minimum, maximum in ((0, 100), (-80, 80))
    for field in number_fields(kind, minimum=minimum, maximum=maximum)
} | {"place": RankField(True, 1, 80)}

TAKEN = {
    "70": 70, " 70 ": 70, "0070": 70, "+70": 70, "70.0": 70, "70,0": 70, "70.00": 70, "70,0000": 70, "\t70": 70, "\u00a070": 70,
    "７０": 70, "٧٠": 70, "۷۰": 70, "७०": 70, "７0": 70, "＋７０．０": 70, "٧٠٫٠": 70, "\u200e70\u200f": 70, "\u061c٧٠": 70, "7": 7, "80": 80,
}  # fmt: skip
PERCENT = {"70%": 70, "70 %": 70, "70\u202f%": 70, "70.0 %": 70, "+70 %": 70, "７０％": 70, "٧٠٪": 70, "70,0  %": 70}
BELOW_ZERO = {"-70": -70, "−70": -70, "－７０": -70, "﹣70": -70, "-70.0": -70, "-07": -7, "−٧٠": -70}
RANGE = "Please give a whole number from {low} to {high}"
WHOLE_ONLY = f"This scale takes whole numbers only. {RANGE}."
DIGITS_ONLY = f"{RANGE}, without a comma, point or space between its digits."
REFUSED = {
    **dict.fromkeys(("70,5", "70.5", "70.5 %", ".5", "0,7", "７０，５", "٧٠٫٥", "-0.5", "70.05"), WHOLE_ONLY),
    **dict.fromkeys(("1,000", "1.000", "70.000", "70,500", "1 000", "1'000", "1’000", "1,000,000", "1 000 %", "１，０００"), DIGITS_ONLY),
    **dict.fromkeys(
        ("101", "-81", "-0", "−0", "-0.0", "7 0", "seventy", "70.", "7e1", "0x46", "7_0", "⁷⁰", "⑦", "½", "70\n", "70\x00", "7٬0", "+-7", "--7",
         "%", "%70", "70%%", "$70", "0000000070", "9" * 400, "７" * 400), f"{RANGE}.",
    ),
}  # fmt: skip


def forms(field) -> dict[str, int | str]:
    """Each way of typing, with the number that it is in this field, or the message."""
    words = {"low": field.minimum, "high": field.maximum}
    table: dict[str, int | str] = TAKEN | {typed: said.format(**words) for typed, said in REFUSED.items()}
    for typed, number in PERCENT.items():
        table[typed] = number if field.unit == "%" else f"{RANGE}, without “%”.".format(**words)
    for typed, number in BELOW_ZERO.items():
        table[typed] = number if field.minimum < 0 else f"{RANGE}.".format(**words)
    return table


@pytest.mark.parametrize("kind", NUMERIC)
def test_a_number_is_taken_however_it_is_typed_or_the_message_says_what_is_wanted(kind):
    field = NUMERIC[kind]
    for typed, expected in forms(field).items():
        try:
            cleaned = field.clean(typed)
            found = cleaned.value if isinstance(field, RankField) else cleaned
            assert not isinstance(field, RankField) or cleaned.text == str(
                found
            )  # what is kept beside the number is the same number
        except AnswerRefused as refused:
            found = str(refused)
        assert found == expected and (isinstance(expected, str) or isinstance(found, Decimal)), (typed, found)


def test_every_field_with_a_number_is_in_the_table():
    assert {"percent 0", "continuous -80", "number -80", "place"} <= set(NUMERIC)
    made = {WholeNumberField.__name__} | {one.__name__ for one in WholeNumberField.__subclasses__()}
    assert {type(field).__name__ for field in NUMERIC.values()} == made and len(REGISTRY) > 3


DIGITS = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Nd"]


def test_the_digits_of_every_script_are_digits():
    assert len(DIGITS) > 600
    field = WholeNumberField(True, 0, 9)
    assert [field.clean(digit) for digit in DIGITS] == [int(digit) for digit in DIGITS]


READ = """([fields, typed]) => fields.map((id) => typed.map((words) => {
  const field = document.getElementById(id);
  field.value = words;
  field.dispatchEvent(new Event("input"));
  const slider = field.parentElement.querySelector("[type=range]");
  const isSet = !slider.classList.contains("unset");
  return slider.getAttribute("aria-valuetext") + (isSet === (slider.getAttribute("aria-valuetext") === slider.value) ? "" : " shown otherwise");
}))"""


@pytest.fixture
def study(db):
    draft = draft_study(systems=("alpha",), prompts=1, instructions="", target_n=3)
    scales = [
        {"kind": kind, "minimum": minimum, "maximum": maximum}
        for kind in ("percent", "continuous")
        for minimum, maximum in ((0, 100), (-80, 80))
    ]
    add_survey(
        draft,
        position=1,
        questions=[{"key": f"q{n}", "text": f"Number {n}?", "scale": s} for n, s in enumerate(scales, 1)],
    )
    return launched(draft)


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_sliders_read_numbers_as_the_server_does_and_what_is_sent_is_stored_and_shown_as_that_number(visit):
    person = visit()
    page = person.open("s1")
    fields = [f"s1-q{n}" for n in range(1, 5)]
    by_id = {
        id: NUMERIC[kind] for id, kind in zip(fields, [k for k in NUMERIC if k[:3] in ("per", "con")], strict=True)
    }
    # A line break cannot be typed into a field of one line: the browser takes it out.
    typed = {id: [words for words in forms(field) if "\n" not in words] for id, field in by_id.items()}
    found = page.evaluate(READ, [fields, typed["s1-q1"]])
    for id, said in zip(fields, found, strict=True):
        expected = forms(by_id[id])
        numbers = [expected[words] for words in typed["s1-q1"]]
        assert said == [str(n) if isinstance(n, int) else "not set" for n in numbers], id
    assert len(typed["s1-q1"]) > 60
    read = page.evaluate(READ, [fields[:1], DIGITS])[0]
    assert read == [str(int(digit)) for digit in DIGITS]
    # The same through the whole way: the draft keeps what was typed, the answer is the number, and the page shows that.
    spelled = {"s1-q1": "７０ %", "s1-q2": "−٧", "s1-q3": "70,0", "s1-q4": "+7"}
    modes = [page.locator(f"#{id}").get_attribute("inputmode") for id in fields]
    assert modes == ["numeric", "text", "numeric", "text"]  # number pads have no minus
    for id, words in spelled.items():
        page.locator(f"#{id}").fill(words)
    page.wait_for_selector("text=/^Saved \\d/")
    until(lambda: PageVisit.objects.get(key="s1").draft.get("s1.q4") == ["+7"])
    page.reload()
    assert [page.locator(f"#{id}").input_value() for id in fields] == list(spelled.values())
    assert page.locator("[type=range]").evaluate_all("all => all.map((one) => one.ariaValueText)") == [
        "70",
        "-7",
        "70",
        "7",
    ]
    person.go("done")
    assert [int(r.value) for r in Response.objects.order_by("slot")] == [70, -7, 70, 7]
    page.goto(f"{person.base}/p/{person.assignment.code}/s1/")
    assert [page.locator(f"#{id}").input_value() for id in fields] == ["70", "-7", "70", "7"]
    assert not person.complaints
