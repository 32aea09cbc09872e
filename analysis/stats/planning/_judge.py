"""What the report says of many simulated studies, whichever comparison it makes."""

import math

import numpy as np
from scipy import special

from analysis.stats import clusters
from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray, IntArray, label_codes
from analysis.stats.plan_inputs import StudySize, Target
from analysis.stats.planning._anytime import anytime_headlines
from analysis.stats.planning._headline import Headlines, claim_nothing, headlines, headlines_by_t, sums_of_groups


def judge_studies(
    values: FloatArray, people: IntArray, prompts: IntArray, size: StudySize, target: Target
) -> Headlines:
    """Analyse many runs as the report analyses one, by the comparison of the protocol.

    Parameters
    ----------
    values : ndarray of float, shape (runs, answers), or (runs, people) in SPA
        The answers, from `simulate_answers`.
    people, prompts : ndarray of int, shape (answers,)
        Who answers about what, from `assign_prompts`.
    size, target : StudySize, Target
        The design, and the goal of the plan.

    Returns
    -------
    Headlines
        The estimates, intervals and claims.

    Examples
    --------
    >>> from analysis.stats.planning import assign_prompts, simulate_answers
    >>> from analysis.stats.plan_inputs import Variation
    >>> size, rng = StudySize(protocol="spa", people=90, prompts=90, prompts_each=4), np.random.default_rng(0)
    >>> who, what = assign_prompts(size, rng)
    >>> values = simulate_answers(size, Target(), Variation(), who, what, runs=50, rng=rng)
    >>> judge_studies(values, who, what, size, Target()).is_reached.shape
    (50,)
    """
    if size.kind == "chance":
        return headlines(values, np.arange(size.people), None, size, target)
    if target.is_sequential:
        return anytime_headlines(values, people, size, target)
    if size.is_between_conditions:
        return headlines_between_conditions(values, people, prompts, size, target)
    return headlines(values, people, prompts, size, target)


def cells_of_conditions(size: StudySize, people: IntArray, prompts: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the cell of each answer, and the factor of each cell in the difference of the two conditions.

    For d\' the cells are condition and truth: every second text is by a machine.
    """
    is_y = np.asarray(people >= size.people_each, dtype=np.int64)
    if size.kind == "accuracy":
        return is_y, np.array([1.0, -1.0])
    return 2 * is_y + is_of_machine(prompts), np.array([-1.0, 1.0, 1.0, -1.0])


def is_of_machine(prompts: IntArray) -> BoolArray:
    """Return which texts are by a machine: every second one."""
    return np.asarray(prompts % 2 == 1)


def headlines_between_conditions(
    correct: FloatArray, people: IntArray, prompts: IntArray, size: StudySize, target: Target
) -> Headlines:
    """Compare two conditions in many runs, as `groups.cell_contrast` does in one.

    `correct`, of shape (runs, answers), is 1 for a right answer and 0 for a wrong one; `people` and `prompts` are the
    annotator and the text of each answer, the same in every run, and the first `people_each` people are in condition x.
    The result has the differences x - y, their intervals and claims. The spread is the jackknife (CV3) over annotators
    and, with five texts or more, over texts: `clusters.ModelSpread` for the means of the cells, computed for all runs
    at once.

    >>> from analysis.stats import groups
    >>> from analysis.stats.planning import assign_prompts, simulate_answers
    >>> from analysis.stats.plan_inputs import Variation
    >>> size = StudySize(protocol="accuracy_between_conditions", people=40, prompts=12, prompts_each=5, conditions=2)
    >>> rng = np.random.default_rng(0)
    >>> who, what = assign_prompts(size, rng)
    >>> correct = simulate_answers(size, Target(), Variation(), who, what, runs=3, rng=rng)
    >>> ours = headlines_between_conditions(correct, who, what, size, Target())
    >>> arms = np.where(who < 20, "x", "y")
    >>> one = groups.cell_contrast(correct[2], arms, {"x": 1, "y": -1}, who, what, bounds=(0, 1))
    >>> bool(abs(ours.pvalue[2] - one.pvalue) < 1e-12), bool(abs(ours.low[2] - one.interval.low) < 1e-12)
    (True, True)
    """
    cells, factors = cells_of_conditions(size, people, prompts)
    counts = np.bincount(cells, minlength=len(factors)).astype(np.float64)
    values = correct if size.kind == "accuracy" else np.where(is_of_machine(prompts), correct, 1 - correct)
    hits = np.stack([values[:, cells == cell].sum(axis=1) for cell in range(len(factors))], axis=1)
    means = hits / np.maximum(counts, 1.0)
    if size.kind == "accuracy":
        estimate, weights = means @ factors, np.broadcast_to(factors, means.shape)
        is_defined = np.full(len(values), bool(counts.all()))
    else:
        z = special.ndtri((hits + 0.5) / (counts + 1))
        estimate, weights = z @ factors, factors * math.sqrt(2 * math.pi) * np.exp(z**2 / 2)
        is_defined = np.all((means > 0) & (means < 1), axis=1) & bool(counts.all())
    residuals = (values - means[:, cells]) * weights[:, cells]
    variance, df, n_people = _jackknife(residuals, weights, cells, counts, people)
    has_test = n_people >= clusters.TOO_FEW_CLUSTERS
    if len(np.unique(prompts)) >= clusters.TOO_FEW_ITEMS:
        by_prompt, df_prompts, _ = _jackknife(residuals, weights, cells, counts, prompts)
        pairs, n_pairs = label_codes(people * (int(prompts.max()) + 1) + prompts, "pairs", len(people))
        by_pair = (sums_of_groups(residuals / counts[cells], pairs, n_pairs) ** 2).sum(axis=1)
        combined, largest = variance + by_prompt - by_pair, np.maximum(variance, by_prompt)
        with np.errstate(invalid="ignore", divide="ignore"):
            both = combined**2 / (variance**2 / df + by_prompt**2 / df_prompts)
        df = np.where(combined >= largest, both, np.where(variance >= by_prompt, df, df_prompts))
        variance = np.maximum(combined, largest)
    se = np.sqrt(variance)
    is_defined &= np.isfinite(se) & (se >= MIN_SPREAD)
    found = headlines_by_t(
        estimate, np.where(is_defined, se, 1.0), np.maximum(1.0, np.where(is_defined, df, 1.0)), size, target
    )
    claim_nothing(found, ~is_defined if has_test else slice(None))
    found.low[~is_defined] = found.high[~is_defined] = np.nan
    return found


def _jackknife(
    residuals: FloatArray, weights: FloatArray, cells: IntArray, counts: FloatArray, labels: IntArray
) -> tuple[FloatArray, FloatArray, int]:
    """Return the variance over clusters and its degrees of freedom in each run, and the number of clusters.

    The variance is infinite if one cluster alone gave all answers of a cell.
    """
    codes, n_clusters = label_codes(labels, "labels", len(labels))
    own = np.zeros((n_clusters, len(counts)))
    np.add.at(own, (codes, cells), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = sums_of_groups(residuals / (counts - own[codes])[np.arange(len(cells)), cells], codes, n_clusters)
    informed = (weights**2 / counts**2) @ own.T
    shares = informed / informed.sum(axis=1, keepdims=True)
    variance = (n_clusters - 1) / n_clusters * (moves**2).sum(axis=1)
    if np.any(own == counts):
        variance = np.full(len(residuals), np.inf)
    return variance, np.maximum(1.0, 1 / (shares**2).sum(axis=1) - 1), n_clusters
