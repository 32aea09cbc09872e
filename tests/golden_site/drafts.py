"""What the golden studies have in common."""

from studies.models import Contrast, Item, Question, Study
from studies.services import lifecycle
from tests.builders import (
    add_choice,
    add_marks,
    add_ranking,
    add_rating,
    add_relative,
    add_spa,
    draft_study,
    user,
)

# By this institution the studies are known whose reports are compared.
GOLDEN = "golden"
STRENGTHS = {"alpha": 0.0, "beta": 0.6, "gamma": 1.1}
SKIP = [{"key": "cannot_judge", "label": "I cannot judge"}]
HINT = {"help": "Slowly, please."}


def titled(title: str, **columns) -> dict:
    return {"title": title, "seed": len(title), "owner": user("olga"), "institution": GOLDEN} | columns


def plan(study: Study, x: str = "", y: str = "", **columns) -> None:
    systems = {system.name: system for system in study.systems.all()}
    Contrast.objects.create(study=study, x=systems.get(x), y=systems.get(y), **columns)


def skippable(study: Study, *protocols: str) -> None:
    Question.objects.filter(section__study=study, section__protocol__in=protocols).update(skip_reasons=SKIP)


def amended(study: Study, reason="a hint", item: Item | None = None) -> None:
    question = Question.objects.filter(section__study=study, section__purpose="live").order_by("pk").first()
    changes = {"question": {question.pk: HINT}} | ({"item": {item.pk: {"retired": True}}} if item else {})
    lifecycle.amend(Study.objects.get(pk=study.pk), changes, user("olga"), reason=reason)


def everything_drafted(**columns) -> Study:
    study = draft_study(prompts=200, instructions="", annotators_per_batch=2, **columns)
    spa = add_spa(study, position=1, m=2)
    add_rating(study, position=2, reuses=spa, m=2)
    add_rating(study, position=3, m=3)
    for position, add in enumerate((add_relative, add_ranking, add_marks, add_choice), 4):
        study.contrasts.all().delete()
        options = {"stopping": "none", "strategy": "any", "allows_tie": True} if add is add_choice else {}
        add(study, position=position, m=6 if add in (add_relative, add_choice) else 3, **options)
    skippable(study, "rating", "relative", "two_choice")
    return study


def without_marks(**columns) -> Study:
    study = everything_drafted(**columns)
    Question.objects.filter(section__study=study, section__protocol="marks").delete()
    study.sections.filter(protocol="marks").delete()
    return study
