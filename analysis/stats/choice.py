"""Two-choice comparison: which of two outputs is better, by how many labels an item, and how far people agree.

A label is 1 where A was chosen and 0 where B was; a request is one item shown to as many annotators as the labelling
strategy asks for. Systems are A and B whatever side of the screen they stood on; the side is an argument of its own.

Source: Thorleiksdottir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons, sections 3.1 and 5.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import agreement, basic, clusters, equivalence
from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    codes,
    kept_codes,
    refuse_level,
    refuse_outside,
    sizes_of,
    totals,
    vector,
)
from analysis.stats.bootstrap import percentile_interval
from analysis.stats.results import Estimate, Record, Warning
from analysis.stats.sequential import Boundaries, crossings

STRATEGIES = ("one", "fixed", "majority", "max_three")
# How many labels an item of "max_three" is said to have cost. The released analysis of human labels paid for a third
# one unless the first two both chose the system that its file happened to name first.
COUNTINGS = ("on_disagreement", "unless_both_a", "unless_both_b")
# How many (run, request) cells are held at once.
CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Strategy(Record):
    """Who labels an item: "one" new annotator, the same "fixed" one for all items, a "majority" of `workers` (odd), or
    "max_three": two, and a third where they disagree. `counting` is one of COUNTINGS; only the first is true.
    """

    name: str
    workers: int = 1
    counting: str = "on_disagreement"

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise ValueError(f"name: {self.name!r} is none of {', '.join(STRATEGIES)}")
        if self.counting not in COUNTINGS:
            raise ValueError(f"counting: {self.counting!r} is none of {', '.join(COUNTINGS)}")
        if self.name == "majority" and (self.workers < 3 or self.workers % 2 == 0):
            raise ValueError(f"workers: {self.workers} is not an odd number of at least three")
        if self.name != "majority" and self.workers != 1:
            raise ValueError(f"workers: only a majority has several, not {self.name!r}")

    @property
    def most(self) -> int:
        """The most labels that an item can want."""
        return 3 if self.name == "max_three" else self.workers


@dataclass(frozen=True, slots=True)
class ItemDecisions(Record):
    """What the labels of each item come to, items in ascending order.

    `decisions` (n_items,) is 1 for A, 0 for B, NaN where the labels do not suffice; `n_labels` (n_items,) counts the
    labels that the strategy paid for; `n_unused` labels were more than it asked for.
    """

    items: tuple[object, ...]
    decisions: FloatArray
    n_labels: IntArray
    n_unused: int


@dataclass(frozen=True, slots=True)
class RequestLaw(Record):
    """The chances of what a strategy gives on each request; the arrays have one shape, (n,) or (runs, n).

    `a_at_once` A without a third label, `a_by_third` and `b_by_third` after one; the rest is B without one. `labels`
    is the number of labels without a third.
    """

    a_at_once: FloatArray
    a_by_third: FloatArray
    b_by_third: FloatArray
    labels: int


@dataclass(frozen=True, slots=True)
class Effort(Record):
    """The effort to a decision in each of R runs: `n_requests` (R,) requests, 0 where none was reached, `winner` (R,)
    1 for A, -1 for B, 0 for none, `n_labels` (R,) labels paid up to the decision (all, where there is none).

    `is_same_requests`: the runs repeat the labelling of one set of requests, and say nothing of another set.
    """

    strategy: Strategy
    n_requests: IntArray
    n_labels: IntArray
    winner: IntArray
    is_same_requests: bool
    settings: dict[str, Any]


def item_decisions(
    values: npt.ArrayLike,
    items: npt.ArrayLike,
    strategy: Strategy,
    *,
    annotators: npt.ArrayLike | None = None,
    fixed: object = None,
) -> ItemDecisions:
    """Collected labels as one decision an item.

    `values` has shape (n_rows,), 1 for A, 0 for B, NaN left out; `items` names each row's item. An item's labels count
    in the order of their rows, as many as the strategy wants. A majority is decided as soon as more than half of
    `workers` agree. With "fixed", `annotators` (n_rows,) says whose the rows are and `fixed` whose count.

    >>> labels, items = [1, 0, 1, 0, 0, 1], ["p", "p", "p", "q", "q", "q"]
    >>> found = item_decisions(labels, items, Strategy("max_three"))
    >>> found.decisions.tolist(), found.n_labels.tolist(), found.n_unused
    ([1.0, 0.0], [3, 2], 1)
    """
    labels = _labels(values, "values")
    positions, n_items = codes(np.asarray(items), "items", len(labels))
    names = np.empty(n_items, dtype=object)
    names[positions] = np.asarray(items)
    here = ~np.isnan(labels)
    if strategy.name == "fixed":
        if annotators is None or fixed is None:
            raise ValueError("annotators: the fixed worker's rows cannot be found without them and `fixed`")
        here &= np.asarray([who == fixed for who in np.asarray(annotators).tolist()], dtype=bool)
    labels, positions = labels[here], positions[here]
    order = np.argsort(positions, kind="stable")
    sizes = np.bincount(positions, minlength=n_items)
    place = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table = np.full((n_items, max(strategy.most, 1)), np.nan)
    used = place < strategy.most
    table[positions[order][used], place[used]] = labels[order][used]

    votes, against = np.nansum(table, axis=1), np.nansum(1 - table, axis=1)
    n_used = np.sum(~np.isnan(table), axis=1)
    n_paid = n_used
    need = strategy.most // 2 + 1
    if strategy.name == "max_three":
        # Two that agree are two of three, so a third label there was not asked for.
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


def law_of_labels(wins: npt.ArrayLike, n_labels: npt.ArrayLike, strategy: Strategy) -> RequestLaw:
    """What a strategy would have given on items whose labels are known, drawing among them without replacement.

    `wins` of the `n_labels` labels of each item, both of shape (n_items,), chose A. Raises ValueError for items with
    fewer labels than the strategy wants, and for "fixed", whose labels nobody gave.

    >>> law = law_of_labels([9, 5], [10, 10], Strategy("majority", 3))
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
    few = np.flatnonzero(n < strategy.most)
    if len(few):
        raise ValueError(f"n_labels: row {int(few[0])} has {n[few[0]]:g} labels, fewer than {strategy.most}")
    zero = np.zeros_like(k)
    if strategy.name != "max_three":
        drawn = strategy.most
        votes = np.arange(drawn // 2 + 1, drawn + 1)
        ways = special.comb(k[:, None], votes) * special.comb((n - k)[:, None], drawn - votes)
        return RequestLaw(ways.sum(axis=1) / special.comb(n, drawn), zero, zero, drawn)
    pairs = n * (n - 1)
    split = 2 * k * (n - k) / pairs
    return RequestLaw(k * (k - 1) / pairs, split * (k - 1) / (n - 2), split * (n - k - 1) / (n - 2), 2)


def effort_to_decision(
    draw_law: Callable[[int], RequestLaw],
    rule: Boundaries,
    strategy: Strategy,
    *,
    runs: int,
    reading: str,
    is_same_requests: bool,
    rng: np.random.Generator,
    settings: dict[str, Any] | None = None,
) -> Effort:
    """Repeat a labelling `runs` times and see when the rule decides and what had been paid by then.

    `draw_law(size)` gives the law of the next `size` runs, all alike with shape (n,) or one each with (size, n), n the
    number of requests that `rule` is for. `reading` as in `sequential.crossings`.

    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> law = law_of_labels([10] * 30, [10] * 30, Strategy("one"))
    >>> effort = effort_to_decision(lambda size: law, hoeffding_boundaries(30, delta=0.01), Strategy("one"), runs=3,
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
        here = min(size, runs - start)
        law = draw_law(here)
        uniform = rng.random((here, n), dtype=np.float32)
        at_once = uniform < law.a_at_once.astype(np.float32)
        if strategy.name != "max_three":
            found = crossings(at_once, rule, reading=reading)
            paid = law.labels * np.where(found.n > 0, found.n, n)
        else:
            up_to_a = law.a_at_once + law.a_by_third
            at_once_b = uniform >= (up_to_a + law.b_by_third).astype(np.float32)
            found = crossings(uniform < up_to_a.astype(np.float32), rule, reading=reading)
            thirds = {
                "on_disagreement": ~(at_once | at_once_b),
                "unless_both_a": ~at_once,
                "unless_both_b": ~at_once_b,
            }[strategy.counting]
            used = np.where(found.n > 0, found.n, n)
            paid = law.labels * used + np.cumsum(thirds, axis=1, dtype=np.int32)[np.arange(here), used - 1]
        requests.append(found.n)
        labels.append(paid)
        winners.append(found.winner)
    return Effort(
        strategy,
        np.concatenate(requests),
        np.concatenate(labels).astype(np.int64),
        np.concatenate(winners),
        is_same_requests,
        dict(settings or {}),
    )


def resampled_effort(
    wins: npt.ArrayLike,
    n_labels: npt.ArrayLike,
    strategy: Strategy,
    *,
    rule: Boundaries,
    reading: str = "first",
    runs: int = 1000,
    rng: np.random.Generator,
) -> Effort:
    """How many labels a strategy would have needed on items that have been labelled more often than it asks for.

    `wins` of `n_labels` labels of each item chose A; both have shape (n_items,), in the order in which items are asked,
    the same in every run. In each run labels are drawn without replacement within items and `rule` is applied to the
    answers. The paper's Table 6: Hoeffding's rule, reading "stays", 100 runs, items in the order of their ids.

    Source: section 5.5. See `effort_summary` for what may be printed.

    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> rule = hoeffding_boundaries(50, delta=0.01)
    >>> found = resampled_effort([9] * 50, [10] * 50, Strategy("majority", 7), rule=rule, rng=np.random.default_rng(0))
    >>> set(found.n_labels.tolist())
    {70}
    """
    law = law_of_labels(wins, n_labels, strategy)
    if len(rule.upper) != len(law.a_at_once):
        raise ValueError(f"rule: made for {len(rule.upper)} items where there are {len(law.a_at_once)}")
    return effort_to_decision(
        lambda size: law,
        rule,
        strategy,
        runs=runs,
        reading=reading,
        is_same_requests=True,
        rng=rng,
        settings={"rule": rule.name, "reading": reading, "runs": runs},
    )


def effort_summary(
    effort: Effort,
    *,
    mode: str = "recommended",
    level: float = 0.99,
    resamples: int = 1000,
    rng: np.random.Generator,
    analysis: str = "choice.effort",
) -> Estimate:
    """The mean number of labels to a decision over runs, with a percentile bootstrap interval over runs.

    "paper" averages the runs that decided, which is too low where some did not (warning `decided_only`, block);
    "recommended" averages all runs, an undecided one with everything it paid, which is a lower bound of what it would
    have needed (warning `undecided`). detail: `share_decided` (the paper's Table 7), `share_a`, `share_b`, `median`
    and `quantile_90` over all runs (None where too few decided), and both means. Where the runs share one set of
    requests the interval is about these very requests (warning `same_requests`): another set's mean lies many widths
    away.

    Source: Tables 3, 6 and 7: level .99, 1,000 resamples.

    >>> effort = Effort(Strategy("one"), np.array([10, 0, 30]), np.array([10, 50, 30]), np.array([1, 0, 1]), True, {})
    >>> paper = effort_summary(effort, mode="paper", rng=np.random.default_rng(0))
    >>> paper.estimate, paper.n, effort_summary(effort, rng=np.random.default_rng(0)).estimate
    (20.0, 2, 30.0)
    """
    refuse_level(level)
    is_decided = effort.n_requests > 0
    runs = len(is_decided)
    averaged = effort.n_labels[is_decided] if mode == "paper" else effort.n_labels
    decided = effort.n_labels[is_decided]
    # An undecided run lies beyond all others, so half of all runs must have decided for the median to be known.
    ranked = np.sort(np.where(is_decided, effort.n_labels.astype(np.float64), math.inf))
    warnings = []
    if len(decided) < runs:
        detail: dict[str, Any] = {"share_undecided": 1 - len(decided) / runs}
        warnings.append(Warning(*(("decided_only", "block") if mode == "paper" else ("undecided", "warn")), detail))
    if effort.strategy.counting != "on_disagreement":
        warnings.append(Warning("third_labels_miscounted", "block", {"counting": effort.strategy.counting}))
    if effort.is_same_requests:
        warnings.append(Warning("same_requests", "info"))
    common: dict[str, Any] = {
        "analysis": analysis,
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
    # In the paper runs that all paid the same have an interval of no width: 70 [70-70].
    return Estimate(estimate=mean, interval=interval, **common)


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
    """Fleiss' kappa and Gwet's AC1 of the labels, coded by the place chosen ("first", "second") and by the system.

    All arguments have shape (n_rows,); `chose_a` is 1, 0 or NaN (no label), `a_was_first` 1 or 0. The observed agreement
    is one number in both codings, what chance would give is not: places are shown in turn, so their shares are even,
    while a much better system's share is large, and kappa by system falls although nobody disagrees more. The paper
    prints kappa by place. Low agreement says that tastes differ as well as that labels are poor: exclude nobody by it.

    Source: section 5.6.

    >>> found = choice_agreement([1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 1, 1], list("ppqqrr"), list("xyxyxy"),
    ...                          rng=np.random.default_rng(0))
    >>> round(found.kappa_position.estimate, 4), round(found.kappa_system.estimate, 4)
    (0.3333, -0.2)
    """
    system = _labels(chose_a, "chose_a")
    first = _labels(a_was_first, "a_was_first")
    if first.shape != system.shape:
        raise ValueError(f"a_was_first: {len(first)} rows where chose_a has {len(system)}")
    unplaced = np.flatnonzero(~np.isnan(system) & np.isnan(first))
    if len(unplaced):
        raise ValueError(f"a_was_first: row {int(unplaced[0])} is missing where a choice was made")
    chosen = {1.0: ("a", "first"), 0.0: ("b", "second")}
    names = [chosen[label][0] if label == label else None for label in system.tolist()]
    places = [
        chosen[float(label == place)][1] if label == label else None for label, place in zip(system, first, strict=True)
    ]
    return agreement.position_and_system(items, annotators, places, names, level=level, resamples=resamples, rng=rng)


def position_effect(
    chose_a: npt.ArrayLike,
    a_was_first: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
    analysis: str = "choice.position",
    unit: str = "annotator",
) -> Estimate:
    """How much more often a system is chosen for being shown first: P(A | A first) - P(A | A second).

    All arguments have shape (n_rows,). The slope of a linear probability model of choosing A on where A stood, with a
    leave-one-annotator-out covariance and t on G* - 1. detail: `share_first` (labels for whatever stood first), both
    conditional shares, and `balanced_share`, A's share as it were with either order half of the time. A shown always
    in one place: `not_identified`.

    >>> chose, first = [1, 0, 1, 1, 0, 0, 1, 0], [1, 0, 1, 0, 1, 0, 1, 0]
    >>> result = position_effect(chose, first, [1, 1, 2, 2, 3, 3, 4, 4])
    >>> result.estimate, result.detail["share_first"], result.detail["balanced_share"]
    (0.5, 0.75, 0.5)
    """
    rows = _Halves.of(chose_a, a_was_first, annotators, "a_was_first")
    common = rows.common(analysis, "P(A chosen | A shown first) - P(A chosen | A shown second)", unit, level)
    if len(rows.chosen) == 0:
        return Estimate(status="no_data", reason="no label to analyse", **common)
    if rows.is_one_sided:
        return Estimate(
            status="not_identified",
            reason="A stood in the same place on every label",
            warnings=(Warning("order_not_identified"),),
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


def preference(
    chose_a: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    margin: float | None = None,
    level: float = 0.95,
    analysis: str = "choice.preference",
    unit: str = "annotator",
) -> Estimate:
    """A's share at an n that was fixed beforehand, against one half.

    Both arguments have shape (n_rows,), NaN left out. Where every annotator gave one label, the exact binomial test and
    Wilson's interval; else Student's t over annotators' means, with the label-weighted share as sensitivity. With
    `margin`, TOST over annotators' means (or labels) is among the sensitivities.

    >>> preference([1, 1, 1, 0, 1, 1, 1, 1], range(8)).test.name
    'exact_binomial'
    >>> preference([1, 1, 1, 0, 1, 1, 0, 1], [1, 1, 2, 2, 3, 3, 4, 4]).estimate
    0.75
    """
    labels = _labels(chose_a, "chose_a")
    here = ~np.isnan(labels)
    kept = labels[here]
    who, n_annotators = kept_codes(annotators, "annotators", here)
    means = totals(who, kept, n_annotators) / sizes_of(who, n_annotators)
    estimand = f"{unit}-weighted share of A"
    if len(kept) == n_annotators:
        result = basic.proportion(
            int(np.sum(kept)), len(kept), null=0.5, level=level, analysis=analysis, estimand=estimand, unit=unit
        )
        sensitivity: tuple[Estimate, ...] = ()
    else:
        result = basic.one_sample(
            means, null=0.5, level=level, bounds=(0.0, 1.0), analysis=analysis, estimand=estimand, unit=unit
        )
        result = replace(result, n_rows=len(kept))
        sensitivity = (
            clusters.clustered_mean(
                kept, who, null=0.5, level=level, bounds=(0.0, 1.0), analysis=f"{analysis}.label_weighted", unit=unit
            ),
        )
    if margin is not None and len(kept):
        tost = equivalence.equivalence(
            means,
            null=0.5,
            margin=margin,
            significance=1 - level,
            bounds=(0.0, 1.0),
            analysis=f"{analysis}.equivalence",
            estimand=estimand,
            unit=unit,
        )
        sensitivity = (*sensitivity, tost)
    return replace(result, sensitivity=sensitivity)


def repetition_difference(
    chose_a: npt.ArrayLike,
    is_second: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    margin: float | None = None,
    level: float = 0.95,
    analysis: str = "choice.repetition",
    unit: str = "annotator",
) -> Estimate:
    """A's share in a repetition of the study minus that in the study, annotators of both counted once.

    All arguments have shape (n_rows,), `is_second` 1 for the repetition. The slope of a linear probability model with a
    leave-one-annotator-out covariance; with `margin`, TOST as sensitivity: only that shows that a result was repeated.

    >>> result = repetition_difference([1, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 2, 2, 3, 3, 4, 4])
    >>> result.estimate, result.n
    (-0.25, 4)
    """
    rows = _Halves.of(chose_a, is_second, annotators, "is_second")
    common = rows.common(analysis, "share of A in the repetition minus share of A before", unit, level)
    common["settings"]["margin"] = margin
    if rows.is_one_sided:
        return Estimate(status="no_data", reason="one of the two has no label", **common)
    of_second, of_first = rows.shares
    result = rows.difference(level, {**common, "detail": {"share_second": of_second, "share_first": of_first}})
    if margin is None or result.status != "ok":
        return result
    tost = equivalence.equivalence_from(
        of_second - of_first,
        result.detail["se"],
        result.detail["df"],
        n=rows.n_annotators,
        null=0.0,
        margin=margin,
        significance=1 - level,
        analysis=f"{analysis}.equivalence",
        estimand=result.estimand,
        unit=unit,
    )
    return replace(result, sensitivity=(tost,))


def _quantile(ranked: FloatArray, share: float) -> float | None:
    """The least value that this share of the runs do not exceed; None if that is a run without an end."""
    if len(ranked) == 0:
        return None
    found = float(ranked[max(0, math.ceil(share * len(ranked)) - 1)])
    return found if math.isfinite(found) else None


def _labels(values: npt.ArrayLike, name: str) -> FloatArray:
    labels = vector(np.asarray(values, dtype=np.float64), name)
    refuse_outside(labels, (0.0, 1.0), name)
    broken = np.flatnonzero(~np.isnan(labels) & (labels != np.round(labels)))
    if len(broken):
        raise ValueError(f"{name}: row {int(broken[0])} is {labels[broken[0]]:g}, neither 0 nor 1")
    return labels


def _is_counted_as_two(agreed_on: FloatArray, counting: str) -> npt.NDArray[np.bool_]:
    if counting == "on_disagreement":
        return np.ones(len(agreed_on), dtype=bool)
    return np.asarray(agreed_on == (1.0 if counting == "unless_both_a" else 0.0))


@dataclass(frozen=True, slots=True)
class _Halves:
    """Labels of two sides of a study (A shown first or second, the study or its repetition) that share annotators."""

    chosen: FloatArray
    side: FloatArray
    annotators: IntArray
    n_annotators: int

    @classmethod
    def of(cls, chose_a: npt.ArrayLike, side: npt.ArrayLike, annotators: npt.ArrayLike, name: str) -> "_Halves":
        chosen, sides = _labels(chose_a, "chose_a"), _labels(side, name)
        if sides.shape != chosen.shape:
            raise ValueError(f"{name}: {len(sides)} rows where chose_a has {len(chosen)}")
        here = ~np.isnan(chosen) & ~np.isnan(sides)
        return cls(chosen[here], sides[here], *kept_codes(annotators, "annotators", here))

    @property
    def is_one_sided(self) -> bool:
        return len(np.unique(self.side)) < 2

    @property
    def shares(self) -> tuple[float, float]:
        """A's share where the side is 1, and where it is 0."""
        return float(np.mean(self.chosen[self.side == 1])), float(np.mean(self.chosen[self.side == 0]))

    def common(self, analysis: str, estimand: str, unit: str, level: float) -> dict[str, Any]:
        refuse_level(level)
        return {
            "analysis": analysis,
            "estimand": estimand,
            "unit": unit,
            "n": self.n_annotators,
            "n_clusters": self.n_annotators,
            "n_rows": len(self.chosen),
            "settings": {"null": 0.0, "level": level, "method": "cv3"},
        }

    def difference(self, level: float, common: dict[str, Any]) -> Estimate:
        """The difference of the two shares with a standard error over annotators, in the law's order of edge cases."""
        difference = self.shares[0] - self.shares[1]
        sizes = sizes_of(self.annotators, self.n_annotators)
        common = {**common, "warnings": clusters.cluster_warnings(sizes, name=common["unit"])}
        if self.n_annotators < 2:
            return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=difference, **common)
        design = np.column_stack([np.ones(len(self.chosen)), self.side])
        try:
            fit = clusters.clustered_regression(design, self.chosen, self.annotators)
        except ValueError:
            reason = "one annotator alone has seen one of the two conditions"
            return Estimate(status="not_identified", reason=reason, estimate=difference, **common)
        return clusters.t_estimate(
            difference,
            math.sqrt(max(0.0, float(fit.covariance[1, 1]))),
            fit.df,
            fewest=self.n_annotators,
            level=level,
            method="cv3_t",
            null=0.0,
            bounds=(-1.0, 1.0),
            **common,
        )
