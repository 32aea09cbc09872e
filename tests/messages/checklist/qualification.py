"""The lines of the test before the work in a draft."""

from tests import builders
from tests.attention import instructed
from tests.messages.checklist.drafts import on, spa


def quiz(words=("Agree", "Disagree"), pass_mark=1, m=1, **question):
    """A change: the study has a quiz before it; the first question has these columns."""

    def change(study):
        section = builders.add_survey(
            study, position=9, purpose="screening", questions=[instructed(word) for word in words]
        )
        study.sections.filter(pk=section.pk).update(m=m, pass_mark=pass_mark)
        section.questions.filter(pk=section.questions.first().pk).update(**question)

    return change


CHECKLIST = {
    "is a test, but a question": on(spa, quiz(scale={"kind": "text"})),
    "is a test with … known": on(spa, quiz(pass_mark=3, m=0)),
    "is a test whose": on(spa, quiz(m=2)),
}
