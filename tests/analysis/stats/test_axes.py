import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import criteria as axes
from tests.analysis.stats.golden import golden

GOLDEN = golden("axes")
NAMES = ["interest", "coherence", "grammar"]


def found_drivers(**more):
    settings = {"names": NAMES, **more}
    return axes.regress_overall_on_criteria(GOLDEN["overall"], GOLDEN["criteria"], GOLDEN["annotators"], **settings)


def test_drivers_agree_with_the_reference_and_carry_no_test():
    found = found_drivers()
    estimates = [found.intercept, *found.coefficients.values()]
    assert_allclose([estimate.estimate for estimate in estimates], GOLDEN["coefficients"], atol=1e-9)
    assert_allclose([estimate.detail["se"] for estimate in estimates], GOLDEN["se"], atol=1e-9)
    assert_allclose(found.r_squared, GOLDEN["r_squared"], atol=1e-9)
    explained = [estimate.detail["explained_by_others"] for estimate in found.coefficients.values()]
    assert_allclose(explained, GOLDEN["explained_by_others"], atol=1e-9)
    for estimate in estimates:
        assert estimate.test is None and estimate.n == 10 and estimate.n_rows == 20
        half = stats.t.ppf(0.975, 9) * estimate.detail["se"]
        assert_allclose(estimate.interval.high - estimate.estimate, half, atol=1e-9)
    body = found.as_dict()
    assert body["is_descriptive"]
    json.dumps(body, allow_nan=False)


def test_exchanging_the_systems_keeps_the_slopes_and_turns_the_intercept():
    there = found_drivers()
    back = axes.regress_overall_on_criteria(
        1 - np.array(GOLDEN["overall"]), 1 - np.array(GOLDEN["criteria"]), GOLDEN["annotators"], names=NAMES
    )
    for name in NAMES:
        assert_allclose(there.coefficients[name].estimate, back.coefficients[name].estimate, atol=1e-9)
    assert_allclose(there.intercept.estimate, -back.intercept.estimate, atol=1e-9)


def test_repeating_every_row_leaves_the_clustered_errors():
    twice = axes.regress_overall_on_criteria(
        GOLDEN["overall"] * 2, GOLDEN["criteria"] * 2, GOLDEN["annotators"] * 2, names=NAMES
    )
    assert_allclose([e.detail["se"] for e in twice.coefficients.values()], GOLDEN["se"][1:], atol=1e-9)


def test_rows_with_a_gap_are_left_out():
    overall = [*GOLDEN["overall"], 0.9, None]
    criteria = [*GOLDEN["criteria"], [0.1, None, 0.2], [0.3, 0.3, 0.3]]
    found = axes.regress_overall_on_criteria(overall, criteria, [*GOLDEN["annotators"], 0, 11], names=NAMES)
    assert_allclose([e.estimate for e in found.coefficients.values()], GOLDEN["coefficients"][1:], atol=1e-9)
    assert found.intercept.detail["n_missing"] == 2 and found.n_annotators == 10


def test_criteria_that_cannot_be_distinguished_say_so():
    rng = np.random.default_rng(3)
    first = rng.uniform(0.2, 0.8, 40)
    overall, who = rng.uniform(0, 1, 40), np.arange(40)
    same = axes.regress_overall_on_criteria(overall, np.column_stack([first, first]), who, names=["a", "b"])
    assert {e.status for e in same.coefficients.values()} == {"not_identified"} and same.r_squared is None
    near = axes.regress_overall_on_criteria(
        overall, np.column_stack([first, np.clip(first + rng.normal(0, 0.02, 40), 0, 1)]), who, names=["a", "b"]
    )
    assert all(e.has_warning("collinear") for e in near.coefficients.values())
    assert not any(e.has_warning("collinear") for e in found_drivers().coefficients.values())


@pytest.mark.parametrize(
    "rows,status", [(slice(0, 0), "no_data"), (slice(0, 2), "n_lt_2"), (slice(0, 4), "not_identified")]
)
def test_too_few_rows_are_a_status(rows, status):
    found = axes.regress_overall_on_criteria(
        np.array(GOLDEN["overall"])[rows],
        np.array(GOLDEN["criteria"])[rows].reshape(-1, 3),
        np.array(GOLDEN["annotators"])[rows],
        names=NAMES,
    )
    assert found.intercept.status == status and found.intercept.reason
    json.dumps(found.as_dict(), allow_nan=False)


def test_an_overall_answer_that_never_varies_has_no_share_of_variance():
    found = axes.regress_overall_on_criteria([0.7] * 20, GOLDEN["criteria"], GOLDEN["annotators"], names=NAMES)
    assert found.r_squared is None and found.intercept.status == "zero_variance"
    assert_allclose(found.intercept.estimate, 0.2)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="criteria: 20 rows where overall has 2"):
        axes.regress_overall_on_criteria([0.5, 0.5], GOLDEN["criteria"], [1, 2], names=NAMES)
    with pytest.raises(ValueError, match="names: 2 names"):
        found_drivers(names=["a", "b"])
    with pytest.raises(ValueError, match="occurs twice"):
        found_drivers(names=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"criteria \(b\): row 1 is 70"):
        axes.regress_overall_on_criteria([0.5, 0.5], [[0.5, 0.1], [0.5, 70]], [1, 2], names=["a", "b"])
