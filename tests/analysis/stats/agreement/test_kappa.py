"""Kappa and AC1 agree with their references."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from statsmodels.stats import inter_rater

from analysis.stats import agreement
from tests.analysis.stats.agreement.references import GOLDEN_ALL
from tests.analysis.stats.draws import rng


def test_fleiss_and_ac1_agree_with_the_reference():
    for case in GOLDEN_ALL["fleiss"]:
        kappa, ac1 = agreement.fleiss_kappa(case["M"], rng=rng()), agreement.gwet_ac1(case["M"], rng=rng())
        assert_allclose([kappa.estimate, ac1.estimate], [case["kappa"], case["gwet_ac1"]], atol=1e-9)
        assert_allclose(kappa.detail["percent_agreement"], case["P_bar"], atol=1e-12)
        assert_allclose(kappa.detail["expected_agreement"], case["Pe"], atol=1e-12)
    textbook = GOLDEN_ALL["fleiss_textbook"]
    assert_allclose(agreement.fleiss_kappa(textbook["counts"], rng=rng()).estimate, textbook["kappa"], atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_fleiss_with_equal_raters_agrees_with_statsmodels(seed):
    counts = rng(seed).multinomial(6, [0.5, 0.3, 0.2], size=25)
    found = agreement.fleiss_kappa(counts, rng=rng(), resamples=9)
    assert_allclose(found.estimate, inter_rater.fleiss_kappa(counts), atol=1e-12)


def ac1_by_hand(counts):
    """Gwet 2008 as it is written, one item and one category at a time."""
    items = [row for row in counts if sum(row) > 1]
    k, n = len(counts[0]), len(items)
    agreed = sum(sum(c * (c - 1) for c in row) / (sum(row) * (sum(row) - 1)) for row in items) / n
    shares = [sum(row[j] / sum(row) for row in items) / n for j in range(k)]
    chance = sum(p * (1 - p) for p in shares) / (k - 1)
    return (agreed - chance) / (1 - chance)


def test_unequal_raters_weigh_items_alike_and_single_ratings_are_left_out():
    draw = rng(4)
    counts = np.array([draw.multinomial(m, [0.6, 0.3, 0.1]) for m in draw.integers(1, 7, 40)])
    found, ac1 = (call(counts, rng=rng()) for call in (agreement.fleiss_kappa, agreement.gwet_ac1))
    pairable = counts[counts.sum(axis=1) > 1]
    assert (found.n, found.detail["n_unpairable"]) == (len(pairable), 40 - len(pairable))
    assert_allclose(found.detail["prevalence"], (pairable / pairable.sum(axis=1, keepdims=True)).mean(axis=0))
    assert_allclose(ac1.estimate, ac1_by_hand(counts.tolist()), atol=1e-12)
    without = agreement.fleiss_kappa(pairable, rng=rng())
    assert (without.estimate, without.interval) == (found.estimate, found.interval)


def test_the_interval_of_kappa_is_that_of_resampled_items():
    counts = rng(6).multinomial(5, [0.5, 0.5], size=60)
    found = agreement.fleiss_kappa(counts, rng=rng(), resamples=4000)
    draw = rng(7)
    by_rows = [inter_rater.fleiss_kappa(counts[draw.integers(0, 60, 60)]) for _ in range(1500)]
    assert_allclose([found.interval.low, found.interval.high], np.quantile(by_rows, [0.025, 0.975]), atol=0.02)


def test_a_category_that_nobody_chose_changes_ac1_and_not_kappa():
    two, three = [[3, 0], [1, 2], [0, 3]], [[3, 0, 0], [1, 2, 0], [0, 3, 0]]
    kappas = [agreement.fleiss_kappa(table, rng=rng()).estimate for table in (two, three)]
    assert kappas[0] == pytest.approx(kappas[1])
    assert agreement.gwet_ac1(two, rng=rng()).estimate < agreement.gwet_ac1(three, rng=rng()).estimate


def test_kappa_edge_cases_are_statuses():
    constant = agreement.fleiss_kappa([[3, 0], [2, 0]], rng=rng())
    assert (constant.status, constant.detail["percent_agreement"]) == ("not_identified", 1.0)
    # AC1 is defined there; without anything to resample it has no interval.
    assert agreement.gwet_ac1([[3, 0], [2, 0]], rng=rng()).estimate == 1.0
    for call in (agreement.fleiss_kappa, agreement.gwet_ac1):
        assert call(np.empty((0, 2)), rng=rng()).status == "no_data"
        assert call([[0, 0]], rng=rng()).status == "no_data"
        assert call([[1, 0], [0, 1]], rng=rng()).status == "not_identified"
        assert call([[2], [3]], rng=rng()).status == "not_identified"
        assert call([[1, 1]], rng=rng()).status == "n_lt_2"
        with pytest.raises(ValueError, match="counts"):
            call([[0.5, 1]], rng=rng())


def test_a_table_of_categories_counts_what_was_given():
    table, names = agreement.category_counts_by_unit(
        ["i", "j", "i", "k"], ["yes", None, "no", None], categories=["no", "yes"]
    )
    assert (table.tolist(), names) == ([[1, 1], [0, 0], [0, 0]], ("no", "yes"))
    with pytest.raises(ValueError, match="labels: row 1 is 'maybe'"):
        agreement.category_counts_by_unit([1, 2], ["yes", "maybe"], categories=["no", "yes"])
    with pytest.raises(ValueError, match="category is repeated"):
        agreement.category_counts_by_unit([1], ["a"], categories=["a", "a"])
    with pytest.raises(ValueError, match="categories: needed"):
        agreement.category_counts_by_unit([1], [frozenset()])
