"""Simulated answers of whole studies, and what the report would say of them."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import special

from analysis.stats import betting, cluster_variances, clusters, confidence, margins
from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray, IntArray, label_codes, validate_level
from analysis.stats.planning.closed_forms import MARK_POINTS, ORDER_SD, scale_cuts, shift_of
from analysis.stats.planning.inputs import EQUIVALENCE, StudySize, Target, Variation
from analysis.stats.results import Estimate, Record

# The input and output of a planner.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Options of a test with an exact power.

    `significance` of the test is divided by `tests` (the first step of a Holm family). `wanted` is the power.
    """

    significance: float = 0.05
    tests: int = 1
    wanted: float = 0.8

    def __post_init__(self) -> None:
        validate_level(self.significance)
        validate_level(self.wanted)
        if self.tests < 1:
            raise ValueError(f"tests: {self.tests} is less than 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Record):
    """The result of a design under its assumptions.

    `power` of finding `effect` at `significance` / `tests`. `n` counts units (`unit`), `labels` the expected number of
    answers.
    """

    protocol: str
    estimand: str
    method: str
    unit: str
    n: int
    effect: float
    power: float
    significance: float
    tests: int
    wanted: float
    labels: float
    detail: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


# Simulated answers of a whole study, by the model of `quick_power`.


def assign_prompts(size: StudySize, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the annotator and the prompt of each answer as codes, shape (answers,), as the site draws batches.

    All prompts are shuffled; each annotator takes the next ones, passing over those that they have already. Then the
    prompts are shuffled again. So prompts are shown equally often, up to one. Of several conditions only the two that
    are compared have annotators here, first all of x; each shows the prompts equally often.

    >>> size = StudySize(protocol="rating", people=6, prompts=9, prompts_each=3)
    >>> people, prompts = assign_prompts(size, np.random.default_rng(0))
    >>> np.bincount(prompts).tolist(), sorted(prompts[:3].tolist()) == sorted(set(prompts[:3].tolist()))
    ([2, 2, 2, 2, 2, 2, 2, 2, 2], True)
    """
    given = []
    for _ in range(min(2, size.conditions)):
        waiting: list[int] = []
        for _ in range(size.people_each):
            own: list[int] = []
            passed_over: list[int] = []
            while len(own) < size.prompts_each:
                if not waiting:
                    waiting = rng.permutation(size.prompts).tolist()
                prompt = waiting.pop()
                (passed_over if prompt in own else own).append(prompt)
            waiting += passed_over[::-1]
            given.append(own)
    return np.repeat(np.arange(len(given)), size.prompts_each), np.array(given, dtype=np.int64).ravel()


def simulate_answers(
    size: StudySize,
    target: Target,
    variation: Variation,
    people: IntArray,
    prompts: IntArray,
    *,
    runs: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Simulate the answers of `runs` studies, on the scale of the headline.

    `people` and `prompts`, shape (answers,), say who answers about what, from `assign_prompts`. The difference of
    `target` is the true one. The result has the shape (runs, answers), or (runs, people) in SPA. If the claim is about
    exactly these prompts, their effects have the mean 0, so that the difference is true of them.

    >>> size = StudySize(protocol="two_choice", people=20, prompts=30, prompts_each=15)
    >>> who, what = assign_prompts(size, np.random.default_rng(0))
    >>> values = simulate_answers(size, Target(), Variation(), who, what, runs=200, rng=np.random.default_rng(1))
    >>> values.shape, bool(abs(values.mean() - 0.6) < 0.02)
    ((200, 300), True)
    """
    of_people = variation.sd_people * rng.standard_normal((runs, size.people))
    of_prompts = variation.sd_prompts * rng.standard_normal((runs, size.prompts))
    if not size.is_about_prompts(target.population) and size.prompts > 1:
        of_prompts -= of_prompts.mean(axis=1, keepdims=True)
    shift = shift_of(target.difference, variation)
    if size.kind == "chance":
        return stated_chances(size, shift, variation, of_people, of_prompts, prompts, rng)
    d = rng.standard_normal((runs, len(people)))
    d += shift
    if size.is_between_conditions:
        d[:, people >= size.people_each] += shift_of(target.baseline, variation) - shift
    d += of_people[:, people]
    d += of_prompts[:, prompts]
    return answers_of_differences(d, size, variation, people, prompts, rng)


def answers_of_differences(
    d: FloatArray, size: StudySize, variation: Variation, people: IntArray, prompts: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Return the answers to perceived differences of shape (runs, answers), as the protocol asks for them. Not for SPA."""
    runs = len(d)
    if size.kind == "preference" or size.is_between_conditions:
        return np.asarray(d > 0, dtype=np.float64)
    if size.kind == "score":
        return np.asarray(np.clip(5 * np.rint(MARK_POINTS * d / 5), -100.0, 100.0), dtype=np.float64)
    cuts = np.array(scale_cuts(size.points))
    if size.kind == "point":
        return np.asarray(np.searchsorted(cuts, d) - (size.points - 1) / 2, dtype=np.float64)
    quality = variation.sd_quality * rng.standard_normal(d.shape)
    quality += (variation.sd_quality_people * rng.standard_normal((runs, size.people)))[:, people]
    quality += (variation.sd_quality_prompts * rng.standard_normal((runs, size.prompts)))[:, prompts]
    above = np.sign(np.searchsorted(cuts, quality + d / 2) - np.searchsorted(cuts, quality - d / 2))
    return np.asarray((above + 1) / 2, dtype=np.float64)


def stated_chances(
    size: StudySize,
    shift: float,
    variation: Variation,
    of_people: FloatArray,
    of_prompts: FloatArray,
    prompts: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return what each person states, both orders combined: the share of prompts like those read for which x is better."""
    runs, m = len(of_people), size.prompts_each
    read = of_prompts[:, prompts].reshape(runs, size.people, m).mean(axis=2)
    opinion = shift + of_people + read + rng.standard_normal((runs, size.people)) / math.sqrt(m)
    share = special.ndtr(opinion / math.hypot(1.0, variation.sd_prompts))
    both = []
    for stated in (share, 1 - share):
        noisy = stated + ORDER_SD * rng.standard_normal(share.shape)
        both.append(np.clip(5 * np.rint(20 * noisy), 0.0, 100.0))
    return np.asarray((both[0] + 100 - both[1]) / 200)


# The headline of many simulated studies at once, with the numbers of `clusters.annotator_prompt_clustered_mean`.


@dataclass(frozen=True, slots=True)
class Headlines(Record):
    """What the report of each run says: arrays of shape (runs,).

    `low` and `high` are NaN without an interval. `is_difference`: the report claims a difference, `is_reached`: it claims
    the goal of the plan. `by_bets`: bets replace the t test. `pvalue`: that of the test which decides the goal, 1 without
    a test. `larger`: with a margin of equivalence, the larger of the p-values of difference and of equivalence.
    """

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    is_difference: BoolArray
    is_reached: BoolArray
    by_bets: BoolArray
    pvalue: FloatArray
    larger: FloatArray


def headlines(
    values: FloatArray, people: IntArray, prompts: IntArray | None, size: StudySize, target: Target
) -> Headlines:
    """Analyse many runs as the report analyses one.

    `values`, shape (runs, n_rows), has no missing value; `people` and `prompts`, shape (n_rows,), are the same in every
    run. Without prompts, people are the only clusters. `size` gives the scale of the headline, and `target` the goal of
    the plan. The method is the score curve with the jackknife variances of `cluster_variances.two_way_jackknife`,
    computed for all runs at once. Runs with hardly any spread, or with more skewed answers than the ends of the scale
    explain, are analysed one by one by `clusters.annotator_prompt_clustered_mean`, which then bets.

    >>> from analysis.stats.planning.simulated_studies import assign_prompts, simulate_answers
    >>> from analysis.stats.planning.inputs import Variation
    >>> size, target, rng = StudySize(protocol="two_choice", people=20, prompts=30, prompts_each=15), Target(), np.random.default_rng(0)
    >>> who, what = assign_prompts(size, rng)
    >>> values = simulate_answers(size, target, Variation(), who, what, runs=50, rng=rng)
    >>> ours = headlines(values, who, what, size, target)
    >>> one = clusters.annotator_prompt_clustered_mean(values[7], who, what, null=0.5, bounds=(0, 1), analysis="demo")
    >>> bool(abs(ours.low[7] - one.interval.low) < 1e-12), bool(ours.is_difference[7]) == (one.pvalue < 0.05)
    (True, True)
    """
    person_codes, n_people = label_codes(people, "people", len(people))
    is_two_way = False
    if prompts is not None:
        prompt_codes, n_prompts = label_codes(prompts, "prompts", len(prompts))
        is_two_way = target.population == "people_and_prompts" and n_prompts >= cluster_variances.TOO_FEW_ITEMS
    mean = values.mean(axis=1)
    if n_people < 2:
        nothing = np.full(len(values), np.nan)
        no = np.zeros(len(values), dtype=np.bool_)
        ones = np.ones(len(values))
        return Headlines(mean, nothing, nothing, no, no, no, ones, ones)
    residuals = values - mean[:, None]
    is_bounded = size.bounds is not None
    variance, df, moments = _jackknife(residuals, person_codes, n_people, is_bounded)
    none = (np.zeros(len(values)), np.zeros(len(values)))
    skewness = cluster_variances.combined_skewness(moments, none, none)
    least = np.zeros(len(values))
    if is_two_way:
        by_prompt, df_prompts, of_prompts = _jackknife(residuals, prompt_codes, n_prompts, is_bounded)
        pairs, n_pairs = label_codes(person_codes * n_prompts + prompt_codes, "pairs", len(people))
        sums = sums_of_groups(residuals, pairs, n_pairs)
        of_pairs = ((sums**2).sum(axis=1), (sums**3).sum(axis=1))
        by_pair = n_pairs / (n_pairs - 1) * of_pairs[0] / values.shape[1] ** 2
        combined, largest = variance + by_prompt - by_pair, np.maximum(variance, by_prompt)
        with np.errstate(invalid="ignore", divide="ignore"):
            satterthwaite = combined**2 / (variance**2 / df + by_prompt**2 / df_prompts)
        is_combined = combined > largest * (1 + 1e-9)
        df = np.where(is_combined, satterthwaite, np.where(variance >= by_prompt, df, df_prompts))
        variance = np.maximum(combined, largest)
        skewness = cluster_variances.combined_skewness(moments, of_prompts, of_pairs)
        least = (residuals**2).sum(axis=1) / values.shape[1] ** 2
    se = np.sqrt(variance)
    is_plain = se >= MIN_SPREAD
    if size.bounds is not None:
        is_plain &= (
            cluster_variances.unexplained_skewness(skewness, se, mean, size.bounds) <= cluster_variances.MAX_SKEWNESS
        )
    has_test = n_people >= cluster_variances.TOO_FEW_CLUSTERS
    if is_two_way and not has_test:
        is_plain[:] = False
    se = np.where(is_plain, se, 1.0)
    # A run that is not plain is replaced below; the middle of the scale keeps its numbers finite.
    centre = mean if size.bounds is None else np.where(is_plain, mean, np.mean(size.bounds))
    found = headlines_by_t(
        centre, se, np.maximum(1.0, np.where(is_plain, df, 1.0)), size, target, np.maximum(se, np.sqrt(least))
    )
    found.estimate[:] = mean
    if not has_test:
        claim_nothing(found)
    for row in np.flatnonzero(~is_plain):
        _put_report_of_one_run(found, int(row), values[row], people, prompts if is_two_way else None, size, target)
    return found


def claim_nothing(found: Headlines, runs: BoolArray | slice = slice(None)) -> None:
    """Let these runs have no test."""
    found.is_difference[runs] = found.is_reached[runs] = False
    found.pvalue[runs] = found.larger[runs] = 1.0


def headlines_by_t(
    mean: FloatArray,
    se: FloatArray,
    df: FloatArray,
    size: StudySize,
    target: Target,
    scaled_se: FloatArray | None = None,
) -> Headlines:
    """Return what `confidence.ScoreCurve` says in each run, or without `scaled_se` `confidence.TCurve`; only plain runs are of use."""
    bounds = None if scaled_se is None else size.bounds

    def statistic(value: float) -> FloatArray:
        at_value = se if scaled_se is None else confidence.score_se(value, mean, se, scaled_se, df, bounds)
        return np.asarray((mean - value) / at_value)

    def two_sided(value: float) -> FloatArray:
        return np.asarray(np.minimum(1.0, 2 * special.stdtr(df, -np.abs(statistic(value)))))

    quantile = special.stdtrit(df, 1 - target.level / 2)
    low, high = mean - quantile * se, mean + quantile * se
    if scaled_se is not None and bounds is not None:
        limits = confidence.score_limits_of_runs(mean, quantile * scaled_se, df, bounds)
        low, high = np.minimum(low, limits[0]), np.maximum(high, limits[1])
    is_difference = (low > size.null) | (high < size.null)
    margin = target.margin or 0.0
    pvalue = larger = two_sided(size.null)
    if target.margin is not None and target.goal in ("difference", EQUIVALENCE):
        ends = (statistic(size.null - margin), -statistic(size.null + margin))
        equivalent = np.maximum(*(special.stdtr(df, -distance) for distance in ends))
        pvalue, larger = (equivalent if target.goal == EQUIVALENCE else pvalue), np.maximum(pvalue, equivalent)
    if target.goal == "difference":
        is_reached = is_difference.copy()
    elif target.goal == EQUIVALENCE:
        is_reached = equivalent < target.level
    else:
        limit = target.limit(size.null)
        is_reached = low > limit
        pvalue = np.where(mean > limit, two_sided(limit), 1.0)
        if size.bounds is not None and not size.bounds[0] < limit < size.bounds[1]:
            is_reached[:] = False
            pvalue[:] = 1.0
        larger = pvalue
    no = np.zeros(len(mean), dtype=np.bool_)
    if size.bounds is not None:
        low, high = np.maximum(low, size.bounds[0]), np.minimum(high, size.bounds[1])
    return Headlines(mean, low, high, is_difference, is_reached, no, pvalue.copy(), larger.copy())


def _put_report_of_one_run(
    found: Headlines,
    row: int,
    values: FloatArray,
    people: IntArray,
    prompts: IntArray | None,
    size: StudySize,
    target: Target,
) -> None:
    """Put what the report says of one run in its place."""
    options: dict[str, Any] = {"null": size.null, "level": 1 - target.level, "bounds": size.bounds, "analysis": "plan"}
    if prompts is None:
        one = clusters.clustered_mean(values, people, **options)
    else:
        one = clusters.annotator_prompt_clustered_mean(values, people, prompts, **options)
    found.by_bets[row] = one.settings.get("method") == "betting"
    ends = (np.nan, np.nan) if one.interval is None else (one.interval.low, one.interval.high)
    found.low[row], found.high[row] = ends
    found.is_difference[row] = one.pvalue is not None and one.pvalue < target.level
    found.is_reached[row] = found.is_difference[row]
    found.pvalue[row] = found.larger[row] = _pvalue(one)
    margin = target.margin or 0.0
    if target.margin is not None and target.goal in ("difference", EQUIVALENCE):
        tost = margins.equivalence_test_of_estimate(one, null=size.null, margin=margin, significance=target.level)
        found.larger[row] = max(_pvalue(one), _pvalue(tost))
        if target.goal == EQUIVALENCE:
            found.pvalue[row] = _pvalue(tost)
            found.is_reached[row] = tost is not None and bool(tost.detail.get("is_equivalent"))
    elif target.goal != "difference":
        claim = margins.MarginHypothesis(target.goal, null=size.null, margin=margin)
        tested = margins.margin_test(replace(one, sensitivity=()), claim, significance=target.level)
        found.is_reached[row] = tested.pvalue is not None and tested.pvalue < target.level
        found.pvalue[row] = found.larger[row] = _pvalue(tested)


def _pvalue(estimate: Estimate | None) -> float:
    return 1.0 if estimate is None or estimate.pvalue is None else estimate.pvalue


def sums_of_groups(residuals: FloatArray, codes: IntArray, count: int) -> FloatArray:
    """Return the sum of each group in each run, shape (runs, count)."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(count))
    return np.asarray(np.add.reduceat(residuals[:, order], starts, axis=1))


def _jackknife(
    residuals: FloatArray, codes: IntArray, count: int, is_bounded: bool
) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Return `cluster_variances.cv3_variance`, its degrees of freedom, and the squares and cubes of the clusters' sums in each run."""
    sums, sizes = sums_of_groups(residuals, codes, count), np.bincount(codes, minlength=count).astype(np.float64)
    variance = (count - 1) / count * ((sums / (residuals.shape[1] - sizes)) ** 2).sum(axis=1)
    # Sums of 0 leave the degrees of freedom of the sizes.
    df = cluster_variances.degrees_of_freedom(sums if is_bounded else 0 * sums, sizes)
    return variance, df, ((sums**2).sum(axis=1), (sums**3).sum(axis=1))


# What the anytime-valid stopping rule of two choices says of many simulated studies at once.


# Runs of a block of which the interval is computed, and halvings of its search.
WITH_INTERVAL, HALVINGS = 20, 12


def means_of_people(values: FloatArray, people: IntArray, size: StudySize) -> FloatArray:
    """Return each person's mean on the scale from 0 to 1, shape (runs, people).

    >>> size = StudySize(protocol="two_choice", people=2, prompts=2, prompts_each=2)
    >>> means_of_people(np.array([[1.0, 1.0, 0.0, 1.0]]), np.array([0, 0, 1, 1]), size).tolist()
    [[1.0, 0.5]]
    """
    low, high = size.scale_ends
    means = values if size.kind == "chance" else sums_of_groups(values, people, size.people) / size.prompts_each
    return np.asarray(np.clip((means - low) / (high - low), 0.0, 1.0))


def evidence_after_each_person(means: FloatArray, null: float | FloatArray, level: float) -> FloatArray:
    """Return the largest log wealth so far of bets against the null, shape (runs, people).

    >>> evidence_after_each_person(np.array([[1.0, 1.0, 0.0]]), 0.5, 0.05).shape
    (1, 3)
    """
    return np.asarray(np.maximum.accumulate(betting.log_wealth_of_studies(means, null, level=1 - level), axis=1))


def anytime_headlines(values: FloatArray, people: IntArray, size: StudySize, target: Target) -> Headlines:
    """Stop each run as `sequential.sequential_test` stops a study, and return what the report says of it.

    `values`, of shape (runs, n_rows), are choices from 0 to 1, and `people` is the annotator of each row. The estimates
    and claims are those when the rule stops, or after all people. Only some runs have an interval, which is NaN in the
    others.

    >>> size, target = StudySize(protocol="two_choice", people=20, prompts=30, prompts_each=15), Target(stopping="anytime", population="people")
    >>> who, rng = np.repeat(np.arange(20), 15), np.random.default_rng(0)
    >>> found = anytime_headlines((rng.random((50, 300)) < 0.8).astype(float), who, size, target)
    >>> bool(found.is_reached.mean() > 0.9), bool(found.low[0] > 0.5)
    (True, True)
    """
    means = means_of_people(values, people, size)
    runs, n = means.shape
    threshold = math.log(1 / target.level)
    evidence = evidence_after_each_person(means, size.null, target.level)
    is_excluded = evidence >= threshold
    is_small = np.zeros_like(is_excluded)
    if target.margin is not None:
        is_small = np.logical_and.reduce(
            [
                evidence_after_each_person(means, size.null + sign * target.margin, target.level) >= threshold
                for sign in (-1, 1)
            ]
        )
    decides = is_excluded | is_small
    stops = np.where(decides.any(axis=1), decides.argmax(axis=1), n - 1)
    rows = np.arange(runs)
    is_difference = is_excluded[rows, stops]
    is_reached = is_small[rows, stops] & ~is_difference if target.goal == EQUIVALENCE else is_difference
    estimate = np.cumsum(means, axis=1)[rows, stops] / (stops + 1)
    pvalue = np.exp(-np.maximum(0.0, evidence[rows, stops]))
    low, high = (np.full(runs, np.nan) for _ in range(2))
    some = slice(min(runs, WITH_INTERVAL))
    low[some] = estimate[some] - _reach(means[some], stops[some], estimate[some], target.level)
    high[some] = estimate[some] + _reach(1 - means[some], stops[some], 1 - estimate[some], target.level)
    if target.goal == EQUIVALENCE:
        # The rule decides by its interval, without a p-value.
        pvalue = np.where(is_reached, target.level, 1.0)
    no = np.zeros(runs, dtype=np.bool_)
    return Headlines(estimate, low, high, is_difference, is_reached, no, pvalue, pvalue.copy())


def _reach(means: FloatArray, stops: IntArray, estimate: FloatArray, level: float) -> FloatArray:
    """Return how far the confidence sequence reaches below the estimate when each run stops."""
    near, far = np.zeros(len(means)), estimate.copy()
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        wealth = evidence_after_each_person(means, estimate - middle, level)[np.arange(len(means)), stops]
        is_refuted = wealth >= math.log(1 / level)
        near, far = np.where(is_refuted, near, middle), np.where(is_refuted, middle, far)
    return far


# What the report says of many simulated studies, whichever comparison it makes.


def judge_studies(
    values: FloatArray, people: IntArray, prompts: IntArray, size: StudySize, target: Target
) -> Headlines:
    """Analyse many runs as the report analyses one, by the comparison of the protocol.

    `values` are the answers from `simulate_answers`, shape (runs, answers), or (runs, people) in SPA. `people` and
    `prompts`, shape (answers,), say who answers about what, from `assign_prompts`. `target` has the goal of the plan.

    >>> from analysis.stats.planning.simulated_studies import assign_prompts, simulate_answers
    >>> from analysis.stats.planning.inputs import Variation
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
    """Compare two conditions in many runs, as `cell_contrasts.cell_contrast` does in one.

    `correct`, of shape (runs, answers), is 1 for a right answer and 0 for a wrong one; `people` and `prompts` are the
    annotator and the text of each answer, the same in every run, and the first `people_each` people are in condition x.
    The result has the differences x - y, their intervals and claims. The spread is the jackknife (CV3) over annotators
    and, with five texts or more, over texts: `cluster_models.ModelSpread` for the means of the cells, computed for all runs
    at once.

    >>> from analysis.stats import cell_contrasts
    >>> from analysis.stats.planning.simulated_studies import assign_prompts, simulate_answers
    >>> from analysis.stats.planning.inputs import Variation
    >>> size = StudySize(protocol="accuracy_between_conditions", people=40, prompts=12, prompts_each=5, conditions=2)
    >>> rng = np.random.default_rng(0)
    >>> who, what = assign_prompts(size, rng)
    >>> correct = simulate_answers(size, Target(), Variation(), who, what, runs=3, rng=rng)
    >>> ours = headlines_between_conditions(correct, who, what, size, Target())
    >>> arms = np.where(who < 20, "x", "y")
    >>> one = cell_contrasts.cell_contrast(correct[2], arms, {"x": 1, "y": -1}, who, what, bounds=(0, 1))
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
    variance, df, n_people = _jackknife_of_cells(residuals, weights, cells, counts, people)
    has_test = n_people >= cluster_variances.TOO_FEW_CLUSTERS
    if len(np.unique(prompts)) >= cluster_variances.TOO_FEW_ITEMS:
        by_prompt, df_prompts, _ = _jackknife_of_cells(residuals, weights, cells, counts, prompts)
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


def _jackknife_of_cells(
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
