"""The researcher says what an early end pays; it is shown on the first page and at the end, and only rises."""

from decimal import Decimal

import pytest
from django.test import Client

from annotators.models import Assignment, OutcomePay, Payment, Recruitment
from annotators.models.identity import get_person_id, store_person_id
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.pay import ledger
from annotators.places import assign
from annotators.recruitment.panels.orders import publishing_obstacles
from studies.models import AuditEvent
from studies.services import lifecycle
from tests.admin_pages import changed, errors_of, form_of, logged_in
from tests.builders import panel, promised, spa_draft, spa_study, user, warnings_of
from tests.players import answered, claimed, submitted

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return spa_study(user("owner"), target_n=12)


def seen(address) -> str:
    return Client().get(address).content.decode()


def told(assignment) -> str:
    return " ".join(seen(f"/p/{assignment.code}/done/").replace("<b>", "").replace("</b>", "").split())


def address(recruitment) -> str:
    return f"/admin/annotators/recruitment/{recruitment.pk}/change/"


def saved(client, recruitment, **changes):
    page = client.get(address(recruitment))
    return client.post(address(recruitment), changed(form_of(page, "recruitment_form"), **changes))


def test_the_first_page_says_what_an_early_end_pays(study):
    recruitment = promised(panel(study), failed_checks="all", fault="all", withdrawn="share", full="0.10")
    page = seen(f"/e/{recruitment.key}/?who=a&session=1")
    # No question here says which answer to give: an end that cannot come is not among them.
    assert (
        "If it ends early" in page
        and "which answer to give" not in page
        and "<b>All of it</b>: if we have to end" in page
    )
    assert "<b>0.10 USD</b>: if no place is left" in page and "<b>A share for the pages that you have sent</b>" in page
    assert "<b>Nothing</b>: if the first answers show" in page
    unscreened = promised(panel(spa_study(with_surveys=False)), full="0.10")
    page = seen(f"/e/{unscreened.key}/?who=a&session=1")
    assert "no place is left" in page and "the first answers show" not in page
    # A study that pays nothing promises nothing.
    Recruitment.objects.filter(pk=recruitment.pk).update(reward=0)
    assert "If it ends early" not in seen(f"/e/{recruitment.key}/?who=a&session=1")


def test_the_end_says_what_it_pays_and_how(study):
    recruitment = promised(panel(study), screened_out="0.30")
    done = submitted(study, "done", recruitment=recruitment)
    assert "You are paid 2.50 USD. You receive it from the panel or the people who invited you." in told(done)
    for person, reason, words in (
        ("s", "screened_out", "You are paid 0.30 USD."),
        ("f", "failed_checks", "You are not paid for this"),
    ):
        mine = claimed(study, person, recruitment)
        assign.release_assignment(mine.pk, reason)
        assert words in told(mine)


def test_who_leaves_reads_their_share_and_their_id_is_kept_until_it_is_paid(study):
    recruitment = promised(panel(study), withdrawn="share")
    mine = claimed(study, "leaves", recruitment)
    store_person_id(mine.annotator, "leaves")
    assert "If you leave now, you are not paid" in seen(f"/p/{mine.code}/withdraw/")
    answered(mine)
    page = seen(f"/p/{mine.code}/withdraw/")
    assert "For the 1 page that you sent you are paid" in page and "until you are paid" in page
    Client().post(f"/p/{mine.code}/withdraw/", {"leave": "1"})
    ledger.update_ledger(recruitment, by=None)
    share = Payment.objects.get()
    assert f"You are paid {share.amount} USD for the 1 page that you sent" in told(mine)
    assert get_person_id(mine.annotator) == "leaves"
    ledger.mark_payments_paid_and_erase_withdrawn_ids(recruitment, [share.pk], user("owner"))
    ledger.update_ledger(recruitment, by=None)
    assert get_person_id(mine.annotator) is None
    # To whom nothing is owed is forgotten at once.
    other = claimed(study, "leaves at once", recruitment)
    store_person_id(other.annotator, "leaves at once")
    withdraw_annotator_and_erase_texts(other)
    assert get_person_id(other.annotator) is None


def test_a_link_that_pays_says_what_each_end_pays_before_launch_and_publishing():
    draft = spa_draft(owner=user("owner"), rules=[])
    recruitment = panel(draft, promises="")
    key = f"outcome_pay_{recruitment.pk}"
    assert key in warnings_of(draft) and any(
        "withdrew before the end" in words for words in publishing_obstacles(recruitment)
    )
    with pytest.raises(lifecycle.NotReady, match="no pay is set for screened out, no place left"):
        lifecycle.launch(draft, None, [one for one in warnings_of(draft) if one != key])
    promised(recruitment, screened_out="0.30")
    assert key not in warnings_of(draft) and not any(
        "no pay is set" in words for words in publishing_obstacles(recruitment)
    )
    recruitment.settings |= {"screen_out_pay": "0.20"}
    assert any("promises another amount" in words for words in publishing_obstacles(recruitment))
    OutcomePay.objects.all().delete()
    recruitment.reward = Decimal(0)
    assert not any("no pay is set" in words for words in publishing_obstacles(recruitment))


def test_the_form_proposes_that_nobody_is_refused_and_keeps_what_is_said(study):
    client = logged_in(user("owner"))
    answer = client.post("/admin/annotators/recruitment/add/", {"study": study.pk, "channel": "generic"})
    assert answer.status_code == 302, errors_of(answer)
    recruitment = Recruitment.objects.get()
    assert set(OutcomePay.objects.values_list("outcome", "rule")) == {
        ("failed_checks", "all"),
        ("fault", "all"),
        ("withdrawn", "share"),
    }
    page = client.get(address(recruitment)).content.decode()
    assert "closed to visitors: no pay is set for screened out, no place left." in page
    answer = saved(client, recruitment, ends_full="amount")
    assert "needs an amount" in errors_of(answer)
    answer = saved(client, recruitment, ends_full="all", ends_full_amount="1")
    assert "or leave the amount empty" in errors_of(answer)
    answer = saved(client, recruitment, ends_full="amount", ends_full_amount="0.10", ends_screened_out="nothing")
    assert answer.status_code == 302, errors_of(answer)
    assert OutcomePay.objects.get(outcome="full").amount == Decimal("0.10")
    assert "no pay is set" not in client.get(address(recruitment)).content.decode()
    assert AuditEvent.objects.get(verb="promise pay").data["full"] == "amount 0.10"


@pytest.mark.slow
def test_once_people_came_pay_only_rises_and_who_is_done_gets_the_difference(study):
    client, recruitment = logged_in(user("owner")), promised(panel(study, reward=Decimal("2.00")), full="0.10")
    submitted(study, "early", recruitment=recruitment)
    for changes, words in (
        ({"reward": "1.99"}, "pay can only rise. Enter at least 2.00"),
        ({"currency": "EUR"}, "the currency cannot change"),
        ({"ends_full_amount": "0.05"}, "the promised pay can only rise"),
        ({"ends_full": "", "ends_full_amount": ""}, "can only rise"),
    ):
        assert words in errors_of(saved(client, recruitment, **changes)), changes
    answer = saved(client, recruitment, reward="2.75", ends_full="all", ends_full_amount="")
    assert answer.status_code == 302, errors_of(answer)
    ledger.update_ledger(recruitment, by=None)
    assert [str(row.amount) for row in Payment.objects.order_by("pk")] == ["2.00", "0.75"]
    # Emptied, the link pays what the study says: less than it said itself.
    assert "can only rise" in errors_of(saved(client, recruitment, reward=""))
    assert Assignment.objects.filter(recruitment=recruitment).count() == 1
