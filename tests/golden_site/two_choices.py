"""Two choices: labelling strategies and stopping rules."""

from django.db.models import F

from analysis.report.stopping import apply_stopping_rules
from annotators.places import monitor
from studies.models import Batch, Study
from tests.builders import (
    add_choice,
    choice_study,
    draft_study,
    launched,
)

from .drafts import plan, titled
from .people import People, closed


def choosing(title: str, target_n: int, **options) -> Study:
    columns = titled(title, target_n=target_n)
    return choice_study(by=columns.pop("owner"), **columns, **options)


def stops_itself() -> Study:
    """An anytime-valid rule that decides before the budget is spent; the study closes itself."""
    study = choosing("stops itself", 60, m=6, prompts=400, settings={"strategy": "one", "stopping": "anytime"})
    people = People(study, {"alpha": 0.0, "beta": 2.2})
    for n in range(60):
        people.comes(n)
        if apply_stopping_rules(Study.objects.get(pk=study.pk))["is_over"]:
            break
    return closed(study)


def first_crossing() -> Study:
    study = choosing(
        "first crossing", 12, m=4, prompts=48, settings={"strategy": "one", "stopping": "first", "delta": 0.05}
    )
    People(study, {"alpha": 0.0, "beta": 0.8}).come(*range(12))
    return closed(study)


def majority() -> Study:
    settings = {"strategy": "majority", "workers": 3, "stopping": "stays", "allows_tie": True}
    study = choosing("majority", 12, m=4, prompts=16, margin=0.1, annotators_per_batch=3, settings=settings)
    People(study, {"alpha": 0.0, "beta": 0.5}).come(*range(12))
    return closed(study)


def max_three() -> Study:
    """Two workers for an item and a third where they disagree, from top-up batches; everybody has one criterion more."""
    settings = {"strategy": "max_three", "stopping": "anytime"}
    study = choosing("max three", 8, m=3, prompts=12, annotators_per_batch=2, settings=settings)
    people = People(study, {"alpha": 0.0, "beta": 0.4})
    people.come(*range(8))
    monitor.settle_or_top_up_study_items(Study.objects.get(pk=study.pk))
    n = 8
    while Batch.objects.filter(study=study, origin="top_up", claimed__lt=F("wanted")).exists():
        people.comes(n)
        n += 1
        monitor.settle_or_top_up_study_items(Study.objects.get(pk=study.pk))
    apply_stopping_rules(Study.objects.get(pk=study.pk))
    return closed(study)


def replayed() -> Study:
    """So many labels an item that every strategy can be drawn from them; narrow and wide margins."""
    options = {"strategy": "any", "stopping": "none", "allows_tie": True}
    study = draft_study(prompts=24, instructions="", annotators_per_batch=9, **titled("replayed", target_n=27))
    add_choice(study, m=24, pairs="all", **options)
    study.contrasts.all().delete()
    plan(study, "beta", "alpha", expected=">", margin=0.45)
    plan(study, "gamma", "alpha", expected="~", margin=0.3)
    plan(study, "gamma", "beta", expected="<", role="secondary", margin=0.2)
    launched(study)
    People(study, {"alpha": 0.0, "beta": 0.3, "gamma": 3.0}).come(*range(27))
    return closed(study)
