"""Shares and attrition are compared between groups."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats import proportion

from analysis.stats import groups
from analysis.stats.results import json_safe
from tests.analysis.stats.draws import rng


def test_the_difference_of_shares_agrees_with_statsmodels_and_scipy():
    for x, n_x, y, n_y in ((56, 70, 48, 80), (9, 10, 3, 10), (0, 10, 4, 20), (10, 10, 0, 20), (5, 56, 0, 29)):
        found = groups.share_difference(x, n_x, y, n_y)
        ends = proportion.confint_proportions_2indep(x, n_x, y, n_y, method="newcomb", compare="diff")
        assert_allclose([found.interval.low, found.interval.high], ends, atol=1e-9)
        assert_allclose(found.pvalue, stats.fisher_exact([[x, n_x - x], [y, n_y - y]]).pvalue)
        back = groups.share_difference(y, n_y, x, n_x)
        assert_allclose([back.estimate, back.interval.high], [-found.estimate, -found.interval.low], atol=1e-12)
    nobody = groups.share_difference(0, 20, 0, 30)
    assert (nobody.status, nobody.estimate, nobody.test) == ("zero_variance", 0, None)
    assert nobody.interval.low < 0 < nobody.interval.high
    assert groups.share_difference(0, 0, 1, 3).status == "no_data"
    with pytest.raises(ValueError, match="successes_y: 4"):
        groups.share_difference(1, 3, 4, 3)


def test_independence_agrees_with_scipy():
    table = np.array([[30, 10, 12], [20, 22, 9]])
    found = groups.independence_test(table)
    wanted = stats.chi2_contingency(table, correction=False)
    assert_allclose([found.test.statistic, found.pvalue], [wanted.statistic, wanted.pvalue], rtol=1e-9)
    assert found.test.df == 2 and found.test.name == "chi_square"
    assert_allclose(found.estimate, stats.contingency.association(table, method="cramer"))
    small = [[3, 1], [1, 5]]
    exact = groups.independence_test(small)
    assert exact.test.name == "fisher_exact"
    assert_allclose(exact.pvalue, stats.fisher_exact(small).pvalue)
    turned = groups.independence_test(table.T[::-1])
    assert_allclose([turned.pvalue, turned.estimate], [found.pvalue, found.estimate], rtol=1e-9)


def test_small_tables_are_resampled_and_without_a_generator_warn():
    table = [[4, 1, 0], [1, 3, 4]]
    found = groups.independence_test(table, rng=rng())
    assert found.test.name == "chi_square_resampled" and found.test.df is None
    # The exact p-value: every table with these margins.
    rows, columns = [5, 8], [5, 4, 4]
    total, extreme = 0.0, 0.0
    expected = np.outer(rows, columns) / 13
    seen = np.sum((np.array(table) - expected) ** 2 / expected)
    chances = stats.random_table(rows, columns)
    for a in range(6):
        for b in range(5):
            c = 5 - a - b
            if 0 <= c <= 4:
                one = np.array([[a, b, c], [5 - a, 4 - b, 4 - c]])
                chance = chances.pmf(one)
                total += chance
                extreme += chance * (np.sum((one - expected) ** 2 / expected) >= seen - 1e-9)
    assert_allclose(total, 1)
    assert_allclose(found.pvalue, extreme, atol=4 * np.sqrt(extreme / 9999))
    assert groups.independence_test(table).has_warning("small_expected")


def test_margins_without_anybody_are_statuses():
    assert groups.independence_test([[0, 0], [0, 0]]).status == "no_data"
    assert groups.independence_test([[3, 4]]).status == "not_identified"
    assert groups.independence_test([[3, 4], [0, 0]]).reason == "row 1 counts nobody"
    assert groups.independence_test([[3, 0, 4], [3, 0, 1]]).reason == "column 1 counts nobody"
    assert groups.independence_test([[3, 0], [5, 0]]).status == "zero_variance"
    with pytest.raises(ValueError, match="table"):
        groups.independence_test([[1.5, 2], [1, 1]])


def test_differential_attrition_says_who_was_lost_where():
    found = groups.differential_attrition([100, 100, 90], [8, 30, 9], ["none", "examples", "pairs"])
    assert [share.settings["condition"] for share in found.shares] == ["none", "examples", "pairs"]
    assert_allclose([share.estimate for share in found.shares], [0.08, 0.3, 0.1])
    assert [d.settings["condition"] for d in found.differences] == ["examples", "pairs"]
    assert_allclose(found.differences[0].estimate, 0.22)
    raw = [d.pvalue for d in found.differences]
    assert_allclose(found.differences[0].test.pvalue_adjusted, min(1, 2 * raw[0]))
    wanted = stats.chi2_contingency([[8, 92], [30, 70], [9, 81]], correction=False).pvalue
    assert_allclose(found.test.pvalue, wanted)
    assert [d.settings["reference"] for d in found.differences] == ["none", "none"]
    json.dumps(json_safe(found), allow_nan=False)


def test_attrition_edge_cases():
    nobody_lost = groups.differential_attrition([10, 10], [0, 0], ["a", "b"])
    assert (nobody_lost.test.status, nobody_lost.differences[0].status) == ("zero_variance", "zero_variance")
    empty_arm = groups.differential_attrition([10, 0], [1, 0], ["a", "b"])
    assert (empty_arm.shares[1].status, empty_arm.test.status) == ("no_data", "not_identified")
    assert groups.differential_attrition([], [], []).test.status == "no_data"
    for arguments, word in (
        (([10], [11], ["a"]), "lost: row 0 is 11"),
        (([10], [1, 2], ["a"]), "lost: 2"),
        (([10, 9], [1, 2], ["a", "a"]), "conditions"),
    ):
        with pytest.raises(ValueError, match=word):
            groups.differential_attrition(*arguments)
