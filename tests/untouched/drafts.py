"""Drafts that hold what a form could spoil."""

from studies.imports.study_templates import STUDY_TEMPLATES, create_draft_from_template
from studies.models import Arm, Contrast, ExclusionRule, Output, Prompt, Question, Section, Study, System
from studies.protocols import REGISTRY as PROTOCOLS
from tests import builders
from tests.untouched.values import LONG, columns_of, scales


def with_stimuli(study: Study, prompts: int = 2) -> Study:
    made = Prompt.objects.bulk_create(Prompt(study=study, key=f"p{n}", text=f"Prompt {n}.") for n in range(prompts))
    systems = list(study.systems.all())
    Output.objects.bulk_create(
        Output(system=system, prompt=prompt, text=f"Words of {system.pk}.") for prompt in made for system in systems
    )
    return study


def hard_study(owner) -> Study:
    """A draft whose every column holds what a form could spoil: blanks at ends, line breaks, gaps in numbers, other ways to write a scale."""
    # The language and the currency are pages' own words elsewhere; a cap below the target is refused.
    study = builders.draft_study(owner=owner, **columns_of(Study, ("owner", "target_n"), target_cap=9999))
    alpha, beta, gamma = study.systems.order_by("name")
    Arm.objects.filter(study=study).update(**columns_of(Arm))
    second = Arm.objects.create(study=study, name="second", wanted=3)
    second.systems.set([alpha, beta])
    Prompt.objects.filter(study=study, key="p000").update(
        **columns_of(Prompt, source=LONG, attributes={"b": LONG, "a": "1"})
    )
    Output.objects.filter(prompt__key="p001", system=alpha).update(**columns_of(Output, ("is_empty", "sample")))
    screening = Section.objects.create(study=study, position=2, protocol="survey", purpose="screening", m=0)
    Question.objects.create(
        section=screening,
        position=5,
        **columns_of(Question, ("position",), scale=next(one for one in scales() if "options" in one)),
    )
    spa = builders.add_spa(study, position=4)
    rating = builders.add_rating(study, position=7, reuses=spa)
    rating.arms.set([second])
    Contrast.objects.filter(study=study).delete()
    ranking = builders.add_ranking(study, position=9)
    Contrast.objects.filter(study=study).delete()
    # A source of texts for test questions is no system of a comparison.
    System.objects.filter(pk=alpha.pk).update(**columns_of(System) | {"reference": "minimal"})
    usual = columns_of(Contrast, ("x_condition", "y_condition", "estimand", "hypothesis"))
    Contrast.objects.create(study=study, x=alpha, y=beta, **usual)
    Contrast.objects.create(
        study=study,
        x=gamma,
        y=beta,
        section=ranking,
        estimand=next(iter(PROTOCOLS["ranking"].estimands(ranking))),
        level=0.1,
        hypothesis=Contrast.Hypothesis.SUPERIORITY_BY_MARGIN,
        margin=0.125,
    )
    Contrast.objects.create(study=study, x_condition="examples", y_condition="none")
    ExclusionRule.objects.create(
        study=study,
        rule="answered",
        position=3,
        settings={"question": screening.questions.get().key, "options": ["yes", "a|b", "c, d"]},
    )
    ExclusionRule.objects.create(study=study, rule="too_fast", position=3, settings={"z": -2})
    Study.objects.filter(pk=study.pk).update(preparation=PREPARATION)
    return Study.objects.get(pk=study.pk)


PREPARATION = {
    "prompt_filters": [
        {"filter": "has_no_question"},
        {"filter": "begins_with", "text": "Write "},
        {"filter": "begins_with", "text": "W"},
        {"filter": "has_none", "strings": ["nothing like this", " x y z "]},
    ],
    "length": {"manner": "none", "trimmed": ["beta"]},
}


def drafts(owner, media_root) -> list[Study]:
    """A draft of each template with stimuli, the odd one, and one with images."""
    made = [with_stimuli(create_draft_from_template(blueprint, owner), 1) for blueprint in STUDY_TEMPLATES]
    return [*made, hard_study(owner), builders.exposures_draft(media_root, owner=owner)]
