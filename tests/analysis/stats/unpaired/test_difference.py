"""A difference that is not side by side is clustered by annotators and prompts."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import unpaired
from tests.analysis.stats.draws import rng as generator


def sparse(rng, n_annotators, n_prompts, each, *, is_nested, taste=0.0, effect=0.0):
    """Single ratings on a line: people .3 apart, prompts .6, noise 1. ``is_nested``: an annotator rates one system alone.

    Gives (ratings, whether of x, annotator, prompt), a row a rating; nobody rates both systems for one prompt.
    """
    who = np.repeat(np.arange(n_annotators), each)
    prompt = np.concatenate([rng.choice(n_prompts, each, replace=False) for _ in range(n_annotators)])
    is_x = who % 2 == 0 if is_nested else rng.random(len(who)) < 0.5
    severity, merit = rng.normal(0, 0.3, n_annotators), rng.normal(0, 0.6, n_prompts)
    liking = rng.normal(0, taste, (n_annotators, 2)) if taste else np.zeros((n_annotators, 2))
    noise = rng.normal(0, 1, len(who))
    return severity[who] + merit[prompt] + liking[who, is_x.astype(int)] + effect * is_x + noise, is_x, who, prompt


def two_samples(values, is_x, who, prompt):
    return {
        "x": values[is_x],
        "y": values[~is_x],
        "x_annotators": who[is_x],
        "y_annotators": who[~is_x],
        "x_prompts": prompt[is_x],
        "y_prompts": prompt[~is_x],
    }


def apart(rows, **more):
    return unpaired.mean_difference(**two_samples(*rows), **more)


@pytest.mark.parametrize("is_nested", [True, False])
def test_a_difference_that_is_not_side_by_side_agrees_with_statsmodels(is_nested):
    """The oracle: least squares with statsmodels' own two-way clustered covariance, which is CR1; ours is the jackknife."""
    import statsmodels.api as sm

    rows = values, is_x, who, prompt = sparse(generator(5), 60, 40, 8, is_nested=is_nested, effect=0.5)
    found = apart(rows)
    fitted = sm.OLS(values, sm.add_constant(is_x.astype(float))).fit(
        cov_type="cluster", cov_kwds={"groups": np.column_stack([who, prompt])}, use_t=True
    )
    assert_allclose(found.estimate, fitted.params[1], atol=1e-12)
    assert_allclose(found.detail["variance_two_way"], fitted.cov_params()[1, 1], rtol=0.12)
    assert_allclose(np.log(found.pvalue), np.log(fitted.pvalues[1]), atol=1.2)
    both = found.detail["n_annotators_both"]
    assert found.detail["n_prompts"] == 40 and (both == 0 if is_nested else both > 50)


@pytest.mark.parametrize("is_nested", [True, False])
def test_the_two_way_variance_is_that_of_leaving_one_out(is_nested):
    rows = values, is_x, who, prompt = sparse(generator(6), 14, 9, 4, is_nested=is_nested)
    pair = who * 100 + prompt

    def jackknife(labels):
        whole = values[is_x].mean() - values[~is_x].mean()
        names = np.unique(labels)
        left = [values[is_x & (labels != one)].mean() - values[~is_x & (labels != one)].mean() for one in names]
        return (len(names) - 1) / len(names) * np.sum((np.array(left) - whole) ** 2)

    found = apart(rows).detail
    assert_allclose(found["variance_annotators"], jackknife(who), rtol=1e-9)
    assert_allclose(found["variance_items"], jackknife(prompt), rtol=1e-9)
    assert_allclose(found["variance_two_way"], jackknife(who) + jackknife(prompt) - jackknife(pair), rtol=1e-9)
    assert_allclose(found["se"] ** 2, max(found[f"variance_{one}"] for one in ("annotators", "items", "two_way")))


def test_degrees_of_freedom_are_those_of_the_matrix_and_of_two_samples():
    counts = generator(7).integers(0, 6, (11, 2)).astype(float)
    sizes = counts.sum(axis=0)
    shares = counts / sizes
    matrix = np.diag((shares / sizes).sum(axis=1)) - sum(
        np.outer(share, share) / size for share, size in zip(shares.T, sizes, strict=True)
    )
    wanted = np.trace(matrix) ** 2 / np.trace(matrix @ matrix)
    assert_allclose(unpaired._bell_mccaffrey(counts), wanted, rtol=1e-9)
    # Five annotators of x and fifty of y: hardly more than x alone has, as Welch's test has it.
    few = np.array([[3.0, 0.0]] * 5 + [[0.0, 3.0]] * 50)
    assert 4 < unpaired._bell_mccaffrey(few) < 5.1


def test_a_prompt_that_carries_both_systems_pairs_them():
    """What a prompt adds to both systems cancels from the standard error; on prompts of their own it does not."""
    rng = generator(8)
    who = np.repeat(np.arange(40), 15)
    is_x, prompt = who % 2 == 0, np.tile(np.arange(15), 40)
    noise, hard = rng.normal(0, 1, len(who)), rng.normal(0, 4, 30)
    shared = apart((noise + hard[prompt], is_x, who, prompt))
    own = apart((noise + hard[prompt + 15 * is_x], is_x, who, prompt + 15 * is_x))
    assert shared.detail["variance_items"] < 0.05 * own.detail["variance_items"]
    assert (shared.detail["n_prompts_both"], own.detail["n_prompts_both"]) == (15, 0)


def test_systems_change_places_and_scales_move_nothing():
    rows = values, is_x, who, prompt = sparse(generator(9), 20, 15, 6, is_nested=False, effect=0.4)
    for test, turned in ((unpaired.mean_difference, 0.0), (unpaired.probability_of_superiority, 1.0)):
        found = test(**two_samples(*rows))
        other = test(**two_samples(values, ~is_x, who, prompt))
        assert_allclose([other.estimate, other.pvalue], [turned - found.estimate, found.pvalue], atol=1e-12)
        moved = test(**two_samples(5 * values + 3, is_x, who, prompt))
        assert_allclose([moved.pvalue, moved.detail["df"]], [found.pvalue, found.detail["df"]], rtol=1e-9)
        named = test(**two_samples(values, is_x, np.array([f"a{n}" for n in who]), np.array([f"p{n}" for n in prompt])))
        assert_allclose([named.pvalue, named.interval.low], [found.pvalue, found.interval.low], rtol=1e-12)


@pytest.mark.parametrize("test", [unpaired.mean_difference, unpaired.probability_of_superiority])
def test_two_samples_at_their_edges_are_a_status_with_a_reason_and_json(test):
    def of(x, y, *labels):
        names = ("x_annotators", "y_annotators", "x_prompts", "y_prompts")
        return test(x, y, systems=("alpha", "beta"), **dict(zip(names, labels, strict=True)))

    nothing = of([], [1, 2], [], ["a", "b"], [], [1, 2])
    assert (nothing.status, nothing.reason, nothing.estimate) == ("no_data", "alpha has no rating", None)
    assert of([], [], [], [], [], []).reason == "neither alpha nor beta has a rating"
    one = of([3, 4], [2, 4], ["a", "a"], ["b", "c"], [1, 2], [1, 2])
    assert one.status == "n_lt_2" and one.reason.startswith("all ratings of alpha are by one annotator")
    assert one.estimate is not None and one.interval is None and one.test is None
    assert of([3, 4], [2, 4], ["a", "b"], ["c", "d"], [1, 1], [2, 3]).reason.startswith(
        "all ratings of alpha are of one prompt"
    )
    few = of([3, 4, 2], [2, 1, 4], [1, 2, 3], [4, 5, 6], [1, 2, 3], [1, 2, 3])
    assert few.status == "ok" and few.interval is not None and few.test is None
    assert {(w.detail["cluster"], w.severity) for w in few.warnings if w.code == "few_clusters"} == {
        ("annotator", "block"),
        ("prompt", "block"),
    }
    equal = of([3, 3], [3, 3], [1, 2], [3, 4], [1, 2], [1, 2])
    assert equal.status == "zero_variance" and equal.test is None
    missing = of([3, np.nan, 5], [2, 1, 4], [1, 2, 3], [4, 5, 6], [1, 2, 3], [1, 2, 3])
    assert (missing.n, missing.detail["n_missing"], missing.detail["n_x"]) == (5, 1, 2)
    for found in (nothing, one, few, equal, missing):
        json.dumps(found.as_dict(), allow_nan=False)
        assert found.has_warning("not_side_by_side") and found.settings["comparison"] == "not side by side"
    with pytest.raises(ValueError, match="x_prompts"):
        of([1, 2], [1, 2], [1, 2], [1, 2], [1], [1, 2])


def test_all_of_one_system_above_the_other_has_an_interval_and_no_test():
    names = {"x_annotators": range(8), "y_annotators": range(8, 16), "x_prompts": range(8), "y_prompts": range(8)}
    found = unpaired.probability_of_superiority(
        [5] * 7 + [4], [1] * 7 + [2], **{name: list(one) for name, one in names.items()}
    )
    assert (found.status, found.estimate, found.interval.high) == ("separation", 1.0, 1.0) and found.interval.low > 0.5


SPARSE = [
    (is_nested, *sizes, taste)
    for is_nested in (True, False)
    for sizes in ((20, 30, 10), (40, 100, 5), (200, 50, 1))
    for taste in (0.0, 0.3)
]


def false_claims(runs, is_nested, n_annotators, n_prompts, each, taste, seed=3):
    rng, hits = generator(seed), {"mean_difference": 0, "probability_of_superiority": 0}
    for _ in range(runs):
        samples = two_samples(*sparse(rng, n_annotators, n_prompts, each, is_nested=is_nested, taste=taste))
        for name in hits:
            pvalue = getattr(unpaired, name)(**samples).pvalue
            hits[name] += pvalue is not None and pvalue < 0.05
    return {name: n / runs for name, n in hits.items()}


@pytest.mark.parametrize("cell", SPARSE[::4])
def test_false_claims_of_sparse_designs_are_few(cell):
    """The quick look of the proof below: 150 worlds without a difference; .05 plus four Monte-Carlo errors is .12."""
    assert max(false_claims(150, *cell).values()) < 0.12


@pytest.mark.slow
@pytest.mark.parametrize("cell", SPARSE)
def test_false_claims_of_sparse_designs_are_as_many_as_stated(cell):
    """2,000 worlds without a difference: the Monte-Carlo error of .05 is .005. One system per arm, and one output per prompt."""
    rates = false_claims(2000, *cell)
    assert all(0.02 <= rate <= 0.065 for rate in rates.values()), rates


def test_a_difference_is_found_in_sparse_designs():
    for is_nested in (True, False):
        rows = sparse(generator(4), 60, 60, 8, is_nested=is_nested, effect=0.8)
        found = apart(rows)
        assert found.pvalue < 0.001 and found.interval.low < 0.8 < found.interval.high
        above = unpaired.probability_of_superiority(**two_samples(*rows))
        assert above.pvalue < 0.001 and above.estimate > 0.6 and above.interval.low > 0.5
