"""The lines of a draft that differs from the chosen plan of its size."""

from analysis.planning.inputs import inputs_from_draft
from studies.models import Section, Study
from tests import builders
from tests.messages.checklist.drafts import on, study_with
from tests.size_plans import choose, planned_size

C = "analysis/planning:"


def planned(**size):
    """A draft of two choices, with a plan of its own size or of another."""

    def make():
        study = builders.draft_study(systems=("alpha", "beta"))
        builders.add_choice(study, m=4, stopping="none")
        own = inputs_from_draft(study)
        numbers = {name: getattr(own.size, name) for name in ("protocol", "people", "prompts", "prompts_each")}
        choose(study, planned_size(study, target=own.target, **numbers | size))
        return Study.objects.get(pk=study.pk)

    return make


LINES = {
    f"{C}find_plan_problems": [
        (
            "The plan of the size is for another protocol (ranking)",
            "Plan again, or change section 1",
            on(planned(protocol="ranking")),
        ),
        (
            "The planned comparisons differ from the plan of the size in: significance level",
            "Plan again, or change them",
            on(planned(), lambda study: study.contrasts.update(level=0.01)),
        ),
    ],
    f"{C}_size_problems": [
        (
            "Planned 6 people, so a target of 7, but the target is 5",
            "Change the target to 7, or plan again",
            on(planned(), study_with(target_n=5)),
        ),
        (
            "Planned 10 prompts, but the study has 12",
            "Import or delete prompts, or plan again",
            on(planned(prompts=10)),
        ),
        (
            "Section 1 shows 2 items to each annotator, but the plan has 4",
            "Change m, or plan again",
            on(planned(), lambda study: Section.objects.filter(study=study).update(m=2)),
        ),
    ],
}
