"""One person with a marked id, followed by every channel through every stage: the panel's id of them is found nowhere but where it is declared.

The places are searched whole: every column of every table, every file that is kept, the log, every export and every page of the site.
"""

import csv
import html
import io
import json
import logging
import zipfile
from base64 import b64encode
from urllib.parse import quote

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from annotators import tasks
from annotators.models import (
    Annotator,
    Assignment,
    PageVisit,
    PanelIdentity,
    PanelOrder,
    PanelSubmission,
    Payment,
)
from annotators.models.identity import get_person_id, get_person_ids, restored_external_ids
from annotators.pay import files, ledger
from annotators.places import assign
from annotators.recruitment import sample
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import SubmissionSnapshot, WebhookMessage, sync
from annotators.recruitment.panels.http_client import WEBHOOK_SECRET, store_or_delete_secrets
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places
from heval_site.runtime import logs
from studies.models import Job, Study
from studies.services import jobs
from tests.annotators.closed_studies import closed_long_ago
from tests.annotators.recruitment.follower import Follower
from tests.annotators.recruitment.people_of_channels import CASES, SITE, strange
from tests.traces import Hunt, columns, spellings

pytestmark = pytest.mark.django_db


def test_every_channel_has_a_person_to_follow():
    assert REGISTRY and {case.slug for case in CASES.values()} == set(REGISTRY), "say in CASES how its people come"


@pytest.fixture
def follower(request, monkeypatch, settings, tmp_path):
    """Of the case that the test names. Every line of the log is caught as the site writes it."""
    settings.EXTERNAL_QUESTION_SITES = (SITE,)
    settings.SITE_URL = "https://heval.example.org"
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(logs.JsonFormatter())
    root = logging.getLogger()
    monkeypatch.setattr(root, "level", logging.INFO)
    root.addHandler(handler)
    cache.clear()
    yield Follower(CASES[request.param], monkeypatch, handler)
    root.removeHandler(handler)


# All of them take most of a minute. These are a panel with a service that is asked and given orders, one without, a site with the
# interface of external questions (MTurk shares its code), and a link that names nobody.
QUICK_CASES = ("generic", "prolific", "external_question", "open_link")
# The places are the same whatever the channel: on PostgreSQL one that fills the most of them is followed.
ON_POSTGRES = "prolific"


def marks_of(name: str) -> list:
    return [pytest.mark.slow] * (name not in QUICK_CASES) + [pytest.mark.postgres] * (name == ON_POSTGRES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "follower",
    [pytest.param(name, marks=marks_of(name)) for name in CASES],
    indirect=True,
)
def test_the_id_of_a_person_is_found_nowhere_at_any_stage(follower, monkeypatch):
    they = follower
    is_known = they.channel.identifies_people and "person" in they.arrival("looks").ids
    # Looking, refusing, a broken address and an error of ours.
    assert they.client("looks").get(they.address("looks")).status_code == 200
    assert they.client("declines").post(they.address("declines"), {"decline": "1"}).status_code == 200
    assert (
        they.client("twice").get(f"{they.address('twice')}&{they.address('twice').partition('?')[2]}").status_code
        == 200
    )
    assert they.client("twice").get(f"/e/nobody/?{they.address('twice').partition('?')[2]}").status_code == 404
    with monkeypatch.context() as broken:
        broken.setattr(assign, "claim_batch", lambda *_, **__: 1 / 0)
        they.client("fails").raise_request_exception = False
        client = they.client("fails")
        client.raise_request_exception = False
        assert client.post(they.address("fails"), {"agree": "1"}).status_code == 500
    logging.getLogger("django.server").info('"%s" %s %s', f"GET {they.address('looks')} HTTP/1.1", 200, 5)
    assert "ZeroDivisionError" in they.handler.stream.getvalue()
    assert not PanelIdentity.objects.exists() and not Assignment.objects.exists()
    they.is_clean("looked")

    # Working, and coming again.
    done, paid, left = they.comes("finishes"), they.comes("is paid and leaves"), they.comes("leaves at once")
    share, out, live = they.comes("leaves part-way"), they.comes("is screened out"), they.comes("works on")
    people = [done, paid, left, share, out, live]
    assert [get_person_id(one.annotator) is not None for one in people] == [is_known] * 6
    they.works(share, pages=2), they.works(live, pages=1)
    PageVisit.objects.filter(assignment=live, recorded_at=None).update(draft={"s4.q1": ["typed"]})
    if they.channel.identifies_people:
        assert they.comes("works on").pk == live.pk
    they.is_clean("at work")

    # The panel shows them, and tells of them by itself.
    done, paid = they.works(done), they.works(paid)
    assert done.submitted_at and paid.submitted_at
    assign.release_assignment(out.pk, "screened_out")
    shown = []
    names = {
        "finishes": done,
        "is paid and leaves": paid,
        "leaves part-way": share,
        "is screened out": out,
        "works on": live,
    }
    if is_known and they.channel.shows_submissions:
        for who, one in names.items():
            arrival = they.arrival(who)
            state = "submitted" if one.submitted_at else "working"
            shown.append(
                SubmissionSnapshot(
                    arrival.ids.get("task", "T"),
                    arrival.ids.get("session", arrival.person),
                    arrival.person,
                    state,
                    code=arrival.person,
                )
            )
        import_submissions_and_release_places(they.door, shown, "file")
        stranger = they.arrival("never came")
        import_submissions_and_release_places(
            they.door,
            [SubmissionSnapshot("T", stranger.ids.get("session", stranger.person), stranger.person, "submitted")],
            "file",
        )
        assert PanelSubmission.objects.filter(assignment__in=[done, paid, share, out, live]).count() == 5
        they.is_clean("shown by the panel")
    if they.channel.sends_webhooks:
        store_or_delete_secrets(they.door, {WEBHOOK_SECRET: "h" * 32}, by=None)
        person = they.person("finishes")
        message = WebhookMessage(
            "event-1", they.arrival("finishes").ids["session"], person, "AWAITING REVIEW", "submission.status.change"
        )
        monkeypatch.setattr(type(they.channel), "read_message", lambda *_: message)
        assert (
            Client()
            .post(f"/e/{they.door.key}/webhook/", {"participant_id": person}, content_type="application/json")
            .status_code
            == 200
        )
        they.is_clean("told by the panel")
    if is_known:
        sample.replace_demographic_columns(
            they.study, [("Age", "number", False), ("Nick", "category", False)], by=they.owner
        )
        text = io.StringIO()
        lines = [["id", "Age", "Nick"], *([they.arrival(who).person, "30", they.arrival(who).person] for who in names)]
        csv.writer(text).writerows(lines)
        with pytest.raises(ValueError, match="this is the person's panel id"):
            sample.import_sample_demographics(they.door, text.getvalue(), "id", by=they.owner)
        sample.replace_demographic_columns(they.study, [("Age", "number", False)], by=they.owner)
        assert sample.import_sample_demographics(they.door, text.getvalue(), "id", by=they.owner).values == 5
        they.is_clean("described by a file")

    # Orders, which name them at the panel and nowhere else.
    ledger.update_ledger(they.door, by=they.owner)
    if they.channel.secrets:
        they.panel.faults = ["refused"] * 2
        for _ in range(2):
            job = sync.schedule_sync(they.door, by=they.owner, approves=True)
            jobs.claim_and_run_job(job.pk)
            Job.objects.update(request_token=None)
            job.refresh_from_db()
            assert job.state == "done", job.error
        ordered = [order for order in they.panel.given if order.operation == "approve"]
        assert {order.values["person"] for order in ordered} == {
            they.arrival("finishes").ids["person"],
            they.arrival("is paid and leaves").ids["person"],
        }
        assert {order.values["submission"] for order in ordered} <= {they.arrival(who).ids["session"] for who in names}
        assert PanelOrder.objects.exclude(panel_message="").exists()
        they.is_clean("ordered")
        sync.schedule_incremental_sync(they.door)
        for job in Job.objects.filter(state="waiting"):
            jobs.claim_and_run_job(job.pk)
        they.is_clean("looked at again")
    if is_known:
        theirs = files.due_payments_not_by_approval_csv(they.door, None) + "".join(
            text.text for text in files.due_payment_bulk_form_texts(they.door)
        )
        assert get_person_id(out.annotator) == they.arrival("is screened out").ids["person"]
        assert _in_csv(theirs, they.arrival("is screened out").ids["person"]), "somebody has to be able to pay them"
    they.exports_are_clean("submitted")

    # Turned away.
    busy = they.comes("holds the only place", they.full)
    waits = they.posts("waits", they.full)
    assert "No place right now" in waits.content.decode()
    key = assign.hash_person_id(they.full.pool, they.arrival("waits", they.full).person)
    assert not PanelIdentity.objects.filter(annotator__external_id=key).exists()
    they.is_clean("waits")
    they.works(busy)
    full = they.posts("comes in vain", they.full)
    assert full.status_code == 200 and "The study is full" in full.content.decode()
    they.is_clean("turned away")

    # The last page.
    end = Client().get(f"/p/{done.code}/done/")
    assert end.status_code == 200
    if is_known:
        assert restored_external_ids(done)["person"] == they.arrival("finishes").ids["person"]
    seen = they.pages_are_clean("submitted", done, live)
    if they.case.slug == "generic":
        assert seen["p/<str:code>/done/"] == 0  # that address is of somebody who still works
        assert "panel.example.org/complete?p=" in end.content.decode()

    # Leaving: at once, part-way with pay owed, and after the end.
    kept = "your panel id"
    for one, stays in ((left, False), (share, True)):
        page = Client().get(f"/p/{one.code}/withdraw/").content.decode()
        assert ("encrypted, until you are paid" in page) is (stays and is_known)
        answer = Client().post(f"/p/{one.code}/withdraw/", {"leave": "1"})
        assert answer.status_code in (200, 302)
        assert (get_person_id(one.annotator) is not None) is (stays and is_known)
        last = Client().get(f"/p/{one.code}/done/").content.decode()
        assert kept in last.lower() and ("your panel id, encrypted" in last) is (stays and is_known)
        if they.case.slug == "generic":
            assert answer.status_code == (302 if stays else 200)
            assert "panel.example.org/withdrawn?p=" in (last if stays else answer.content.decode())
    they.posts("leaves at once")
    if they.channel.identifies_people:
        assert get_person_id(left.annotator) is None, "coming again brings nothing back"
    they.is_clean("withdrawn")

    # Paid, and then leaving.
    ledger.update_ledger(they.door, by=they.owner)
    due = Payment.objects.filter(assignment__recruitment=they.door, state="due")
    assert due.exists()
    ledger.mark_payments_paid_and_erase_withdrawn_ids(they.door, list(due.values_list("pk", flat=True)), they.owner)
    if they.channel.credits_on_completion or they.channel.pays_by:
        rows = PanelSubmission.objects.filter(assignment=paid)
        rows.update(state="approved")
        ledger.update_ledger(they.door, by=they.owner)
    assert get_person_id(share.annotator) is None
    Client().post(f"/p/{paid.code}/withdraw/", {"leave": "1"})
    assert get_person_id(paid.annotator) is None, "nothing is owed any more"
    they.is_clean("paid")
    they.exports_are_clean("withdrawn and paid")

    # Purged.
    for study in (they.study, they.small):
        for door in study.recruitments.all():
            ledger.update_ledger(door, by=they.owner)
            rows = Payment.objects.filter(assignment__recruitment=door, state="due")
            ledger.mark_payments_paid_and_erase_withdrawn_ids(door, list(rows.values_list("pk", flat=True)), they.owner)
        closed_long_ago(study, 40)
    Payment.objects.filter(state="ordered").update(state="paid", ended_at=timezone.now())
    tasks.erase_due_person_and_panel_ids()
    assert not PanelIdentity.objects.exclude(ciphertext=None).exists()
    assert not Assignment.objects.exclude(external_ids={}).exists()
    if shown:
        # The panel goes on showing them: nothing is written down anew, and nothing breaks.
        rows = PanelSubmission.objects.count()
        import_submissions_and_release_places(they.door, shown, "file")
        tasks.erase_due_person_and_panel_ids()
        assert PanelSubmission.objects.count() == rows and not PanelIdentity.objects.exclude(ciphertext=None).exists()
    they.is_clean("purged")
    they.exports_are_clean("purged")
    assert Annotator.objects.exists() and get_person_ids(Annotator.objects.values_list("pk", flat=True)) == {}


def _in_csv(text: str, person: str) -> bool:
    return any(person in cell.removeprefix("'") for row in csv.reader(io.StringIO(text)) for cell in row)


@pytest.mark.postgres
def test_the_search_finds_what_is_there(tmp_path):
    """Every spelling of a text is found in the database and in an archive, and the text itself is not taken for another."""
    study, needle = Study.objects.create(title="x"), strange(1)
    written = {
        "as it is": needle,
        "percent": quote(needle, safe=""),
        "HTML": html.escape(needle),
        "JSON": json.dumps({"a": needle}),
        "hex": needle.encode().hex(),
        "other case": needle.swapcase(),
        **{f"base64, from {n}": b64encode(b"x" * n + needle.encode() + b"yz").decode() for n in range(3)},
    }
    assert len(spellings(needle)) > 20 and len(list(columns())) > 300
    for how, text in written.items():
        Study.objects.filter(pk=study.pk).update(purpose=f"before {text} after")
        assert f"it ({how})" in Hunt({"it": needle}).database()["studies_study.purpose"], how
        assert not Hunt({"it": strange(2)}).database(), how
    with zipfile.ZipFile(tmp_path / "kept.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("inside.json", json.dumps({"a": needle}))
    assert list(Hunt({"it": needle}).files([tmp_path])) == [str(tmp_path / "kept.zip")]
