"""Exact probabilities of the verdicts of a sequential rule."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, validate_level
from analysis.stats.results import Record
from analysis.stats.sequential import Boundaries


@dataclass(frozen=True, slots=True)
class RuleTable(Record):
    """The exact behaviour of a sequential rule if every label is A with probability `p`.

    `a_better`, `b_better`, `equivalent` and `different_but_trivial` (n_max,) are the probabilities of having stopped
    with that verdict after n = 1..n_max labels. `mean_n` is the expected number of labels, at most n_max. `median_n` is
    None if fewer than half of the studies stop.
    """

    p: float
    a_better: FloatArray
    b_better: FloatArray
    equivalent: FloatArray
    different_but_trivial: FloatArray
    mean_n: float
    median_n: int | None

    def final_probabilities(self) -> dict[str, Any]:
        """Return the probabilities after the last label, without those before it."""
        kinds = ("a_better", "b_better", "equivalent", "different_but_trivial")
        chances = {kind: float(getattr(self, kind)[-1]) for kind in kinds}
        return {"p": self.p, "n_max": len(self.a_better), **chances, "mean_n": self.mean_n, "median_n": self.median_n}


def hoeffding_n_requests(p: float, *, delta: float) -> float:
    """Approximate number of requests that Hoeffding's rule needs if each final answer is A with probability `p`.

    Parameters
    ----------
    p : float
        Probability of A; not .5.
    delta : float
        Error probability of the rule.

    Returns
    -------
    float
        ln(1 / delta) / (2 (p - .5)^2), the n at which the mean itself crosses. Multiply by the labels per request:
        1, N or 2 + 2 p (1 - p).

    Raises
    ------
    ValueError
        If `p` is .5 or outside 0..1.

    Examples
    --------
    >>> round(hoeffding_n_requests(0.6125, delta=0.001))
    273
    """
    validate_level(1 - delta)
    if not 0 <= p <= 1 or p == 0.5:
        raise ValueError(f"p: {p!r} is not in 0..1 apart from one half")
    return math.log(1 / delta) / (2 * (p - 0.5) ** 2)


def exact_verdict_probabilities(p: float, rule: Boundaries) -> RuleTable:
    """Exact probabilities of each verdict at each n, for independent labels that are A with probability `p`.

    Parameters
    ----------
    p : float
        Probability of A.
    rule : Boundaries
        Stopping rule.

    Returns
    -------
    RuleTable
        The probabilities. At `p` = .5 the probability of a_better or b_better is the rule's type I error.

    Raises
    ------
    ValueError
        If `p` is outside 0..1.

    Notes
    -----
    The recursion runs over the number of successes: a study that has not stopped passes on its probability. With a
    margin it also records whether either end was excluded. 5,000 labels take less than a second.

    Examples
    --------
    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> table = exact_verdict_probabilities(0.5, hoeffding_boundaries(500, delta=0.05))
    >>> round(float(table.a_better[-1] + table.b_better[-1]), 3)  # the rule promises .05 per side
    0.186
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p: {p!r} is outside 0..1")
    n_max = len(rule.upper)
    above_low = rule.above_low if rule.above_low is not None else np.full(n_max, n_max + 1)
    below_high = rule.below_high if rule.below_high is not None else np.full(n_max, -1)
    # Row 2 lo + hi of the state: `lo` and `hi` say whether that end of the margin is excluded. Both together stop.
    state = np.zeros((3, n_max + 2))
    state[0, 0] = 1.0
    stopped = np.zeros((4, n_max))
    running = np.ones(n_max + 1)
    low, high = 0, 0
    for n in range(1, n_max + 1):
        window = state[:, low : high + 2]
        moved = (1 - p) * window
        moved[:, 1:] += p * window[:, :-1]
        high += 1
        successes = np.arange(low, high + 1)
        is_low, is_high = successes >= above_low[n - 1], successes <= below_high[n - 1]
        if is_low.any() or is_high.any():
            moved, both_excluded = _excluded(moved, is_low, is_high)
        else:
            both_excluded = None
        is_a, is_b = successes >= rule.upper[n - 1], successes <= rule.lower[n - 1]
        if both_excluded is not None:
            stopped[3, n - 1] = float(both_excluded[is_a | is_b].sum())
            stopped[2, n - 1] = float(both_excluded.sum()) - stopped[3, n - 1]
        if is_a.any():
            stopped[0, n - 1] = float(moved[:, is_a].sum())
            moved[:, is_a] = 0.0
        if is_b.any():
            stopped[1, n - 1] = float(moved[:, is_b].sum())
            moved[:, is_b] = 0.0
        state[:, low : high + 1] = moved
        running[n] = float(moved.sum())
        # The window leaves out states beyond a boundary and states with a negligible probability.
        alive = np.flatnonzero(moved.sum(axis=0) > 1e-18)
        if len(alive) == 0:
            running[n:] = 0.0
            break
        state[:, low : low + int(alive[0])] = 0.0
        state[:, low + int(alive[-1]) + 1 : high + 1] = 0.0
        low, high = low + int(alive[0]), low + int(alive[-1])
    chances = np.cumsum(stopped, axis=1)
    settled = np.flatnonzero(chances.sum(axis=0) >= 0.5)
    return RuleTable(
        p,
        chances[0],
        chances[1],
        chances[2],
        chances[3],
        mean_n=float(running[:-1].sum()),
        median_n=int(settled[0]) + 1 if len(settled) else None,
    )


def _excluded(
    moved: FloatArray, is_low: npt.NDArray[np.bool_], is_high: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return the states after one end of the margin was excluded, and the mass with both excluded."""
    neither, hi, lo = moved
    both_excluded = np.where(is_low & is_high, neither, 0.0) + np.where(is_low, hi, 0.0) + np.where(is_high, lo, 0.0)
    states = np.stack(
        [
            np.where(is_low | is_high, 0.0, neither),
            np.where(is_low, 0.0, hi) + np.where(is_high & ~is_low, neither, 0.0),
            np.where(is_high, 0.0, lo) + np.where(is_low & ~is_high, neither, 0.0),
        ]
    )
    return states, both_excluded
