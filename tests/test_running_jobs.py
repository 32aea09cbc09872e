"""A running job looks the same on all pages, and can be cancelled from each."""

import pytest
from django.test import Client
from django.urls import reverse

from studies.imports.tables import run
from studies.models import Job
from studies.services import jobs
from tests.addresses import everything
from tests.boards.builders import open_board
from tests.builders import draft_study, panel, spa_study, user
from tests.studies.admin.imports.uploaded import upload

pytestmark = pytest.mark.django_db
# Kind of job > the page that shows it.
PAGES = {
    "analyse": "analyses",
    "compute_metrics": "study_metrics",
    "compare_metrics": "study_metrics",
    "calibrate": "study_calibrated",
    "screen_annotators": "study_annotators",
    "check_judge": "judge_check",
    "plan_size": "admin:studies_plan",
}


@pytest.fixture
def owner():
    return user("jo")


def check_job_on_page(person, page: str, job: Job) -> None:
    """The page shows the job, and its button cancels it and comes back to the page."""
    client = Client()
    client.force_login(person)
    html = client.get(page).content.decode()
    cancel = reverse("admin:studies_job_cancel", args=[job.code])
    assert html.count('<div class="job said"') == 1 and html.count('<progress class="long"') == 1
    assert f'data-url="{reverse("admin:studies_job_json", args=[job.code])}"' in html
    assert f'<form method="post" action="{cancel}">' in html and f'name="next" value="{page}"' in html
    assert f'<a href="{page}">Reload the page</a>' in html
    assert client.post(cancel, {"next": page}).url == page
    job.refresh_from_db()
    assert job.state == "cancelled"
    after = client.get(page, follow=True).content.decode()
    assert "The job is cancelled" in after and cancel not in after


@pytest.mark.parametrize("kind", PAGES)
def test_pages_of_a_study(owner, kind):
    study = spa_study(owner)
    job = jobs.submit(kind, study=study, by=owner)
    check_job_on_page(owner, reverse(PAGES[kind], args=[study.pk]), job)


def test_a_report_with_invented_answers(owner):
    study = draft_study(owner=owner)
    job = jobs.submit("invented_report", study=study, by=owner, version=study.version)
    check_job_on_page(owner, reverse("new_study_invented", args=[study.pk]), job)


def test_a_rehearsal(owner):
    door = panel(spa_study(owner))
    job = jobs.submit("rehearsal", study=door.study, by=owner, recruitment=door.pk, people=3)
    check_job_on_page(owner, reverse("admin:annotators_rehearsal", args=[door.pk]), job)


def test_a_board(owner):
    board = open_board(owner)
    job = jobs.submit("board_snapshot", by=owner, board=board.pk)
    check_job_on_page(owner, reverse("board_manage", args=[board.slug]), job)


def test_a_large_file(owner, monkeypatch):
    monkeypatch.setattr(run, "SMALL_BYTES", 10)
    client = Client()
    client.force_login(owner)
    page = upload(client, draft_study(owner=owner)).url
    check_job_on_page(owner, page, Job.objects.get(kind="import"))


def test_the_page_of_a_job(owner):
    job = jobs.submit("launch", study=draft_study(owner=owner), by=owner)
    check_job_on_page(owner, reverse("admin:studies_job_page", args=[job.code]), job)


def test_a_cancelled_job_leads_to_no_other_site(owner):
    job = jobs.submit("launch", study=draft_study(owner=owner), by=owner)
    client = Client()
    client.force_login(owner)
    sent = client.post(reverse("admin:studies_job_cancel", args=[job.code]), {"next": "//evil.example/"})
    assert sent.url == reverse("admin:studies_job_page", args=[job.code])


def test_who_may_not_cancel_sees_the_job_without_the_button():
    world = everything()
    client = Client()
    client.force_login(world["people"]["viewer"])
    html = client.get(reverse("analyses", args=[world["study"].pk])).content.decode()
    assert '<div class="job said"' in html and ">Cancel<" not in html
