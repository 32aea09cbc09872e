"""Plans that need no simulation are exact."""

import math

import numpy as np
import pytest

from analysis.stats import basic, choice_simulation, group_sequential, planning, power, sequential
from tests.analysis.stats.draws import rng
from tests.analysis.stats.planning.options import GOLDEN, POWERS


def test_a_plan_for_a_mean_is_the_table_of_powers():
    for setting, by_n in POWERS["by_sd_and_difference"].items():
        sd, difference = (float(part.split("=")[1]) for part in setting.split("|"))
        for n, by_level in list(by_n.items())[::2]:
            for level, wanted in by_level.items():
                chosen = planning.PlanOptions(significance=float(level[2:]))
                assert (
                    abs(planning.compute_mean_test_power(difference, sd, int(n[2:]), options=chosen).power - wanted)
                    < 6e-4
                )
    for setting, wanted in POWERS["detectable_difference"].items():
        sd, n, family = setting.split("|")
        chosen = planning.PlanOptions(tests=5 if "/5" in family else 1)
        assert (
            abs(planning.compute_mean_test_power(0.1, float(sd[3:]), int(n[2:]), options=chosen).detectable - wanted)
            < 6e-5
        )
    plan = planning.compute_mean_test_power(0.0, 0.25, 216, margin=0.05)
    assert plan.detail["equivalence_power"] >= 0.8 and abs(plan.power - 0.05) < 1e-9


def test_the_expected_width_is_that_of_intervals():
    values = rng(10).normal(0.6, 0.2, (4000, 12))
    intervals = [basic.one_sample_t_test(row, null=0.5).interval for row in values[:1000]]
    found = np.mean([between.high - between.low for between in intervals])
    assert abs(planning.compute_mean_test_power(0.1, 0.2, 12).width / found - 1) < 0.02
    shares = [np.diff(basic.wilson_interval(k, 30))[0] for k in rng(10).binomial(30, 0.7, 4000)]
    assert abs(planning.compute_share_test_power(0.7, 30).width / np.mean(shares) - 1) < 0.01


def test_shares_and_groups_are_planned_exactly():
    plan = planning.compute_share_test_power(0.6, 210)
    assert plan.power == power.proportion_power(0.6, 210) and plan.method == "exact"
    assert planning.compute_share_test_power(0.9, 4).detectable is None
    arms = planning.compute_two_group_test_power(0.05, 315, 315, sd_x=0.224, answers_each=5)
    assert arms.labels == 3150 and abs(arms.power - 0.798) < 0.001 and arms.width == pytest.approx(0.0701, abs=1e-4)


def test_watching_a_study_is_planned_exactly():
    rule = sequential.beta_binomial_boundaries(500, margin=0.1)
    at_null, at_p = (
        planning.compute_sequential_rule_power(0.5, rule),
        planning.compute_sequential_rule_power(0.35, rule),
    )
    table = choice_simulation.exact_verdict_probabilities(0.35, rule)
    assert (
        at_p.power == table.b_better[-1] > 0.9 and at_p.labels == table.mean_n and at_p.effect == pytest.approx(-0.15)
    )
    assert at_null.power < 0.05 and at_null.detail["equivalent"] > 0.9


@pytest.mark.parametrize("row", GOLDEN["group_sequential"], ids=lambda row: f"{row['shape']}-{row['mean']}")
def test_planned_looks_agree_with_the_reference(row):
    # The standard deviation is the one at which the fixed test has the power it had in the simulation.
    sd = (row["mean"] - 0.5) / power.t_test_detectable_difference(200, power=row["fixed"])
    plan = planning.compute_group_sequential_power(row["mean"] - 0.5, sd, [40, 80, 120, 160, 200], answers_each=2)
    assert abs(plan.power - row["looks"]) < 0.02
    # The spending function asks for more at the early looks than the classical boundaries of the simulation.
    assert -1 < plan.detail["expected_n"] - row["mean_n"] < 10
    assert plan.labels == 2 * plan.detail["expected_n"]
    null = planning.compute_group_sequential_power(0.0, sd, [40, 80, 120, 160, 200])
    assert abs(null.power - 0.05) < 3e-3 and 197 < null.detail["expected_n"] < 200


def test_the_power_of_looks_at_few_units_is_that_of_the_test_itself():
    plan = planning.compute_group_sequential_power(0.3, 0.27, [5, 10])
    draw, found = np.random.default_rng(5), []
    for _ in range(3000):
        result = group_sequential.group_sequential_test(
            draw.normal(0.3, 0.27, 10), [5, 10], null=0.0, bounds=(-9.0, 9.0)
        )
        found.append(result.stopped_at)
    crossed = np.array([stop is not None for stop in found])
    assert abs(plan.power - crossed.mean()) < 3 * math.sqrt(plan.power * (1 - plan.power) / 3000)
    stopped_early = np.mean([stop == 5 for stop in found])
    assert abs(plan.detail["stopping"][0] - stopped_early) < 0.03
    # A z test would promise .94.
    assert plan.power < 0.9 and plan.method == "simulation" and plan.detail["simulation_error"] < 0.002


@pytest.mark.parametrize(
    "call,named",
    [
        (lambda: planning.compute_group_sequential_power(0.1, 0.3, [80, 40]), "looks"),
        (lambda: planning.compute_group_sequential_power(0.1, 0.3, [1, 40]), "looks"),
        (lambda: planning.compute_group_sequential_power(0.1, 0.3, [20.5, 40]), "looks"),
        (lambda: planning.compute_group_sequential_power(0.1, 0.3, [math.nan, 40]), "looks"),
        (lambda: planning.compute_group_sequential_power(math.nan, 0.3, [20, 40]), "difference: nan"),
        (lambda: planning.compute_mean_test_power(math.nan, 0.3, 30), "effect: nan"),
        (lambda: planning.compute_mean_test_power(math.inf, 0.3, 30), "effect: inf"),
        (lambda: planning.compute_two_group_test_power(math.nan, 30, 30, sd_x=0.3), "difference: nan"),
        (lambda: planning.compute_mean_test_power(0.1, 0.0, 30), "sd: 0"),
        (lambda: planning.PlanOptions(tests=0), "tests: 0"),
    ],
)
def test_impossible_designs_are_refused_by_name(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_what_excluded_annotators_cost():
    plan = planning.compute_mean_test_power(0.1, 0.3, 90, answers_each=2, excluded_share=0.1)
    assert plan.labels == 200 and plan.power == planning.compute_mean_test_power(0.1, 0.3, 90).power
    with pytest.raises(ValueError, match="excluded_share: 1"):
        planning.compute_mean_test_power(0.1, 0.3, 90, excluded_share=1)
