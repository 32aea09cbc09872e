"""Lists of the admin: what a row says, where it leads, and how moments are written in all of them."""

import re

import pytest
from django.contrib import admin, messages
from django.contrib.messages.storage.base import Message
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver
from django.utils import timezone
from django.utils.inspect import get_func_args

from analysis.models import ApiToken
from annotators.models import Assignment
from heval_site.views.docs import read_pages
from studies.admin import workflow
from studies.models import Job, Prompt, audit
from studies.services import jobs
from tests import ROOT, builders, players
from tests.admin_pages import logged_in, study_url

pytestmark = pytest.mark.django_db

TEMPLATES = ROOT / "templates"
MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d UTC\b")
# What Django writes by itself, and a moment that does not say whose clock it is.
OTHERWISE = re.compile(
    r"[ap]\.m\.|\bnoon\b|\bmidnight\b|\b[A-Z][a-z]{2,3}\. \d+, \d{4}|\d{4}-\d\d-\d\d \d\d:\d\d(?! UTC)"
)


def test_every_page_of_the_admin_is_registered_with_the_addresses_and_passes_djangos_checks():
    assert get_resolver().url_patterns and len(admin.site._registry) > 10
    assert admin.site.check(None) == []


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


@pytest.fixture
def study(owner):
    return builders.spa_study(owner, with_rating=False, with_surveys=False)


def shown(client, url) -> str:
    """The words of a page's content, as a reader sees them."""
    html = client.get(url).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition('id="content"')[2]))


def test_moments_are_written_one_way_in_every_list_and_say_whose_clock_it_is(client, study, owner):
    audit.record("pause", study=study, by=owner)
    players.submitted(study, "1")
    now = timezone.now()
    builders.recruitment(study, stopped_at=now)
    jobs.submit("launch", study=study, by=owner)
    ApiToken.objects.create(user=owner, name="mine", hash="0" * 64, expires_at=now)
    for url in (
        "/admin/studies/auditevent/",
        "/admin/studies/job/",
        "/admin/annotators/assignment/",
        "/admin/annotators/recruitment/",
        "/admin/analysis/apitoken/",
        study_url(study, "history/"),
    ):
        words = shown(client, url)
        assert MOMENT.search(words), (url, words)
        assert not OTHERWISE.search(words), (url, OTHERWISE.search(words))


def test_no_template_of_the_admin_writes_a_moment_in_a_way_of_its_own():
    for template in sorted((TEMPLATES / "admin").rglob("*.html")):
        assert 'date:"Y-m-d H:i"' not in template.read_text(), f"{template}: DATETIME_FORMAT says whose clock it is"


def test_a_job_in_the_list_says_what_it_was_what_came_of_it_and_leads_to_its_page(client, study, owner):
    made = {
        state: Job.objects.create(study=study, by=owner, state=state, ended_at=timezone.now(), **columns)
        for state, columns in {
            "done": {"kind": "launch", "doing": "Done", "done": 7, "total": 7, "result": {"batches": 6}},
            "failed": {"kind": "analyse", "error": "There is <nothing> to analyse."},
            "cancelled": {"kind": "export"},
        }.items()
    }
    Job.objects.create(
        kind="analyse",
        study=study,
        doing="Figures",
        done=3,
        total=9,
        state="running",
        holder="me",
        leased_until=timezone.now(),
    )
    html = client.get("/admin/studies/job/").content.decode()
    for job, words in ((made["done"], "Launching the study"), (made["failed"], "Analysing the answers")):
        assert f'<a href="/admin/studies/job/{job.code}/">{words}</a>' in html
    for words in (
        "Done: 6 batches drawn",
        "Failed: There is &lt;nothing&gt; to analyse.",
        "Cancelled, nothing was changed",
        "Figures, 3 of 9",
    ):
        assert words in html
    rows = re.findall(r"<tr>(.*?)</tr>", html.partition("<tbody>")[2], re.S)
    assert len(rows) == 4 and all(row.count("Done") < 2 for row in rows)


def test_a_list_of_jobs_reads_no_results_that_it_does_not_show(client, study, owner, rf):
    ended = {"study": study, "by": owner, "state": "done", "ended_at": timezone.now()}
    Job.objects.create(kind="invented_report", result={"figures": "x" * 1000}, **ended)
    Job.objects.create(kind="export", result={"rows": 7, "table": "items"}, **ended)
    request = rf.get("/")
    request.user = owner
    export, report = admin.site.get_model_admin(Job).get_queryset(request)
    assert report.get_deferred_fields() == {"result"} and report.result_in_words is None
    with CaptureQueriesContext(connection) as seen:
        html = client.get("/admin/studies/job/").content.decode()
    assert "Done: 7 rows of items" in html
    whole = [query["sql"] for query in seen if '"studies_job"."result",' in query["sql"]]
    assert not whole and not [q for q in seen if '"studies_job"."result" FROM' in q["sql"]]


def test_a_look_at_a_stopping_rule_tells_nothing_of_what_it_found(client, study):
    found = {"looks": [{"words": "alpha is ahead", "estimate": 0.8}], "rows": "alpha"}
    Job.objects.create(kind="stopping_check", study=study, state="done", ended_at=timezone.now(), result=found)
    words = shown(client, "/admin/studies/job/")
    assert "Checking the stopping rule" in words and "alpha" not in words


def test_the_page_of_an_analysis_leads_to_its_report(client, study):
    job = Job.objects.create(kind="analyse", study=study, state="done", ended_at=timezone.now(), result={"number": 3})
    html = client.get(f"/admin/studies/job/{job.code}/").content.decode()
    assert "Done: analysis 3, at 20" in html and f'href="/admin/studies/study/{study.pk}/analyses/3/"' in html


def test_a_history_is_in_the_frame_of_its_study(client, study):
    html = client.get(study_url(study, "history/")).content.decode()
    assert '<div class="breadcrumbs">' not in html and html.count("<h1>History</h1>") == 1
    head = re.search(r'<div class="study-head">(.*?)</div>', html, re.S)[1]
    assert f"<bdi>{study.title}</bdi>" in head and len(re.findall(r'<li class="[^"]*">', head)) == 7


def test_the_list_of_assignments_tells_where_each_comes_from(client, study, owner):
    players.submitted(study, "1")
    Assignment.objects.update(origin="robot")
    players.claimed(study, "2")
    html = client.get("/admin/annotators/assignment/").content.decode()
    assert re.findall(r'<td class="field-origin">(\w+)</td>', html) == ["Live", "Robot"]


def test_pay_of_an_arm_to_which_nobody_came_is_a_dash_and_not_a_blank(client, study):
    html = client.get(f"/admin/studies/study/{study.pk}/pay/").content.decode()
    row = re.search(r'<tr><th scope="row">all</th>(.*?)</tr>', html, re.S)[1]
    assert re.findall(r"<td[^>]*>(.*?)</td>", row) == ["0", "–", "–", "–"]
    players.submitted(study, "1")
    html = client.get(f"/admin/studies/study/{study.pk}/pay/").content.decode()
    assert (
        re.findall(r"<td[^>]*>(.*?)</td>", re.search(r'<tr><th scope="row">all</th>(.*?)</tr>', html, re.S)[1])[-1]
        == "–"
    )


def test_a_line_about_no_study_opens_for_administrators_alone(client, owner):
    line = audit.record("delete draft", by=owner, title="Gone")
    url = f"/admin/studies/auditevent/{line.pk}/change/"
    assert logged_in(builders.user("root", is_superuser=True)).get(url).status_code == 200
    assert client.get(url).status_code == 302  # not found


def test_a_message_keeps_the_case_of_its_first_word():
    page = render_to_string("admin/base_site.html", {"messages": [Message(messages.WARNING, "heval cannot send it.")]})
    assert '<li class="warning">heval cannot send it.</li>' in page


def test_lists_accept_the_location_of_actions_which_django_passes_from_6_1_on(rf, owner, monkeypatch):
    def get_actions(self, request, action_location="list"):
        return {"delete_selected": (), action_location: ()}

    ours = {
        one
        for row in admin.site._registry.values()
        for one in type(row).__mro__
        if not one.__module__.startswith("django.")
    }
    with_actions = [one for one in ours if "get_actions" in vars(one)]
    assert with_actions and all("action_location" in get_func_args(one.get_actions) for one in with_actions)
    monkeypatch.setattr(admin.ModelAdmin, "get_actions", get_actions)
    request = rf.get("/")
    request.user = owner
    builders.spa_study(owner)
    of_assignments = admin.site.get_model_admin(Assignment)
    assert of_assignments.get_actions(request, action_location="form").keys() == {"form"}
    assert of_assignments.get_actions(request).keys() == {"list"}
    assert admin.site.get_model_admin(Prompt).get_actions(request, action_location="form") == {}


def test_each_page_of_a_tab_names_a_page_of_the_documentation():
    pages = read_pages()
    for _, below in workflow.TABS:
        for name, url, about in below:
            assert about in pages, (name, about)
            assert workflow.reverse_or_empty(url, 1), (name, url)
