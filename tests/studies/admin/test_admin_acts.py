"""Acts on whole studies: launched with eyes open, paused, amended, cloned, archived; each on record."""

import html
import json
import re

import pytest
from django.urls import reverse

from studies.design.serialization import canonical_json, serialize_design
from studies.models import AuditEvent, Batch, Job, Output, Question, Study, audit, guards
from studies.services import copying, jobs
from tests import builders, players
from tests.admin_pages import changed, errors_of, form_of, logged_in, study_url

pytestmark = pytest.mark.django_db
LISTS_OF_ACTS, LABELS = re.compile(r'<ul class="acts.*?</ul>', re.S), re.compile(r">([^<>]+)</a>")


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


@pytest.fixture
def draft(owner):
    return builders.spa_draft(owner=owner, with_surveys=False, with_rating=False)


@pytest.fixture
def study(draft, owner):
    return builders.launched(draft, owner)


def act(client, study, name, **data):
    return client.post(study_url(study, f"{name}/do/"), data, follow=True)


def verbs(study):
    return list(study.audit_events.order_by("pk").values_list("verb", flat=True))


def test_a_launch_names_what_is_missing_and_does_not_happen(client, draft):
    Study.objects.filter(pk=draft.pk).update(contact="")
    page = client.get(study_url(draft, "launch/"))
    assert "no contact for annotators" in page.content.decode() and ">Launch</button>" not in page.content.decode()
    response = client.post(study_url(draft, "launch/"))
    assert response.status_code == 422 and "no contact for annotators" in errors_of(response)
    assert not Job.objects.exists()


def test_each_warning_is_acknowledged_by_name(client, draft):
    Study.objects.filter(pk=draft.pk).update(consent="", reward=None)
    response = client.post(study_url(draft, "launch/"), {"acknowledge": ["no_reward", "of another study"]})
    assert response.status_code == 422
    assert "no consent text" in errors_of(response) and "No reward" not in errors_of(response)
    assert 'value="no_reward" id="acknowledge-2" checked' in response.content.decode()
    response = client.post(study_url(draft, "launch/"), {"acknowledge": ["no_reward", "no_consent"]})
    assert response.status_code == 302


def test_a_launch_is_a_job_with_a_page_and_json(client, draft, owner):
    response = client.post(study_url(draft, "launch/"), {"acknowledge": builders.warnings_of(draft)})
    job = Job.objects.get()
    assert response.url == reverse("admin:studies_job_page", args=[job.code])
    html = client.get(response.url).content.decode()
    assert "<progress" in html and '<noscript><meta http-equiv="refresh"' in html
    assert client.get(study_url(draft, "launch/")).url == response.url  # asked for twice, it is the same
    jobs.claim_and_run_job(job.pk)
    told = json.loads(client.get(reverse("admin:studies_job_json", args=[job.code])).content)
    assert told["state"] == "done" and told["url"].endswith("/new/link/")
    draft.refresh_from_db()
    assert draft.state == "launched" and draft.batches.count() == 6
    assert AuditEvent.objects.get(study=draft, verb="launch").by == owner


def test_a_launch_that_failed_can_be_asked_for_again(client, draft):
    client.post(study_url(draft, "launch/"), {"acknowledge": builders.warnings_of(draft)})
    job = Job.objects.get()
    Job.objects.filter(pk=job.pk).update(state="failed", error="The database went away.", ended_at=job.created_at)
    assert "The database went away." in client.get(study_url(draft, "launch/")).content.decode()
    client.post(study_url(draft, "launch/"), {"acknowledge": builders.warnings_of(draft)})
    assert Job.objects.filter(state="waiting").count() == 1


def test_a_waiting_job_is_cancelled(client, draft):
    client.post(study_url(draft, "launch/"), {"acknowledge": builders.warnings_of(draft)})
    job = Job.objects.get()
    client.post(reverse("admin:studies_job_cancel", args=[job.code]))
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert "Cancelled" in client.get(reverse("admin:studies_job_page", args=[job.code])).content.decode()


def test_the_page_says_when_nobody_runs_jobs(client, draft, monkeypatch):
    client.post(study_url(draft, "launch/"), {"acknowledge": builders.warnings_of(draft)})
    url = reverse("admin:studies_job_page", args=[Job.objects.get().code])
    monkeypatch.setattr(jobs, "is_runner_alive", lambda: False)
    assert "No worker is running" in client.get(url).content.decode()


def test_the_page_of_a_waiting_job_says_what_it_waits_for(client, draft):
    launch, batch = (jobs.submit(kind, study=draft, by=draft.owner) for kind in ("launch", "rehearsal"))

    def text(job):
        return client.get(reverse("admin:studies_job_page", args=[job.code])).content.decode()

    assert "It will start in a moment." in text(launch)
    assert "It will start after shorter jobs and the long jobs before it." in text(batch)
    Job.objects.filter(pk=batch.pk).update(doing="Playing person 3")
    assert "Playing person 3" in text(batch) and "It will start" not in text(batch)


def test_pause_resume_and_close_are_on_record_with_their_names(client, study):
    for name in ("pause", "resume"):
        assert client.get(study_url(study, f"{name}/do/")).status_code == 200
        act(client, study, name)
    act(client, study, "close", reason="Enough.")
    study.refresh_from_db()
    assert study.state == "closing" and verbs(study) == ["launch", "pause", "resume", "close"]
    assert study.audit_events.order_by("pk").last().data["reason"] == "Enough."


def test_what_cannot_be_undone_stands_apart_as_buttons(client, study):
    """On both pages that offer acts: none of these is among the text links, and none of the harmless ones is a button."""
    for address in ("change/", "collecting/"):
        lists = LISTS_OF_ACTS.findall(client.get(study_url(study, address)).content.decode())[:2]
        light, grave = ([html.unescape(one) for one in LABELS.findall(inside)] for inside in lists)
        assert {"Pause", "Amend", "Open more places"} <= set(light), address
        assert grave == ["Close", "Show outcomes now"] and not set(light) & set(grave), address
        assert 'class="second grave"' not in lists[0] and lists[1].count('class="second grave"') == 2, address


def test_looking_at_an_act_does_nothing(client, study):
    client.get(study_url(study, "close/do/"))
    study.refresh_from_db()
    assert study.state == "launched"


def test_an_act_out_of_its_time_is_refused_with_words(client, draft):
    response = act(client, draft, "pause")
    assert "cannot do this now: the study is a draft" in errors_of(response)


@pytest.mark.parametrize("places", ["0", "-1", "", "many", "99999999999"])
def test_more_places_are_a_number_from_one(client, study, places):
    assert act(client, study, "places", places=places).status_code == 422
    assert study.batches.count() == 6


def test_more_places_are_drawn_up_to_the_cap(client, study):
    assert "2 more places are open" in errors_of(act(client, study, "places", places="2"))
    assert study.batches.count() == 8
    assert "capped at 9" in errors_of(act(client, study, "places", places="2"))


def test_outcomes_are_shown_early_only_with_a_reason(client, study):
    assert act(client, study, "outcomes", reason=" ").status_code == 422
    study.refresh_from_db()
    assert study.unblinded_at is None
    act(client, study, "outcomes", reason="The board asked.")
    study.refresh_from_db()
    assert study.unblinded_at and verbs(study)[-1] == "unblind"


def test_an_amendment_shows_the_difference_before_it_is_made(client, study):
    url = study_url(study, "amend/")
    data = changed(form_of(client.get(url), number=-1), contact="new@example.org", reason="The address changed.")
    data = {name.replace("contact", "study-0-contact") if name == "contact" else name: v for name, v in data.items()}
    shown = client.post(url, data)
    html = shown.content.decode()
    assert "<del>research@example.org</del>" in html and "<ins>new@example.org</ins>" in html
    study.refresh_from_db()
    assert study.contact == "research@example.org"
    client.post(url, form_of(shown, number=-1) | {"confirm": ["1"]})
    study.refresh_from_db()
    assert study.contact == "new@example.org" and study.designs.count() == 2
    assert study.designs.last().reason == "The address changed."


def test_words_of_a_question_are_amended(client, study):
    url, question = study_url(study, "amend/"), Question.objects.first()
    data = form_of(client.get(url), number=-1)
    data |= {f"question-{question.pk}-text": ["Better: {x} or {y}?"], "reason": ["Spelling."], "confirm": ["1"]}
    client.post(url, data)
    question.refresh_from_db()
    assert question.text == "Better: {x} or {y}?"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"study-0-contact": ["x"]}, "required"),
        ({"reason": ["Because."]}, "You have not changed anything"),
        ({"study-0-wage_per_hour": ["much"], "reason": ["r"]}, "number"),
        ({"study-0-start_window_seconds": ["0"], "reason": ["r"]}, "greater than or equal to 60"),
        ({"study-0-purpose": ["a\x07"], "reason": ["r"]}, "control character"),
    ],
)
def test_an_amendment_is_refused_with_words(client, study, changes, words):
    url = study_url(study, "amend/")
    response = client.post(url, form_of(client.get(url), number=-1) | changes | {"confirm": ["1"]})
    assert response.status_code == 422 and words in errors_of(response), errors_of(response)
    assert study.designs.count() == 1


def test_pay_is_never_amended_downwards(client, study):
    arm = study.arms.get()
    with guards.allowing_amendment():
        type(arm).objects.filter(pk=arm.pk).update(reward="5.00")
    url = study_url(study, "amend/")
    data = form_of(client.get(url), number=-1) | {f"arm-{arm.pk}-reward": ["4.00"], "reason": ["r"], "confirm": ["1"]}
    assert "Pay can only rise" in errors_of(client.post(url, data))


def test_a_clone_is_the_same_design_with_a_new_seed_and_no_people(client, owner, study):
    players.submitted(study, "1")
    response = act(client, study, "clone", title="Second round")
    copy = Study.objects.get(title="Second round")
    assert copy.title in response.content.decode()
    assert (copy.clone_of, copy.keeps_origin_out, copy.state, copy.open_to) == (study, True, "draft", 0)
    assert copy.seed != study.seed and copy.code != study.code
    assert not copy.assignments.exists() and not copy.batches.exists() and copy.members.get().user == owner

    def told(one):
        design = json.loads(canonical_json(serialize_design(one)))
        # The copy gets the words of its own launch.
        design.pop("translation", None)
        return design | {"study": {k: v for k, v in design["study"].items() if k not in ("seed", "title")}}

    assert told(copy) == told(study)
    builders.launched(copy)
    assert copy.batches.count() == 6 and verbs(study)[-1] == "clone"


def test_a_clone_keeps_ready_made_batches_and_sections_that_reuse(owner):
    study = builders.spa_draft(owner=owner, systems=("a", "b"))
    from studies.design.draw import draw_batches, store_drawn_batches

    store_drawn_batches(
        study, draw_batches(study, 0, 3), places_per_batch=2, origin=Batch.Origin.IMPORTED, keys=["k1", "k2", "k3"]
    )
    copy = copying.clone_study(study, owner)
    assert list(copy.batches.values_list("key", "wanted", "claimed")) == [("k1", 2, 0), ("k2", 2, 0), ("k3", 2, 0)]
    assert serialize_design(copy)["batches"] == serialize_design(study)["batches"]
    assert copy.sections.get(protocol="rating").reuses.study == copy
    assert not set(copy.items.values_list("content", flat=True)) & set(study.items.values_list("content", flat=True))


def test_queries_of_a_clone_do_not_grow_with_its_rows(owner, django_assert_max_num_queries):
    study = builders.spa_draft(owner=owner, prompts=60)
    with django_assert_max_num_queries(75):
        copy = copying.clone_study(study, owner)
    assert Output.objects.filter(system__study=copy).count() == 180


def test_a_draft_without_a_record_is_deleted_with_all_that_hangs_on_it(client, draft):
    from annotators.models import Assignment, Recruitment
    from annotators.places.batch_plan import start_test_run

    start_test_run(draft, None)
    builders.recruitment(draft)
    response = act(client, draft, "delete")
    assert "is deleted" in errors_of(response)
    assert not Study.objects.filter(pk=draft.pk).exists()
    assert not Assignment.objects.exists() and not Recruitment.objects.exists() and not Output.objects.exists()


def test_a_draft_on_record_is_archived_instead(client, draft):
    audit.record("launch refused", study=draft, by=None)
    assert "archived instead" in errors_of(act(client, draft, "delete"))
    draft.refresh_from_db()
    assert draft.archived_at
    act(client, draft, "restore")
    draft.refresh_from_db()
    assert draft.archived_at is None and verbs(draft)[-2:] == ["archive", "restore"]


def test_a_launched_study_is_neither_deleted_nor_archived(client, study):
    for name in ("delete", "archive"):
        act(client, study, name)
    study.refresh_from_db()
    assert study.archived_at is None
