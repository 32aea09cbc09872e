import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats.power import TTestPower

from analysis.stats import equivalence, power
from tests.analysis.stats.golden import golden

GOLDEN = golden("power")


def test_power_agrees_with_the_references():
    for row in GOLDEN["one_sample_t"]:
        assert_allclose(power.t_power(row["d"], row["n"], significance=row["alpha"]), row["power"], atol=1e-9)
    case = GOLDEN["one_sample_t_d04_level001"]
    found = [power.t_power(0.4, n, significance=0.001) for n in case["input"]["n"]]
    assert_allclose(found, case["expected"]["power"], atol=1e-8)


def test_the_printed_tables_hold():
    for setting, by_n in GOLDEN["by_sd_and_difference"].items():
        sd, effect = (float(part.split("=")[1]) for part in setting.split("|"))
        for n, by_level in by_n.items():
            for level, wanted in by_level.items():
                found = power.t_power(effect / sd, int(n[2:]), significance=float(level[2:]))
                assert abs(found - wanted) < 6e-4, (setting, n, level)
    for setting, wanted in GOLDEN["detectable_difference"].items():
        sd, n, family = setting.split("|")
        tests = 5 if "/5" in family else 1
        assert abs(power.detectable_effect(int(n[2:]), sd=float(sd[3:]), tests=tests) - wanted) < 6e-5, setting


def test_equivalence_sample_sizes_are_those_of_the_table():
    for setting, wanted in GOLDEN["equivalence_n"].items():
        sd, margin = (float(part.split("=")[1]) for part in setting.split("|"))
        assert power.n_for_equivalence(sd=sd, margin=margin) == wanted, setting


def test_observed_power_is_a_function_of_the_pvalue():
    for pvalue, by_level in GOLDEN["observed_power_n90"].items():
        effect = stats.t.isf(float(pvalue) / 2, 89) / np.sqrt(90)
        for level, wanted in by_level.items():
            assert abs(power.t_power(effect, 90, significance=float(level[2:])) - wanted) < 6e-4


@pytest.mark.parametrize("effect,n", [(0.1, 10), (0.8, 5), (2.0, 300), (0.0, 50)])
def test_power_agrees_with_statsmodels_also_far_out(effect, n):
    assert_allclose(power.t_power(effect, n), TTestPower().power(effect, n, 0.05), atol=1e-9)


@pytest.mark.parametrize("effect,n", [(5.0, 100), (30.0, 1000), (500.0, 50)])
def test_power_is_a_number_in_the_far_tail(effect, n):
    assert power.t_power(effect, n) == 1.0


def test_the_three_solutions_undo_one_another():
    n = power.n_for_power(0.3)
    assert power.t_power(0.3, n) >= 0.8 > power.t_power(0.3, n - 1)
    assert_allclose(power.t_power(power.detectable_effect(60, sd=0.25) / 0.25, 60), 0.8, atol=1e-8)
    n = power.n_for_equivalence(sd=0.3, margin=0.1)
    assert power.equivalence_power(n, sd=0.3, margin=0.1) >= 0.8 > power.equivalence_power(n - 1, sd=0.3, margin=0.1)


def test_equivalence_power_is_what_the_test_does():
    rng = np.random.default_rng(0)
    found = np.mean(
        [
            equivalence.equivalence(rng.normal(0.52, 0.3, 60), null=0.5, margin=0.1).detail["is_equivalent"]
            for _ in range(1500)
        ]
    )
    wanted = power.equivalence_power(60, sd=0.3, margin=0.1, difference=0.02)
    assert abs(found - wanted) < 3.5 * np.sqrt(wanted * (1 - wanted) / 1500)


def test_impossible_plans_are_refused():
    with pytest.raises(ValueError, match="n: 1"):
        power.t_power(0.5, 1)
    with pytest.raises(ValueError, match="effect of 0"):
        power.n_for_power(0)
    with pytest.raises(ValueError, match="difference"):
        power.n_for_equivalence(sd=0.3, margin=0.05, difference=0.05)
    with pytest.raises(ValueError, match="more than"):
        power.n_for_power(1e-5)
