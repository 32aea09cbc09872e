"""Drafts whose answers are imported."""

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
