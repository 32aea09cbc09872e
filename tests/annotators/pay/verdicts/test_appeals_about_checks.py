"""An annotator whose work ended because of wrong answers objects once, and an editor answers by a promised date."""

import pytest
from django.test import Client
from django.urls import reverse

from annotators.models import Appeal, Assignment, Payment
from annotators.pay.decisions import answer_appeal, create_appeal
from annotators.pay.ledger import compute_amount_owed, update_ledger
from annotators.pay.promises import get_pay_terms
from studies.models import AuditEvent, StudyMember
from studies.services.lifecycle import ActionRefused
from tests.admin_pages import logged_in
from tests.annotators.pages.quizzes import attempt, quiz_study
from tests.attention import fresh, play, study_with_checks
from tests.builders import panel, promised, user
from tests.players import answered, claimed

from .objections import WHY, last_page, url

pytestmark = pytest.mark.django_db


def failed(study=None, name="twice", **pays) -> Assignment:
    study = study or study_with_checks("rating", reward=2)
    return play(claimed(study, name, promised(panel(study), **pays)), 2)


def editor_of(assignment):
    somebody = user("somebody")
    StudyMember.objects.create(study=assignment.study, user=somebody, role="editor")
    return somebody


def objects(assignment, text=WHY):
    return Client().post(f"/p/{assignment.code}/appeal/", {"text": text, "about": "checks"})


def owed(assignment):
    pay = compute_amount_owed(fresh(assignment), 2, get_pay_terms(assignment.recruitment))
    return pay.outcome, str(pay.amount)


def test_an_upheld_objection_changes_outcome_and_pay_and_is_logged():
    done = failed(failed_checks="0.80", fault="all")
    link, owner = done.recruitment, editor_of(done)
    update_ledger(link, by=owner)
    assert objects(done, " ").status_code == 422 and not Appeal.objects.exists()
    assert objects(done)["Location"] == f"/p/{done.code}/done/#checks"
    assert objects(done, "Again!").status_code == 409
    made = Appeal.objects.get()
    assert (made.subject, made.work, made.rejected_by) == ("checks", done, None)
    page = last_page(done)
    assert f"by <b>{made.due_at:%-d %B %Y}</b>" in page and "/appeal/" not in page
    assert (made.due_at - made.at).days in (13, 14) and owed(done) == ("failed_checks", "0.80")
    editor = logged_in(owner)
    listed = editor.get(reverse("admin:annotators_collecting", args=[done.study_id])).content.decode()
    assert "wrong answers" in listed and url(link, f"appeal/{made.pk}") in listed
    shown = editor.get(url(link, f"appeal/{made.pk}")).content.decode()
    assert WHY in shown and shown.count("To show that you read this") == 2 and "It now pays 0.80 USD" in shown
    answered = editor.post(url(link, f"appeal/{made.pk}"), {"answer": "You did.", "is_upheld": "yes"}, follow=True)
    assert "The work now pays 2.00 USD" in answered.content.decode()
    assert fresh(done).released_reason == "fault" and owed(done) == ("fault", "2.00")
    change = AuditEvent.objects.get(verb="change outcome")
    assert (change.by, change.assignment_code) == (owner, done.code)
    assert change.data == {"before": "failed_checks", "after": "fault"}
    update_ledger(link, by=owner)
    payments = Payment.objects.order_by("pk").values_list("kind", "amount", "state")
    assert [(kind, str(amount), state) for kind, amount, state in payments] == [
        ("outcome", "0.80", "due"),
        ("difference", "1.20", "due"),
    ]
    page = last_page(done)
    assert "you were right" in page and "You did." in page and "2.00 USD" in page
    # The place was given away, so the person cannot come back.
    again = Client().get(f"/e/{link.key}/?who=twice&session=2", follow=True).content.decode()
    assert "Strongly agree" not in again


def test_a_refused_objection_changes_nothing_and_is_the_last():
    done = failed(failed_checks="0.80", fault="all")
    answer_appeal(create_appeal(done, WHY, "checks"), "You did not read it.", False, editor_of(done))
    assert fresh(done).released_reason == "failed_checks" and owed(done) == ("failed_checks", "0.80")
    page = last_page(done)
    assert "the decision stays" in page and "You did not read it." in page and "<textarea" not in page
    assert not AuditEvent.objects.filter(verb="change outcome").exists()
    with pytest.raises(ActionRefused, match="already sent"):
        create_appeal(done, "Again!", "checks")


@pytest.mark.parametrize("rules", [{"fault": "nothing"}, {"fault": "0.10"}, {}])
def test_an_upheld_objection_never_lowers_the_pay(rules):
    done = failed(failed_checks="0.80", **rules)
    if not rules:
        done.recruitment.outcome_pays.filter(outcome="fault").delete()
    answer_appeal(create_appeal(done, WHY, "checks"), "You did.", True, editor_of(done))
    assert owed(done) == ("fault", "0.80") and "0.80 USD" in last_page(done)


def failed_test(**pays) -> Assignment:
    study = quiz_study()
    tried = claimed(study, "bad", promised(panel(study), **pays))
    attempt(tried, 1)
    answered(fresh(tried))
    attempt(tried, 2)
    return fresh(tried)


def test_who_fails_the_test_reads_so_and_can_object():
    done = failed_test(screened_out="0.60", fault="0.40")
    page = last_page(done)
    assert "In both attempts at the test" in page and "You did nothing wrong" not in page and 'href="#checks"' in page
    assert owed(done) == ("screened_out", "0.60")
    assert objects(done)["Location"] == f"/p/{done.code}/done/#checks"
    made, owner = Appeal.objects.get(), editor_of(done)
    shown = logged_in(owner).get(url(done.recruitment, f"appeal/{made.pk}")).content.decode()
    assert "wrong answers in the test" in shown and "Attempt 2: 0 of 2 answers were right" in shown
    answer_appeal(made, "Two questions were wrong.", True, owner)
    assert fresh(done).released_reason == "fault" and owed(done) == ("fault", "0.60"), "never less than before"
    assert AuditEvent.objects.get(verb="change outcome").data == {"before": "screened_out", "after": "fault"}
    page = last_page(done)
    assert "you were right" in page and "In both attempts at the test" in page


def test_nobody_else_can_object():
    study = study_with_checks("rating", reward=2)
    finished = play(claimed(study, "once"), 1)
    assert objects(finished).status_code == 409
    with pytest.raises(ActionRefused, match="did not end because of wrong answers"):
        create_appeal(finished, WHY, "checks")
    tried = play(claimed(study, "twice"), 2)
    Assignment.objects.filter(pk=tried.pk).update(origin="test")
    refused = objects(tried)
    assert refused.status_code == 422 and "This is a test run" in refused.content.decode()
    assert not Appeal.objects.exists()
