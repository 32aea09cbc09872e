"""Exact probabilities of the verdicts of a sequential rule: an oracle for rules and for simulations."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The exact behaviour of a rule. The four verdicts (n_max,) hold the probability of having stopped with it by each n.

    `mean_n` is the expected number of labels, at most n_max; `median_n` is None if fewer than half of the studies stop.
    """

    a_better: np.ndarray
    b_better: np.ndarray
    equivalent: np.ndarray
    different_but_trivial: np.ndarray
    mean_n: float
    median_n: int | None


def exact_verdict_probabilities(p, rule):
    """The table for independent labels that are A with probability `p`. At .5, a_better or b_better is an error.

    The recursion runs over the number of successes: a study that has not stopped passes on its probability. With a
    margin it also records whether either end was excluded. Source: Schultz, Nichol, Elfring and Weed 1973.
    """
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
        chances[0],
        chances[1],
        chances[2],
        chances[3],
        mean_n=float(running[:-1].sum()),
        median_n=int(settled[0]) + 1 if len(settled) else None,
    )


def _excluded(moved, is_low, is_high):
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
