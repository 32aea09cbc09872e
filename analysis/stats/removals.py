"""How few answers, or how few people, a result rests on.

The answers (or people) are ordered by what leaving each of them out does to the result, to first order. The smallest number
that changes it is then found by refits: the result is computed again without them.

Reference: Broderick, Giordano and Meager 2020, An automatic finite-sample robustness metric: when can dropping a
little data make a big difference?
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray, IntArray, group_sums, label_codes
from analysis.stats.confidence import TCurve
from analysis.stats.results import AnswersBehind, Estimate, Record

# Slopes are differences over this part of the standard error.
SLOPE_STEP = 1e-4
# Whom to leave out, for each number of them.
Members = Callable[[int], IntArray]
Chosen = IntArray | list[int]


@dataclass(frozen=True, slots=True)
class Removal(Record):
    """The fewest of `total` answers or people (`unit`) found whose removal changes a result.

    `n` is their number and `share` their share, after a refit; `challenger` then takes the place of the result: another
    system has the first place, or another verdict holds. `predicted` is the number by first-order influence alone.
    `removed` are the rows, or the labels of the people. Without a change `n` is None, with a `status` and a `reason`.
    The search is greedy, so fewer can be possible.
    """

    unit: str
    total: int
    n: int | None
    share: float | None
    predicted: int | None
    is_confirmed: bool
    challenger: Any
    removed: tuple[Any, ...]
    status: str = "ok"
    reason: str = ""


def first_of(order: IntArray) -> Members:
    """Return a function of n that returns the first n of an order."""
    return lambda n: order[:n]


def checked_removal(
    unit: str,
    total: int,
    predicted: int | None,
    members: Members,
    labels: Any,
    refit: Callable[[IntArray], Any],
    *,
    most: int,
    reason: str,
) -> Removal:
    """Return the removal after refits: fewer than predicted if that is enough, more (at most `most`) if it is not.

    `refit` returns what takes the place of the result without these members, or None if it does not change. From the
    predicted number the steps double until the result changes, or no longer does. Then the number is bisected, so one fewer
    of the same order do not change it.
    """
    high = min(predicted or most, most)
    new, low, step = refit(members(high)) if high else None, 0, 1
    if new is None:
        low = high
        while new is None and low < most:
            high = min(low + step, most)
            new, step = refit(members(high)), 2 * step
            low = low if new is not None else high
    else:
        while high - step > low and (found := refit(members(high - step))) is not None:
            high, new, step = high - step, found, 2 * step
        low = max(low, high - step)
    if new is None:
        return Removal(unit, total, None, None, predicted, False, None, (), "not_identified", reason)
    while high - low > 1:
        middle = (low + high) // 2
        if (found := refit(members(middle))) is None:
            low = middle
        else:
            high, new = middle, found
    removed = tuple(labels[one] for one in members(high).tolist())
    return Removal(unit, total, high, high / total, predicted, True, new, removed)


# The claim about an estimate.


@dataclass(frozen=True, slots=True)
class ClaimFragility(Record):
    """The fewest answers, and the fewest people, found without whom a claim no longer holds."""

    answers: Removal
    people: Removal


def claim_fragility(
    answers: AnswersBehind,
    estimate: Estimate,
    *,
    above: float | None,
    below: float | None,
    quantile: float,
    verdict_without: Callable[[Estimate], Any],
    refits: int = 0,
) -> ClaimFragility:
    """Find how few answers, and how few people, would have to be left out for a claim about an estimate to be lost.

    `answers` are those behind the `estimate` (`Estimate.answers`). The claim is that the true value is above the one bound
    and below the other; None claims nothing on this side. It needs about `quantile` standard errors between the estimate
    and a bound. `verdict_without` returns the verdict about another estimate if the claim does not follow from it, otherwise
    None. About so many `refits` more may be spent on leaving out one after the other. If the claim is not lost without half
    of the answers (or people) or fewer, `n` is None with a reason.

    Without answer i the estimate m changes by -psi_i to first order. With se^2 = sum_g S_g^2 over annotators, plus the same
    over items, minus that over both together, where the S are sums of psi, se changes by se / n - psi_i S / se + psi_i^2 / (2 se),
    where S is the sum over the annotator, plus that over the item, minus that over both; likewise for a person and their sum of
    psi. The slopes of the statistic that tests the nearest value outside the claim join both changes. Those who bring the
    statistic closest to `quantile` are left out first. `predicted` of them are enough by these sums, without the others; refits
    decide the number. With the refits that are left, they are also left out one after the other, each time the one without
    whom the claim is weakest, and the smaller number counts (Broderick, Giordano and Meager 2020).

    >>> from analysis.stats.clusters import annotator_prompt_clustered_mean
    >>> people, prompts = np.repeat(np.arange(12), 6), np.tile(np.arange(6), 12)
    >>> values = (people + prompts) % 4 > 0
    >>> found = annotator_prompt_clustered_mean(values, people, prompts, null=0.5, bounds=(0, 1), analysis="demo")
    >>> lost = lambda one: "inconclusive" if one.test and one.pvalue >= 0.05 else None
    >>> fragile = claim_fragility(found.answers, found, above=0.5, below=None, quantile=2.2, verdict_without=lost)
    >>> fragile.answers.n, fragile.answers.total, fragile.people.n, fragile.people.total
    (20, 72, 2, 12)
    """
    labels, codes = np.unique(np.asarray(answers.annotators), return_inverse=True)
    shares, alone = answers.influences()
    spread = _Spread.of(answers, codes, len(labels), shares, estimate)
    search = _Search(answers, estimate, spread, ((above, 1.0), (below, -1.0)), quantile, verdict_without, refits)
    by_person = search.fewest("annotator", codes, labels.tolist(), shares)
    if len(labels) < len(codes):
        return ClaimFragility(search.fewest("answer", np.arange(len(codes)), range(len(codes)), alone), by_person)
    # Everybody gave one answer, so the searches are the same.
    rows = {label: row for row, label in enumerate(np.asarray(answers.annotators).tolist())}
    removed = tuple(rows[label] for label in by_person.removed)
    return ClaimFragility(replace(by_person, unit="answer", removed=removed), by_person)


@dataclass(frozen=True, slots=True)
class _Spread:
    """The shares of rows in the estimate's deviation, and the clusters whose sums of them make its variance."""

    shares: FloatArray
    ways: tuple[tuple[IntArray, int, float], ...]
    scale: float

    @classmethod
    def of(
        cls, answers: AnswersBehind, codes: IntArray, n_people: int, shares: FloatArray, estimate: Estimate
    ) -> "_Spread":
        ways = [(codes, n_people, 1.0)]
        if answers.items is not None:
            items, n_items = label_codes(answers.items, "items", len(codes))
            cells, n_cells = label_codes(codes * n_items + items, "cells", len(codes))
            ways += [(items, n_items, 1.0), (cells, n_cells, -1.0)]
        plain = cls(shares, tuple(ways), 1.0)
        formula = plain.se_of(shares)
        return replace(plain, scale=float(estimate.detail.get("se") or 0.0) / formula if formula > 0 else 0.0)

    def sums(self, shares: FloatArray) -> FloatArray:
        """Return for each row the sum over its annotator, plus that over its item, minus that over both together."""
        return np.asarray(sum(factor * group_sums(codes, shares, n)[codes] for codes, n, factor in self.ways))

    def se_of(self, shares: FloatArray) -> float:
        """Return the standard error that these shares give, by the ratio that it has for all rows."""
        variance = float(shares @ self.sums(shares))
        return self.scale * math.sqrt(variance) if variance > 0 else 0.0

    def without(self, mean: float, is_kept: BoolArray, moved: float) -> tuple[float, float]:
        """Return the mean and its standard error without some rows, whose influences have the sum `moved`, as if all rows weighed alike."""
        n = len(is_kept)
        part = float(np.mean(is_kept))
        change = moved / part
        return mean - change, self.se_of(np.where(is_kept, (self.shares + change / n) / part, 0.0))


@dataclass(frozen=True, slots=True)
class _Search:
    """What the searches of one claim share. `sides` are the values that the claim excludes, with their signs."""

    answers: AnswersBehind
    estimate: Estimate
    spread: _Spread
    sides: tuple[tuple[float | None, float], ...]
    quantile: float
    verdict_without: Callable[[Estimate], Any]
    refits: int

    def fewest(self, unit: str, members: IntArray, labels: Sequence[Any], influences: FloatArray) -> Removal:
        """Return the removal of one unit. `members` is the code of each row's answer or person, and `labels` are their names."""
        tried = [
            self._on_one_side(unit, members, labels, influences, bound, sign)
            for bound, sign in self.sides
            if bound is not None
        ]
        return min(tried, key=lambda one: (one.n is None, one.n))

    def _on_one_side(
        self, unit: str, members: IntArray, labels: Sequence[Any], influences: FloatArray, bound: float, sign: float
    ) -> Removal:
        n, spread = len(labels), self.spread
        mean, se = float(self.estimate.estimate or 0.0), float(self.estimate.detail.get("se") or 0.0)
        moves = group_sums(members, influences, n)
        changes_of_se = np.zeros(n)
        if se > 0:
            of_clusters = group_sums(members, influences * spread.sums(spread.shares), n)
            sizes = group_sums(members, np.ones(len(members)), n)
            changes_of_se = se * sizes / len(members) + spread.scale**2 * (moves**2 / 2 - of_clusters) / se
        of_move, of_se = _slopes(self.estimate, bound, mean, se)
        order = np.argsort(sign * (of_se * changes_of_se - of_move * moves), kind="stable")

        def kept_rows(left_out: Chosen) -> BoolArray:
            is_kept = np.ones(n, dtype=np.bool_)
            is_kept[left_out] = False
            return np.asarray(is_kept[members])

        def is_predicted(number: int) -> bool:
            left_out = order[:number]
            again = spread.without(mean, kept_rows(left_out), float(np.sum(moves[left_out])))
            return sign * _statistic(self.estimate, bound, *again) < self.quantile

        def refit(left_out: Chosen) -> Estimate:
            return self.answers.refit(kept_rows(left_out))

        def verdict(left_out: Chosen) -> Any:
            return self.verdict_without(refit(left_out))

        most = n // 2
        number = 1 + bisect_left(range(1, most + 1), True, key=is_predicted)
        predicted = number if number <= most else None
        reason = f"no removal of at most half of the {unit}s that was tried ends the claim"
        found = checked_removal(unit, n, predicted, first_of(order), labels, verdict, most=most, reason=reason)
        fewer = self._one_by_one(order, most if found.n is None else found.n - 1, refit, bound)
        if not fewer:
            return found
        names = tuple(labels[one] for one in fewer)
        return Removal(unit, n, len(fewer), len(fewer) / n, predicted, True, verdict(fewer), names)

    def _one_by_one(self, order: IntArray, most: int, refit: Callable[[Chosen], Estimate], bound: float) -> list[int]:
        """Return at most `most` to leave out, each time the one without whom the claim is weakest, until it is lost; or nobody."""
        left_out: list[int] = []
        refits = self.refits
        while len(left_out) < most and refits >= len(order) - len(left_out):
            weakest = (-1.0, -1)
            for one in (one for one in order.tolist() if one not in left_out):
                again = refit([*left_out, one])
                if self.verdict_without(again) is not None:
                    return [*left_out, one]
                if again.test is not None and again.curve is not None:
                    weakest = max(weakest, (again.curve.pvalue(bound), one))
            refits -= len(order) - len(left_out)
            if weakest[1] < 0:
                break
            left_out.append(weakest[1])
        return []


def _statistic(estimate: Estimate, bound: float, mean: float, se: float) -> float:
    """Return the statistic that tests `bound` with another mean and standard error."""
    bounds = estimate.curve.bounds if isinstance(estimate.curve, TCurve) else None
    # All values that are left are equal, but for rounding.
    if se < MIN_SPREAD or (bounds is not None and not bounds[0] < mean < bounds[1]):
        return math.inf if mean > bound else -math.inf
    return (
        replace(estimate.curve, estimate=mean, se=se).statistic(bound)
        if isinstance(estimate.curve, TCurve)
        else (mean - bound) / se
    )


def _slopes(estimate: Estimate, bound: float, mean: float, se: float) -> tuple[float, float]:
    """Return the slopes of the statistic in the estimate and in the standard error."""
    if se <= 0:
        return 1.0, 0.0
    z, step = _statistic(estimate, bound, mean, se), SLOPE_STEP * se
    return (_statistic(estimate, bound, mean + step, se) - z) / step, (
        _statistic(estimate, bound, mean, se + step) - z
    ) / step


def without_fragility(reason: str) -> ClaimFragility:
    """Return the result of a claim whose answers cannot be left out one by one.

    >>> without_fragility("a stopping rule decided").people.reason
    'a stopping rule decided'
    """
    none = (0, None, None, None, False, None, (), "not_applicable", reason)
    return ClaimFragility(Removal("answer", *none), Removal("annotator", *none))
