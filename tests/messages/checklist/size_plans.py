"""The lines of a draft that differs from the chosen plan of its size."""

from analysis.planning.inputs import inputs_from_draft
from studies.models import Section, Study
from tests import builders
from tests.messages.checklist.drafts import on, study_with
from tests.size_plans import choose, planned_size


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


CHECKLIST = {
    "The plan of the size": on(planned(protocol="ranking")),
    "The planned comparisons": on(planned(), lambda study: study.contrasts.update(level=0.01)),
    "Planned … people": on(planned(), study_with(target_n=5)),
    "Planned … prompts": on(planned(prompts=10)),
    "Section … shows … items": on(planned(), lambda study: Section.objects.filter(study=study).update(m=2)),
}
