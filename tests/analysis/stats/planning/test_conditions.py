"""Plans of people in two conditions: judged as the report judges them, and as the formulas say."""

import numpy as np
import pytest

from analysis.stats import cell_contrasts, detection
from analysis.stats.planning import simulated_studies, study_plans
from analysis.stats.planning.closed_forms import quick_plan, smallest_difference
from analysis.stats.planning.inputs import StudySize, Target, Variation
from analysis.stats.planning.sizes import needed_people, wrong_target

ACCURACY, SENSITIVITY = "accuracy_between_conditions", "sensitivity_between_conditions"


def sized(protocol: str, people: int, prompts: int, each: int, conditions: int = 2) -> StudySize:
    return StudySize(protocol=protocol, people=people, prompts=prompts, prompts_each=each, conditions=conditions)


def report_of(size: StudySize, target: Target, correct, who, what):
    """What `protocols.humanlike` calls for a planned comparison of two conditions."""
    arms = np.where(who < size.people_each, "x", "y")
    level = 1 - target.level
    if size.kind == "accuracy":
        return cell_contrasts.cell_contrast(correct, arms, {"x": 1.0, "y": -1.0}, who, what, level=level, bounds=(0, 1))
    truth = what % 2
    says = np.where(truth == 1, correct, 1 - correct)
    found = detection.d_prime_and_criterion_by_condition(says, truth, who, arms, what, reference="y", level=level)
    return found.sensitivity_differences[0]


@pytest.mark.parametrize("protocol", [ACCURACY, SENSITIVITY])
@pytest.mark.parametrize(
    "people, prompts, each, conditions", [(40, 12, 5, 2), (47, 17, 4, 3), (30, 4, 3, 2), (5, 12, 5, 2)]
)
def test_a_simulated_study_is_judged_as_the_report_judges_it(protocol, people, prompts, each, conditions):
    size, target = sized(protocol, people, prompts, each, conditions), Target(tests=2, difference=0.7)
    rng = np.random.default_rng(people)
    who, what = simulated_studies.assign_prompts(size, rng)
    assert len(set(who)) == 2 * size.people_each, "a condition that is not compared has people"
    correct = simulated_studies.simulate_answers(size, target, Variation(), who, what, runs=5, rng=rng)
    ours = simulated_studies.judge_studies(correct, who, what, size, target)
    for run in range(5):
        one = report_of(size, target, correct[run], who, what)
        assert ours.estimate[run] == pytest.approx(one.estimate)
        assert ours.pvalue[run] == pytest.approx(1.0 if one.pvalue is None else one.pvalue)
        assert ours.is_difference[run] == (one.pvalue is not None and one.pvalue < target.level)
        ends = (np.nan, np.nan) if one.interval is None else (one.interval.low, one.interval.high)
        assert (ours.low[run], ours.high[run]) == pytest.approx(ends, nan_ok=True)


@pytest.mark.parametrize("protocol", [ACCURACY, SENSITIVITY])
@pytest.mark.parametrize("people, prompts, each, difference", [(260, 60, 5, 0.58), (80, 40, 10, 0.6)])
def test_the_formulas_agree_with_simulated_studies(protocol, people, prompts, each, difference):
    size, target = sized(protocol, people, prompts, each), Target(difference=difference, baseline=0.48)
    part = study_plans.PlanPart(kind="planned", size=size, target=target, runs=1000, seed=(7,))
    found, quick = study_plans.simulate_part(part, Variation()), quick_plan(size, target, Variation())
    assert abs(found.power - quick.power) < 0.03 + 3 * found.power_error
    assert found.half_width == pytest.approx(quick.half_width, rel=0.05)
    wrong = study_plans.PlanPart(
        kind="null", size=size, target=wrong_target(size, target, Variation()), runs=1000, seed=(8,)
    )
    assert study_plans.simulate_part(wrong, Variation()).power < 0.07


def test_prompts_leave_the_difference_of_conditions_and_people_do_not():
    def power(**sds) -> float:
        return quick_plan(sized(ACCURACY, 80, 40, 10), Target(), Variation(**sds)).power

    assert power(sd_prompts=0.7) >= power(sd_prompts=0.1), (
        "differences between prompts widen the difference of conditions"
    )
    assert power(sd_people=1.0) < power(sd_people=0.1) - 0.2


def test_other_sizes_start_at_the_baseline():
    size, target = sized(ACCURACY, 200, 40, 10), Target(baseline=0.7, difference=0.8)
    assert 0.7 < smallest_difference(size, target, Variation()) < 0.8
    enough = needed_people(size, target, Variation())
    assert quick_plan(enough, target, Variation()).power >= 0.8 and enough.conditions == 2
    assert wrong_target(size, target, Variation()).difference == 0.7


def test_conditions_are_possible_only_between_conditions():
    with pytest.raises(ValueError, match="conditions: 2 is not possible here. Enter 1"):
        sized("two_choice", 40, 40, 10)
    with pytest.raises(ValueError, match="conditions: 1 is not possible here. Enter a number from 2 to 40"):
        sized(ACCURACY, 40, 40, 10, 1)
    with pytest.raises(ValueError, match="baseline: 1.0 is not a probability"):
        Target(baseline=1.0)
