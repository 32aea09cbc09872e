"""The lines of attention checks in a draft."""

from studies.models import Question, Section
from tests.attention import add_attention, instructed
from tests.messages.checklist.drafts import on, spa

D = "studies/design"


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


LINES = {
    f"{D}:attention_problems": [
        ("holds attention checks, which show no items", "Choose the protocol survey", on(spa, _checks_among_ratings)),
        ("Only one attention check is asked in arm all", "Add another check", on(spa, checks(words=["Agree"]))),
    ],
    f"{D}:_question_problems": [
        ("only attention checks and tests have one", "Remove the mark", on(spa, _right_answer_elsewhere)),
        ("is an attention check", "mark exactly one as right", on(spa, checks(scale={"kind": "text"}))),
        ("is an attention check", "remove its reasons to skip", on(spa, checks(required=False))),
        ("one mistake must not end the visit", "Remove the mark", on(spa, checks(scale=screening_check()))),
    ],
}
