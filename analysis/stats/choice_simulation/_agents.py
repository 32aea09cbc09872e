"""Simulated annotators and requests, and the effort of labelling strategies with them."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import FloatArray, validate_non_negative, validate_within_bounds, vector
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

    Parameters
    ----------
    mean_difficulty : float
        Mean difficulty of the requests, in -1..1; positive if A is better.
    n_requests : int
        Number of requests.
    spread : float, default 0.1
        Spread of the difficulties.
    spread_kind : {"variance", "sd"}, default 'variance'
        Meaning of `spread`. The paper does not say which; its code and Table 3 agree with the variance.
    capability : tuple[float, float], default (0.8, 1.0)
        Range of the annotators' capabilities, within 0..1.
    n_workers : int, default 100
        Number of annotators.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    Agents
        The annotators and the requests.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
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

    Parameters
    ----------
    agents : Agents
        The annotators and the requests.
    strategy : choice.Strategy
        Labelling strategy.
    replacement : bool, default False
        Draw the annotators of "max_three" with replacement, as in the paper's simulation. A majority always uses
        different annotators.
    worker : int, optional
        Number of the annotator of the strategy "fixed".

    Returns
    -------
    choice.RequestProbabilities
        The probabilities, with the shape of the difficulties.

    Raises
    ------
    ValueError
        If there are too few annotators, a number is missing or outside its range, or "fixed" has no `worker`.

    Notes
    -----
    The probability of s votes for A among k annotators drawn without replacement is a polynomial of degree k in the
    difficulty, which is evaluated exactly at k + 1 points and interpolated.

    Examples
    --------
    >>> agents = Agents(np.array([1.0, 1.0, 1.0]), np.array([0.0, 0.5, 1.0]))
    >>> probabilities_from_agents(agents, Strategy("majority", 3)).a_at_once.round(4).tolist()
    [0.5, 0.8438, 1.0]
    """
    capabilities, difficulties = vector(agents.capabilities, "capabilities"), np.asarray(agents.difficulties)
    validate_within_bounds(capabilities, (0.0, 1.0), "capabilities")
    validate_within_bounds(difficulties.ravel(), (-1.0, 1.0), "difficulties")
    if np.isnan(capabilities).any() or np.isnan(difficulties).any():
        raise ValueError("capabilities: an annotator or a request without a number has no chance")
    drawn = 1 if strategy.name == "max_three" and replacement else strategy.max_labels_per_item
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
    # Two of three votes are for A, and the vote against is among the first two (two of three places).
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
    replacement, and one fixed worker per run.

    Parameters
    ----------
    agents : Agents
        The annotators and the requests.
    strategy : choice.Strategy
        Labelling strategy.
    rule : Boundaries, optional
        Stopping rule for the number of requests; Hoeffding's rule for A if None.
    delta : float, default 0.001
        Error probability of Hoeffding's rule.
    reading : {"first", "stays"}, default 'stays'
        As in `sequential.find_boundary_crossings`.
    replacement : bool, default True
        As in `probabilities_from_agents`.
    runs : int, default 1000
        Number of runs.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    choice.Effort
        The effort in each run. It says nothing about other requests; for these use `simulate_effort_of_new_agents`.

    Raises
    ------
    ValueError
        If `rule` is for another number of requests.

    Examples
    --------
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

    Parameters
    ----------
    mean_difficulty : float
        Mean difficulty of the requests, in -1..1.
    n_requests : int
        Largest number of requests.
    strategy : choice.Strategy
        Labelling strategy.
    rule : Boundaries
        Stopping rule for `n_requests`.
    spread, spread_kind, capability : optional
        As in `draw_annotators_and_requests`. Annotators come from an infinite pool, so their number does not matter.
    reading : {"first", "stays"}, default 'first'
        As in `sequential.find_boundary_crossings`.
    runs : int, default 1000
        Number of runs.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    choice.Effort
        The effort in each run.

    Raises
    ------
    ValueError
        If `rule` is for another number of requests, or an argument is outside its range.

    Examples
    --------
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
        # Annotators of an infinite pool vote independently, each with the mean capability.
        return probabilities_from_agents(
            Agents(np.full(strategy.max_labels_per_item, (low + high) / 2), difficulties), strategy
        )

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


def _difficulties(
    rng: np.random.Generator, mean: float, shape: int | tuple[int, ...], spread: float, spread_kind: str
) -> FloatArray:
    if spread_kind not in SPREADS:
        raise ValueError(f"spread_kind: {spread_kind!r} is not one of {', '.join(SPREADS)}")
    if not -1 <= mean <= 1:
        raise ValueError(f"mean_difficulty: {mean!r} is outside -1..1")
    validate_non_negative(spread=spread)
    sd = math.sqrt(spread) if spread_kind == "variance" else spread
    return np.asarray(np.clip(rng.normal(mean, sd, shape), -1.0, 1.0))


def _votes(capabilities: FloatArray, difficulties: npt.NDArray[np.float64], k: int) -> FloatArray:
    """Return the probability of 0..k votes for A among k annotators; shape (k + 1, *difficulties)."""
    nodes = np.cos((2 * np.arange(k + 1) + 1) * math.pi / (2 * k + 2))
    ways = np.zeros((k + 1, k + 1, len(nodes)))
    ways[0, 0] = 1.0
    for capability in capabilities:
        chance = (1 + capability * nodes) / 2
        # Update from the largest number down, so that each annotator is drawn at most once.
        for drawn in range(k, 0, -1):
            ways[drawn, 1:] += ways[drawn - 1, :-1] * chance
            ways[drawn] += ways[drawn - 1] * (1 - chance)
    at_nodes = ways[k] / special.comb(len(capabilities), k)
    fitted = np.polynomial.chebyshev.chebfit(nodes, at_nodes.T, k)
    return np.asarray(np.clip(np.polynomial.chebyshev.chebval(difficulties, fitted), 0.0, 1.0))
