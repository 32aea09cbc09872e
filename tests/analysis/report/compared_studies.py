"""Studies of every protocol with planned comparisons, answered by robots, and a small one of ratings with known answers."""

from annotators.participation.simulate import record_simulated_answers
from studies.models import Study
from studies.services import lifecycle
from tests.analysis.protocols.answers import answer
from tests.analysis.report.reported import closed
from tests.builders import (
    add_choice,
    add_marks,
    add_ranking,
    add_rating,
    add_relative,
    add_section,
    add_spa,
    draft_study,
    launched,
)

WORTH = {"alpha": 0.0, "beta": 2.5, "gamma": 1.0}
ROBOTS = {"resamples": 99, "origins": ["robot"]}


def compared(add, **options):
    def build(study):
        add(study, position=1, m=4, **options)
        if not study.contrasts.exists():
            x, y = study.systems.order_by("name")[:2]
            study.contrasts.create(x=y, y=x, expected=">")

    return build


PROTOCOLS = {
    "rating": compared(add_rating),
    "rating of one output": compared(add_rating, shown="one"),
    "two_choice": compared(add_choice, stopping="none", strategy="any"),
    "ranking": compared(add_ranking),
    "relative": compared(add_relative),
    "marks": compared(add_marks),
    "spa": compared(add_spa),
}
WITHOUT = {
    "two_choice_anytime": compared(add_choice, stopping="anytime", strategy="any"),
    "best_worst": lambda study: compared(lambda study, **options: add_section(study, "best_worst", **options))(study),
}


def simulated(add, people=16, rules=(), contrast=None, families=()):
    study = draft_study(
        systems=("alpha", "beta", "gamma"), prompts=10, target_n=people, annotators_per_batch=2, instructions=""
    )
    add(study)
    study.contrasts.update(**(contrast or {}))
    for position, (rule, role) in enumerate(rules, 1):
        study.exclusion_rules.create(rule=rule, role=role, position=position)
    for name, adjustment in families:
        study.comparison_families.create(name=name, adjustment=adjustment)
    study = launched(study)
    record_simulated_answers(study, people, WORTH)
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return Study.objects.get(pk=study.pk)


def rated(people=14, rules=(), **options):
    study = draft_study(systems=("alpha", "beta"), target_n=people, annotators_per_batch=1)
    add_rating(study, position=1, m=1)
    x, y = study.systems.order_by("name")
    study.contrasts.create(x=y, y=x, expected=">")
    for position, (rule, role) in enumerate(rules, 1):
        study.exclusion_rules.create(rule=rule, role=role, position=position)
    study = launched(study)
    # Two of seven prefer alpha.
    answer(study, people, rating=lambda person, system: 4 if (system == "beta") == (person % 7 > 0) else 2, **options)
    return closed(study)
