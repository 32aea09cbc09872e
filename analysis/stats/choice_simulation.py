"""Simulation of pairwise choice studies: the agents of the paper, their effort, and exact tables of rules.

An annotator of capability c prefers A on a request of difficulty d with probability (1 + c d) / 2. Requests come
from a normal distribution cut to -1..1, capabilities from a uniform one. The effort of a labelling strategy needs
only the probabilities of each request's final answer, so a run costs one random number per request.

References: Thorleiksdottir et al. 2022, sections 3.1 and 4 (Tables 2 and 3); the tables of rules are by forward
recursion over the number of successes, after Schultz, Nichol, Elfring and Weed 1973.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import FloatArray, validate_level, validate_non_negative, validate_within_bounds, vector
from analysis.stats.choice import Effort, RequestProbabilities, Strategy, simulate_effort_to_decision
from analysis.stats.results import Record
from analysis.stats.sequential import Boundaries, hoeffding_boundaries

SPREADS = ("variance", "sd")
# The five rows of Table 3, from the costliest to the cheapest.
PAPER_STRATEGIES = (
    Strategy("majority", 7),
    Strategy("majority", 5),
    Strategy("max_three"),
    Strategy("fixed"),
    Strategy("one"),
)
# The columns of Table 2: mean difficulty and number of requests.
PAPER_DIFFICULTIES = {0.25: 3500, 0.125: 5000, 0.0625: 15000}


@dataclass(frozen=True, slots=True)
class Agents(Record):
    """Annotators and requests: `capabilities` (W,) in 0..1, `difficulties` (n,) in -1..1, positive if A is better."""

    capabilities: FloatArray
    difficulties: FloatArray


@dataclass(frozen=True, slots=True)
class RuleTable(Record):
    """What a sequential rule does when every label is A with probability `p`, exactly.

    After n = 1..n_max labels: `a_better`, `b_better`, `equivalent`, `different_but_trivial` (n_max,) are the chances of
    having stopped with that verdict. `mean_n` is the expected number of labels, at most n_max; `median_n` is None where
    fewer than half of the studies stop.
    """

    p: float
    a_better: FloatArray
    b_better: FloatArray
    equivalent: FloatArray
    different_but_trivial: FloatArray
    mean_n: float
    median_n: int | None

    def final_probabilities(self) -> dict[str, Any]:
        """The chances after the last label, without the way there."""
        kinds = ("a_better", "b_better", "equivalent", "different_but_trivial")
        chances = {kind: float(getattr(self, kind)[-1]) for kind in kinds}
        return {"p": self.p, "n_max": len(self.a_better), **chances, "mean_n": self.mean_n, "median_n": self.median_n}


def draw_annotators_and_requests(
    mean_difficulty: float,
    n_requests: int,
    *,
    spread: float = 0.1,
    spread_kind: str = "variance",
    capability: tuple[float, float] = (0.8, 1.0),
    n_workers: int = 100,
    rng: np.random.Generator,
) -> Agents:
    """Draw annotators and requests as in the paper: Unif(0.8, 1), and N(mean, 0.1) cut to -1..1.

    The paper does not say whether 0.1 is the variance or the standard deviation. Its code and Table 3 agree with the
    variance (`spread_kind`).

    >>> agents = draw_annotators_and_requests(0.25, 5000, rng=np.random.default_rng(0))
    >>> bool(0.29 < np.std(agents.difficulties) < 0.32), bool(agents.capabilities.min() >= 0.8)
    (True, True)
    """
    low, high = capability
    if not 0 <= low <= high <= 1:
        raise ValueError(f"capability: {low:g}..{high:g} does not lie within 0..1")
    if n_workers < 1 or n_requests < 1:
        raise ValueError(f"n_workers: {n_workers} annotators and {n_requests} requests make no study")
    capabilities = rng.uniform(low, high, n_workers)
    return Agents(capabilities, _difficulties(rng, mean_difficulty, n_requests, spread, spread_kind))


def probabilities_from_agents(
    agents: Agents, strategy: Strategy, *, replacement: bool = False, worker: int | None = None
) -> RequestProbabilities:
    """Probabilities of a strategy's answer on each request, averaged over the annotators.

    A majority uses different annotators; so does "max_three", except with `replacement` as in the paper's simulation.
    "fixed" uses `worker`. The probability of s votes for A among k annotators drawn without replacement is a
    polynomial of degree k in the difficulty, which is evaluated exactly at k + 1 points and interpolated.

    >>> agents = Agents(np.array([1.0, 1.0, 1.0]), np.array([0.0, 0.5, 1.0]))
    >>> probabilities_from_agents(agents, Strategy("majority", 3)).a_at_once.round(4).tolist()
    [0.5, 0.8438, 1.0]
    """
    capabilities, difficulties = vector(agents.capabilities, "capabilities"), np.asarray(agents.difficulties)
    validate_within_bounds(capabilities, (0.0, 1.0), "capabilities")
    validate_within_bounds(difficulties.ravel(), (-1.0, 1.0), "difficulties")
    if np.isnan(capabilities).any() or np.isnan(difficulties).any():
        raise ValueError("capabilities: an annotator or a request without a number has no chance")
    drawn = 1 if strategy.name == "max_three" and replacement else strategy.most
    if len(capabilities) < drawn:
        raise ValueError(f"capabilities: {len(capabilities)} annotators where {drawn} are asked")
    if strategy.name == "fixed":
        if worker is None:
            raise ValueError("worker: which of them is the fixed one?")
        capabilities = capabilities[[worker]]
    alone = (1 + float(np.mean(capabilities)) * difficulties) / 2
    zero = np.zeros_like(alone)
    if strategy.name in ("one", "fixed"):
        return RequestProbabilities(alone, zero, zero, 1)
    if strategy.name == "majority":
        k = strategy.workers
        return RequestProbabilities(_votes(capabilities, difficulties, k)[k // 2 + 1 :].sum(axis=0), zero, zero, k)
    if replacement:
        split = 2 * alone * (1 - alone)
        return RequestProbabilities(alone**2, split * alone, split * (1 - alone), 2)
    # Two of three for A, and the one against among the first two, which are two of three places.
    pair, triple = _votes(capabilities, difficulties, 2), _votes(capabilities, difficulties, 3)
    return RequestProbabilities(pair[2], triple[2] * 2 / 3, triple[1] * 2 / 3, 2)


def simulate_effort_of_agents(
    agents: Agents,
    strategy: Strategy,
    *,
    rule: Boundaries | None = None,
    delta: float = 0.001,
    reading: str = "stays",
    replacement: bool = True,
    runs: int = 1000,
    rng: np.random.Generator,
) -> Effort:
    """Effort of a strategy if these annotators label these requests many times: Table 3 of the paper.

    The defaults are the paper's: Hoeffding's lower bound at 1 - delta, the crossing that stays, "max_three" with
    replacement, and one fixed worker per run. The result says nothing about other requests; use `planned_effort` for
    that.

    >>> agents = draw_annotators_and_requests(0.25, 1000, rng=np.random.default_rng(0))
    >>> effort = simulate_effort_of_agents(agents, Strategy("one"), runs=50, rng=np.random.default_rng(1))
    >>> bool(200 < effort.n_labels.mean() < 500)
    True
    """
    n = len(agents.difficulties)
    chosen = hoeffding_boundaries(n, delta=delta, sides="a") if rule is None else rule
    if len(chosen.upper) != n:
        raise ValueError(f"rule: made for {len(chosen.upper)} requests where there are {n}")
    if strategy.name == "fixed":
        chances = (1 + agents.capabilities[:, None] * agents.difficulties[None, :]) / 2

        def draw_law(size: int) -> RequestProbabilities:
            own = chances[rng.integers(0, len(chances), size)]
            return RequestProbabilities(own, np.zeros(1), np.zeros(1), 1)
    else:
        law = probabilities_from_agents(agents, strategy, replacement=replacement)

        def draw_law(size: int) -> RequestProbabilities:
            return law

    return simulate_effort_to_decision(
        draw_law,
        chosen,
        strategy,
        runs=runs,
        reading=reading,
        is_same_requests=True,
        rng=rng,
        settings={"rule": chosen.name, "reading": reading, "runs": runs, "replacement": replacement},
    )


def simulate_effort_of_new_agents(
    mean_difficulty: float,
    n_requests: int,
    strategy: Strategy,
    *,
    rule: Boundaries,
    spread: float = 0.1,
    spread_kind: str = "variance",
    capability: tuple[float, float] = (0.8, 1.0),
    reading: str = "first",
    runs: int = 1000,
    rng: np.random.Generator,
) -> Effort:
    """Effort of a strategy in future studies: annotators and requests are new in every run.

    Annotators come from an infinite pool, so their number does not matter. Other arguments as in `draw_agents` and
    `simulated_effort`. `rule` is for `n_requests`.

    >>> rule = hoeffding_boundaries(2000, delta=0.001)
    >>> effort = simulate_effort_of_new_agents(0.25, 2000, Strategy("one"), rule=rule, runs=50, rng=np.random.default_rng(0))
    >>> bool(np.all(effort.winner == 1)), effort.is_same_requests
    (True, False)
    """
    if len(rule.upper) != n_requests:
        raise ValueError(f"rule: made for {len(rule.upper)} requests where there are {n_requests}")
    low, high = capability
    if not 0 <= low <= high <= 1:
        raise ValueError(f"capability: {low:g}..{high:g} does not lie within 0..1")

    def draw_law(size: int) -> RequestProbabilities:
        difficulties = _difficulties(rng, mean_difficulty, (size, n_requests), spread, spread_kind)
        if strategy.name == "fixed":
            own = rng.uniform(low, high, (size, 1))
            return RequestProbabilities((1 + own * difficulties) / 2, np.zeros(1), np.zeros(1), 1)
        # Annotators of an endless pool vote independently, each with the mean capability.
        return probabilities_from_agents(Agents(np.full(strategy.most, (low + high) / 2), difficulties), strategy)

    return simulate_effort_to_decision(
        draw_law,
        rule,
        strategy,
        runs=runs,
        reading=reading,
        is_same_requests=False,
        rng=rng,
        settings={"rule": rule.name, "reading": reading, "runs": runs, "spread": spread, "spread_is": spread_kind},
    )


def hoeffding_n_requests(p: float, *, delta: float) -> float:
    """Approximate number of requests that Hoeffding's rule needs if each final answer is A with probability `p`.

    It is ln(1 / delta) / (2 (p - .5)^2), where the mean itself crosses. Multiply by 1, N or 2 + 2 p (1 - p) labels.

    >>> round(hoeffding_n_requests(0.6125, delta=0.001))
    273
    """
    validate_level(1 - delta)
    if not 0 <= p <= 1 or p == 0.5:
        raise ValueError(f"p: {p!r} is not in 0..1 apart from one half")
    return math.log(1 / delta) / (2 * (p - 0.5) ** 2)


def exact_verdict_probabilities(p: float, rule: Boundaries) -> RuleTable:
    """Exact probabilities of each verdict at each n, for independent labels that are A with probability `p`.

    A recursion over the number of successes: a study that has not stopped passes on its probability. With a margin it
    also records whether either end was excluded. 5,000 labels take less than a second. At `p` = .5 the probability of
    a_better or b_better is the rule's type I error.

    >>> table = exact_verdict_probabilities(0.5, hoeffding_boundaries(500, delta=0.05))
    >>> round(float(table.a_better[-1] + table.b_better[-1]), 3)  # promised: .05 a side
    0.186
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p: {p!r} is outside 0..1")
    n_max = len(rule.upper)
    above_low = rule.above_low if rule.above_low is not None else np.full(n_max, n_max + 1)
    below_high = rule.below_high if rule.below_high is not None else np.full(n_max, -1)
    # Row 2 lo + hi of the state: the lower, the upper end of the margin excluded already. Both at once is a stop.
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
            moved, both = _excluded(moved, is_low, is_high)
        else:
            both = None
        is_a, is_b = successes >= rule.upper[n - 1], successes <= rule.lower[n - 1]
        if both is not None:
            stopped[3, n - 1] = float(both[is_a | is_b].sum())
            stopped[2, n - 1] = float(both.sum()) - stopped[3, n - 1]
        if is_a.any():
            stopped[0, n - 1] = float(moved[:, is_a].sum())
            moved[:, is_a] = 0.0
        if is_b.any():
            stopped[1, n - 1] = float(moved[:, is_b].sum())
            moved[:, is_b] = 0.0
        state[:, low : high + 1] = moved
        running[n] = float(moved.sum())
        # Nobody lives beyond a boundary, nor where the chance has vanished: the window keeps to the others.
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


def _difficulties(
    rng: np.random.Generator, mean: float, shape: int | tuple[int, ...], spread: float, spread_is: str
) -> FloatArray:
    if spread_is not in SPREADS:
        raise ValueError(f"spread_is: {spread_is!r} is none of {', '.join(SPREADS)}")
    if not -1 <= mean <= 1:
        raise ValueError(f"mean_difficulty: {mean!r} is outside -1..1")
    validate_non_negative(spread=spread)
    sd = math.sqrt(spread) if spread_is == "variance" else spread
    return np.asarray(np.clip(rng.normal(mean, sd, shape), -1.0, 1.0))


def _votes(capabilities: FloatArray, difficulties: npt.NDArray[np.float64], k: int) -> FloatArray:
    """Return the probability of 0..k votes for A among k annotators; shape (k + 1, *difficulties)."""
    nodes = np.cos((2 * np.arange(k + 1) + 1) * math.pi / (2 * k + 2))
    ways = np.zeros((k + 1, k + 1, len(nodes)))
    ways[0, 0] = 1.0
    for capability in capabilities:
        chance = (1 + capability * nodes) / 2
        # Backwards in the number drawn, so that each annotator is drawn at most once.
        for drawn in range(k, 0, -1):
            ways[drawn, 1:] += ways[drawn - 1, :-1] * chance
            ways[drawn] += ways[drawn - 1] * (1 - chance)
    at_nodes = ways[k] / special.comb(len(capabilities), k)
    fitted = np.polynomial.chebyshev.chebfit(nodes, at_nodes.T, k)
    return np.asarray(np.clip(np.polynomial.chebyshev.chebval(difficulties, fitted), 0.0, 1.0))


def _excluded(
    moved: FloatArray, is_low: npt.NDArray[np.bool_], is_high: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return the states after one end of the margin was excluded, and the mass with both excluded."""
    neither, hi, lo = moved
    both = np.where(is_low & is_high, neither, 0.0) + np.where(is_low, hi, 0.0) + np.where(is_high, lo, 0.0)
    states = np.stack(
        [
            np.where(is_low | is_high, 0.0, neither),
            np.where(is_low, 0.0, hi) + np.where(is_high & ~is_low, neither, 0.0),
            np.where(is_high, 0.0, lo) + np.where(is_low & ~is_high, neither, 0.0),
        ]
    )
    return states, both
