"""How fields are drawn: with their names, values, reasons and words for a screen reader."""

import pytest
from django.template import engines
from django.template.loader import render_to_string
from jinja2 import meta

from annotators.pages.presentation import ShownField
from studies.protocols.base.fields import (
    ChoiceField,
    ExposureChoiceField,
    Field,
    Option,
    ScalePointsField,
    TextField,
    TickBoxField,
    WholeNumberField,
)
from tests.annotators.pages.elements import Elements, drawn, shown


def test_a_number_is_typed_as_text_and_has_no_value_of_its_own():
    page = drawn(shown(WholeNumberField(True, 0, 100, unit="%", has_range=True)))
    (field,) = page.named("s1.q1")
    assert (field["type"], field["inputmode"], field["value"]) == ("text", "numeric", "")
    assert (field["data-min"], field["data-max"]) == ("0", "100")
    assert "data-has-range" in field
    # The slider comes with the script; without it there is none that could pretend a position.
    assert not [attrs for attrs in page.of("input") if attrs.get("type") == "range"]


def test_a_scale_is_native_radios_with_the_question_as_legend_and_none_is_chosen():
    points = tuple(Option(str(n), {1: "worst", 5: "best"}.get(n, "")) for n in range(1, 6))
    page = drawn(shown(ScalePointsField(True, points=points)))
    assert [attrs["value"] for attrs in page.named("s1.q1")] == ["1", "2", "3", "4", "5"]
    assert not [attrs for attrs in page.named("s1.q1") if "checked" in attrs]
    assert page.of("legend") and page.of("fieldset")[0]["role"] == "radiogroup"
    assert "worst" in page.words and "best" in page.words


@pytest.mark.parametrize(
    ("field", "value", "chosen"),
    [
        (ScalePointsField(True, points=(Option("1", ""), Option("2", ""))), "2", ["2"]),
        (ChoiceField(True, options=(Option("yes", "Yes"), Option("no", "No"))), "no", ["no"]),
        (ExposureChoiceField(True, exposures=(("A", 4), ("B", 9))), "B", ["B"]),
        (TickBoxField(True, option=Option("1", "I agree")), "1", ["1"]),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_an_answer_is_shown_as_given_and_locked_when_recorded(field, value, chosen):
    open_page = drawn(shown(field, value=value))
    assert [attrs["value"] for attrs in open_page.named("s1.q1") if "checked" in attrs] == chosen
    assert not [attrs for attrs in open_page.named("s1.q1") if "disabled" in attrs]
    locked = drawn(shown(field, value=value, is_locked=True))
    assert all("disabled" in attrs for attrs in locked.named("s1.q1"))
    assert [attrs["value"] for attrs in locked.named("s1.q1") if "checked" in attrs] == chosen


def test_the_exposure_behind_a_label_is_not_on_the_page():
    html = render_to_string(
        "annotate/_fields.html", {"fields": (shown(ExposureChoiceField(True, exposures=(("A", 481), ("B", 977)))),)}
    )
    assert "481" not in html and "977" not in html


def test_words_are_kept_with_their_markup_shown_as_text():
    html = render_to_string(
        "annotate/_fields.html", {"fields": (shown(TextField(True, maximum_length=300), value="\n</textarea><b>me"),)}
    )
    # HTML swallows one line break after the tag: the one of the template, not the annotator's.
    assert ">\n\n&lt;/textarea&gt;&lt;b&gt;me</textarea>" in html
    assert 'data-most="300"' in html


def test_the_least_length_is_said_before_and_to_a_screen_reader():
    (attrs,) = (page := drawn(shown(TextField(True, minimum_length=20, maximum_length=300)))).named("s1.q1")
    assert "20 to 300 characters" in page.words and "s1-q1-c" in attrs["aria-describedby"].split()


def test_a_refused_field_says_so_beside_it_and_to_a_screen_reader():
    for field in (WholeNumberField(), TextField()):
        (attrs,) = drawn(shown(field, error="Please answer.")).named("s1.q1")
        assert attrs["aria-invalid"] == "true"
        assert "s1-q1-e" in attrs["aria-describedby"].split()
    page = drawn(shown(ScalePointsField(True, points=(Option("1", ""), Option("2", ""))), error="Please answer."))
    assert page.of("fieldset")[0]["aria-invalid"] == "true"
    assert page.of("fieldset")[0]["aria-describedby"] == "s1-q1-e"
    assert [attrs for attrs in page.of("p") if attrs.get("id") == "s1-q1-e"]


def test_reasons_not_to_answer_are_offered_and_radios_can_be_taken_back():
    points = (Option("1", ""), Option("2", ""))
    page = drawn(
        shown(
            ScalePointsField(True, points=points),
            skip_reasons=(("unreadable", "It is unreadable"),),
            skip_value="unreadable",
        )
    )
    assert page.named("s1.q1.skip")
    assert [attrs["value"] for attrs in page.of("option") if "selected" in attrs] == ["unreadable"]
    assert [attrs["value"] for attrs in page.named("s1.q1")] == ["1", "2", ""]
    optional = drawn(shown(ScalePointsField(False, points=points)))
    assert [attrs["value"] for attrs in optional.named("s1.q1")] == ["1", "2", ""]
    assert [attrs["value"] for attrs in drawn(shown(ScalePointsField(True, points=points))).named("s1.q1")] == [
        "1",
        "2",
    ]


def test_the_boxes_of_one_question_stand_under_one_legend():
    boxes = tuple(
        shown(TickBoxField(False, option=Option(key, key)), slot=f"s1.q1.o{n}", value="1" if n == 2 else "")
        for n, key in enumerate("ab", 1)
    )
    page = Elements(render_to_string("annotate/_fields.html", {"fields": boxes}))
    assert len(page.of("legend")) == 1
    assert ["checked" in page.named(f"s1.q1.o{n}")[0] for n in (1, 2)] == [False, True]


SCALE = ScalePointsField(True, points=(Option("1", "worst"), Option("2", "best")))
BLANK = {
    "scale": SCALE,
    "optional scale": ScalePointsField(False, points=SCALE.points),
    "choice": ChoiceField(True, options=(Option("yes", "Yes"), Option("no", "No"))),
    "number": WholeNumberField(True, 0, 100, low="never", unit="%", has_range=True),
    "tick": TickBoxField(True, option=Option("1", "I agree")),
    "long text": TextField(False, maximum_length=300),
    "short text": TextField(True, is_long=False),
}


@pytest.mark.parametrize("nth", ["", "2 of 3"])
@pytest.mark.parametrize("more", [{}, {"help": "<p>Look <b>twice</b>.</p>"}, {"skip_reasons": (("odd", "It is odd"),)}])
@pytest.mark.parametrize("field", BLANK.values(), ids=BLANK)
def test_a_blank_field_is_drawn_as_one_with_an_answer_is(field, more, nth, monkeypatch):
    kept = [shown(field, slot=f"s1.q1.i{n}.{letter}", **more) for n, letter in ((1, "A"), (1, "B"), (23, "A"))]
    assert all(one.is_blank for one in kept)
    quick = [render_to_string("annotate/_fields.html", {"fields": (one,), "nth": nth}) for one in kept]
    monkeypatch.setattr(ShownField, "is_blank", False)
    assert quick == [render_to_string("annotate/_fields.html", {"fields": (one,), "nth": nth}) for one in kept]
    assert len(set(quick)) == 3 and all(one.slot in html for one, html in zip(kept, quick, strict=True))


@pytest.mark.parametrize(
    "typed", [{"value": "1"}, {"error": "Please choose."}, {"skip_value": "odd"}, {"values": {"a": ""}}]
)
def test_what_somebody_typed_makes_a_field_their_own(typed):
    assert not shown(SCALE, **typed).is_blank


def test_a_field_that_is_drawn_for_all_pages_reads_nothing_of_one():
    loaded = engines["jinja2"].env
    fields = set(Field.__subclasses__()) | {kind for one in Field.__subclasses__() for kind in one.__subclasses__()}
    alone = [kind for kind in fields if not (kind.depends_on_page or kind.inputs)]
    assert len(alone) >= 5 and ExposureChoiceField not in alone
    for kind in alone:
        source = loaded.loader.get_source(loaded, kind().template)[0]
        assert meta.find_undeclared_variables(loaded.parse(source)) <= {"field", "nth"}, kind
