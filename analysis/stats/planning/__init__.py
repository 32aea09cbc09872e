"""Planning before the first answer: the power, precision and cost of a design.

If the test has an exact power, it is computed (`power`, `choice_simulation`, `group_sequential`). Otherwise the
study is simulated many times (`generators`). Each run is analysed by the function that will analyse the data, or
by a fast form with the same numbers. A simulated power has the error sqrt(p (1 - p) / R).

A plan depends on assumptions about annotators before the study. It is not observed power and says nothing about
data.
"""

from analysis.stats.plan_sizes import most_power_by_people, needed_people, needed_prompts, wrong_target
from analysis.stats.planning._answers import assign_prompts, simulate_answers
from analysis.stats.planning._choices import simulate_choice_power, simulate_strategy_power_and_effort
from analysis.stats.planning._clustered import clustered_mean_outcomes, two_way_clustered_mean_outcomes
from analysis.stats.planning._crossed import CrossedComponents, crossed_components
from analysis.stats.planning._exact import (
    compute_group_sequential_power,
    compute_mean_test_power,
    compute_sequential_rule_power,
    compute_share_test_power,
    compute_two_group_test_power,
)
from analysis.stats.planning._headline import Headlines, headlines
from analysis.stats.planning._human_likeness import simulate_human_likeness_power
from analysis.stats.planning._leaderboard import simulate_leaderboard_power
from analysis.stats.planning._parts import PlanPart, SimulatedSize, plan_parts, simulate_part
from analysis.stats.planning._pilot import DRAWS, PilotEstimate, estimate_pilot
from analysis.stats.planning._plan import Plan, PlanOptions, Prices
from analysis.stats.planning._ratings import simulate_expected_utility_power, simulate_rating_power
from analysis.stats.planning._search import HALVINGS
from analysis.stats.planning._simulation import (
    BLOCKS,
    Outcomes,
    SimulationCancelled,
    one_sample_t_test_outcomes,
    outcomes_from_estimates,
    simulate,
    validate_simulation_size,
)
from analysis.stats.planning._spa import simulate_spa_power
from analysis.stats.planning._study import StudyPlan, assemble_plan, plan_study

__all__ = [
    "DRAWS",
    "CrossedComponents",
    "PilotEstimate",
    "crossed_components",
    "estimate_pilot",
    "Headlines",
    "PlanPart",
    "SimulatedSize",
    "StudyPlan",
    "assemble_plan",
    "assign_prompts",
    "headlines",
    "most_power_by_people",
    "needed_people",
    "needed_prompts",
    "plan_parts",
    "plan_study",
    "simulate_answers",
    "simulate_part",
    "wrong_target",
    "BLOCKS",
    "SimulationCancelled",
    "HALVINGS",
    "PlanOptions",
    "Outcomes",
    "Plan",
    "Prices",
    "clustered_mean_outcomes",
    "one_sample_t_test_outcomes",
    "outcomes_from_estimates",
    "simulate_choice_power",
    "simulate_expected_utility_power",
    "compute_group_sequential_power",
    "simulate_human_likeness_power",
    "simulate_leaderboard_power",
    "compute_mean_test_power",
    "simulate_rating_power",
    "compute_sequential_rule_power",
    "compute_share_test_power",
    "simulate_spa_power",
    "simulate_strategy_power_and_effort",
    "compute_two_group_test_power",
    "validate_simulation_size",
    "simulate",
    "two_way_clustered_mean_outcomes",
]
