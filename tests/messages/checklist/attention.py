"""The lines of attention checks in a draft."""

from studies.models import Question, Section
from tests.attention import add_attention, instructed
from tests.messages.checklist.drafts import on, spa


def checks(words=("Agree", "Disagree"), **columns):
    """A change: the study has attention checks, the first with these columns."""

    def change(study):
        section = add_attention(study, position=9, words=words)
        Question.objects.filter(pk=section.questions.first().pk).update(**columns)

    return change


def screening_check():
    options = instructed("Agree")["scale"]["options"]
    return {"kind": "choice", "options": [option | {"screens_out": True} for option in options]}


def _checks_among_ratings(study):
    add_attention(study, position=9)
    Section.objects.filter(study=study, purpose="attention").update(protocol="rating")


def _right_answer_elsewhere(study):
    add_attention(study, position=9)
    Section.objects.filter(study=study, purpose="attention").update(purpose="live")


CHECKLIST = {
    "Section … holds": on(spa, _checks_among_ratings),
    "Only one attention": on(spa, checks(words=["Agree"])),
    "Section …, question …: an answer": on(spa, _right_answer_elsewhere),
    "Section …, question … is an attention check. Give": on(spa, checks(scale={"kind": "text"})),
    "Section …, question … is an attention check. Make": on(spa, checks(required=False)),
    "Section …, question … is an attention check. Remove": on(spa, checks(scale=screening_check())),
}
