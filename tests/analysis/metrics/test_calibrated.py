"""Combined numbers of people and judges: what the job stores, what the page says, and what it refuses."""

import random

import pytest
from django.core.exceptions import PermissionDenied
from django.db import InternalError, transaction
from django.urls import reverse

from analysis.metrics.calibrated.families import families_by_name
from analysis.metrics.calibrated.options import CalibrationOptions
from analysis.metrics.calibrated.run import calibrate, latest_results, request_calibration
from analysis.metrics.files import ScoresFileSettings
from analysis.metrics.store import MetricDescription, upload_scores
from analysis.models import CalibratedResult
from annotators.models import Response
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from studies.models import Job, Output
from studies.services import jobs, lifecycle
from studies.services.lifecycle import ActionRefused
from tests.analysis.api.rest import api_of
from tests.analysis.test_screening import client_of
from tests.boards.builders import choice_template, rating_template
from tests.builders import user

from .test_store import table

pytestmark = pytest.mark.django_db
STRENGTHS = {"human": 1.5, "llama-7b": -0.5, "other": 0.0}


def closed(template=None, *, people=14):
    study = template or rating_template(user("ada"), prompts=30, m=5, systems=tuple(STRENGTHS))
    type(study).objects.filter(pk=study.pk).update(target_n=people)
    study.refresh_from_db()
    study = lifecycle.launch(study, study.owner, [p.key for p in lifecycle.blocking_or_unacknowledged_problems(study)])
    record_simulated_answers(study, people, STRENGTHS, random.Random(3), crowd=CrowdSettings())
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    study.refresh_from_db()
    study.assignments.update(origin="live")  # robots count as people here
    return study


def store_judge(study, *, knows=True, name="judge", family="Llama", skips=()):
    """A judge who knows the answers of people, or one who gives points at random."""
    given = {}
    answers = Response.objects.filter(assignment__study=study, item__isnull=False).order_by("pk")
    for system, prompt, value in answers.values_list("exposure__output__system__name", "exposure__output__prompt__key", "value"):
        given.setdefault((system, prompt), []).append(value)
    chance = random.Random(name)
    rows = []
    outputs = Output.objects.filter(system__study=study).order_by("pk")
    for system, prompt in outputs.values_list("system__name", "prompt__key"):
        known = given.get((system, prompt)) if knows else None
        score = float(sum(known) / len(known)) if known else chance.randint(1, 5)
        if prompt not in skips:
            rows.append({"system": system, "prompt": prompt, name: score})
    described = MetricDescription("judge", "v1", family=family, scale_low=1, scale_high=5)
    chosen = ScoresFileSettings(scale_low=1, scale_high=5, is_partial=bool(skips))
    return upload_scores(study, study.owner, "scores.csv", table(rows), chosen, described)[0]


@pytest.fixture
def study():
    return closed()


def test_debug(study):
    print(list(Response.objects.filter(assignment__study=study).values()[:2]))
    store_judge(study)
    import time
    t = time.time()
    (row,) = calibrate(study, CalibrationOptions(), study.owner)
    print(time.time() - t, row.result["n_labelled"], row.result["n_items"])
    for one in row.result["systems"]:
        print(one["result"]["human"], one["result"]["combined"], one["result"]["fallback"], one["result"]["labels_saved"])
    print(row.result["judges"], row.result["bias_by_system"][0])
    print(row.result["plan"])
    client = client_of(study, "editor")
    text = client.get(reverse("study_calibrated", args=[study.code])).content.decode()
    open("/tmp/ses9/m3_page.html", "w").write(text)
    assert 0
