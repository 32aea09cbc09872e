"""The first page after log-in: one's studies, what to do next, and what waits for somebody."""

import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotators.pay import ledger
from annotators.recruitment.panels import alerts
from heval_site.views import home
from studies.models import Job, Study, StudyMember
from studies.services import jobs, lifecycle
from tests.addresses import everything
from tests.builders import draft_study, panel, spa_study, user
from tests.players import submitted

pytestmark = pytest.mark.django_db


def shown(person) -> str:
    client = Client()
    client.force_login(person)
    return client.get(reverse("admin:index")).content.decode()


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def row_of(html: str, study: Study) -> str:
    (row,) = re.findall(rf'<tr><th scope="row"><a href="/admin/studies/study/{study.pk}/change/.*?</tr>', html, re.S)
    return words(row)


def test_an_empty_site_offers_a_first_study_and_an_example(client):
    person = user("jo")
    page = shown(person)
    assert "You have no studies yet." in page and "Show me an example study" in page and ">New study<" in page
    client.force_login(person)
    assert client.get(reverse("admin:load_example")).status_code == 405
    first, second = (client.post(reverse("admin:load_example")) for _ in range(2))
    (job,) = Job.objects.filter(kind="example_study")
    assert first.url == second.url == reverse("admin:studies_job_page", args=[job.code])
    assert "The example study is being made" in shown(person)
    jobs.run_waiting_jobs(1)
    job.refresh_from_db()
    study = Study.objects.get(owner=person)
    assert job.state == "done" and job.result["study"] == study.pk and study.state == "closed"
    report = study.jobs.get(kind="analyse")
    assert job.result["url"] == f"{reverse('admin:studies_job_page', args=[report.code])}?open"
    assert "and 24 robots" in row_of(shown(person), study)


def test_each_study_says_how_far_it_is_and_what_comes_next():
    owner = user("jo")
    draft = draft_study(owner=owner, title="Draft")
    live = spa_study(owner, title="Live", target_n=4)
    door = panel(live)
    submitted(live, "one", recruitment=door)
    ledger.update_ledger(door, by=owner)
    closed = spa_study(owner, title="Closed")
    lifecycle.start_closing(closed, owner, "enough")
    lifecycle.end_grace_period(closed, owner)
    page = shown(owner)
    due = ledger.total_amount(ledger.unpaid_payments())
    assert due > 0
    assert row_of(page, live) == f"Live Launched 1 of 4 {due:.2f} USD Watch progress"
    assert row_of(page, draft) == "Draft Draft – – Go on"
    closed = Study.objects.get(title="Closed")
    assert row_of(page, closed).endswith("– Analyse")
    # What collects comes first, then drafts.
    assert page.index(">Live<") < page.index(">Draft<") < page.index(">Closed<")
    assert "Live" not in shown(user("stranger"))


def test_a_coder_sees_that_the_study_exists_and_no_numbers_of_pay():
    owner, coder = user("jo"), user("coder")
    study = spa_study(owner, title="Theirs")
    StudyMember.objects.create(study=study, user=coder, role="coder")
    row = row_of(shown(coder), study)
    assert row == "Theirs jo Launched – –"


def test_an_administrator_sees_whose_studies_are_listed_and_is_welcomed_without_one():
    ana, ben = user("ana", is_superuser=True), user("ben", is_superuser=True)
    live = spa_study(ana, title="Live")
    page = shown(ana)
    assert "<h1>My studies</h1>" in page and row_of(page, live).startswith("Live Launched") and "Owner" not in page
    page = shown(ben)
    assert "<h1>Studies</h1>" in page and row_of(page, live).startswith("Live ana Launched")
    assert "You have no studies of your own yet." in page and "Show me an example study" in page
    assert "You administer this site, so you see everybody’s studies." in page
    own = draft_study(owner=ben, title="Draft")
    page = shown(ben)
    assert page.index(">Draft<") < page.index(">Live<"), "one's own come first"
    assert row_of(page, own) == "Draft ben Draft – – Go on" and "You have no studies of your own yet." not in page


def test_what_waits_for_a_person_is_named_with_its_study():
    world = everything()
    cache.clear()
    people, study = world["people"], world["study"]
    cache.set(f"heval:panel:alerts:{world['door'].pk}", 2)
    text = words(shown(people["editor"]))
    for notice in (
        "1 objection to answer",
        "1 message from annotators",
        "2 alerts of the panel",
        "Report ready: analysis 1",
    ):
        assert f"{notice} {study.title}" in text, (notice, text)
    assert "1 texts to code" in words(shown(people["coder"])) and "objection" not in words(shown(people["coder"]))
    # Viewers decide nothing, so nothing waits for them; the report is theirs, too.
    viewer = words(shown(people["viewer"]))
    assert "objection" not in viewer and "message from" not in viewer and "Report ready" in viewer


def test_jobs_that_took_long_are_told_of_to_whoever_started_them():
    owner = user("jo")
    study = spa_study(owner, title="Live")
    started = timezone.now() - timedelta(hours=1)
    long, short = (
        Job.objects.create(
            kind="export",
            study=study,
            by=owner,
            state="done",
            started_at=started,
            ended_at=started + timedelta(seconds=n),
        )
        for n in (90, 5)
    )
    page = shown(owner)
    assert f"/admin/studies/job/{long.code}/" in page and f"/admin/studies/job/{short.code}/" not in page
    other = user("other", is_superuser=True)
    notice = f"{reverse('admin:studies_job_page', args=[long.code])}?open"
    assert notice in page and str(long.code) not in shown(other)
    for person, is_seen in ((other, False), (owner, True)):
        client = Client()
        client.force_login(person)
        client.get(notice)
        assert (str(long.code) not in shown(owner)) == is_seen


def test_an_end_that_a_page_saw_is_no_news():
    owner = user("jo")
    started = timezone.now() - timedelta(days=30)
    ended = {"state": "failed", "started_at": started, "ended_at": started + timedelta(minutes=5)}
    job = Job.objects.create(kind="analyse", study=spa_study(owner), by=owner, **ended)
    assert "Analysing the answers: failed" in shown(owner)
    client = Client()
    client.force_login(owner)
    client.get(reverse("admin:studies_job_json", args=[job.code]))
    assert "Analysing the answers: failed" not in shown(owner)


def test_alerts_are_kept_when_a_panel_was_asked(monkeypatch):
    door = panel(spa_study(user("jo")))
    found = [alerts.Alert("a", "b", "c")] * 3
    monkeypatch.setattr(alerts, "find_panel_alerts", lambda recruitment: found)
    alerts.cache_alert_count(door)
    assert alerts.cached_alert_counts([door.pk]) == {door.pk: 3}
    found = []
    alerts.cache_alert_count(door)
    assert alerts.cached_alert_counts([door.pk]) == {}


def test_the_page_costs_the_same_queries_for_any_number_of_studies():
    owner = user("jo")
    counts = []
    for n in (1, 6):
        while Study.objects.count() < n:
            panel(spa_study(owner, title=f"study {Study.objects.count()}"))
        client = Client()
        client.force_login(owner)
        with CaptureQueriesContext(connection) as seen:
            client.get(reverse("admin:index"))
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 25, counts


def test_every_list_that_a_person_may_see_is_reached_from_the_first_page():
    """Each model of the admin whose list opens for a person is linked from home or from the records of the account menu."""
    from django.contrib import admin

    world = everything()
    for name in ("owner", "coder", "administrator"):
        client = Client()
        client.force_login(world["people"][name])
        first = client.get(reverse("admin:index")).content.decode()
        assert f'href="{reverse("admin:all_records")}"' in first
        records = client.get(reverse("admin:all_records")).content.decode()
        for model in admin.site._registry:
            try:
                address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
            except Exception:
                continue  # registered for pages of a study alone
            response = client.get(address)
            if response.status_code == 200:
                assert f'href="{address}"' in records, (name, address)


def test_the_page_lists_at_most_so_many(monkeypatch):
    monkeypatch.setattr(home, "MAX_STUDIES", 2)
    owner = user("jo")
    for n in range(3):
        draft_study(owner=owner, title=f"study {n}")
    page = shown(owner)
    assert page.count('<tr><th scope="row">') == 2 and "Only the newest are listed." in page
