"""Combined numbers of people and judges: what the job stores, what the page says, and what it refuses."""

import random

import pytest
from django.urls import reverse

from analysis.metrics.calibrated.families import families_by_name
from analysis.metrics.calibrated.options import CalibrationOptions
from analysis.metrics.calibrated.run import calibrate, latest_results, request_calibration
from analysis.metrics.files import ScoresFileSettings
from analysis.metrics.store import MetricDescription, upload_scores
from analysis.models import CalibratedResult
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from studies.models import Job, Output
from studies.services import jobs, lifecycle
from studies.services.lifecycle import ActionRefused
from tests.boards.builders import choice_template, rating_template
from tests.builders import user

from .test_store import table

pytestmark = pytest.mark.django_db
STRENGTHS = {"human": 1.5, "llama-7b": -0.5, "other": 0.0}


def closed(template=None, *, people=16):
    study = template or rating_template(user("ada"), prompts=24, m=6, systems=tuple(STRENGTHS))
    study = lifecycle.launch(study, study.owner, [p.key for p in lifecycle.blocking_or_unacknowledged_problems(study)])
    record_simulated_answers(study, people, STRENGTHS, random.Random(3), crowd=CrowdSettings())
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    study.refresh_from_db()
    study.assignments.update(origin="live")  # robots count as people here
    return study


def store_judge(study, *, good=True, name="judge", family="Llama"):
    """Scores near the strength of each system, or at random."""
    randomness = random.Random(name)
    rows = []
    for system, prompt in Output.objects.filter(system__study=study).values_list("system__name", "prompt__key"):
        quality = 3 + STRENGTHS[system] if good else 3
        rows.append(
            {"system": system, "prompt": prompt, name: min(5, max(1, round(quality + randomness.gauss(0, 1), 2)))}
        )
    described = MetricDescription("judge", "v1", family=family, scale_low=1, scale_high=5)
    chosen = ScoresFileSettings(scale_low=1, scale_high=5)
    return upload_scores(study, study.owner, "scores.csv", table(rows), chosen, described)[0]


def test_x():
    import json, time
    study = closed()
    store_judge(study); store_judge(study, good=False, name="noise", family="")
    t=time.time()
    (row,) = calibrate(study, CalibrationOptions(), study.owner)
    print(time.time()-t)
    print(json.dumps(row.result, indent=1)[:9000])
    print(len(json.dumps(row.result)), row.result["plan"])
    assert 0
