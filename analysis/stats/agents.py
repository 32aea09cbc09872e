"""Simulation of studies of two choices: the agents of the paper, and the effort of labelling strategies with them.

An annotator of capability c prefers A on a request of difficulty d with probability (1 + c d) / 2. Requests come
from a normal distribution cut to -1..1, capabilities from a uniform one. The effort of a labelling strategy needs
only the probabilities of each request's final answer, so a run costs one random number per request. Future studies
have new annotators and requests; the paper holds one draw of both.

Reference: Thorleiksdottir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons, sections 3.1 and 4
(Tables 2 and 3).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray, validate_non_negative
from analysis.stats.choice import Effort, RequestProbabilities, Strategy, simulate_effort_to_decision
from analysis.stats.results import Record
from analysis.stats.stopping_boundaries import Boundaries

SPREADS = ("variance", "sd")


@dataclass(frozen=True, slots=True)
class Agents(Record):
    """Annotators and requests: `capabilities` (W,) in 0..1, `difficulties` (n,) in -1..1, positive if A is better."""

    capabilities: FloatArray
    difficulties: FloatArray


def final_answer_probabilities(probabilities: FloatArray, strategy: Strategy) -> RequestProbabilities:
    """Compute the probabilities of a strategy's answer on each request, if its annotators vote independently.

    `probabilities` has, in any shape, the probability that one annotator chooses A on each request. The results have
    the same shape.

    >>> final_answer_probabilities(np.array([0.5, 0.75, 1.0]), Strategy("majority", 3)).a_at_once.round(4).tolist()
    [0.5, 0.8438, 1.0]
    """
    alone, other, zero = probabilities, 1 - probabilities, np.zeros_like(probabilities)
    if strategy.name in ("one", "fixed"):
        return RequestProbabilities(alone, zero, zero, 1)
    if strategy.name == "max_three":
        split = 2 * alone * other
        return RequestProbabilities(alone**2, split * alone, split * other, 2)
    k = strategy.workers
    votes = range(k // 2 + 1, k + 1)
    chosen = np.asarray(sum(math.comb(k, n) * alone**n * other ** (k - n) for n in votes))
    return RequestProbabilities(chosen, zero, zero, k)


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
    """Simulate the effort of a strategy in future studies: annotators and requests are new in every run.

    `mean_difficulty` is in -1..1, and `n_requests` is the largest number of requests. A `rule` for another number of
    requests raises ValueError. `spread_kind` says whether `spread` is a variance or a standard deviation: the paper
    does not say which, but its code and Table 3 agree with the variance. `capability` is the range of the annotators'
    capabilities, within 0..1. Annotators come from an infinite pool, so their number does not matter. `reading` is as
    in `sequential.find_boundary_crossings`.

    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> rule = hoeffding_boundaries(2000, delta=0.001)
    >>> effort = simulate_effort_of_new_agents(0.25, 2000, Strategy("one"), rule=rule, runs=50, rng=np.random.default_rng(0))
    >>> bool(np.all(effort.winner == 1)), effort.is_same_requests
    (True, False)
    """
    if len(rule.upper) != n_requests:
        raise ValueError(f"rule: made for {len(rule.upper)} requests where there are {n_requests}")
    _validate_capability(capability)
    low, high = capability

    def draw_law(size: int) -> RequestProbabilities:
        difficulties = _difficulties(rng, mean_difficulty, (size, n_requests), spread, spread_kind)
        # Annotators of an infinite pool vote independently, each with the mean capability; a fixed one has its own.
        skill = rng.uniform(low, high, (size, 1)) if strategy.name == "fixed" else (low + high) / 2
        return final_answer_probabilities((1 + skill * difficulties) / 2, strategy)

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


def draw_agents(
    mean_difficulty: float,
    n_requests: int,
    *,
    annotators: int = 100,
    spread: float = 0.1,
    spread_kind: str = "variance",
    capability: tuple[float, float] = (0.8, 1.0),
    rng: np.random.Generator,
) -> Agents:
    """Draw annotators and requests, with the parameters of `simulate_effort_of_new_agents`. The paper has 100 annotators.

    >>> drawn = draw_agents(0.25, 20, rng=np.random.default_rng(0))
    >>> drawn.capabilities.shape, drawn.difficulties.shape
    ((100,), (20,))
    """
    _validate_capability(capability)
    capabilities = rng.uniform(*capability, annotators)
    return Agents(capabilities, _difficulties(rng, mean_difficulty, n_requests, spread, spread_kind))


def simulate_effort_of_same_agents(
    agents: Agents,
    strategy: Strategy,
    *,
    rule: Boundaries,
    reading: str = "first",
    runs: int = 1000,
    rng: np.random.Generator,
) -> Effort:
    """Simulate the effort of a strategy with the same annotators and requests in all runs, as the paper's Tables 3 and 8 do.

    A majority has different annotators, "max_three" may ask one twice, and "fixed" has one for all requests of a run.
    A `rule` for another number of requests raises ValueError.

    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> agents, rule = Agents(np.ones(9), np.ones(30)), hoeffding_boundaries(30, delta=0.01)
    >>> effort = simulate_effort_of_same_agents(agents, Strategy("majority", 7), rule=rule, runs=2, rng=np.random.default_rng(0))
    >>> effort.n_labels.tolist(), effort.is_same_requests
    ([70, 70], True)
    """
    skills, difficulties = agents.capabilities, agents.difficulties
    if len(rule.upper) != len(difficulties):
        raise ValueError(f"rule: made for {len(rule.upper)} requests where there are {len(difficulties)}")
    if strategy.workers > len(skills):
        raise ValueError(f"agents: {len(skills)} annotators where a majority needs {strategy.workers}")
    if strategy.name == "majority":
        k = strategy.workers
        chosen = vote_probabilities(skills, difficulties, k)[k // 2 + 1 :].sum(axis=0)
        law = RequestProbabilities(chosen, np.zeros_like(chosen), np.zeros_like(chosen), k)
    else:
        law = final_answer_probabilities((1 + skills.mean() * difficulties) / 2, strategy)

    def draw_law(size: int) -> RequestProbabilities:
        if strategy.name != "fixed":
            return law
        own = rng.choice(skills, (size, 1))
        return final_answer_probabilities((1 + own * difficulties) / 2, strategy)

    return simulate_effort_to_decision(
        draw_law,
        rule,
        strategy,
        runs=runs,
        reading=reading,
        is_same_requests=True,
        rng=rng,
        settings={"rule": rule.name, "reading": reading, "runs": runs},
    )


def vote_probabilities(capabilities: FloatArray, difficulties: FloatArray, k: int) -> FloatArray:
    """Compute the probability of 0..k votes for A among k of the annotators, drawn without replacement; (k + 1, n).

    It is a polynomial of degree k in the difficulty, evaluated exactly at k + 1 points and interpolated.

    >>> vote_probabilities(np.array([1.0, 0.0]), np.array([1.0]), 2).round(4).tolist()
    [[0.0], [0.5], [0.5]]
    """
    nodes = np.cos((2 * np.arange(k + 1) + 1) * math.pi / (2 * k + 2))
    ways = np.zeros((k + 1, k + 1, len(nodes)))
    ways[0, 0] = 1.0
    for capability in capabilities:
        chance = (1 + capability * nodes) / 2
        # From the largest number down, so that each annotator is drawn at most once.
        for drawn in range(k, 0, -1):
            ways[drawn, 1:] += ways[drawn - 1, :-1] * chance
            ways[drawn] += ways[drawn - 1] * (1 - chance)
    at_nodes = ways[k] / special.comb(len(capabilities), k)
    fitted = np.polynomial.chebyshev.chebfit(nodes, at_nodes.T, k)
    return np.asarray(np.clip(np.polynomial.chebyshev.chebval(difficulties, fitted), 0.0, 1.0))


def _validate_capability(capability: tuple[float, float]) -> None:
    low, high = capability
    if not 0 <= low <= high <= 1:
        raise ValueError(f"capability: {low:g}..{high:g} does not lie within 0..1")


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
