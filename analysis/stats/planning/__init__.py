"""Planning before the first answer: the power, precision and cost of a design.

If the test has an exact power, it is computed (`power`, `choice_simulation`, `group_sequential`). Otherwise the
study is simulated many times (`generators`). Each run is analysed by the function that will analyse the data, or
by a fast form with the same numbers. A simulated power has the error sqrt(p (1 - p) / R).

A plan depends on assumptions about annotators before the study. It is not observed power and says nothing about
data.
"""

from analysis.stats.planning._choices import plan_choice, plan_strategy
from analysis.stats.planning._clustered import clustered_mean_outcomes, two_way_clustered_mean_outcomes
from analysis.stats.planning._exact import (
    plan_group_sequential,
    plan_mean,
    plan_sequential,
    plan_share,
    plan_two_groups,
)
from analysis.stats.planning._human_likeness import plan_human_likeness
from analysis.stats.planning._leaderboard import plan_leaderboard
from analysis.stats.planning._plan import Plan, PlanOptions, Prices
from analysis.stats.planning._ratings import plan_expected_utility, plan_rating
from analysis.stats.planning._search import HALVINGS
from analysis.stats.planning._simulation import (
    BLOCKS,
    Outcomes,
    SimulationCancelled,
    one_sample_outcomes,
    outcomes_from_estimates,
    simulate,
    validate_simulation_size,
)
from analysis.stats.planning._spa import plan_spa

__all__ = [
    "BLOCKS",
    "SimulationCancelled",
    "HALVINGS",
    "PlanOptions",
    "Outcomes",
    "Plan",
    "Prices",
    "clustered_mean_outcomes",
    "one_sample_outcomes",
    "outcomes_from_estimates",
    "plan_choice",
    "plan_expected_utility",
    "plan_group_sequential",
    "plan_human_likeness",
    "plan_leaderboard",
    "plan_mean",
    "plan_rating",
    "plan_sequential",
    "plan_share",
    "plan_spa",
    "plan_strategy",
    "plan_two_groups",
    "validate_simulation_size",
    "simulate",
    "two_way_clustered_mean_outcomes",
]
