"""Planning before the first answer: what a study of this size can and cannot find.

`plan_parts` are the sizes to simulate. `simulate_part` simulates whole studies of one (`plan_inputs`: size, target,
variation) and judges each with the analysis of the report, over people and prompts. `assemble_plan` makes the plan. `quick_power` has the same numbers in closed form, approximately. Classical tests
have their exact power in `power`. A simulated power has the Monte-Carlo error sqrt(p (1 - p) / R).

A plan depends on assumptions about annotators before the study. It is not observed power and says nothing about data.
"""

from analysis.stats.plan_sizes import most_power_by_people, needed_people, needed_prompts, wrong_target
from analysis.stats.planning._answers import assign_prompts, simulate_answers
from analysis.stats.planning._anytime import anytime_headlines, evidence_after_each_person, means_of_people
from analysis.stats.planning._comparisons import SimulatedClaim, SimulatedClaims, shown_claims, simulate_claims
from analysis.stats.planning._crossed import CrossedComponents, crossed_components
from analysis.stats.planning._group_sequential import compute_group_sequential_power
from analysis.stats.planning._headline import Headlines, headlines
from analysis.stats.planning._judge import headlines_between_conditions, judge_studies
from analysis.stats.planning._parts import PlanPart, SimulatedSize, plan_parts, simulate_part
from analysis.stats.planning._pilot import DRAWS, PilotEstimate, estimate_pilot
from analysis.stats.planning._plan import Plan, PlanOptions
from analysis.stats.planning._strategies import STRATEGIES, StrategyPlan, plan_labelling_strategies
from analysis.stats.planning._study import StudyPlan, assemble_plan

__all__ = [
    "DRAWS",
    "CrossedComponents",
    "PilotEstimate",
    "crossed_components",
    "estimate_pilot",
    "STRATEGIES",
    "Headlines",
    "Plan",
    "PlanOptions",
    "PlanPart",
    "SimulatedClaim",
    "SimulatedClaims",
    "SimulatedSize",
    "StrategyPlan",
    "StudyPlan",
    "anytime_headlines",
    "assemble_plan",
    "assign_prompts",
    "compute_group_sequential_power",
    "evidence_after_each_person",
    "headlines",
    "headlines_between_conditions",
    "judge_studies",
    "means_of_people",
    "most_power_by_people",
    "needed_people",
    "needed_prompts",
    "plan_labelling_strategies",
    "plan_parts",
    "shown_claims",
    "simulate_answers",
    "simulate_claims",
    "simulate_part",
    "wrong_target",
]
