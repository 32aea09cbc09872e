"""An analysis is a row: numbered, hashed, the same again from the same inputs, also in another process."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from analysis.models import AnalysisRun
from analysis.report.plots import render_figure_svg_and_pdf
from analysis.report.runs import run_analysis
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.models import AuditEvent, Job, Study
from studies.services import jobs, lifecycle
from tests import ROOT
from tests.analysis.protocols.answers import answer
from tests.builders import spa_study, user

pytestmark = pytest.mark.postgres

QUICK = {"resamples": 199}


@pytest.fixture
def study(db):
    study = spa_study(target_n=12)
    answer(
        study,
        12,
        percent=lambda person, x, y: 70 + person if x > y else 35,
        rating=lambda person, system: 1 + (person + len(system)) % 5,
    )
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return Study.objects.get(pk=study.pk)


@pytest.mark.slow
def test_analyses_are_numbered_and_equal_inputs_give_equal_results(study):
    first, second = run_analysis(study, QUICK, by=None), run_analysis(study, QUICK, by=None)
    assert (first.number, second.number) == (1, 2)
    assert first.result_sha256 == second.result_sha256 and first.seed == second.seed
    for one, other in zip(first.figures.order_by("name"), second.figures.order_by("name"), strict=True):
        assert (one.svg, bytes(one.pdf)) == (other.svg, bytes(other.pdf))
    assert first.responses_n == first.result["data"]["responses_n"] and len(first.design_sha256s) == 1
    assert AuditEvent.objects.filter(study=study, verb="analyse").count() == 2


@pytest.mark.slow
def test_other_data_give_another_hash_and_seed(study):
    first = run_analysis(study, QUICK, by=None)
    withdraw_annotator_and_erase_texts(study.assignments.first())
    second = run_analysis(study, QUICK, by=None)
    assert second.responses_sha256 != first.responses_sha256 and second.seed != first.seed
    assert second.result["data"]["n_withdrawn"] == 1


def test_the_job_stores_the_analysis_and_shows_its_progress(study):
    by = user("administrator", is_superuser=True)
    job = jobs.submit("analyse", study=study, by=by, parameters=QUICK)
    assert jobs.claim_and_run_job(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    run = AnalysisRun.objects.get(study=study)
    assert job.result == {"number": 1, "result_sha256": run.result_sha256} and run.by == by
    assert job.done == job.total == 7


def test_a_job_run_again_after_a_crash_stores_nothing_twice(study):
    assert run_analysis(study, QUICK, by=None, job_code="abc") == run_analysis(study, QUICK, by=None, job_code="abc")
    assert AnalysisRun.objects.filter(study=study).count() == 1


def test_a_job_can_be_cancelled_and_a_wrong_parameter_is_refused(study):
    job = jobs.submit("analyse", study=study, by=None, parameters=QUICK)
    other = jobs.submit("analyse", study=study, by=None, parameters={"level": 7})

    def ask_to_cancel(pk):
        Job.objects.filter(pk=pk, state=Job.State.RUNNING).update(is_cancel_wanted=True)

    kind = jobs.kinds()["analyse"]
    calls = []

    def work(one, progress):
        ask_to_cancel(one.pk)
        calls.append(one.pk)
        return kind.work(one, progress)

    jobs._kinds["analyse"] = jobs.JobKind("analyse", work, True, kind.user_facing)
    try:
        jobs.claim_and_run_job(job.pk)
    finally:
        jobs._kinds["analyse"] = kind
    jobs.claim_and_run_job(other.pk)
    job.refresh_from_db()
    other.refresh_from_db()
    assert calls == [job.pk] and job.state == Job.State.CANCELLED and not AnalysisRun.objects.exists()
    assert other.state == Job.State.FAILED and "level" in other.error


FIGURE = {
    "name": "forest",
    "title": "A <title> & more",
    "description": "What it shows.",
    "axis": "P[x > y]",
    "reference": 0.5,
    "limits": [0, 1],
    "rows": [
        {
            "label": "a > b $x_1$",
            "series": "one",
            "estimate": 0.6,
            "low": 0.5,
            "high": 0.7,
            "n": 9,
            "unit": "annotator",
        },
        {
            "label": "a > b $x_1$",
            "series": "two",
            "estimate": 0.4,
            "low": None,
            "high": None,
            "n": 9,
            "unit": "annotator",
        },
    ],
}


def test_a_figure_has_text_as_text_a_title_a_description_and_no_date():
    svg, pdf = render_figure_svg_and_pdf(FIGURE)
    assert (
        svg.startswith("<svg")
        and "<title>A &lt;title&gt; &amp; more</title>" in svg
        and "<desc>What it shows. a &gt; b" in svg
    )
    assert "a &gt; b $x_1$</text>" in svg and "metadata" not in svg
    assert pdf.startswith(b"%PDF") and b"CreationDate" not in pdf


def test_the_numbers_beside_a_figure_are_not_cut_off():
    def width(low):
        row = {
            "label": "a > b",
            "series": "one",
            "estimate": -0.025,
            "low": low,
            "high": 0.025,
            "n": 9,
            "unit": "annotator",
        }
        svg, _ = render_figure_svg_and_pdf(FIGURE | {"reference": 0, "limits": None, "rows": [row]})
        return float(svg.partition('width="')[2].partition("pt")[0])

    # Three decimals and three signs need more room than two and none.
    assert width(-0.075) > width(None)


IN_ANOTHER_PROCESS = """
import hashlib, json, sys, django
django.setup()
from analysis.report.plots import render_figure_svg_and_pdf
from analysis.report.build import build_report
from analysis.stats.seeds import canonical_json
from studies.models import Study
result = build_report(Study.objects.get(), {"resamples": 199, "origins": ["robot"]})
drawn = [render_figure_svg_and_pdf(figure) for figure in result["figures"]]
print(hashlib.sha256(canonical_json(result).encode()).hexdigest(),
      hashlib.sha256(b"".join(svg.encode() + pdf for svg, pdf in drawn)).hexdigest())
"""
PREPARE = """
import django
django.setup()
from tests.builders import spa_study
from annotators.participation.simulate import record_simulated_answers
record_simulated_answers(spa_study(target_n=12), 12)
"""


@pytest.mark.slow
def test_two_processes_give_the_same_bytes(tmp_path, migrated_sqlite):
    shutil.copyfile(migrated_sqlite, tmp_path / "heval.sqlite3")
    environment = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"} | {
        "HEVAL_HOME": str(tmp_path),
        # A home with a database and without its key does not start.
        "PSEUDONYM_KEY": "a key of this test alone " * 3,
        "DJANGO_SETTINGS_MODULE": "heval_site.settings",
    }

    def run(code, seed):
        done = subprocess.run(  # our own code
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=environment | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    run(PREPARE, "0")
    first, second = run(IN_ANOTHER_PROCESS, "1"), run(IN_ANOTHER_PROCESS, "2")
    assert first == second and len(first.split()) == 2


def test_nothing_of_a_result_is_infinite_or_undefined(study):
    json.dumps(run_analysis(study, QUICK, by=None).result, allow_nan=False)


def test_people_are_counted_in_whole_numbers():
    rows = [
        {
            "label": f"{right} of 2 right",
            "series": series,
            "estimate": n,
            "low": None,
            "high": None,
            "n": 4,
            "unit": "annotator",
        }
        for right, counts in enumerate(((1.0, 1.0), (3.0, 2.5)))
        for series, n in zip(("annotators", "by guessing"), counts, strict=True)
    ]
    svg, _ = render_figure_svg_and_pdf(FIGURE | {"kind": "bars", "reference": None, "limits": None, "rows": rows})
    texts = re.findall(r">([^<>]+)</text>", svg)
    assert {"3", "2.5"} <= set(texts) and "3.0" not in texts
    assert [text for text in texts if re.fullmatch(r"[\d.]+", text) and "." in text] == ["2.5"]
