"""The lines of the test before the work in a draft."""

from studies.models import Qualification
from tests import builders
from tests.attention import instructed
from tests.messages.checklist.drafts import on, spa, study_with, trained
from tests.messages.lines import At


def quiz(words=("Agree", "Disagree"), pass_mark=1, m=1, **question):
    """A change: the study has a quiz before it; the first question has these columns."""

    def change(study):
        section = builders.add_survey(
            study, position=9, purpose="screening", questions=[instructed(word) for word in words]
        )
        study.sections.filter(pk=section.pk).update(m=m, pass_mark=pass_mark)
        section.questions.filter(pk=section.questions.first().pk).update(**question)

    return change


def asks_for_test_of_draft(study):
    """The study asks for the qualification of a test that only another draft has."""
    owner = study.owner or builders.user("owner")
    named = Qualification.objects.create(owner=owner, name="trained", valid_days=9)
    other = builders.draft_study(owner=owner)
    quiz()(other)
    other.sections.filter(pass_mark__isnull=False).update(qualification=named)
    study_with(owner=owner, required_qualification="trained")(study)


def repeats_practice(study):
    """The live section asks about the practice items, whose authors people learned."""
    study.sections.filter(purpose="live").update(reuses=study.sections.get(purpose="training"))


CHECKLIST = {
    "is a test, but a question": on(spa, quiz(scale={"kind": "text"})),
    "is a test with … known": on(spa, quiz(pass_mark=3, m=0)),
    "Nobody can have": At("#id_required_qualification", on(spa, study_with(required_qualification="trained"))),
    "Nobody has the": At("#id_required_qualification", on(spa, asks_for_test_of_draft)),
    "repeats practice items": At("/change/", on(trained, repeats_practice)),
    "is a test whose": on(spa, quiz(m=2)),
}
