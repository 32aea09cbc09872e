"""The long job tells its progress, can be cancelled and is repeatable."""

import math

import numpy as np
import pytest

from analysis.stats import basic, planning, power
from tests.analysis.stats.draws import rng
from tests.analysis.stats.planning.options import options, within


@pytest.mark.parametrize(
    "runs,n,said", [(2001, 10, "runs: 2001 is not in 1..2000"), (0, 10, "runs: 0"), (2000, 13_000, "at most 1923 runs")]
)
def test_simulations_beyond_the_bounds_are_refused_before_they_start(runs, n, said):
    started = []
    with pytest.raises(ValueError, match=said):
        planning.simulate_spa_power(
            n, 0.6, rng=rng(), options=options(runs=runs, progress=lambda *at: started.append(at))
        )
    assert started == []
    with pytest.raises(ValueError, match="too large a study"):
        planning.validate_simulation_size(1, 50_000_001)
    planning.validate_simulation_size(2000, 25_000)


@pytest.mark.parametrize("find_detectable", [False, True])
def test_progress_is_told_in_order_to_the_end(find_detectable):
    told = []
    planning.simulate_choice_power(
        20,
        3,
        0.5,
        rng=rng(),
        options=options(runs=60, find_detectable=find_detectable, progress=lambda *at: told.append(at)),
    )
    totals = {total for _, total in told}
    assert totals == {60 * (1 + (planning.HALVINGS + 1) * find_detectable)}
    done = [at for at, _ in told]
    assert done == sorted(done) and len(set(done)) == len(done) and done[-1] == totals.pop()
    assert len(told) >= planning.BLOCKS


def test_a_cancelled_job_stops_at_the_next_block():
    told = []
    with pytest.raises(planning.SimulationCancelled, match="after 30 of 200 runs"):
        planning.simulate_spa_power(
            20,
            0.6,
            rng=rng(),
            options=options(progress=lambda done, _: told.append(done), is_cancelled=lambda: len(told) == 3),
        )
    assert told == [10, 20, 30]


def test_the_same_seed_gives_the_same_plan_whoever_watches():
    first = planning.simulate_spa_power(30, 0.6, rng=rng(11), options=options(find_detectable=True))
    watched = planning.simulate_spa_power(
        30,
        0.6,
        rng=rng(11),
        options=options(find_detectable=True, progress=lambda *_: None, is_cancelled=lambda: False),
    )
    assert first == watched
    assert first != planning.simulate_spa_power(30, 0.6, rng=rng(12), options=options(find_detectable=True))


@pytest.mark.parametrize(
    "call,named",
    [
        (lambda: planning.simulate_spa_power(9, 0.6, mode="other", rng=rng()), "mode: 'other'"),
        (lambda: planning.simulate_rating_power(9, 2, 0.5, estimator="other", rng=rng()), "estimator: 'other'"),
        (lambda: planning.simulate_human_likeness_power(9, 2, 0.5, measure="other", rng=rng()), "measure: 'other'"),
        (
            lambda: planning.simulate_expected_utility_power(9, 2, 0.5, mean_utility=0.9, rng=rng()),
            "difference: 0.5 around 0.9",
        ),
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


def test_any_analysis_of_single_runs_can_be_simulated():
    def generate(size, generator):
        return generator.normal(0.4, 1, (size, 20)), generator.normal(0, 2, (size, 30))

    def analyse(made):
        return planning.outcomes_from_estimates(basic.welch_t_test(x, y) for x, y in zip(*made, strict=True))

    outcomes = planning.simulate(generate, analyse, n_answers=50, runs=600, rng=rng(13))
    wanted = power.two_sample_t_test_power(0.4, 20, 30, sd_x=1, sd_y=2)
    assert within(np.mean(outcomes.pvalue < 0.05), wanted, 600)
    assert power.two_sample_t_test_power(0.4, 20, 30, variances="equal") > wanted
