"""Plans with looks agree with the reference and with the test itself."""

import math

import numpy as np
import pytest

from analysis.stats import power_of_means
from analysis.stats.planning import simulated_studies, stopping
from tests.analysis.stats.looks import first_rejection
from tests.analysis.stats.planning.options import GOLDEN


@pytest.mark.parametrize("row", GOLDEN["group_sequential"], ids=lambda row: f"{row['shape']}-{row['mean']}")
def test_planned_looks_agree_with_the_reference(row):
    # The standard deviation is the one at which the fixed test has the power it had in the simulation.
    sd = (row["mean"] - 0.5) / power_of_means.t_test_detectable_difference(200, power=row["fixed"])
    plan = stopping.compute_group_sequential_power(row["mean"] - 0.5, sd, [40, 80, 120, 160, 200])
    assert abs(plan.power - row["looks"]) < 0.02
    # The spending function asks for more at the early looks than the classical boundaries of the simulation.
    assert -1 < plan.detail["expected_n"] - row["mean_n"] < 10
    assert plan.labels == plan.detail["expected_n"]
    null = stopping.compute_group_sequential_power(0.0, sd, [40, 80, 120, 160, 200])
    assert abs(null.power - 0.05) < 3e-3 and 197 < null.detail["expected_n"] < 200


@pytest.mark.slow
def test_the_power_of_looks_at_few_units_is_that_of_the_test_itself():
    plan = stopping.compute_group_sequential_power(0.3, 0.27, [5, 10])
    draw, found = np.random.default_rng(5), []
    for _ in range(3000):
        found.append(first_rejection(draw.normal(0.3, 0.27, 10), [5, 10], null=0.0))
    crossed = np.array([stop is not None for stop in found])
    assert abs(plan.power - crossed.mean()) < 3 * math.sqrt(plan.power * (1 - plan.power) / 3000)
    stopped_early = np.mean([stop == 5 for stop in found])
    assert abs(plan.detail["stopping"][0] - stopped_early) < 0.03
    # A z test would promise .94.
    assert plan.power < 0.9 and plan.method == "simulation" and plan.detail["simulation_error"] < 0.002


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: stopping.compute_group_sequential_power(0.1, 0.3, [80, 40]), "looks"),
        (lambda: stopping.compute_group_sequential_power(0.1, 0.3, [1, 40]), "looks"),
        (lambda: stopping.compute_group_sequential_power(0.1, 0.3, [20.5, 40]), "looks"),
        (lambda: stopping.compute_group_sequential_power(math.nan, 0.3, [20, 40]), "difference: nan"),
        (lambda: stopping.compute_group_sequential_power(0.1, 0.0, [20, 40]), "sd: 0"),
        (lambda: simulated_studies.PlanOptions(tests=0), "tests: 0"),
    ],
)
def test_impossible_looks_are_refused_by_name(call, named):
    with pytest.raises(ValueError, match=named):
        call()
