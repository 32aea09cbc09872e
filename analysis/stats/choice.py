"""Pairwise choice: which of two outputs is better, with how many labels per item, and how far annotators agree.

A label is 1 if A was chosen and 0 if B was chosen. A request is one item shown to as many annotators as the
labelling strategy asks for. A and B are systems, whatever their side of the screen; the side is a separate
argument.

Reference: Thorleiksdottir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons, sections 3.1 and
5.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import agreement, basic, cluster_models, cluster_variances, clusters
from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    binary_vector,
    group_sizes,
    label_codes,
    label_codes_where,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.bootstrap import percentile_interval
from analysis.stats.results import Estimate, Record, ResultWarning
from analysis.stats.stopping_boundaries import Boundaries, find_boundary_crossings

# Labelling strategies: who labels an item, the decision from its labels, and the decision from other labels.


STRATEGIES = ("one", "fixed", "majority", "max_three")
# How the labels of an item of "max_three" are counted. The released analysis of human labels counts a third label
# unless the first two both chose the system that its file names first.
COUNTINGS = ("on_disagreement", "unless_both_a", "unless_both_b")


@dataclass(frozen=True, slots=True)
class Strategy(Record):
    """A labelling strategy: which annotators label an item, and how many.

    "one": one new annotator per item. "fixed": the same annotator for all items. "majority": `workers` annotators
    (odd). "max_three": two, and a third if they disagree. `counting` is one of COUNTINGS; only the first counts the
    labels correctly.
    """

    name: str
    workers: int = 1
    counting: str = "on_disagreement"

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise ValueError(f"name: {self.name!r} is not one of {', '.join(STRATEGIES)}")
        if self.counting not in COUNTINGS:
            raise ValueError(f"counting: {self.counting!r} is not one of {', '.join(COUNTINGS)}")
        if self.name == "majority" and (self.workers < 3 or self.workers % 2 == 0):
            raise ValueError(f"workers: {self.workers} is not an odd number of at least three")
        if self.name != "majority" and self.workers != 1:
            raise ValueError(f"workers: only a majority has several, not {self.name!r}")

    @property
    def max_labels_per_item(self) -> int:
        """Return the largest number of labels that an item can need."""
        return 3 if self.name == "max_three" else self.workers


@dataclass(frozen=True, slots=True)
class ItemDecisions(Record):
    """The decision for each item, items in ascending order.

    `decisions` (n_items,) is 1 for A, 0 for B, NaN if there are too few labels. `n_labels` (n_items,) counts the
    labels that the strategy paid for. `n_unused` counts the labels beyond those it asked for.
    """

    items: tuple[object, ...]
    decisions: FloatArray
    n_labels: IntArray
    n_unused: int


@dataclass(frozen=True, slots=True)
class RequestProbabilities(Record):
    """Probabilities of the outcomes of a strategy on each request; the arrays have one shape, (n,) or (runs, n).

    `a_at_once` is A without a third label. `a_by_third` and `b_by_third` are A and B after a third label. The rest is
    B without a third label. `labels` is the number of labels without a third.
    """

    a_at_once: FloatArray
    a_by_third: FloatArray
    b_by_third: FloatArray
    labels: int


def item_decisions(values: npt.ArrayLike, items: npt.ArrayLike, strategy: Strategy) -> ItemDecisions:
    """Combine collected labels into one decision per item.

    A label is 1 for A and 0 for B; NaN is left out. The labels of an item count in the order of their rows, up to the
    number that the strategy asks for, and a majority is decided as soon as more than half of `workers` agree. For
    the strategy "fixed" the rows are those of its annotator.

    >>> labels, items = [1, 0, 1, 0, 0, 1], ["p", "p", "p", "q", "q", "q"]
    >>> result = item_decisions(labels, items, Strategy("max_three"))
    >>> result.decisions.tolist(), result.n_labels.tolist(), result.n_unused
    ([1.0, 0.0], [3, 2], 1)
    """
    labels = binary_vector(values, "values")
    positions, n_items = label_codes(np.asarray(items), "items", len(labels))
    names = np.empty(n_items, dtype=object)
    names[positions] = np.asarray(items)
    is_used = ~np.isnan(labels)
    labels, positions = labels[is_used], positions[is_used]
    order = np.argsort(positions, kind="stable")
    sizes = np.bincount(positions, minlength=n_items)
    label_number = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table = np.full((n_items, max(strategy.max_labels_per_item, 1)), np.nan)
    used = label_number < strategy.max_labels_per_item
    table[positions[order][used], label_number[used]] = labels[order][used]

    votes, against = np.nansum(table, axis=1), np.nansum(1 - table, axis=1)
    n_used = np.sum(~np.isnan(table), axis=1)
    n_paid = n_used
    need = strategy.max_labels_per_item // 2 + 1
    if strategy.name == "max_three":
        # If the first two agree, a third label was not requested.
        agree = table[:, 0] == table[:, 1]
        n_used = np.where(agree, 2, n_used)
        n_paid = np.where(agree & ~_is_counted_as_two(table[:, 0], strategy.counting), 3, n_used)
        votes, against = (
            np.where(agree, np.nansum(kind[:, :2], axis=1), kind.sum(axis=1)) for kind in (table, 1 - table)
        )
    decisions = np.full(n_items, np.nan)
    decisions[votes >= need] = 1.0
    decisions[against >= need] = 0.0
    return ItemDecisions(tuple(names.tolist()), decisions, n_paid, len(labels) - int(np.sum(n_used)))


def probabilities_from_labels(wins: npt.ArrayLike, n_labels: npt.ArrayLike, strategy: Strategy) -> RequestProbabilities:
    """Compute the probabilities of a strategy's outcomes on items with known labels, drawn without replacement.

    `wins` and `n_labels` count the labels for A and all labels of each item. It is an error if an item has fewer labels
    than the strategy asks for; so is the strategy "fixed", because no annotator labelled every item.

    >>> law = probabilities_from_labels([9, 5], [10, 10], Strategy("majority", 3))
    >>> law.a_at_once.round(4).tolist()
    [1.0, 0.5]
    """
    k, n = vector(wins, "wins"), vector(n_labels, "n_labels")
    if k.shape != n.shape:
        raise ValueError(f"n_labels: {len(n)} items where wins has {len(k)}")
    if np.any((k < 0) | (k > n) | (k != np.round(k)) | (n != np.round(n))) or np.isnan(k).any() or np.isnan(n).any():
        raise ValueError("wins: not whole numbers in 0..n_labels")
    if strategy.name == "fixed":
        raise ValueError("strategy: no annotator labelled every item, so the fixed worker cannot be replayed")
    few = np.flatnonzero(n < strategy.max_labels_per_item)
    if len(few):
        raise ValueError(
            f"n_labels: row {int(few[0])} has {n[few[0]]:g} labels, fewer than {strategy.max_labels_per_item}"
        )
    zero = np.zeros_like(k)
    if strategy.name != "max_three":
        drawn = strategy.max_labels_per_item
        votes = np.arange(drawn // 2 + 1, drawn + 1)
        ways = special.comb(k[:, None], votes) * special.comb((n - k)[:, None], drawn - votes)
        return RequestProbabilities(ways.sum(axis=1) / special.comb(n, drawn), zero, zero, drawn)
    pairs = n * (n - 1)
    split = 2 * k * (n - k) / pairs
    return RequestProbabilities(k * (k - 1) / pairs, split * (k - 1) / (n - 2), split * (n - k - 1) / (n - 2), 2)


def _is_counted_as_two(agreed_on: FloatArray, counting: str) -> npt.NDArray[np.bool_]:
    if counting == "on_disagreement":
        return np.ones(len(agreed_on), dtype=bool)
    return np.asarray(agreed_on == (1.0 if counting == "unless_both_a" else 0.0))


# The number of labels that a labelling strategy needs to reach a decision.


# Number of (run, request) cells in memory at once.
CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Effort(Record):
    """The effort to a decision in each of R runs.

    `n_requests` (R,) is the number of requests, 0 without a decision. `winner` (R,) is 1 for A, -1 for B, 0 for none.
    `n_labels` (R,) is the number of labels paid up to the decision (all labels without one). `is_same_requests`: the
    runs repeat the labelling of one set of requests, so they say nothing about another set.
    """

    strategy: Strategy
    n_requests: IntArray
    n_labels: IntArray
    winner: IntArray
    is_same_requests: bool
    settings: dict[str, Any]


def simulate_effort_to_decision(
    draw_probabilities: Callable[[int], RequestProbabilities],
    rule: Boundaries,
    strategy: Strategy,
    *,
    runs: int,
    reading: str,
    is_same_requests: bool,
    rng: np.random.Generator,
    settings: dict[str, Any] | None = None,
) -> Effort:
    """Simulate a labelling `runs` times and record when the rule decides and how many labels were paid.

    Parameters
    ----------
    draw_probabilities : callable[[int], RequestProbabilities]
        Takes a number of runs and returns their probabilities, of shape (n,) if all runs are alike or (size, n) with
        one row per run. n is the number of requests of `rule`.
    rule : Boundaries
        Stopping rule.
    strategy : Strategy
        Labelling strategy.
    runs : int
        Number of runs, at least 1.
    reading : {"first", "stays"}
        As in `sequential.find_boundary_crossings`.
    is_same_requests : bool
        Stored in the result.
    rng : numpy.random.Generator
        Source of the random draws.
    settings : dict[str, Any], optional
        Settings that are stored in the result.

    Returns
    -------
    Effort
        The effort in each run.

    Raises
    ------
    ValueError
        If `runs` is less than 1.

    Examples
    --------
    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> law = probabilities_from_labels([10] * 30, [10] * 30, Strategy("one"))
    >>> effort = simulate_effort_to_decision(lambda size: law, hoeffding_boundaries(30, delta=0.01), Strategy("one"), runs=3,
    ...                             reading="stays", is_same_requests=True, rng=np.random.default_rng(0))
    >>> effort.n_labels.tolist()
    [10, 10, 10]
    """
    if runs < 1:
        raise ValueError(f"runs: {runs} is less than 1")
    n = len(rule.upper)
    size = max(1, CELLS // n)
    requests, labels, winners = [], [], []
    for start in range(0, runs, size):
        n_block = min(size, runs - start)
        law = draw_probabilities(n_block)
        uniform = rng.random((n_block, n), dtype=np.float32)
        at_once = uniform < law.a_at_once.astype(np.float32)
        if strategy.name != "max_three":
            crossings = find_boundary_crossings(at_once, rule, reading=reading)
            paid = law.labels * np.where(crossings.n > 0, crossings.n, n)
        else:
            up_to_a = law.a_at_once + law.a_by_third
            at_once_b = uniform >= (up_to_a + law.b_by_third).astype(np.float32)
            crossings = find_boundary_crossings(uniform < up_to_a.astype(np.float32), rule, reading=reading)
            thirds = {
                "on_disagreement": ~(at_once | at_once_b),
                "unless_both_a": ~at_once,
                "unless_both_b": ~at_once_b,
            }[strategy.counting]
            used = np.where(crossings.n > 0, crossings.n, n)
            paid = law.labels * used + np.cumsum(thirds, axis=1, dtype=np.int32)[np.arange(n_block), used - 1]
        requests.append(crossings.n)
        labels.append(paid)
        winners.append(crossings.winner)
    return Effort(
        strategy,
        np.concatenate(requests),
        np.concatenate(labels).astype(np.int64),
        np.concatenate(winners),
        is_same_requests,
        dict(settings or {}),
    )


def effort_from_resampled_labels(
    wins: npt.ArrayLike,
    n_labels: npt.ArrayLike,
    strategy: Strategy,
    *,
    rule: Boundaries,
    reading: str = "first",
    runs: int = 1000,
    rng: np.random.Generator,
) -> Effort:
    """Estimate how many labels a strategy would have needed, by resampling items with more labels than it asks for.

    `wins` and `n_labels` count the labels for A and all labels of each item, in the order of the items, which is the
    same in all runs. Each run draws labels without replacement within items; `rule` is the stopping rule for as many
    requests as there are items, and `reading` is as in `sequential.find_boundary_crossings`. It is an error if the rule
    is for another number of items, or if an item has fewer labels than the strategy asks for. The paper's Table 6
    (section 5.5) uses Hoeffding's rule, reading "stays", 100 runs, and the items in the order of their ids. See
    `estimate_mean_labels_to_decision` for what a report may print.

    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> rule = hoeffding_boundaries(50, delta=0.01)
    >>> result = effort_from_resampled_labels([9] * 50, [10] * 50, Strategy("majority", 7), rule=rule, rng=np.random.default_rng(0))
    >>> set(result.n_labels.tolist())
    {70}
    """
    law = probabilities_from_labels(wins, n_labels, strategy)
    if len(rule.upper) != len(law.a_at_once):
        raise ValueError(f"rule: made for {len(rule.upper)} items where there are {len(law.a_at_once)}")
    return simulate_effort_to_decision(
        lambda size: law,
        rule,
        strategy,
        runs=runs,
        reading=reading,
        is_same_requests=True,
        rng=rng,
        settings={"rule": rule.name, "reading": reading, "runs": runs, "items": len(law.a_at_once)},
    )


def estimate_mean_labels_to_decision(
    effort: Effort,
    *,
    mode: str = "recommended",
    level: float = 0.99,
    resamples: int = 1000,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate the mean number of labels to a decision over runs, with a percentile bootstrap interval over runs.

    Mode "recommended" averages all runs, and a run without a decision counts with all labels it paid, a lower bound
    (warning `undecided`). Mode "paper" averages the runs with a decision, which is too low if some have none (warning
    `decided_only`, severity block). If the runs share one set of requests, the interval is about these requests only
    (warning `same_requests`), and the mean of another set can be far outside. `detail` has `share_decided` (the paper's
    Table 7), `share_a`, `share_b`, both means, and `median` and `quantile_90` (None if too few runs decided). The
    paper's Tables 3, 6 and 7 have level .99 and 1,000 resamples.

    >>> effort = Effort(Strategy("one"), np.array([10, 0, 30]), np.array([10, 50, 30]), np.array([1, 0, 1]), True, {})
    >>> paper = estimate_mean_labels_to_decision(effort, mode="paper", rng=np.random.default_rng(0))
    >>> paper.estimate, paper.n, estimate_mean_labels_to_decision(effort, rng=np.random.default_rng(0)).estimate
    (20.0, 2, 30.0)
    """
    validate_level(level)
    is_decided = effort.n_requests > 0
    runs = len(is_decided)
    averaged = effort.n_labels[is_decided] if mode == "paper" else effort.n_labels
    decided = effort.n_labels[is_decided]
    # A run without a decision is larger than all others, so the median is known only if half of all runs decided.
    ranked = np.sort(np.where(is_decided, effort.n_labels.astype(np.float64), math.inf))
    warnings = []
    if len(decided) < runs:
        detail: dict[str, Any] = {"share_undecided": 1 - len(decided) / runs}
        if mode == "paper":
            warnings.append(ResultWarning("decided_only", "block", detail))
        else:
            warnings.append(ResultWarning("undecided", "warn", detail))
    if effort.strategy.counting != "on_disagreement":
        warnings.append(ResultWarning("third_labels_miscounted", "block", {"counting": effort.strategy.counting}))
    if effort.is_same_requests:
        warnings.append(ResultWarning("same_requests", "info"))
    common: dict[str, Any] = {
        "analysis": "choice.replay",
        "estimand": "mean number of labels to a decision" + (", among runs that decide" if mode == "paper" else ""),
        "unit": "run",
        "mode": mode,
        "n": len(averaged),
        "n_rows": runs,
        "warnings": tuple(warnings),
        "detail": {
            "share_decided": len(decided) / runs if runs else None,
            "share_a": float(np.mean(effort.winner == 1)) if runs else None,
            "share_b": float(np.mean(effort.winner == -1)) if runs else None,
            "median": _quantile(ranked, 0.5),
            "quantile_90": _quantile(ranked, 0.9),
            "mean_decided": float(np.mean(decided)) if len(decided) else None,
            "mean_all": float(np.mean(effort.n_labels)) if runs else None,
        },
        "settings": {
            "strategy": effort.strategy.name,
            "workers": effort.strategy.workers,
            "counting": effort.strategy.counting,
            "level": level,
            "resamples": resamples,
            **effort.settings,
        },
    }
    if len(averaged) == 0:
        return Estimate(status="no_data", reason="no run came to a decision", **common)
    mean = float(np.mean(averaged))
    if len(averaged) == 1:
        return Estimate(status="n_lt_2", reason="one run has no spread", estimate=mean, **common)
    distinct, counts = np.unique(averaged, return_counts=True)
    drawn = rng.multinomial(len(averaged), counts / len(averaged), size=resamples)
    interval = percentile_interval(drawn @ distinct / len(averaged), level)
    if len(distinct) == 1 and mode != "paper":
        return Estimate(status="zero_variance", reason="all runs paid the same", estimate=mean, **common)
    # The paper prints an interval of width 0 if all runs paid the same: 70 [70-70].
    return Estimate(estimate=mean, interval=interval, **common)


def label_work_time(seconds: npt.ArrayLike, annotators: npt.ArrayLike, labels_on_page: npt.ArrayLike) -> Estimate:
    """Compute the median work time of a label in seconds, with quartiles and mean.

    `seconds`: the time of each label's page, NaN if it is unknown. `labels_on_page`: how many labels share that time.
    A label that shares its page has no time of its own, so it is counted in `untimed`, as one without a time is.

    >>> found = label_work_time([8, 12, 10, 90, None], list("aabbb"), [1, 1, 1, 1, 1])
    >>> found.estimate, found.n, found.n_clusters, found.detail["mean"], found.detail["untimed"]
    (11.0, 4, 2, 30.0, 1)
    """
    values = vector(seconds, "seconds")
    people, _ = label_codes(annotators, "annotators", len(values))
    is_alone = vector(labels_on_page, "labels_on_page") == 1
    is_timed = ~np.isnan(values) & is_alone
    timed = values[is_timed]
    common: dict[str, Any] = {
        "analysis": "choice.times",
        "estimand": "median seconds of a label",
        "unit": "label",
        "n": len(timed),
        "n_rows": len(values),
        "n_clusters": len(np.unique(people[is_timed])),
    }
    detail: dict[str, Any] = {"untimed": len(values) - len(timed)}
    if not len(timed):
        is_shared = len(values) > 0 and not is_alone.any()
        reason = "each page has several labels, which share its time" if is_shared else "no label has a time"
        return Estimate(status="no_data", reason=reason, detail=detail, **common)
    low, middle, high = (float(value) for value in np.quantile(timed, (0.25, 0.5, 0.75)))
    return Estimate(estimate=middle, detail={**detail, "quartiles": [low, high], "mean": float(timed.mean())}, **common)


def _quantile(ranked: FloatArray, share: float) -> float | None:
    """Return the least value that this share of the runs do not exceed, or None if that run has no decision."""
    if len(ranked) == 0:
        return None
    quantile = float(ranked[max(0, math.ceil(share * len(ranked)) - 1)])
    return quantile if math.isfinite(quantile) else None


# The share of choices for a system, its repeatability, and the effect of the side of the screen.


def choice_agreement(
    chose_a: npt.ArrayLike,
    a_was_first: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> agreement.PositionSystemAgreement:
    """Estimate Fleiss' kappa and Gwet's AC1 of the labels, coded by the place chosen and by the system chosen.

    `chose_a` is 1 if A was chosen, 0 if B was, and NaN without a label; `a_was_first` is 1 if A was shown first, else
    0, and a choice without it is an error. The observed agreement is the same in both codings, but the agreement by
    chance is not: places alternate, so their shares are equal, whereas the share of a much better system is large, so
    kappa by system is lower at the same agreement. The paper (section 5.6) prints kappa by place. Low agreement can
    mean different tastes as well as poor labels, so do not exclude annotators because of it.

    >>> result = choice_agreement([1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 1, 1], list("ppqqrr"), list("xyxyxy"),
    ...                          rng=np.random.default_rng(0))
    >>> round(result.kappa_position.estimate, 4), round(result.kappa_system.estimate, 4)
    (0.3333, -0.2)
    """
    system = binary_vector(chose_a, "chose_a")
    first = binary_vector(a_was_first, "a_was_first")
    if first.shape != system.shape:
        raise ValueError(f"a_was_first: {len(first)} rows where chose_a has {len(system)}")
    unplaced = np.flatnonzero(~np.isnan(system) & np.isnan(first))
    if len(unplaced):
        raise ValueError(f"a_was_first: row {int(unplaced[0])} is missing where a choice was made")
    chosen = {1.0: ("a", "first"), 0.0: ("b", "second")}
    names = [chosen[label][0] if label == label else None for label in system.tolist()]
    places = [
        chosen[float(label == first_place)][1] if label == label else None
        for label, first_place in zip(system, first, strict=True)
    ]
    return agreement.agreement_by_position_and_by_system(
        items, annotators, places, names, level=level, resamples=resamples, rng=rng
    )


def preference_share_difference_by_position(
    chose_a: npt.ArrayLike,
    a_was_first: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate the effect of being shown first on being chosen: P(A | A first) - P(A | A second).

    `chose_a` is 1 if A was chosen, 0 if B was, and NaN without a label; `a_was_first` is 1 if A was shown first, else
    0. The estimate is the slope of a linear probability model of choosing A on the place of A, with the covariance that
    leaves out one annotator at a time (CV3) and t on G* - 1. `detail` has `share_first` (choices of the first place),
    both conditional shares, and `balanced_share`, the share of A if each order had half of the labels. The status is
    `not_identified` if A was always in the same place.

    >>> chose, first = [1, 0, 1, 1, 0, 0, 1, 0], [1, 0, 1, 0, 1, 0, 1, 0]
    >>> result = preference_share_difference_by_position(chose, first, [1, 1, 2, 2, 3, 3, 4, 4])
    >>> result.estimate, result.detail["share_first"], result.detail["balanced_share"]
    (0.5, 0.75, 0.5)
    """
    rows = _Halves.from_arrays(chose_a, a_was_first, annotators, "a_was_first")
    common = rows.common(level)
    if len(rows.chosen) == 0:
        return Estimate(status="no_data", reason="no label to analyse", **common)
    if rows.is_one_sided:
        return Estimate(
            status="not_identified",
            reason="A stood in the same place on every label",
            warnings=(ResultWarning("order_not_identified"),),
            **common,
        )
    when_first, when_second = rows.shares
    shares = {
        "share_first": float(np.mean(rows.chosen == rows.side)),
        "share_a_when_first": when_first,
        "share_a_when_second": when_second,
        "balanced_share": (when_first + when_second) / 2,
    }
    return rows.difference(level, {**common, "detail": shares})


def annotator_weighted_preference_share(
    chose_a: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    population: str = "",
    level: float = 0.95,
) -> Estimate:
    """Estimate the share of choices for A, with the same weight for all annotators, and test that it is one half at a fixed n.

    `chose_a` is 1 if A was chosen, 0 if B was, .5 for a tie, and NaN without a label. Without items, and if every
    annotator gave one label without ties, the method is the exact binomial test with Wilson's interval. Otherwise it is
    `clusters.annotator_prompt_clustered_mean` (`clusters.clustered_mean` without items) with weight 1 / (number of
    labels of the annotator) for each row; if annotators gave several labels, the label-weighted share is a sensitivity.
    With five items or more the claim is about items like these, too; `population` says what the claim is about, as in
    `clusters.annotator_prompt_clustered_mean`, and has no effect without items. Use the function only if n was fixed
    before the study; otherwise see `sequential`.

    >>> annotator_weighted_preference_share([1, 1, 1, 0, 1, 1, 1, 1], range(8)).test.name
    'exact_binomial'
    >>> annotator_weighted_preference_share([1, 1, 1, 0, 1, 1, 0, 1], [1, 1, 2, 2, 3, 3, 4, 4]).estimate
    0.75
    """
    labels = vector(chose_a, "chose_a")
    validate_within_bounds(labels[~np.isnan(labels)], (0.0, 1.0), "chose_a")
    is_observed = ~np.isnan(labels)
    observed = labels[is_observed]
    annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
    names: dict[str, Any] = {"analysis": "choice.preference", "estimand": "annotator-weighted share of A, ties half"}
    common: dict[str, Any] = {"null": 0.5, "level": level, "bounds": (0.0, 1.0)}
    if items is None and len(observed) == n_annotators and not np.any(observed == 0.5):
        return basic.proportion(int(np.sum(observed)), len(observed), null=0.5, level=level).labelled(**names)
    weights = 1 / group_sizes(annotator_codes, n_annotators)[annotator_codes]
    # With their own labels, by which the answers behind the estimate name people.
    people = np.asarray(annotators)[is_observed]
    if items is None:
        result = clusters.clustered_mean(observed, people, weights=weights, **names, **common)
    else:
        item_codes, _ = label_codes_where(items, "items", is_observed)
        result = clusters.annotator_prompt_clustered_mean(
            observed, people, item_codes, weights=weights, population=population, **names, **common
        )
    if len(observed) == n_annotators:
        return result
    by_label = clusters.clustered_mean(observed, annotator_codes, analysis="choice.preference.label_weighted", **common)
    return replace(result, sensitivity=(*result.sensitivity, by_label))


@dataclass(frozen=True, slots=True)
class _Halves:
    """Labels of two parts of a study that share annotators, such as the study and its repetition."""

    chosen: FloatArray
    side: FloatArray
    annotators: IntArray
    n_annotators: int

    @classmethod
    def from_arrays(
        cls, chose_a: npt.ArrayLike, side: npt.ArrayLike, annotators: npt.ArrayLike, name: str
    ) -> "_Halves":
        chosen, sides = binary_vector(chose_a, "chose_a"), binary_vector(side, name)
        if sides.shape != chosen.shape:
            raise ValueError(f"{name}: {len(sides)} rows where chose_a has {len(chosen)}")
        is_observed = ~np.isnan(chosen) & ~np.isnan(sides)
        return cls(chosen[is_observed], sides[is_observed], *label_codes_where(annotators, "annotators", is_observed))

    @property
    def is_one_sided(self) -> bool:
        return len(np.unique(self.side)) < 2

    @property
    def shares(self) -> tuple[float, float]:
        """Return the share of A where the side is 1, and where it is 0."""
        return float(np.mean(self.chosen[self.side == 1])), float(np.mean(self.chosen[self.side == 0]))

    def common(self, level: float) -> dict[str, Any]:
        validate_level(level)
        return {
            "analysis": "choice.position",
            "estimand": "P(A chosen | A shown first) - P(A chosen | A shown second)",
            "unit": "annotator",
            "n": self.n_annotators,
            "n_clusters": self.n_annotators,
            "n_rows": len(self.chosen),
            "settings": {"null": 0.0, "level": level, "method": "cv3"},
        }

    def difference(self, level: float, common: dict[str, Any]) -> Estimate:
        """Return the difference of the two shares with a standard error over annotators, after the edge cases."""
        difference = self.shares[0] - self.shares[1]
        sizes = group_sizes(self.annotators, self.n_annotators)
        common = {**common, "warnings": cluster_variances.cluster_warnings(sizes, name="annotator")}
        if self.n_annotators < 2:
            return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=difference, **common)
        design = np.column_stack([np.ones(len(self.chosen)), self.side])
        try:
            fit = cluster_models.clustered_regression(design, self.chosen, self.annotators)
        except ValueError:
            reason = "one annotator alone has seen one of the two conditions"
            return Estimate(status="not_identified", reason=reason, estimate=difference, **common)
        return clusters.t_estimate(
            difference,
            math.sqrt(max(0.0, float(fit.covariance[1, 1]))),
            fit.df,
            fewest_clusters=self.n_annotators,
            level=level,
            method="cv3_t",
            null=0.0,
            bounds=(-1.0, 1.0),
            **common,
        )
