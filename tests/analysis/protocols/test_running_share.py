"""Figure 1 of the two-choice paper: the running share with its bounds and the decision, in the report."""

import math

import numpy as np
import pytest

from analysis.report.build import build_report
from analysis.report.plots import render_figure_svg_and_pdf
from analysis.stats.sequential import hoeffding_decision, hoeffding_running_share
from studies.models import Item, Study
from studies.services import lifecycle
from tests.analysis.stats.draws import rng
from tests.builders import choice_study
from tests.players import choosing


def figure_of(study):
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    report = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
    return next(figure for figure in report["figures"] if figure["name"] == "running_share_1")


def test_the_bounds_leave_one_half_where_the_paper_decides():
    for share in (0.15, 0.5, 0.6, 0.9):
        answers = (rng(7).random(400) < share).astype(float)
        running = hoeffding_running_share(answers, delta=0.01)
        outside = np.flatnonzero((running.low > 0.5) | (running.high < 0.5))
        found = hoeffding_decision(answers, delta=0.01).detail["n_decision"]
        assert found == (int(outside[0]) + 1 if len(outside) else None), share
        assert running.share[-1] == pytest.approx(answers.mean())


def test_few_points_begin_with_the_first_unit_and_end_with_the_last():
    running = hoeffding_running_share([1, 0, np.nan] * 100, delta=0.01)
    points = running.thinned(20)
    assert len(points) <= 20 and points[0][0] == 1 and points[-1][0] == 200
    assert points[-1][1:] == pytest.approx((0.5, 0.5 - running_radius(200), 0.5 + running_radius(200)))
    assert hoeffding_running_share([], delta=0.01).thinned(20) == []


def running_radius(n, delta=0.01):
    return math.sqrt(-math.log(delta) / (2 * n))


@pytest.mark.slow
@pytest.mark.django_db
def test_a_report_has_the_share_after_each_item_and_where_it_was_decided(same_orders):
    settings = {"strategy": "one", "stopping": "none", "delta": 0.01}
    study = choice_study(prompts=60, m=10, target_n=6, settings=settings)
    numbers = dict(Item.objects.filter(study=study).values_list("pk", "number"))
    for n in range(6):
        choosing(study, f"p{n}", lambda item: "alpha" if numbers[item] % 10 == 0 else "beta")
    figure = figure_of(study)
    answers = [0.0 if number % 10 == 0 else 1.0 for number in sorted(numbers.values())]
    means = [sum(answers[: n + 1]) / (n + 1) for n in range(60)]
    assert [row["estimate"] for row in figure["rows"]] == pytest.approx(means)
    assert [row["low"] for row in figure["rows"]] == pytest.approx(
        [max(0, mean - running_radius(n + 1)) for n, mean in enumerate(means)]
    )
    first = next(n + 1 for n, mean in enumerate(means) if mean - running_radius(n + 1) > 0.5)
    assert figure["decided_at"] == first and (figure["rows"][0]["unit"], figure["reference"]) == ("item", 0.5)
    svg, pdf = render_figure_svg_and_pdf(figure)
    assert f"decided after {first}" in svg and "after 60 items" in svg and pdf.startswith(b"%PDF")


@pytest.mark.slow
@pytest.mark.django_db
def test_with_the_anytime_valid_rule_it_is_about_people(same_orders):
    study = choice_study(prompts=60, m=5, target_n=12)
    for n in range(12):
        choosing(study, f"p{n}", lambda item: "beta")
    figure = figure_of(study)
    assert [row["n"] for row in figure["rows"]] == list(range(1, 13)) and figure["rows"][0]["unit"] == "annotator"
    assert all(row["estimate"] == 1 for row in figure["rows"]) and figure["rows"][-1]["low"] > 0.5
    assert figure["decided_at"] and figure["rows"][figure["decided_at"] - 2]["low"] <= 0.5
