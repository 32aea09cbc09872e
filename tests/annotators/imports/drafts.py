"""Drafts whose answers are imported."""

from annotators.models import Response
from studies.models import Question, Study
from tests.builders import add_choice, add_rating, draft_study, user

LABELS = ["very bad", "bad", "middling", "good", "very good"]


def rating_draft(*keys: str, prompts=4, **columns) -> Study:
    """A draft that asks for ratings of two systems; with more than one key, by several criteria."""
    study = draft_study(systems=("ada", "Curie"), prompts=prompts, owner=user(), consent="", contact="", **columns)
    section = add_rating(study, position=1)
    section.questions.update(key=keys[0] if keys else "overall")
    for n, key in enumerate(keys[1:], 2):
        Question.objects.create(
            section=section, position=n, key=key, text=f"How {key} is {{label}}?", scale={"kind": "likert", "labels": LABELS}, criterion=f"{key} of the text",
        )  # fmt: skip
    return study


def choice_draft(systems=("ada", "Curie"), **settings) -> Study:
    study = draft_study(systems=systems, prompts=4, owner=user(), consent="", contact="")
    add_choice(study, strategy="any", stopping="none", **settings)
    return study


def stored(study: Study) -> set[tuple]:
    """(prompt, system, question, answer) of each answer."""
    given = Response.objects.filter(question__section__study=study).select_related(
        "item__prompt", "exposure__output__system", "chosen__output__system", "question"
    )
    return {
        (
            one.item.prompt.key if one.item else "",
            one.exposure.output.system.name if one.exposure else "",
            one.question.key,
            one.chosen.output.system.name
            if one.chosen
            else one.choice or one.text or one.skip_reason or int(one.value),
        )
        for one in given
    }


RATED = {("p000", "ada", "overall", 4), ("p000", "Curie", "overall", 2), ("p001", "ada", "overall", 5)}

QUALTRICS = (
    "StartDate,EndDate,Status,ResponseId,RecordedDate,Q1_1,Q1_2,Q2,Q3\n"
    "Start Date,End Date,Response Type,Response ID,Recorded Date,How good is it? - p000 - ada,How good is it? - p000 - Curie,{label},Age\n"
    '"{{""ImportId"":""startDate""}}","{{""ImportId"":""endDate""}}",,,,,,,\n'
    "2024-02-01 10:00:00,2024-02-01 10:05:00,IP Address,R_1,2024-02-01 10:05:01,good,very bad,3 - middling,41\n"
    "2024-02-01 11:00:00,2024-02-01 11:05:00,Survey Preview,R_2,2024-02-01 11:05:01,2,1.0,,33\n"
)
