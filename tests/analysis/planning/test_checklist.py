"""The checklist of a draft says where it differs from the chosen plan of its size."""

from dataclasses import replace

import pytest

from analysis.planning.checklist import find_plan_problems
from analysis.planning.inputs import inputs_from_draft
from studies.models import Prompt, Section, Study
from tests.builders import add_choice, add_ranking, draft_study
from tests.size_plans import choose, planned_size

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    """A draft with the plan that follows from it: 40 of 43 people count, who each see 4 of 12 prompts."""
    study = draft_study(systems=("alpha", "beta"), target_n=40)
    add_choice(study, m=4, stopping="none")
    inputs = inputs_from_draft(study)
    size = {name: getattr(inputs.size, name) for name in ("people", "prompts", "prompts_each")}
    choose(study, planned_size(study, target=inputs.target, **size))
    Study.objects.filter(pk=study.pk).update(target_n=study.size_plan.result["budget"]["finishing"])
    return Study.objects.get(pk=study.pk)


def texts(study) -> list[str]:
    study = Study.objects.get(pk=study.pk)
    return [problem.text for problem in find_plan_problems(Study, study)]


def test_a_draft_as_planned_has_no_warning_and_one_without_a_plan_neither(study):
    assert texts(study) == []
    assert texts(draft_study(title="Without a plan")) == []


def test_each_part_that_differs_is_a_warning(study):
    Study.objects.filter(pk=study.pk).update(target_n=12)
    Section.objects.filter(study=study).update(m=2)
    Prompt.objects.create(study=study, key="more")
    study.contrasts.update(level=0.01, population="people")
    assert texts(study) == [
        "Planned 40 people, so a target of 43, but the target is 12. Change the target to 43, or plan again.",
        "Planned 12 prompts, but the study has 13. Import or delete prompts, or plan again.",
        "Section 1 (Two choices) shows 2 items to each annotator, but the plan has 4. Change m, or plan again.",
        "The planned comparisons differ from the plan of the size in: significance level, population of the claim. Plan again, or "
        "change them.",
    ]


def test_kept_annotators_are_as_many_as_planned(study):
    Study.objects.filter(pk=study.pk).update(target_kind="kept", target_n=12)
    assert "Planned 40 people, but the target is 12. Change the target to 40, or plan again." in texts(study)


def test_a_plan_of_another_protocol_is_the_only_warning():
    study = draft_study()
    add_ranking(study)
    choose(study, planned_size(study))
    assert texts(study) == [
        "The plan of the size is for another protocol (two_choice). Plan again, or change section 1 (Ranking of a prompt's outputs, ties allowed)."
    ]


def test_prompts_that_few_people_cannot_reach_are_planned_as_left_out(study):
    size = replace(inputs_from_draft(study).size, people=2, prompts=8)
    plan = planned_size(study, people=2, prompts=8, prompts_each=size.prompts_each)
    choose(study, plan)
    assert not any("prompts, but" in text for text in texts(study))
