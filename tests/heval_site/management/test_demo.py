"""The demo: the known order of its writers goes in with the robots and comes out of the report."""

import pytest
from django.urls import resolve

from analysis.models import AnalysisRun
from heval_site.management.demo import STRENGTHS, get_or_create_demo_studies
from heval_site.management.demo_texts import SYSTEMS
from studies.models import Job, Study
from studies.services import jobs
from tests.builders import user

pytestmark = pytest.mark.django_db


def test_the_demo_is_made_once_and_its_report_finds_the_order_of_the_writers():
    owner = user(is_superuser=True)
    demo = get_or_create_demo_studies(owner)
    assert get_or_create_demo_studies(owner) == demo and Study.objects.count() == 2
    assert resolve(demo.annotator_url_path).url_name == "entry"
    assert resolve(demo.report_url_path).url_name == "analysis_progress"
    assert Study.objects.get(pk=demo.study.pk).state == "closed"
    job = Job.objects.get(kind="analyse")
    jobs.claim_and_run_job(job.pk, "test")
    job.refresh_from_db()
    assert job.state == "done", job.error
    assert resolve(get_or_create_demo_studies(owner).report_url_path).url_name == "analysis"
    assert list(STRENGTHS) == sorted(STRENGTHS) and len(STRENGTHS) == len(SYSTEMS)
    found = AnalysisRun.objects.get().result["conclusions"]
    assert [one["recovered"] for one in found] == ["recovered"] * 4
    assert not AnalysisRun.objects.get().result["problems"]
