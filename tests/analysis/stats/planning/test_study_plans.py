"""Plans of whole studies: the simulation uses the report's own analysis, and the closed form agrees with it."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from analysis.stats import choice, ratings
from analysis.stats.planning import closed_forms, simulated_studies, sizes, study_plans
from analysis.stats.planning.inputs import PROTOCOLS, StudySize, Target, Variation
from tests.analysis.stats.pairs import one_pair

SIZE = StudySize(protocol="two_choice", people=24, prompts=36, prompts_each=12)


def simulated(size, target, variation=None, runs=4, seed=0):
    variation = variation or Variation()
    rng = np.random.default_rng(seed)
    people, prompts = simulated_studies.assign_prompts(size, rng)
    values = simulated_studies.simulate_answers(size, target, variation, people, prompts, runs=runs, rng=rng)
    rows = (np.arange(size.people), None) if size.protocol == "spa" else (people, prompts)
    return values, *rows, simulated_studies.headlines(values, *rows, size, target)


def report_of(values, people, prompts, size, target):
    """Return the estimate of the function that the protocol's report calls."""
    options = {"population": target.population, "level": 1 - target.level}
    if size.protocol == "two_choice":
        return choice.annotator_weighted_preference_share(values, people, prompts, **options)
    if size.protocol == "rating":
        return ratings.probability_of_superiority(values, 1 - values, people, prompts=prompts, **options)
    if size.protocol == "spa":
        return one_pair(
            100 * values,
            100 - 100 * values,
            rng=np.random.default_rng(0),
            level=1 - target.level,
            sensitivity_resamples=9,
        )
    half = size.bounds[1]
    return ratings.paired_mean_difference(
        values, 0 * values, people, prompts=prompts, scale=(-half, half), bounds=(-half, half), **options
    )


@pytest.mark.parametrize("protocol", [one for one in PROTOCOLS if one != "spa"])
@pytest.mark.parametrize("prompts_each", [4, 36])
def test_the_means_of_people_vary_as_the_formula_says(protocol, prompts_each):
    """People who see all prompts differ less than people who see some, because prompts differ, too.

    The formula of SPA has one variance for all that makes stated chances differ.
    """
    size = replace(SIZE, protocol=protocol, prompts_each=prompts_each)
    target, variation = Target(population="people"), Variation(sd_prompts=1.2)
    found = []
    for seed in range(60):
        values, people, _, _ = simulated(size, target, variation, runs=10, seed=seed)
        means, (low, high) = simulated_studies.means_of_people(values, people, size), size.scale_ends
        found.append(means.var(axis=1, ddof=1).mean() * (high - low) ** 2)
    expected = closed_forms.variance_of_person(closed_forms.components(size, target, variation), size)
    assert np.mean(found) == pytest.approx(expected, rel=0.1)


def test_a_stopping_rule_is_that_of_the_planned_protocol_only():
    """The sizes of the other protocols are those of a plan without it."""

    def others(stopping):
        target = Target(population="people", stopping=stopping)
        parts = study_plans.plan_parts(SIZE, target, Variation(), seed=1)
        return [(one.size, one.target, one.runs) for one in parts if one.kind == "protocol"]

    assert others("anytime") == others("none") != []


@pytest.mark.slow
def test_a_claim_of_the_wrong_direction_is_one_against_the_true_difference():
    """It is as frequent where y is better as where x is, and undefined where neither is, whatever the baseline."""
    small = replace(SIZE, people=8)

    def wrong(difference, baseline=0.5, size=small):
        target = Target(difference=difference, baseline=baseline, population="people", significance=0.4)
        part = study_plans.PlanPart(kind="planned", size=size, target=target, runs=1000, seed=(1, 0))
        return study_plans.simulate_part(part, Variation()).wrong_direction

    x, y = wrong(0.53), wrong(0.47)
    assert 0.02 < x < 0.2 and y == pytest.approx(x, abs=0.05)
    assert wrong(0.5) is None
    between = StudySize(protocol="accuracy_between_conditions", people=24, prompts=36, prompts_each=12, conditions=2)
    assert wrong(0.7, 0.7, between) is None
    assert wrong(0.65, 0.7, between) < 0.2, "the second condition has fewer right answers"


@pytest.mark.parametrize("protocol", ["two_choice", "rating", "relative", "spa"])
@pytest.mark.parametrize("difference", [0.55, 0.97])
@pytest.mark.parametrize("population", ["people_and_prompts", "people"])
def test_a_plan_judges_simulated_answers_as_the_report_judges_real_ones(protocol, difference, population):
    size = replace(SIZE, protocol=protocol, people=10, prompts=12, prompts_each=6)
    target = Target(difference=difference, population=population, tests=2)
    values, people, prompts, found = simulated(size, target, runs=6)
    for run in range(6):
        one = report_of(values[run], people, prompts, size, target)
        assert found.estimate[run] == pytest.approx(one.estimate)
        assert [found.low[run], found.high[run]] == pytest.approx([one.interval.low, one.interval.high])
        assert found.is_difference[run] == (one.pvalue < target.level)


@pytest.mark.parametrize("protocol", ["two_choice", "rating", "relative", "spa", "marks"])
@pytest.mark.parametrize(("goal", "margin"), [("difference", None), ("equivalence", 0.6), ("noninferiority", 0.4)])
def test_the_live_numbers_agree_with_the_simulation(protocol, goal, margin):
    size = replace(SIZE, protocol=protocol, prompts_each=6 if protocol == "spa" else 12)
    if margin:
        margin *= {"relative": 0.6, "marks": 6}.get(protocol, 0.15)
    target = Target(difference=0.5 if goal == "equivalence" else 0.6, goal=goal, margin=margin)
    part = study_plans.PlanPart(kind="planned", size=size, target=target, runs=600, seed=(3,))
    found, quick = study_plans.simulate_part(part, Variation()), closed_forms.quick_plan(size, target, Variation())
    assert quick.power == pytest.approx(found.power, abs=0.07)
    assert quick.half_width == pytest.approx(found.half_width, rel=0.06)
    assert quick.value == pytest.approx(found.value, abs=0.4 if protocol == "marks" else 0.04)
    assert quick.population == found.population


def test_no_difference_is_found_as_often_as_the_level_says():
    part = study_plans.PlanPart(kind="null", size=SIZE, target=Target(difference=0.5), runs=1000, seed=(5,))
    assert 0.02 < study_plans.simulate_part(part, Variation()).power < 0.075


def test_with_few_prompts_more_people_do_not_help_and_more_prompts_do():
    size = StudySize(protocol="two_choice", people=12, prompts=10, prompts_each=10)
    target, variation = Target(difference=0.65), Variation()
    assert sizes.needed_people(size, target, variation) is None
    assert sizes.most_power_by_people(size, target, variation) < 0.6
    found = sizes.needed_prompts(replace(size, people=40), target, variation)
    assert found is not None and 10 < found.prompts < 100


@pytest.mark.slow
def test_a_plan_repeats_itself():
    first, again = (
        study_plans.assemble_plan(
            SIZE,
            Target(),
            Variation(),
            [
                study_plans.simulate_part(part, Variation())
                for part in study_plans.plan_parts(SIZE, Target(), Variation(), seed=4, runs=100, other_runs=50)
            ],
        )
        for _ in range(2)
    )
    assert first == again
    json.dumps(first.as_dict(), allow_nan=False)
    assert first.detectable is not None and first.detectable_error > 0
    assert [one.size.people for one in first.people] == sorted(one.size.people for one in first.people)


def test_draws_from_a_pilot_give_the_mean_power_over_the_draws():
    part = study_plans.PlanPart(kind="planned", size=SIZE, target=Target(), runs=800, seed=(6,))
    little, much = Variation(sd_people=0, sd_prompts=0.2), Variation(sd_people=0.5, sd_prompts=2)
    powers = [study_plans.simulate_part(part, one).power for one in (little, much)]
    assert study_plans.simulate_part(part, [little, much]).power == pytest.approx(np.mean(powers), abs=0.06)
    assert powers[0] > powers[1] + 0.2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replace(SIZE, protocol="guess"), "protocol: 'guess' is not one of"),
        (lambda: replace(SIZE, prompts=0), "prompts: 0 is not a whole number"),
        (lambda: replace(SIZE, people=10**6), "people: 1000000 is more than 100000. Plan a smaller study."),
        (lambda: replace(SIZE, prompts_each=40), "prompts_each: 40 is more than the 36 prompts"),
        (lambda: replace(SIZE, prompts=2000), "prompts: 24 people with 12 prompts each answer about at most 288"),
        (lambda: replace(SIZE, people=10**5, prompts_each=36), None),
        (lambda: replace(SIZE, people=10**5, prompts=90, prompts_each=90), "more than 5000000 answers"),
        (lambda: replace(SIZE, points=1), "points: 1 is not"),
        (lambda: Target(difference=1.2), "difference: 1.2 is not a probability"),
        (lambda: Target(goal="equivalence"), "margin: this goal needs a margin"),
        (lambda: Target(goal="equivalence", margin=-1), "margin: -1 is not a number above 0"),
        (lambda: Target(goal="win"), "goal: 'win' is not one of"),
        (lambda: Target(significance=0), "significance: 0 is not"),
        (lambda: Target(tests=0), "tests: 0 is not"),
        (lambda: Target(population="all"), "population: 'all' is not"),
        (lambda: Variation(sd_people=float("nan")), "sd_people: nan is not a number from 0 to 10"),
    ],
)
def test_impossible_inputs_say_what_to_change(make, message):
    if message is None:
        assert make().answers == 3_600_000
        return
    with pytest.raises(ValueError, match=message):
        make()


def test_live_numbers_load_neither_numpy_nor_scipy():
    code = "import sys, analysis.stats.planning.closed_forms; assert not {'numpy', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_plan_without_differences_of_prompts_is_the_t_test_of_statsmodels():
    # One answer of each person, on a scale without ends: the mean of normal values.
    size = StudySize(protocol="marks", people=30, prompts=30, prompts_each=1)
    target = Target(difference=0.7, population="people")
    variation = Variation(sd_people=0.0, sd_prompts=0.0)
    # Rounding to five points adds 25 / 12 to the variance of 100.
    effect = closed_forms.shift_of(0.7, variation) * 10 / (100 + 25 / 12) ** 0.5
    wanted = TTestPower().power(effect, 30, 0.05)
    part = study_plans.PlanPart(kind="planned", size=size, target=target, runs=2000, seed=(8,))
    assert study_plans.simulate_part(part, variation).power == pytest.approx(wanted, abs=0.03)
    assert closed_forms.quick_plan(size, target, variation).power == pytest.approx(wanted, abs=0.01)
