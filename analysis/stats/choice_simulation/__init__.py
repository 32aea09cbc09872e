"""Simulation of pairwise choice studies: the agents of the paper, their effort, and exact tables of rules.

An annotator of capability c prefers A on a request of difficulty d with probability (1 + c d) / 2. Requests come
from a normal distribution cut to -1..1, capabilities from a uniform one. The effort of a labelling strategy needs
only the probabilities of each request's final answer, so a run costs one random number per request.

References: Thorleiksdottir et al. 2022, sections 3.1 and 4 (Tables 2 and 3); the tables of rules are by forward
recursion over the number of successes, after Schultz, Nichol, Elfring and Weed 1973.
"""

from analysis.stats.choice_simulation._agents import (
    PAPER_DIFFICULTIES,
    PAPER_STRATEGIES,
    SPREADS,
    Agents,
    draw_annotators_and_requests,
    probabilities_from_agents,
    simulate_effort_of_agents,
    simulate_effort_of_new_agents,
)
from analysis.stats.choice_simulation._exact import RuleTable, exact_verdict_probabilities, hoeffding_n_requests

__all__ = [
    "Agents",
    "PAPER_DIFFICULTIES",
    "PAPER_STRATEGIES",
    "RuleTable",
    "SPREADS",
    "draw_annotators_and_requests",
    "exact_verdict_probabilities",
    "hoeffding_n_requests",
    "probabilities_from_agents",
    "simulate_effort_of_agents",
    "simulate_effort_of_new_agents",
]
