"""The simulation of Thorleiksdottir et al. 2021 as published: one pool of annotators and one draw of requests for all runs.

`simulate_effort_of_same_agents` simulates such a draw. Here are the draw of the printed tables, and their rule.
"""

import math

import numpy as np

from analysis.stats.agents import Agents, simulate_effort_of_same_agents
from analysis.stats.choice import Strategy
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


def published_agents(mean, *, capability_from=0.8, n=None, sd=SD):
    """The stream of random numbers that the printed tables came from: capabilities first, then the requests."""
    stream = np.random.RandomState(21)
    capabilities = stream.uniform(capability_from, 1, 100)
    return Agents(capabilities, np.clip(stream.normal(mean, sd, 30_000), -1, 1)[: n or DIFFICULTIES[mean]])


def simulated_effort(agents, strategy, *, rule=None, reading="stays", runs=1000, rng):
    """Labels until the decision, by Hoeffding's lower bound at .999 and the crossing that stays, as published."""
    rule = hoeffding_boundaries(len(agents.difficulties), delta=0.001, sides="a") if rule is None else rule
    return simulate_effort_of_same_agents(agents, strategy, rule=rule, reading=reading, runs=runs, rng=rng)
