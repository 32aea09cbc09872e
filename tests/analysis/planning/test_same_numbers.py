"""Forecast, default and result are the same study: each page says the same minutes, pay and power, and the report's function has this power."""

import math
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from django.urls import reverse

from analysis.planning.inputs import PlanInputs, inputs_from_draft
from analysis.planning.results import compare_sequential
from analysis.planning.run import choose_plan, compute_plan
from analysis.protocols import headline_name, planned_protocols
from analysis.stats import clusters, sequential
from analysis.stats.planning.closed_forms import bets_power, quick_plan, smallest_difference
from analysis.stats.planning.inputs import EQUIVALENCE, GOALS, PROTOCOLS, StudySize, Target, Variation
from analysis.stats.planning.simulated_studies import assign_prompts, evidence_after_each_person, simulate_answers
from analysis.stats.planning.study_plans import PlanPart, simulate_part
from studies.design.workload import minutes_text
from studies.models import Section, Study, StudyMember
from studies.models.design import REGISTRY as RULES
from studies.protocols import REGISTRY
from studies.protocols.base.fields import values_of_new_row
from tests.builders import add_choice, add_rating, draft_study, user
from tests.samples import sample_draft

from .quick import words

STUDIES = 300
# A design: protocol, settings that differ from those of a new section, and columns of the study.
DESIGNS = {
    **{slug: (slug, {}, {}) for slug in planned_protocols()},
    "anytime": ("two_choice", {"stopping": "anytime"}, {}),
    "volunteers": ("rating", {}, {"reward": 0}),
    "no reward": ("two_choice", {}, {"reward": None}),
    "no reward, own wage": ("rating", {}, {"reward": None, "wage_per_hour": 20}),
    "several batches": ("rating", {}, {"batches_per_annotator": 2}),
    "kept": ("ranking", {}, {"target_kind": "kept"}),
    "rules": ("two_choice", {}, {"rules": True}),
}


def designed(name: str) -> Study:
    """A draft whose section has the settings of a new one."""
    slug, settings, columns = DESIGNS[name]
    protocol, draft = REGISTRY[slug], sample_draft(slug, 4, 12)
    own = protocol.settings_of_new_section() | dict(protocol.sample.settings) | settings
    Section.objects.filter(study=draft).update(settings=own)
    owner = user("owner")
    StudyMember.objects.create(study=draft, user=owner, role="owner")
    Study.objects.filter(pk=draft.pk).update(
        owner=owner, **{key: value for key, value in columns.items() if key != "rules"}
    )
    if "rules" in columns:
        draft.exclusion_rules.create(
            rule="too_fast", position=1, settings=values_of_new_row(RULES["too_fast"].settings_form)
        )
    return Study.objects.get(pk=draft.pk)


def only(pattern: str, text: str) -> set[str]:
    found = set(re.findall(pattern, text))
    assert found, (pattern, text[:3000])
    return found


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(DESIGNS))
def test_every_page_says_the_same_minutes_pay_people_and_power(name, client, few_runs):
    study = designed(name)
    client.force_login(study.owner)
    design = words(client.get(reverse("admin:studies_study_change", args=[study.pk])))
    launch_page = client.get(reverse("study_launch", args=[study.pk]))
    launch, cost = words(launch_page), launch_page.context["cost"]
    live = client.get(reverse("admin:studies_plan", args=[study.pk]))
    plan = words(live)
    inputs = live.context["form"].inputs
    parts = study.batches_per_annotator

    # Minutes: those of the median batch, in the table of batches and in the plan's sentence.
    (row,) = (row for row in launch_page.context["batch_burdens"] if row.name in ("median", "every batch"))
    median = row.burden
    assert f"{row.name} {median.words} {median.questions} {median.minutes_text} " in design
    assert f"{row.name} {median.words} {median.questions} {median.minutes_text} " in launch
    (said,) = only(r", ([\d.]+) minutes(?:, [\d,]+ USD)?\. ", plan)
    assert float(said) == float(minutes_text(median.minutes * parts))

    # Pay: what one gets, an hour of it, and all of it.
    if study.reward == 0:
        assert "USD" not in plan[plan.index("Who starts, finishes and counts") :][:200] and "nobody is paid" in launch
    else:
        (each,) = only(r"Each gets ([\d.]+) USD", plan)
        (total,) = only(r"Pay ([\d,]+) USD", plan)
        assert only(r"minutes, ([\d,]+) USD", plan) == {total}
    if study.reward is None:
        hourly = study.wage_per_hour or 12
        assert each == f"{median.minutes * parts * float(hourly) / 60:.2f}" and cost.total is None
    elif study.reward:
        assert Decimal(each) == cost.reward * parts and f"{cost.reward:.2f} each" in launch
        assert total == f"{cost.total:,.0f}" and f"{cost.total:.2f} USD at the target" in launch
        assert median.per_hour == pytest.approx(float(each) * 60 / (median.minutes * parts), abs=0.01)

    # People and power, with the declared rule.
    finishing = int(only(r"start, (\d+) finish", plan).pop())
    assert finishing * parts == study.target_n
    power = only(r"(?:F|f)inds [^.]*? with (.{1,20}?) power \(approximate\)", plan)
    for page in (design, launch):
        assert only(r"(?:F|f)inds [^.]*? with (.{1,20}?) power \(approximate\)", page) == power
    is_anytime = name == "anytime"
    for page in (design, launch, plan):
        assert ("With the anytime-valid stopping rule" in page) == is_anytime

    if name in ("two_choice", "anytime", "spa"):  # after the simulation, the simulated number, also of a chosen plan
        stored = compute_plan(study, study.owner, inputs)
        other = compute_plan(study, study.owner, replace(inputs, target=replace(inputs.target, difference=0.8)))
        for plan in (stored, other):
            choose_plan(study, plan, study.owner, sets_target=True)
            pages = {
                url: words(client.get(reverse(url, args=[study.pk])))
                for url in ("admin:studies_study_change", "study_launch", "admin:studies_plan")
            }
            shown = [only(r"inds [^.]*? with (.{1,20}?) power \(simulated\)", page) for page in pages.values()]
            assert shown[0] == shown[1] == shown[2], (plan.inputs, shown)
        planned, designs = stored.result["plan"]["planned"], stored.result["sequential"]["designs"]
        if is_anytime:
            (row,) = (one for one in designs if one["name"] == "anytime")
            assert abs(planned["power"] - row["power"]) <= 3 * (planned["power_error"] + row["power_error"]) + 0.02


@pytest.mark.django_db
def test_two_criteria_and_three_systems_take_their_own_minutes():
    """The pace is that of the design: three outputs to read and two answers about each."""
    study = draft_study(systems=("alpha", "beta", "gamma"), prompts=60, target_n=12)
    section = add_rating(study, position=1, m=10)
    one = section.questions.get()
    section.questions.create(position=2, key="second", text="Is it clear?", scale=one.scale, criterion="clarity")
    pace = inputs_from_draft(study).pace
    assert (pace.outputs_per_prompt, pace.answers_per_prompt, pace.other_minutes) == (3, 6, pytest.approx(0, abs=0.1))


SIZES = {
    slug: StudySize(protocol=headline_name(slug), people=24, prompts=30, prompts_each=10)
    if slug != "spa"
    else StudySize(protocol="spa", people=24, prompts=96, prompts_each=4)
    for slug in planned_protocols()
}
TARGETS = {slug: Target(difference=0.65) for slug in SIZES}
SIZES["anytime"] = StudySize(protocol="two_choice", people=24, prompts=30, prompts_each=10)
TARGETS["anytime"] = Target(difference=0.67, stopping="anytime", population="people")


def reported(values, people, prompts, size: StudySize, target: Target) -> bool:
    """Whether the report of one study claims a difference, by the function that analyses reports."""
    if target.stopping == "anytime":
        means = np.array([values[people == person].mean() for person in range(size.people)])
        return sequential.sequential_test(means, level=1 - target.level).verdict in ("a_better", "b_better")
    options = {"null": size.null, "level": 1 - target.level, "bounds": size.bounds, "analysis": "test"}
    if size.kind == "chance":
        one = clusters.clustered_mean(values, np.arange(size.people), **options)
    else:
        one = clusters.annotator_prompt_clustered_mean(values, people, prompts, **options)
    return one.pvalue is not None and one.pvalue < target.level


@pytest.mark.parametrize("name", sorted(SIZES))
def test_the_plan_has_the_power_of_the_reports_own_function(name):
    size, target = SIZES[name], TARGETS[name]
    planned = simulate_part(PlanPart(kind="planned", size=size, target=target, runs=2000, seed=(1, 0)), Variation())
    rng = np.random.default_rng(5)
    claims = []
    for _ in range(STUDIES):
        people, prompts = assign_prompts(size, rng)
        (values,) = simulate_answers(size, target, Variation(), people, prompts, runs=1, rng=rng)
        claims.append(reported(values, people, prompts, size, target))
    power = np.mean(claims)
    error = math.sqrt(planned.power * (1 - planned.power) / STUDIES + planned.power_error**2)
    assert abs(power - planned.power) <= 2 * error, (power, planned.power, error)
    assert 0.1 < planned.power < 0.95, "a power near 0 or 1 tests nothing"


def test_the_approximate_power_of_bets_follows_the_simulated_one():
    for people, difference in ((12, 0.9), (24, 0.67), (36, 0.6), (36, 0.67), (80, 0.55), (300, 0.55)):
        size = StudySize(protocol="two_choice", people=people, prompts=60, prompts_each=10)
        target = Target(difference=difference, stopping="anytime", population="people")
        simulated = simulate_part(
            PlanPart(kind="planned", size=size, target=target, runs=400, seed=(1, 0)), Variation()
        )
        assert abs(quick_plan(size, target, Variation()).power - simulated.power) < 0.1, (people, difference)


def test_bets_of_many_studies_are_those_of_one():
    rng = np.random.default_rng(2)
    means = rng.random((20, 15))
    evidence = evidence_after_each_person(means, 0.5, 0.05)
    for row, found in zip(means, evidence, strict=True):
        one = sequential.sequential_test(row)
        assert found[(one.stopped_at or len(row)) - 1] == pytest.approx(
            max(one.estimate.test.statistic, found[0]), abs=1e-9
        )
    assert bets_power(0.5, 0.05, 60, 0.5, 0.05) < 0.06


def test_the_default_of_a_new_section_finds_what_the_rule_did_not():
    """Twelve people with ten pairs each: the rule finds next to nothing, the fixed size of a new section some of it."""
    size, target = StudySize(protocol="two_choice", people=12, prompts=40, prompts_each=10), Target(difference=0.67)
    fixed = quick_plan(size, target, Variation()).power
    assert (
        quick_plan(size, replace(target, stopping="anytime", population="people"), Variation()).power
        < 0.05
        < 0.5
        < fixed
    )


@pytest.mark.slow
@pytest.mark.django_db
def test_the_way_out_stays_after_the_simulation(few_runs):
    """Where neither people nor prompts alone are enough, both together are named, with their simulated power."""
    study = draft_study(systems=("alpha", "beta"), prompts=12, target_n=12)
    add_choice(study, m=6, stopping="none")
    inputs = inputs_from_draft(study)
    inputs = replace(inputs, size=replace(inputs.size, people=12, prompts=12, prompts_each=6))
    plan = compute_plan(study, None, inputs)
    both = plan.result["plan"]["needed_both"]
    assert plan.result["plan"]["needed_people"] is None and plan.result["plan"]["needed_prompts"] is None
    said = " ".join(plan.result["advice"])
    assert (
        f"Both together help: with {both['size']['people']} people and {both['size']['prompts']} prompts the power is"
        in said
    )


@pytest.mark.slow
@pytest.mark.parametrize("goal", [goal for goal in GOALS if goal != EQUIVALENCE])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_fixed_design_beside_sequential_ones_is_the_planned_one(protocol, goal):
    """Its power is that of the formula for exactly these prompts, and its wrong claims are those of the level."""
    size = StudySize(protocol=protocol, people=60, prompts=40, prompts_each=8)
    se = quick_plan(size, Target(difference=0.5, population="people"), Variation()).se
    target = Target(goal=goal, margin=None if goal == "difference" else 2 * se, population="people", wanted=0.7)
    target = replace(target, difference=smallest_difference(size, target, Variation()))
    designs = compare_sequential(PlanInputs(size, target), seed=1)["designs"]
    fixed, *group, anytime = designs
    assert fixed["power"] == pytest.approx(0.7, abs=0.05)
    assert all(one["power"] <= fixed["power"] + 0.03 for one in group)
    assert fixed["wrong"] == pytest.approx(0.05 if goal == "difference" else 0.025, abs=0.015)
    assert anytime["wrong"] <= anytime["power"] < fixed["power"] and anytime["wrong"] < 0.05
