"""Publishing at a panel: the cost is seen first, the page says what prevents it, and it happens once."""

from decimal import Decimal

import pytest

from annotators.models import PanelOrder, PanelSubmission, PanelTask, Recruitment, Verdict
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.prolific.stand_in import TOKEN, ProlificStandIn
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.orders import (
    get_panel_tasks_or_create_from_arrivals,
    order_blocklist_and_publication,
    order_task_stop,
    publishing_obstacles,
    publishing_warnings,
)
from studies.models import Job, Study
from studies.services import jobs, lifecycle
from studies.services.lifecycle import ActionRefused
from tests.admin_pages import logged_in
from tests.annotators.recruitment.channels.prolific.submissions import PERSON
from tests.builders import draft_study, promised, spa_study, user
from tests.players import claimed, submitted

pytestmark = pytest.mark.django_db
CODES = {"code_complete": "A2K7PQ"}
FORM = {"title": "Rate stories", "description": "You read.", "places": "20", "minutes": "12", "reward": "2.50"}


@pytest.fixture(autouse=True)
def public(settings):
    settings.SITE_URL = "https://eval.example.org"


def recruitment_of(study=None, channel="prolific", **columns) -> Recruitment:
    made = Recruitment.objects.create(
        study=study or spa_study(user("owner")), channel=channel, settings=CODES, **columns
    )
    store_or_delete_secrets(made, {"token": TOKEN}, by=None)
    return promised(made)


def wanted(**changes):
    return {
        "title": "t",
        "description": "d",
        "places": 9,
        "minutes": 10,
        "reward": Decimal("1.25"),
        "currency": "GBP",
    } | changes


@pytest.mark.slow
def test_the_cost_is_shown_before_anything_is_published_and_for_other_values_again(settings):
    with ProlificStandIn() as fake:
        settings.PROLIFIC_API = fake.url
        recruitment, client = recruitment_of(currency="GBP"), logged_in(user("owner"))
        address = f"/admin/annotators/recruitment/{recruitment.pk}/panel/publish/"
        assert "{{%PROLIFIC_PID%}}" in client.get(address).content.decode()
        shown = client.post(address, FORM | {"publish": "1"}).content.decode()
        assert "at least 50.00 GBP" in shown and "12.50 GBP" in shown and not PanelOrder.objects.exists()
        assert 'name="seen" value="20 x 2.50, 12, after 0"' in shown and "already" not in shown
        other = client.post(
            address, FORM | {"places": "200", "publish": "1", "seen": "20 x 2.50, 12, after 0"}
        ).content.decode()
        assert "at least 500.00 GBP" in other and "find the study full" in other and not PanelOrder.objects.exists()
        seen = FORM | {"publish": "1", "seen": "20 x 2.50, 12, after 0"}
        assert client.post(address, seen).status_code == 302
        # Pressed again, also when it is carried out already: the same page buys nothing more, and says what it would.
        assert "was published once already" in client.post(address, seen).content.decode()
        jobs.claim_and_run_job(Job.objects.get(kind="panel_sync").pk)
        assert "was published once already" in client.post(address, seen).content.decode()
        (study,) = fake.studies.values()
        assert (study["total_available_places"], study["reward"], study["status"]) == (20, 250, "ACTIVE")
        task = PanelTask.objects.get()
        assert (task.external_id, task.places) == (study["id"], 20)
        panel = f"/admin/annotators/recruitment/{recruitment.pk}/panel/"
        assert study["id"] in client.get(panel).content.decode()
        assert client.post(f"{panel}task/{task.pk}/").status_code == 302
        Job.objects.update(request_token=None)
        from annotators.recruitment.panels.sync import schedule_sync

        jobs.claim_and_run_job(schedule_sync(recruitment, by=None).pk)
        task.refresh_from_db()
        assert task.closed_at is not None and fake.studies[study["id"]]["status"] == "AWAITING REVIEW"
        wrong = client.post(address, FORM | {"reward": "-1", "places": "0"})
        assert wrong.status_code == 400 and PanelOrder.objects.filter(operation="publish").count() == 1


def test_a_stop_that_the_panel_refused_is_ordered_anew(settings):
    recruitment = recruitment_of()
    task = PanelTask.objects.create(recruitment=recruitment, external_id="T1")
    other = PanelTask.objects.create(recruitment=recruitment, external_id="T2")
    first = order_task_stop(task, by=None)
    assert order_task_stop(task, by=None) == first and order_task_stop(other, by=None) != first
    PanelOrder.objects.filter(pk=first.pk).update(state="refused", sent_at=first.made_at, ended_at=first.made_at)
    second = order_task_stop(task, by=None)
    assert (second.state, second.values) == ("waiting", {"task": "T1"}) and order_task_stop(
        task, by=None
    ) == second != first


def test_an_order_with_other_values_waits_for_the_first(settings):
    recruitment = recruitment_of()
    first = order_blocklist_and_publication(recruitment, by=None, **wanted())
    assert order_blocklist_and_publication(recruitment, by=None, **wanted()) == first
    with pytest.raises(ActionRefused, match="is still open"):
        order_blocklist_and_publication(recruitment, by=None, **wanted(places=10))
    PanelOrder.objects.update(state="refused", sent_at=first.made_at, ended_at=first.made_at)
    assert order_blocklist_and_publication(recruitment, by=None, **wanted(places=10)).token != first.token


def test_the_page_says_what_prevents_publishing(settings):
    assert publishing_obstacles(recruitment_of()) == []
    settings.SITE_URL = "http://eval.example.org"
    draft = Recruitment.objects.create(study=draft_study(owner=user("owner")), channel="prolific")
    told = " ".join(publishing_obstacles(draft))
    assert all(words in told for words in ("There is no code for people who complete", "not launched", "https://"))
    with pytest.raises(ActionRefused, match="not launched"):
        order_blocklist_and_publication(draft, by=None, **wanted())
    assert not PanelOrder.objects.exists()


def test_warnings_compare_what_is_offered_with_what_was_declared():
    study = spa_study(user("owner"), wage_per_hour="12.00", reward="2.50", target_n=6)
    Study.objects.filter(pk=study.pk).update(usual_seconds=20 * 60)
    recruitment = recruitment_of(Study.objects.get(pk=study.pk))
    told = publishing_warnings(recruitment, Decimal("1.25"), 10, 30)
    assert [words.split(".")[0][:9] for words in told] == ["1", "People wh", "The study", "You publi"]
    assert "7.50 per hour" in told[0] and "took 20 minutes" in told[1]
    assert publishing_warnings(recruitment, Decimal("2.50"), 12, 6) == [
        "People who have submitted took 20 minutes (median). The task announces 12."
    ]


def test_a_task_made_by_hand_is_known_from_those_who_came():
    recruitment = recruitment_of()
    claimed(recruitment.study, "W", recruitment, external_ids={"person": "W", "task": "T7"})
    claimed(recruitment.study, "V", recruitment, external_ids={"person": "V"})
    assert (
        [task.external_id for task in get_panel_tasks_or_create_from_arrivals(recruitment)]
        == ["T7"]
        == [task.external_id for task in get_panel_tasks_or_create_from_arrivals(recruitment)]
    )
    order = order_blocklist_and_publication(recruitment, by=None, **wanted())
    PanelOrder.objects.filter(pk=order.pk).update(state="done", sent_at=order.made_at, ended_at=order.made_at)
    claimed(recruitment.study, "U", recruitment, external_ids={"person": "U", "task": "T8"})
    assert [task.external_id for task in get_panel_tasks_or_create_from_arrivals(recruitment)] == ["T7"]


@pytest.mark.slow
def test_approvals_are_offered_as_lines_to_those_without_a_token():
    from annotators.recruitment.panels import SubmissionSnapshot
    from annotators.recruitment.panels.reconcile import import_submissions_and_release_places

    recruitment = Recruitment.objects.create(
        study=spa_study(user("owner")), channel="prolific", pool="panel", settings=CODES
    )
    submitted(
        recruitment.study, PERSON, recruitment=recruitment, external_ids={"person": PERSON, "session": "5e1a" * 6}
    )
    # Two works of one person are one line: the panel's form knows people.
    import_submissions_and_release_places(
        recruitment, [SubmissionSnapshot("", one * 6, PERSON, "submitted") for one in ("5e1a", "6e1a")], "file"
    )
    page = logged_in(user("owner")).get(f"/admin/annotators/recruitment/{recruitment.pk}/panel/").content.decode()
    assert f">{PERSON}\n</textarea>" in page and "People to approve" in page
    # Who is rejected here is in no line: the panel shows them as sent until somebody tells it.
    rejected = PanelSubmission.objects.exclude(assignment=None).first()
    Verdict.objects.create(
        submission=rejected,
        assignment=rejected.assignment,
        kind="reject",
        category="OTHER",
        message="m",
        by=user("owner"),
    )
    own = f"/admin/annotators/recruitment/{recruitment.pk}/panel/"
    assert PERSON not in logged_in(user("owner")).get(own).content.decode()
    assert (
        logged_in(user("owner")).get(f"/admin/annotators/recruitment/{recruitment.pk}/panel/publish/").status_code
        == 404
    )
    lifecycle.start_closing(recruitment.study, by=None)
    assert REGISTRY["prolific"].bulk_texts([]) == []
