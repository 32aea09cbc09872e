"""A report has the power of a next study: its own spread, the declared differences, and none of its estimates."""

import math
from dataclasses import replace

import pytest

from analysis.report import next_study
from analysis.report.plots import render_figure_svg_and_pdf
from analysis.stats import power_of_means
from analysis.stats.planning.closed_forms import Components
from analysis.stats.results import Estimate
from analysis.stats.scalar_forms import t_quantile
from studies.models import Contrast
from tests.analysis.protocols.answers import answer
from tests.analysis.report.reported import closed, report, table
from tests.builders import add_choice, draft_study, launched, spa_draft
from tests.players import many
from tests.size_plans import choose, planned_size

N = 90


def stated(mean: float, effect: float) -> Estimate:
    """The estimate of 90 people whose distance from .5 is ``effect`` standard deviations."""
    sd = abs(mean - 0.5) / effect
    return Estimate(analysis="a", estimand="b", unit="annotator", n=N, estimate=mean, detail={"se": sd / math.sqrt(N)})


def planned(estimate: Estimate, value: float, **more) -> next_study.NextStudy:
    options = {"protocol": "spa", "points": 5, "population": "people", "level": 0.001} | more
    return next_study.next_study_of(estimate, value, **options)


def test_the_papers_figure_2_is_the_t_test_at_its_level_and_has_no_power_near_one():
    """With a p of .05 and 90 people, the declared difference being the observed one, the power is .09, and .99 needs 725."""
    effect = t_quantile(0.975, N - 1) / math.sqrt(N)
    found = planned(stated(0.55, effect), 0.55)
    exact = [power_of_means.t_test_power(effect, n, significance=0.001) for n in (30, N, 400)]
    # The report tests .5 with the variance under it, which is a little larger.
    assert [found.power_with(n) for n in (30, N, 400)] == pytest.approx(exact, abs=0.02)
    assert power_of_means.n_for_t_test(effect, power=0.99, significance=0.001) == pytest.approx(725, abs=2)
    assert found.people_for(0.99) == pytest.approx(725, rel=0.03)


def test_only_the_spread_comes_from_the_estimate():
    """Two studies with one spread and other estimates promise the same, unless a probability has another variance there."""
    low, high = (stated(mean, (mean - 0.5) / 0.25) for mean in (0.52, 0.7))
    assert planned(low, 0.6) == planned(high, 0.6)
    assert planned(low, 0.6).power_with(N) < planned(low, 0.65).power_with(N)
    assert planned(stated(0.6, 0.4), 0.6, level=0.01).power_with(N) > planned(stated(0.6, 0.4), 0.6).power_with(N)


def test_the_variance_of_choices_is_moved_to_the_declared_difference():
    estimate = replace(stated(0.9, 1.0), detail={"se": math.sqrt(0.09 / N)})
    found = planned(estimate, 0.6, protocol="two_choice", population="")
    assert found.parts == Components(mean=0.6, people=pytest.approx(0.24), prompts=0.0, rest=0.0)
    assert planned(replace(estimate, detail={"se": 0.0}), 0.6, protocol="two_choice") is None
    assert planned(replace(estimate, estimate=None), 0.6, protocol="two_choice") is None


def chosen(margin=None, is_planned=False):
    study = draft_study(systems=("alpha", "beta"), prompts=15, target_n=12, instructions="")
    add_choice(study, m=5, stopping="none", strategy="any", margin=margin)
    if is_planned:
        choose(study, planned_size(study, people=24, prompts=15, prompts_each=5))
    study = launched(study)
    many(study, 12, 0.7)
    return closed(study)


@pytest.mark.django_db
def test_without_a_declared_difference_there_is_no_curve_and_the_reason():
    result = report(chosen())
    (row,) = table(result, "next_study")["rows"]
    assert row["reason"] == "no smallest difference was declared: neither a margin of the comparison nor a plan"
    assert (row["difference"], row["power"], row["needed"], row["n"]) == (None, None, None, 12)
    assert not any(figure["name"] == "next_study" for figure in result["figures"])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "difference", "source"),
    [({"margin": 0.08}, 0.08, "margin"), ({"is_planned": True}, 0.1, "plan")],
)
def test_a_declared_difference_has_a_curve(options, difference, source, same_orders):
    result = report(chosen(**options))
    (row,) = table(result, "next_study")["rows"]
    assert row["difference"] == pytest.approx(difference) and row["source"] == source and row["level"] == 0.05
    (figure,) = [one for one in result["figures"] if one["name"] == "next_study"]
    powers = {one["n"]: one["estimate"] for one in figure["rows"]}
    assert powers[12] == row["power"] and list(powers.values()) == sorted(powers.values())
    assert figure["title"].startswith("For a next study") and figure["kind"] == "curves"
    svg, pdf = render_figure_svg_and_pdf(figure)
    assert "beta &gt; alpha" in svg and pdf.startswith(b"%PDF")


@pytest.mark.django_db
def test_stated_chances_and_ratings_are_side_by_side(same_orders):
    study = spa_draft(target_n=12)
    Contrast.objects.filter(study=study).update(margin=0.1)
    study = launched(study)
    answer(
        study,
        12,
        percent=lambda person, x, y: 60 + 2 * person if x > y else 35,
        rating=lambda person, system: 1 + (person + len(system)) % 5,
    )
    result = report(closed(study))
    rows = table(result, "next_study")["rows"]
    assert {row["protocol"] for row in rows} == {"stated chances (SPA)", "rating"}
    assert len(rows) > 2 and all(row["level"] < 0.05 for row in rows), "the level of several comparisons"
    (figure,) = [one for one in result["figures"] if one["name"] == "next_study"]
    assert {one["series"] for one in figure["rows"]} == {"stated chances (SPA)", "rating"}
    assert "stays as printed" in table(result, "next_study")["note"]
