"""Studies with test questions, for tests."""

import random

from django.db.models import Q

from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from studies.models import ExclusionRule, Output, System
from studies.services.known_answers import KnownAnswerRequest as Request
from studies.services.known_answers import make_test_questions_and_delete_test_runs
from tests import builders


def draft(protocol, *, prompts=40, m=10, reference="human", systems=("alpha", "beta"), **settings):
    """A draft with a section of this protocol. The reference is shown only in test questions, if arms leave it out."""
    researcher = builders.user()
    study = builders.draft_study(systems=(*systems, "human"), prompts=prompts, owner=researcher)
    # Other lengths, and words in an order that a shuffle changes.
    for number, output in enumerate(Output.objects.filter(system__study=study).order_by("pk")):
        words = [f"{output.system.name}{number}word{place}" for place in range(20 + number % 7)]
        Output.objects.filter(pk=output.pk).update(text=" ".join(words))
    arm = study.arms.get()
    arm.systems.set(System.objects.filter(study=study, name__in=systems))
    if protocol == "rating":
        section = builders.add_rating(study, position=1, m=m, **settings)
    elif protocol == "two_choice":
        section = builders.add_choice(study, m=m, strategy="any", stopping="none", **settings)
    else:
        section = builders.add_relative(study, m=m, **settings)
    # The builders plan to compare neighbouring systems, and no arm shows the human texts.
    study.contrasts.filter(Q(x__name="human") | Q(y__name="human")).delete()
    return study, section, researcher


def make(study, section, by, **counts):
    request = Request(
        question=section.questions.first(),
        counts=counts or {"positive": 6, "negative": 6, "damaged": 6},
        reference=study.systems.get(name="human"),
    )
    return make_test_questions_and_delete_test_runs(section, request, by=by)


def answered(protocol, *, robots=12, noisy=0.0, right=None, activity=0.0, pilot_answers=0, rules=(), **settings):
    """A launched study with test questions that robots answered. ``rules``: pairs of a rule and its settings.

    With ``activity``, robots do up to five batches.
    """
    study, section, researcher = draft(
        protocol, pilot_answers=pilot_answers, positive_share=0.2, negative_share=0.2, **settings
    )
    request = Request(
        section.questions.first(), {"positive": 4, "negative": 4, "damaged": 4}, study.systems.get(name="human")
    )
    make_test_questions_and_delete_test_runs(section, request, by=researcher)
    for position, (rule, own_settings) in enumerate(rules, 1):
        ExclusionRule.objects.create(study=study, rule=rule, settings=own_settings, position=position)
    most = 5 if activity else 1
    type(study).objects.filter(pk=study.pk).update(target_n=robots * most, batches_per_annotator=most)
    study.refresh_from_db()
    study = builders.launched(study, researcher)
    crowd = CrowdSettings(careless=noisy, right=right, activity=activity, screened_out=0, acquiescent=0)
    record_simulated_answers(study, robots, rng=random.Random(3), crowd=crowd)
    return study
