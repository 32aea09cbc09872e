"""Studies that robots answered in the place of people, and their page of combined numbers."""

import random

from django.urls import reverse

from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from studies.services import lifecycle
from tests.boards.builders import rating_template
from tests.builders import user

from .scores import client_of

STRENGTHS = {"human": 1.5, "llama-7b": -0.5, "other": 0.0}


def collected(template=None, *, people=14):
    study = template or rating_template(user("ada"), prompts=60, m=5, systems=tuple(STRENGTHS))
    type(study).objects.filter(pk=study.pk).update(target_n=people)
    study.refresh_from_db()
    # Two domains: half of the prompts each.
    study.prompts.filter(key__regex="[02468]$").update(domain="news")
    study = lifecycle.launch(study, study.owner, [p.key for p in lifecycle.blocking_or_unacknowledged_problems(study)])
    record_simulated_answers(study, people, STRENGTHS, random.Random(3), crowd=CrowdSettings())
    study.assignments.update(origin="live")  # robots count as people here
    return study


def closed(template=None):
    study = collected(template)
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    study.refresh_from_db()
    return study


def page_of(study, role="viewer"):
    return client_of(study, role).get(reverse("study_calibrated", args=[study.pk])).content.decode()
