"""From a rejection to the answer of its appeal: what the person reads, what a colleague does, and who may not."""

import re
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from annotators.models import Appeal, Assignment, PanelOrder, PanelSubmission, Payment, Verdict
from annotators.pay.decisions import (
    answer_appeal,
    appeals_awaiting_answer,
    approve_work,
    create_appeal,
    create_rejection_reversal,
    order_return_request,
    reject_work,
)
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import RejectionPolicy
from annotators.recruitment.panels.orders import send_due_orders
from studies.models import AuditEvent, StudyMember
from studies.services.lifecycle import ActionRefused
from tests.annotators.pay.verdicts.conftest import LONG, checks, sent, work
from tests.annotators.pay.verdicts.objections import WHY, last_page, objecting, stages_of, url
from tests.builders import user

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def rejection(recruitment, panel) -> Verdict:
    """Carried out at the panel."""
    one = sent(recruitment, submitted_at=timezone.now())
    checks(one, 1, 2, 90)
    made = reject_work(work(one), "FAILED_CHECK", LONG, user("owner"))
    send_due_orders(recruitment, panel, lambda *_: None)
    PanelSubmission.objects.filter(pk=one.pk).update(state="rejected", decided_at=timezone.now())
    return made


def test_a_rejected_person_reads_why_objects_once_and_reads_the_answer(rejection, recruitment):
    one = rejection.assignment
    page = last_page(one)
    assert stages_of(page) == ["Received", "Rejected"]
    assert LONG in page and "2 of 3 questions with a known answer were not answered as expected" in page
    # Never which, nor what was expected.
    known = rejection.evidence["failed_checks"][0]
    assert known["expected"] == "80 to 100" and "80 to 100" not in page and known["question"] not in page
    for text, words in (("", "write a few words"), ("x" * 2001, "at most 2000"), ("a\x00b", "character")):
        refused = objecting(rejection, text)
        assert refused.status_code == 422 and words in refused.content.decode()
    assert not Appeal.objects.exists()
    assert objecting(rejection).status_code == 302
    made = Appeal.objects.get()
    assert (made.text, made.rejected_by) == (WHY, user("owner"))
    assert timedelta(days=13) < made.due_at - timezone.now() <= timedelta(days=14)
    page = last_page(one)
    assert (
        "You objected on" in page
        and f"{made.due_at.day} {made.due_at:%B %Y}" in page
        and "<form" not in page.partition("stages")[2]
    )
    assert objecting(rejection).status_code == 302 and Appeal.objects.count() == 1
    with pytest.raises(ActionRefused, match="already sent an objection"):
        create_appeal(one, "Again.")
    answer_appeal(made, "The questions were whole on your screen.", False, user("colleague"))
    page = last_page(one)
    assert "the rejection stays" in page and "whole on your screen" in page and stages_of(page)[-1] == "Rejected"
    with pytest.raises(ActionRefused, match="already answered"):
        answer_appeal(made, "After all.", True, user("colleague"))


def test_who_rejected_cannot_answer_on_the_server_or_in_the_database(rejection):
    made = create_appeal(rejection.assignment, WHY)
    with pytest.raises(ActionRefused, match="Another editor must answer"):
        answer_appeal(made, "No.", False, user("owner"))
    with pytest.raises(IntegrityError), transaction.atomic():
        Appeal.objects.filter(pk=made.pk).update(
            answer="No.", is_upheld=False, answered_by=user("owner"), answered_at=timezone.now()
        )
    # A shell that gives the rejection to somebody else meets the record instead.
    assert Appeal.objects.get().answered_at is None


def test_an_appeal_that_is_upheld_takes_the_rejection_back(rejection, recruitment):
    answer_appeal(create_appeal(rejection.assignment, WHY), "You are right.", True, user("colleague"))
    assert Verdict.objects.get(kind="reverse").reverses == rejection
    page = last_page(rejection.assignment)
    assert stages_of(page)[:2] == ["Received", "Approved"] and "You objected, and you were right" in page
    PanelSubmission.objects.update(state="approved")
    assert stages_of(last_page(rejection.assignment))[:2] == ["Received", "Approved"]


def test_an_upheld_appeal_is_compensated(rejection):
    back = answer_appeal(create_appeal(rejection.assignment, WHY), "You are right.", True, user("colleague"))
    assert back.evidence["compensation"] == "2.50"
    assert "2.50" in last_page(rejection.assignment) and "owed to you" in last_page(rejection.assignment)
    Payment.objects.update(state="paid", ended_at=timezone.now())
    assert stages_of(last_page(rejection.assignment)) == ["Received", "Approved", "Paid"]


def test_appeals_are_listed_the_late_ones_first_and_marked_as_late(rejection, recruitment):
    soon = create_appeal(rejection.assignment, WHY)
    one = sent(recruitment, "W2")
    late = Appeal.objects.create(
        verdict=Verdict.objects.create(
            submission=one, assignment=one.assignment, kind="reject", category="c", message="m", by=user("owner")
        ),
        rejected_by=user("owner"),
        text="Why?",
        at=timezone.now() - timedelta(days=20),
        due_at=timezone.now() - timedelta(days=6),
    )
    assert [(row.pk, row.is_late) for row in appeals_awaiting_answer([recruitment])] == [
        (late.pk, True),
        (soon.pk, False),
    ]
    PanelSubmission.objects.filter(pk=one.pk).update(state="rejected")
    assert "passed without an answer" in last_page(one.assignment)
    create_rejection_reversal(Verdict.objects.get(pk=late.verdict_id), user("owner"))
    assert list(appeals_awaiting_answer([recruitment])) == [soon]


def test_the_page_says_what_is_true_at_each_moment(recruitment, panel):
    one = sent(recruitment)
    mine = one.assignment
    page = last_page(mine)
    assert stages_of(page) == ["Received", "approved", "paid"] and "here and on the panel" in page
    checks(one, 1, 2)
    made = reject_work(work(one), "FAILED_CHECK", LONG, user("owner"))
    # Until the panel carries it out nothing is rejected; what was cancelled never was.
    assert LONG not in last_page(mine) and stages_of(last_page(mine)) == ["Received", "approved", "paid"]
    refused = objecting(made)
    assert refused.status_code == 409 and WHY in refused.content.decode() and not Appeal.objects.exists()
    PanelOrder.objects.update(state="done", sent_at=timezone.now(), ended_at=timezone.now())
    assert LONG in last_page(mine)
    PanelOrder.objects.update(state="refused")
    assert LONG not in last_page(mine)
    # What the panel's own timer did goes before what was decided here.
    PanelOrder.objects.update(state="done")
    PanelSubmission.objects.update(state="approved", decided_at=timezone.now())
    assert stages_of(last_page(mine))[:2] == ["Received", "Approved"] and LONG not in last_page(mine)


def test_who_never_reached_the_panel_reads_what_to_do(recruitment):
    one = sent(recruitment)
    mine, hour = one.assignment, timedelta(hours=1)
    start = mine.started_at - 2 * hour
    Assignment.objects.filter(pk=mine.pk).update(started_at=start, submitted_at=mine.submitted_at - hour)
    for state, words in (
        ("working", "the panel does not have your work yet"),
        ("returned", "was returned"),
        ("expired", "ran out of time"),
    ):
        PanelSubmission.objects.filter(pk=one.pk).update(state=state)
        page = last_page(mine)
        assert words in page and stages_of(page) == ["Received", "approved", "paid"]
    # The panel was asked since, and shows others alone.
    PanelSubmission.objects.filter(pk=one.pk).update(assignment=None)
    assert "the panel does not have your work yet" in last_page(mine)
    PanelSubmission.objects.update(seen_at=mine.submitted_at - 3 * hour)
    assert "does not have your work" not in last_page(mine)


def test_who_withdrew_after_the_end_keeps_pay_reason_and_appeal(rejection):
    Client().post(f"/p/{rejection.assignment.code}/withdraw/")
    page = last_page(rejection.assignment)
    assert "You have left the study" in page and stages_of(page) == ["Received", "Rejected"] and LONG in page
    assert objecting(rejection).status_code == 302 and Appeal.objects.exists()


def test_an_open_link_that_pays_nobody_tells_no_stages(recruitment):
    from annotators.models import Recruitment
    from tests.players import submitted

    door = Recruitment.objects.create(study=recruitment.study, channel="open_link")
    assert "Status of your work" not in last_page(submitted(recruitment.study, "", recruitment=door))


@pytest.mark.parametrize(
    ("before", "data", "words"),
    [
        ("", {"back": "1"}, "This work has no rejection to take back. You need not do anything."),
        ("reject", {"look": "1"}, "The work is rejected already. To change this, take the rejection back."),
        ("approve", {"look": "1"}, "The work is approved already. You need not do anything."),
        ("ask", {"ask": "1", "ask-message": "Please."}, "The annotator was asked already. Wait for the answer at the panel."),
        ("reject", {"ask": "1"}, "Message to the annotator: This field is required."),
        ("no evidence", {"look": "1"}, "No category has evidence. Approve the work, or leave it undecided."),
    ],
)  # fmt: skip
def test_a_refusal_is_shown_where_its_form_is_hidden(recruitment, panel, clients, monkeypatch, before, data, words):
    one = sent(recruitment)
    checks(one, 1, 2, 90)
    if before == "reject":
        reject_work(work(one), "FAILED_CHECK", LONG, user("colleague"))
    elif before == "approve":
        approve_work(work(one), user("colleague"))
    elif before == "ask":
        order_return_request(work(one), "Please.", user("colleague"))
    elif before:
        monkeypatch.setattr(type(REGISTRY["generic"]), "rejection_policy", RejectionPolicy(categories={}))
    typed = {"category": "FAILED_CHECK", "message": LONG, "note": ""}
    page = clients["owner"].post(url(recruitment, f"submission/{one.pk}"), typed | data)
    assert page.status_code == 422
    alert = re.search(r'<div class="errornote" role="alert" tabindex="-1" autofocus>(.*?)</div>', page.content.decode())
    assert alert and f"<li>{words}</li>" in alert[1]
    assert page.content.decode().count("autofocus") == 1


@pytest.mark.slow
def test_one_person_looks_twice_before_a_rejection_is_ordered(recruitment, panel, clients):
    one, owner = sent(recruitment), clients["owner"]
    here = url(recruitment, f"submission/{one.pk}")
    page = owner.get(here).content.decode()
    assert "not asked" in page and ">Approve</button>" in page
    checks(one, 1, 2, 90)
    page = owner.get(here).content.decode()
    assert "2 of 3 not answered as expected" in page and "80 to 100" in page and "Ask for a return first" in page
    assert (
        'value="FAILED_CHECK"' in page and 'value="TOO_QUICKLY"' not in page and "the time cannot be compared" in page
    )
    assert not any(name in page for name in ("alpha", "beta", "gamma"))
    assert 'name="reject"' not in page
    typed = {"category": "FAILED_CHECK", "message": LONG, "note": ""}
    # Straight to the order, or with other words than were shown: they are shown first.
    for posted in (typed | {"reject": "1"}, typed | {"reject": "1", "seen": "else"}, typed | {"look": "1"}):
        shown = owner.post(here, posted)
        assert shown.status_code == 200 and "Check once more" in shown.content.decode()
    assert not Verdict.objects.exists()
    for wrong, words in (
        ({"category": "TOO_QUICKLY"}, "Select a valid choice"),
        ({"category": "LOW_EFFORT"}, "Describe your observations in the note"),
        ({"message": "Short."}, "at least 100"),
        ({"message": LONG + " beta"}, "names the system"),
    ):
        refused = owner.post(here, typed | {"look": "1"} | wrong)
        assert refused.status_code == 422 and words in refused.content.decode()
    from tests.admin_pages import changed, form_of

    form = form_of(owner.post(here, typed | {"look": "1"}), number=-1)
    assert owner.post(here, changed(form, reject="1")).status_code == 302
    assert Verdict.objects.get().by == user("owner") and PanelOrder.objects.get().operation == "reject"
    page = owner.get(here).content.decode()
    assert "Take back the rejection" in page and LONG in page and "colleague" not in page
    assert owner.post(here, {"back": "1", "back-message": ""}).status_code == 302
    assert Verdict.objects.filter(kind="reverse").exists()


def test_approving_asking_for_a_return_and_what_nobody_here_knows(recruitment, panel, clients):
    one, owner = sent(recruitment), clients["owner"]
    here = url(recruitment, f"assignment/{one.assignment_id}")
    assert owner.post(here, {"ask": "1", "ask-message": ""}).status_code == 422
    owner.post(here, {"ask": "1", "ask-message": "Two checks failed. Could you give it back?"})
    assert "The annotator was asked to return the task" in owner.get(here).content.decode()
    stranger = PanelSubmission.objects.create(
        recruitment=recruitment, external_id="S-x", annotator=one.annotator, state="submitted", source="service"
    )
    there = url(recruitment, f"submission/{stranger.pk}")
    assert "never a reason to reject" in owner.get(there).content.decode()
    refused = owner.post(there, {"reject": "1", "category": "OTHER", "message": LONG, "note": "x"})
    assert refused.status_code == 422 and not Verdict.objects.exists()
    for _ in range(2):
        assert owner.post(here, {"approve": "1"}).status_code == 302
    assert Verdict.objects.get().kind == "approve" and PanelOrder.objects.filter(operation="approve").count() == 1
    assert owner.get(url(recruitment, "submission/999999")).status_code == 404
    assert owner.get(url(recruitment, "assignment/999999")).status_code == 404


def test_a_colleague_answers_an_appeal_and_who_rejected_reads_who_can(rejection, recruitment, clients):
    made = create_appeal(rejection.assignment, WHY)
    here = url(recruitment, f"appeal/{made.pk}")
    own = clients["owner"].get(here).content.decode()
    assert WHY in own and "another editor must answer" in own and "colleague" in own and "<textarea" not in own
    typed = {"is_upheld": "yes", "answer": "You are right."}
    assert clients["owner"].post(here, typed).status_code == 422
    for list_of in (
        url(recruitment, "x").removesuffix("x/"),
        f"/admin/studies/study/{recruitment.study_id}/collecting/",
    ):
        assert f"appeal/{made.pk}/" in clients["colleague"].get(list_of).content.decode()
    assert clients["colleague"].post(here, typed | {"answer": "Alpha is better."}).status_code == 422
    assert clients["colleague"].post(here, {}).status_code == 422
    assert Appeal.objects.get().answered_at is None
    assert clients["colleague"].post(here, typed).status_code == 302
    assert Verdict.objects.get(kind="reverse").by == user("colleague")
    assert AuditEvent.objects.get(verb="answer appeal").data == {"is_upheld": True}
    assert "the annotator is right" in clients["owner"].get(here).content.decode()
    assert clients["owner"].get(url(recruitment, "appeal/999999")).status_code == 404


def test_the_editor_of_a_study_with_one_editor_reads_that_somebody_must_be_invited(rejection, recruitment, clients):
    made = create_appeal(rejection.assignment, WHY)
    StudyMember.objects.filter(user=user("colleague")).delete()
    page = clients["owner"].get(url(recruitment, f"appeal/{made.pk}")).content.decode()
    assert "This study has no other editor" in page
    other = sent(recruitment, "W2")
    checks(other, 1, 2)
    assert (
        "This study has no other editor"
        in clients["owner"].get(url(recruitment, f"submission/{other.pk}")).content.decode()
    )


def test_what_is_decided_without_a_panels_service_holds_at_once(recruitment, panel):
    from annotators.recruitment.panels.http_client import store_or_delete_secrets

    store_or_delete_secrets(recruitment, {"token": ""}, by=None)
    one = sent(recruitment)
    approve_work(work(one), user("owner"))
    assert not PanelOrder.objects.exists()
