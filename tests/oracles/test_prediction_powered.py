"""Means of people and judges against GLIDE, whose numbers ``python tests/oracles/glide_reference.py`` wrote under Python 3.12."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats.judge_assisted import prediction_powered_mean
from tests import ROOT

GLIDE = json.loads((ROOT / "tests" / "golden" / "glide_reference.json").read_text())
DATA = {name: np.array(values) for name, values in GLIDE["data"].items()}
ONE, BOTH = DATA["judges"][0], DATA["judges"].T
# Their correction is by the mean of the unlabelled items, ours by that of all: three quarters of the items have no label.
UNLABELLED = 3 / 4
CLUSTERS = np.repeat(np.arange(48), 5)


def case(name, **options):
    """Our record for the data of one of their estimators."""
    items = np.flatnonzero(DATA["is_labelled_in_strata"]) if name == "stratified" else np.arange(60)
    values, judge = DATA["human"], options.pop("judges", ONE)
    if name == "stratified":
        values = values + DATA["strata"]
    if name == "clustered":
        values, judge = values + DATA["cluster_shift"], judge + DATA["cluster_shift"]
        options["prompts"] = CLUSTERS
    return prediction_powered_mean(values[items], None, items, judges=judge, **options)


@pytest.mark.parametrize("name", ["ppi", "clustered"])
def test_with_the_same_weight_both_are_equal(name):
    found, theirs = case(name, weights=[1 / UNLABELLED]), GLIDE[name]
    assert not found.fallback
    assert_allclose(found.combined.estimate, theirs["estimate"])
    # Ours centres the judge's scores at the mean of all items.
    assert_allclose(found.combined.detail["se"], theirs["se"], rtol=0.01)


def test_with_strata_and_the_same_weight_both_are_equal():
    theirs = GLIDE["stratified"]
    without = case("stratified", weights=[1 / UNLABELLED])
    found = case("stratified", weights=[1 / UNLABELLED], strata=DATA["strata"])
    # The strata have equal shares of labels, so the estimates are the same.
    assert not found.fallback
    assert_allclose(without.combined.estimate, theirs["estimate"])
    assert_allclose(found.combined.estimate, theirs["estimate"])
    assert without.combined.detail["se"] > 1.08 * theirs["se"]
    # Ours also counts that the shares of the strata among all prompts are those of a sample.
    assert_allclose(found.combined.detail["se"], theirs["se"], rtol=0.05)


def test_with_strata_estimated_weights_give_nearly_the_same():
    found, theirs = case("stratified", strata=DATA["strata"]), GLIDE["stratified_tuned"]
    assert abs(found.combined.estimate - theirs["estimate"]) < 0.5 * theirs["se"]
    assert_allclose(found.combined.detail["se"], theirs["se"], rtol=0.08)
    assert case("stratified").combined.detail["se"] > 1.2 * theirs["se"]


@pytest.mark.parametrize(
    ("name", "data", "judges"),
    [("ppi_tuned", "ppi", ONE), ("multi_tuned", "ppi", BOTH), ("clustered_tuned", "clustered", ONE)],
)
def test_estimated_weights_give_nearly_the_same(name, data, judges):
    options = {} if data == "clustered" else {"judges": judges}
    found, theirs = case(data, **options), GLIDE[name]
    assert (found.fallback, found.weights) == ("", "least squares")
    # Theirs is the covariance of the labelled items over the variance of all items, ours the slope among other prompts.
    assert abs(found.combined.estimate - theirs["estimate"]) < 0.5 * theirs["se"]
    assert_allclose(found.combined.detail["se"], theirs["se"], rtol=0.035)
