"""Plans of a study's size for tests, without their simulation."""

from analysis.planning.inputs import PlanInputs
from analysis.planning.run import FORMAT
from analysis.stats.planning.comparisons import Comparisons
from analysis.stats.planning.inputs import StudySize, Target, Variation
from analysis.stats.planning.sizes import Pace, Prices, plan_budget
from analysis.stats.planning.study_plans import SimulatedSize, assemble_plan
from studies.models import SizePlan, Study

PLANNED = {
    "power": 0.78,
    "power_error": 0.009,
    "half_width": 0.072,
    "half_width_error": 0.0004,
    "value": 0.6,
    "decided": 0.78,
    "decided_error": 0.009,
    "wrong_direction": 0.0,
    "wrong_direction_error": 0.0,
    "by_bets": 0.0,
    "population": "people_and_prompts",
    "runs": 2000,
}  # fmt: skip - one line of numbers


def planned_size(
    study: Study,
    *,
    target: Target | None = None,
    prices: Prices | None = None,
    comparisons: Comparisons | None = None,
    variation: Variation | None = None,
    **size,
) -> SizePlan:
    """Store a plan as the job would, with made-up power."""
    size = StudySize(**({"protocol": "two_choice", "people": 36, "prompts": 60, "prompts_each": 20} | size))
    target, prices, variation, pace = target or Target(), prices or Prices(), variation or Variation(), Pace()
    planned = SimulatedSize(kind="planned", size=size, difference=target.difference, **PLANNED)
    null = SimulatedSize(kind="null", size=size, difference=0.5, **PLANNED | {"power": 0.05, "wrong_direction": None})
    inputs = PlanInputs(size, target, variation, pace, prices, comparisons=comparisons or Comparisons())
    settings = {"seed": 1, "n_draws": 0, "prior": "", "method_version": inputs.method_version}
    return SizePlan.objects.create(
        study=study,
        inputs=inputs.as_json(),
        fingerprint=inputs.fingerprint(),
        seed=1,
        result={
            "format": FORMAT,
            "plan": assemble_plan(size, target, variation, [planned, null], settings=settings).as_dict(),
            "budget": plan_budget(size, pace, prices).as_dict(),
        },
    )


def choose(study: Study, plan: SizePlan) -> SizePlan:
    """Make it the plan of a draft, without the checks of the action."""
    study.size_plan = plan
    study.save()
    return plan
