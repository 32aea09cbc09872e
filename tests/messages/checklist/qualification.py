"""The lines of the test before the work in a draft."""

from tests import builders
from tests.attention import instructed
from tests.messages.checklist.drafts import on, spa

D = "studies/design"


def quiz(words=("Agree", "Disagree"), pass_mark=1, m=1, **question):
    """A change: the study has a quiz before it; the first question has these columns."""

    def change(study):
        section = builders.add_survey(
            study, position=9, purpose="screening", questions=[instructed(word) for word in words]
        )
        study.sections.filter(pk=section.pk).update(m=m, pass_mark=pass_mark)
        section.questions.filter(pk=section.questions.first().pk).update(**question)

    return change


LINES = {
    f"{D}:pass_mark_problems": [
        ("a question has no right answer", "Mark exactly one answer", on(spa, quiz(scale={"kind": "text"}))),
        ("with 2 known answers, but its pass mark is 3", "Lower the pass mark", on(spa, quiz(pass_mark=3, m=0))),
        ("repeats the first in another order", "Add known answers", on(spa, quiz(m=2))),
    ],
}
