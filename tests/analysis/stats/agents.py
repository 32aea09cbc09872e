"""The simulation of Thorleiksdottir et al. 2021 as published: one pool of annotators and one draw of requests for all runs.

heval's planner draws both anew in every run (`choice.simulate_effort_of_new_agents`), so only reproductions
of the paper's Tables 3 and 8 need this.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from analysis.stats import choice
from analysis.stats.choice import RequestProbabilities, Strategy, simulate_effort_to_decision
from analysis.stats.stopping_boundaries import hoeffding_boundaries

# The five rows of Table 3, from the costliest to the cheapest.
STRATEGIES = {
    "7 Workers": Strategy("majority", 7),
    "5 Workers": Strategy("majority", 5),
    "Max 3 Workers": Strategy("max_three"),
    "Fixed Worker": Strategy("fixed"),
    "One Worker": Strategy("one"),
}
# The columns of Table 2: mean difficulty and number of requests.
SD = math.sqrt(0.1)
DIFFICULTIES = {0.25: 3500, 0.125: 5000, 0.0625: 15000}


@dataclass(frozen=True, slots=True)
class Agents:
    """Annotators and requests: `capabilities` (W,) in 0..1, `difficulties` (n,) in -1..1, positive if A is better."""

    capabilities: np.ndarray
    difficulties: np.ndarray


def published_agents(mean, *, capability_from=0.8, n=None, sd=SD):
    """The stream of random numbers that the printed tables came from: capabilities first, then the requests."""
    stream = np.random.RandomState(21)
    capabilities = stream.uniform(capability_from, 1, 100)
    return Agents(capabilities, np.clip(stream.normal(mean, sd, 30_000), -1, 1)[: n or DIFFICULTIES[mean]])


def new_agents(mean, n, rng):
    """Another draw of a hundred annotators and n requests."""
    return Agents(rng.uniform(0.8, 1.0, 100), np.clip(rng.normal(mean, SD, n), -1, 1))


def probabilities(agents, strategy):
    """Of the final answers. Majorities are of different annotators; "max_three" may ask one twice, as in the paper."""
    if strategy.name == "majority":
        k = strategy.workers
        chosen = votes(agents.capabilities, agents.difficulties, k)[k // 2 + 1 :].sum(axis=0)
        return RequestProbabilities(chosen, np.zeros_like(chosen), np.zeros_like(chosen), k)
    alone = (1 + agents.capabilities.mean() * agents.difficulties) / 2
    return choice.final_answer_probabilities(alone, strategy)


def votes(capabilities, difficulties, k):
    """The probability of 0..k votes for A among k of the annotators, drawn without replacement; (k + 1, n).

    It is a polynomial of degree k in the difficulty, evaluated exactly at k + 1 points and interpolated.
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
    return np.clip(np.polynomial.chebyshev.chebval(difficulties, fitted), 0.0, 1.0)


def simulated_effort(agents, strategy, *, rule=None, reading="stays", runs=1000, rng):
    """Labels until the decision, by Hoeffding's lower bound at .999 and the crossing that stays, as published."""
    n = len(agents.difficulties)
    rule = hoeffding_boundaries(n, delta=0.001, sides="a") if rule is None else rule
    if strategy.name == "fixed":
        chances = (1 + agents.capabilities[:, None] * agents.difficulties[None, :]) / 2

        def draw_law(size):
            own = chances[rng.integers(0, len(chances), size)]
            return choice.final_answer_probabilities(own, strategy)
    else:
        law = probabilities(agents, strategy)

        def draw_law(size):
            return law

    return simulate_effort_to_decision(
        draw_law, rule, strategy, runs=runs, reading=reading, is_same_requests=True, rng=rng
    )
