"""Places of values in figures, and the one frame around the marks of all of them."""

import re
from pathlib import Path

import pytest
from django.template.loader import render_to_string

from studies.figures import Axis, CountsAxis, Frame, nice_ticks

TEMPLATES = Path(__file__).parents[2] / "templates"


def test_an_axis_reaches_beyond_its_values_with_round_ticks():
    axis = Axis([-3.2, 8.9], 40, 240)
    assert [tick.text for tick in axis.ticks] == ["−5", "0", "5", "10"]
    assert axis.place(-5) == 40 and axis.place(10) == 240 and axis.place(2.5) == 140


def test_an_axis_of_people_has_whole_numbers_also_for_one():
    assert [tick.text for tick in Axis([0, 1], 0, 100, least_step=1).ticks] == ["0", "1"]
    assert nice_ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])


def test_counts_lie_on_a_logarithmic_scale():
    axis = CountsAxis([10, 1000], 300, 100)
    assert (axis.place(10), axis.place(100), axis.place(1000)) == pytest.approx((300, 200, 100))
    assert [tick.text for tick in axis.ticks] == ["10", "20", "50", "100", "200", "500", "1,000"]
    assert [tick.text for tick in CountsAxis([1, 10**6], 300, 100).ticks][:3] == ["1", "10", "100"]
    equal = CountsAxis([50, 50], 300, 100)
    assert equal.place(50) == 300 and equal.ticks


def test_the_frame_draws_a_line_and_a_text_for_each_tick():
    frame = Frame(
        400, 200, 50, 380, 10, 150, Axis([0, 4], 50, 380).ticks, Axis([0, 1], 150, 10).ticks, "people", "power"
    )
    drawn = render_to_string("figures/frame.svg", {"frame": frame})
    assert (
        drawn.count("<path") == len(frame.upwards)
        and drawn.count("<text") == len(frame.across) + len(frame.upwards) + 2
    )
    assert ">people<" in drawn and ">power<" in drawn
    with_columns = render_to_string("figures/frame.svg", {"frame": Frame(*_fields(frame), has_columns=True)})
    assert with_columns.count("<path") == len(frame.upwards) + len(frame.across)


def _fields(frame):
    return [getattr(frame, name) for name in Frame.__slots__ if name != "has_columns"]


def test_every_chart_with_ticks_uses_the_frame():
    """A template that draws ticks by itself is a second way."""
    charts = [
        path for path in TEMPLATES.rglob("*") if path.suffix in {".svg", ".html"} and 'class="chart' in path.read_text()
    ]
    own = [
        path
        for path in TEMPLATES.rglob("*")
        if path.suffix in {".svg", ".html"}
        and re.search(r"for tick in (?!frame\.|figure\.rank_ticks)", path.read_text())
    ]
    assert len(charts) >= 2 and not own
