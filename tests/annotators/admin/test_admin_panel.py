"""The page of a recruitment's panel."""

import logging
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotators.models import Assignment, PanelOrder, PanelSecret, PanelSubmission, PanelTask, Recruitment
from annotators.places.places import compute_receipt
from annotators.recruitment.panels import SubmissionSnapshot
from annotators.recruitment.panels.http_client import NoService, get_panel_service, store_or_delete_secrets
from annotators.recruitment.panels.orders import get_or_create_order
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places
from studies.models import AuditEvent, Job, StudyMember
from studies.services import jobs
from tests.admin_pages import logged_in
from tests.annotators.recruitment.pretend import Pretend, recruitment_of, speaks
from tests.builders import spa_study, user
from tests.players import claimed, submitted

pytestmark = pytest.mark.django_db
TOKEN = "canary-of-a-token-4711"


@pytest.fixture
def panel(monkeypatch):
    made = Pretend()
    speaks(monkeypatch, made)
    return made


@pytest.fixture
def recruitment(panel):
    return recruitment_of(spa_study(user("owner"), target_n=12))


@pytest.fixture
def client():
    return logged_in(user("owner"))


def address(recruitment):
    return f"/admin/annotators/recruitment/{recruitment.pk}/panel/"


def page(client, recruitment) -> str:
    return client.get(address(recruitment)).content.decode()


def run_jobs():
    for job in Job.objects.filter(state="waiting"):
        jobs.claim_and_run_job(job.pk)


def exported(client, recruitment, text, button="take"):
    file = SimpleUploadedFile("export.csv", text if isinstance(text, bytes) else text.encode())
    return client.post(address(recruitment), {"file": file, button: "1"})


def test_a_token_is_kept_enciphered_and_shown_nowhere(client, recruitment, panel, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(NoService):
        get_panel_service(recruitment)
    assert "once you store its token" in page(client, recruitment)
    answer = client.post(address(recruitment), {"token": TOKEN, "keep": "1"}, follow=True).content.decode()
    assert "Stored since" in answer and TOKEN not in answer and TOKEN not in page(client, recruitment)
    assert TOKEN.encode() not in bytes(PanelSecret.objects.get().ciphertext) and get_panel_service(recruitment) is panel
    assert TOKEN not in caplog.text and TOKEN not in str(list(AuditEvent.objects.values()))
    # An empty field leaves it as it is; forgetting is said.
    client.post(address(recruitment), {"token": "", "keep": "1"})
    assert PanelSecret.objects.count() == 1
    client.post(address(recruitment), {"token": "", "forget_token": "on", "keep": "1"})
    assert not PanelSecret.objects.exists()
    assert list(AuditEvent.objects.filter(verb__endswith="secret").values_list("verb", flat=True).order_by("pk")) == [
        "keep secret",
        "forget secret",
    ]


def test_the_panel_is_asked_and_what_came_to_both_is_approved_once(client, recruitment, panel):
    store_or_delete_secrets(recruitment, {"token": TOKEN}, by=None)
    PanelTask.objects.create(recruitment=recruitment, external_id="T")
    assignment = submitted(recruitment.study, "W", recruitment=recruitment, external_ids={"session": "S1"})
    panel.shown["T"] = [
        SubmissionSnapshot("T", "S1", "W", "submitted"),
        SubmissionSnapshot("T", "S2", "stranger", "submitted"),
    ]
    client.post(address(recruitment), {"ask": "1"})
    run_jobs()
    shown = page(client, recruitment)
    assert "Approve 1 finished at both" in shown and "submitted at the panel, unknown in heval" in shown
    assert Assignment.objects.get(pk=assignment.pk).trust == "confirmed"
    for _ in range(2):
        client.post(address(recruitment), {"approve": "1"})
        run_jobs()
    assert [order.operation for order in panel.given] == ["approve"] and panel.given[0].values["person"] == "W"
    assert PanelOrder.objects.get().by == user("owner")


def test_what_the_panel_refused_to_approve_is_approved_once_it_can(client, recruitment, panel):
    """A panel may refuse each approval for which the account has no money: nobody should open a hundred pages then."""
    store_or_delete_secrets(recruitment, {"token": TOKEN}, by=None)
    PanelTask.objects.create(recruitment=recruitment, external_id="T")
    submitted(recruitment.study, "W", recruitment=recruitment, external_ids={"session": "S1"})
    panel.shown["T"], panel.faults = [SubmissionSnapshot("T", "S1", "W", "submitted")], ["refused", ""]
    client.post(address(recruitment), {"ask": "1"})
    run_jobs()
    for ended in (["refused"], ["refused", "done"], ["refused", "done"]):
        client.post(address(recruitment), {"approve": "1"})
        run_jobs()
        Job.objects.update(request_token=None)
        assert list(PanelOrder.objects.order_by("pk").values_list("state", flat=True)) == ended
        assert ("Approve 1 finished at both" in page(client, recruitment)) is (ended == ["refused"])
    assert len(panel.given) == 2 and len(set(PanelOrder.objects.values_list("token", flat=True))) == 2


def test_without_a_token_nothing_is_asked_and_the_page_says_why(client, recruitment):
    answer = client.post(address(recruitment), {"ask": "1"}, follow=True).content.decode()
    assert "has no panel token" in answer and not Job.objects.exists()


def test_the_panels_file_is_looked_at_and_then_read(client, recruitment):
    back = claimed(recruitment.study, "V", recruitment, external_ids={"session": "S2"})
    submitted(recruitment.study, "W", recruitment=recruitment, external_ids={"session": "S1"})
    text = "S1,W,submitted\nS2,V,returned\n"
    looked = exported(client, recruitment, text, "look").content.decode()
    assert "2 submissions in the file: 2 new, 0 changed, 2 matched to assignments, 1 place would be released" in looked
    assert (
        "1 submission in the file: 1 new" in exported(client, recruitment, "S1,W,submitted\n", "look").content.decode()
    )
    assert not PanelSubmission.objects.exists()
    assert exported(client, recruitment, text).status_code == 302
    assert Assignment.objects.get(pk=back.pk).released_reason == "returned" and PanelSubmission.objects.count() == 2
    for wrong, words in (
        ("S1,W\n", "Row 1 has not three columns."),
        (b"\xff\xfe\x00", "byte 0x00 is not UTF-16"),
        (f"{'S' * 65},W,submitted\n", "Submission 1: the submission"),
        ("", "empty"),
    ):
        refused = exported(client, recruitment, wrong)
        assert refused.status_code == 400 and words in refused.content.decode()
    assert client.post(address(recruitment), {"take": "1"}).status_code == 400
    assert PanelSubmission.objects.count() == 2


def test_the_code_that_somebody_entered_is_shown_beside_their_work(client, recruitment):
    """Who sent no code, or another outcome's, is nobody's riddle: the code was read from the panel and kept nowhere."""
    prolific = Recruitment.objects.create(
        study=recruitment.study,
        channel="prolific",
        pool="panel",
        settings={"code_complete": "A2K7PQ", "code_full": "D5XNUV"},
    )
    for n, code in enumerate(("a2k7pq", "D5XNUV", "NOCODE", "", "its own")):
        one = claimed(prolific.study, f"W{n}", prolific, external_ids={"person": f"W{n}", "session": f"S{n}"})
        code = compute_receipt(one.code) if code == "its own" else code
        import_submissions_and_release_places(
            prolific,
            [SubmissionSnapshot("T", f"S{n}", f"W{n}", "submitted", word="AWAITING REVIEW", code=code)],
            "file",
        )
    told = page(client, prolific)
    assert re.findall(r"AWAITING REVIEW, (S\d)(?:; entered ([^<]*))?</td>", told) == [
        ("S0", "the code of “completed”"),
        ("S1", "the code of “no place left”"),
        ("S2", "a code that does not belong to this link (NOCODE)"),
        ("S3", ""),
        ("S4", "the receipt of this work"),
    ]


def test_a_code_is_known_by_where_its_link_sends_people(client, recruitment):
    """Connect's way back is one setting for two outcomes, that of any panel one for each: the code is what people were shown."""
    for channel, settings, typed, told in (
        ("generic", {"return_complete": "DONE-77"}, "done-77", "the code of “completed”"),
        (
            "connect",
            {"return_complete": "C0MPLETE", "return_in_part": "PART9"},
            "PART9",
            "the code of “screened out” or “failed the checks”",
        ),
        (
            "connect",
            {"return_complete": "https://connect.cloudresearch.com/x"},
            "x",
            "a code that does not belong to this link (x)",
        ),
    ):
        link = Recruitment.objects.create(study=recruitment.study, channel=channel, pool="panel", settings=settings)
        import_submissions_and_release_places(
            link, [SubmissionSnapshot("", "S0", "W0", "submitted", word="In", code=typed)], "file"
        )
        assert f"In, S0; entered {told}</td>" in page(client, link)


def test_a_person_says_what_became_of_an_order(client, recruitment, panel):
    store_or_delete_secrets(recruitment, {"token": TOKEN}, by=None)
    PanelTask.objects.create(recruitment=recruitment, external_id="T")
    order, waiting = (
        get_or_create_order(recruitment, "stop", "s1", by=None, task="T"),
        get_or_create_order(recruitment, "extend", "e1", by=None, task="T", places=3),
    )
    PanelOrder.objects.filter(pk=order.pk).update(state="unclear", sent_at=order.made_at)
    assert "was this order carried out?" in page(client, recruitment)
    to = f"{address(recruitment)}order/"
    assert client.get(f"{to}{order.pk}/").status_code == 405 and client.post(f"{to}999999/").status_code == 404
    client.post(f"{to}{order.pk}/", {"carried_out": "yes"})
    client.post(f"{to}{waiting.pk}/", {"cancel": "1"})
    assert set(PanelOrder.objects.values_list("token", "state")) == {("s1", "done"), ("e1", "cancelled")}
    told = client.post(f"{to}{order.pk}/", {"carried_out": "no"}, follow=True).content.decode()
    assert "no longer possible" in told and PanelOrder.objects.get(pk=order.pk).state == "done"


def test_only_editors_see_it(recruitment):
    study = recruitment.study
    StudyMember.objects.create(study=study, user=user("looker"), role=StudyMember.Role.VIEWER)
    assert logged_in(user("looker")).get(address(recruitment)).status_code == 403
    assert logged_in(user("stranger")).get(address(recruitment)).status_code == 404
    assert logged_in(user("looker")).post(address(recruitment), {"token": "x", "keep": "1"}).status_code == 403
    assert not PanelSecret.objects.exists()
    own = logged_in(user("owner")).get(f"/admin/annotators/recruitment/{recruitment.pk}/change/").content.decode()
    assert address(recruitment) in own


def test_a_page_asks_the_same_queries_for_one_and_for_many(client, recruitment, django_assert_max_num_queries):
    for n in (1, 40):
        import_submissions_and_release_places(
            recruitment, [SubmissionSnapshot("T", f"S{i}", f"W{i}", "submitted") for i in range(n)], "file"
        )
        with django_assert_max_num_queries(40):
            assert client.get(address(recruitment)).status_code == 200
