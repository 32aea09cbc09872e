"""What a link has cost and will cost, and what that comes to an hour: each sum is of the people whom its words name."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from analysis.api.pay import build_pay_report_by_arm_and_link
from annotators.admin import pay
from annotators.models import Assignment, PageVisit, Payment, Recruitment, Verdict
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.pay import ledger
from annotators.pay.costs import compute_link_cost
from annotators.pay.statement import low_wage_warning, pay_by_arm, pay_overall_and_by_arm
from annotators.places.exclusions import open_replacement_places_up_to_cap
from studies.models import Study
from studies.services import lifecycle
from tests import study_command
from tests.admin_pages import logged_in
from tests.builders import draft_study, panel, promised, spa_study, user
from tests.players import claimed, submitted

pytestmark = pytest.mark.django_db


def again(link) -> Recruitment:
    return Recruitment.objects.select_related("study").get(pk=link.pk)


def still(link) -> tuple[int, str]:
    money = compute_link_cost(again(link))
    return money.people_to_come, str(money.to_come)


def text(page) -> str:
    return " ".join(page.content.decode().split())


def test_what_is_owed_and_not_written_down_is_in_the_sum_and_said():
    study = spa_study(user("owner"), target_n=4)
    link = promised(panel(study), full="0.10", withdrawn="share")
    submitted(study, "a", recruitment=link)
    submitted(study, "b", recruitment=link)
    found = compute_link_cost(again(link))
    assert (found.paid, found.due, found.unsettled, found.total) == (0, 0, Decimal("5.00"), Decimal("10.00"))
    assert not Payment.objects.exists()
    client = logged_in(user("owner"))
    address = f"/admin/annotators/recruitment/{link.pk}/pay/"
    page = text(client.get(address))
    assert (
        '<dt>Not recorded yet</dt><dd>5.00 USD <span class="quiet">(due since the last check: press “Record what is due now” below)</span>'
        in page
    )
    everything = text(client.get(f"/admin/studies/study/{study.pk}/pay/"))
    assert "Not recorded yet" in everything and "10.00 USD</td>" in everything
    said = study_command.run("pay", study.code, "--settle", "--dry-run")[1]
    assert "2 newly due: 5.00 USD" in said and "0.00 due, 5.00 unrecorded, 5.00 to come, 10.00 total USD" in said
    assert build_pay_report_by_arm_and_link(study)["links"][0]["unrecorded"] == "5.00"
    client.post(address, {"settle": "1"})
    found = compute_link_cost(again(link))
    assert (found.due, found.unsettled, found.total) == (Decimal("5.00"), 0, Decimal("10.00"))
    for page in (client.get(address), client.get(f"/admin/studies/study/{study.pk}/pay/")):
        assert "Not recorded yet" not in text(page)
    # A raise is owed to who is done, before anybody has looked.
    Recruitment.objects.filter(pk=link.pk).update(reward=Decimal("3.00"))
    assert compute_link_cost(again(link)).unsettled == Decimal("1.00")
    # What somebody may not get any more is no cost either.
    ledger.update_ledger(again(link), by=None)
    rejected(Assignment.objects.earliest("pk"))
    assert compute_link_cost(again(link)).unsettled == Decimal("-3.00")
    assert "(recorded, but no longer due: press" in text(client.get(address))


def rejected(assignment) -> Verdict:
    return Verdict.objects.create(
        assignment=assignment, kind="reject", category="NOTHING", message="why", evidence={}, by=user("owner")
    )


def test_links_that_fill_one_study_wait_for_the_same_people():
    study = spa_study(user("owner"), target_n=4)
    one, other = panel(study), panel(study, wanted=3)
    assert [still(one), still(other)] == [(4, "10.00"), (3, "7.50")]
    for person in "abc":
        submitted(study, person, recruitment=one)
    # One place is left for anybody.
    assert [still(one), still(other)] == [(1, "2.50"), (1, "2.50")]


def test_who_was_replaced_is_still_to_come():
    study = spa_study(user("owner"), target_n=4, target_kind="kept")
    link = panel(study)
    done = [submitted(study, person, recruitment=link) for person in "abcd"]
    assert still(link) == (0, "0.00")
    open_replacement_places_up_to_cap(study, [done[0].pk])
    assert still(link) == (1, "2.50")
    page = text(logged_in(user("owner")).get(f"/admin/annotators/recruitment/{link.pk}/pay/"))
    assert '2.50 USD <span class="quiet">(1 person still to finish)' in page


def test_where_nobody_new_may_come_those_at_work_are_still_to_finish():
    study = spa_study(user("owner"), target_n=6)
    link = panel(study)
    submitted(study, "done", recruitment=link)
    claimed(study, "at work", recruitment=link)
    assert still(link)[0] == 5
    for columns in ({"stopped_at": Now()}, {"closes_at": timezone.now() - timedelta(hours=1)}):
        Recruitment.objects.filter(pk=link.pk).update(**columns)
        assert still(link) == (1, "2.50")
        Recruitment.objects.filter(pk=link.pk).update(stopped_at=None, closes_at=None)
    lifecycle.start_closing(study, by=None)
    assert still(link)[0] == 1
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    assert still(link) == (0, "0.00")


def test_a_sum_for_nobody_knows_how_many_people_is_a_least_one():
    study = draft_study(owner=user("owner"), target_n=None)
    link = panel(study)
    assert compute_link_cost(link).is_lower_bound and compute_link_cost(link).people_to_come == 0
    Recruitment.objects.filter(pk=link.pk).update(wanted=2)
    assert not compute_link_cost(again(link)).is_lower_bound and still(link) == (2, "5.00")


def test_parts_of_one_person_are_not_called_people():
    study = spa_study(user("owner"), target_n=4, batches_per_annotator=2, prompts=16)
    link = panel(study)
    submitted(study, "a", recruitment=link)
    page = text(logged_in(user("owner")).get(f"/admin/annotators/recruitment/{link.pk}/pay/"))
    assert "(3 parts still to finish)" in page and "people still" not in page


def test_a_list_that_is_cut_says_so(monkeypatch):
    monkeypatch.setattr(pay, "MAX_ROWS", 1)
    study = spa_study(user("owner"), target_n=4)
    link = panel(study)
    for person in "abc":
        submitted(study, person, recruitment=link)
    client, address = logged_in(user("owner")), f"/admin/annotators/recruitment/{link.pk}/pay/"
    assert "more are not listed here" not in text(client.get(address))
    ledger.update_ledger(again(link), by=None)
    assert "2 more are not listed here" in text(client.get(address))
    ledger.mark_payments_paid_and_erase_withdrawn_ids(
        again(link), list(Payment.objects.values_list("pk", flat=True)[:2]), user("owner")
    )
    page = text(client.get(address))
    assert "more are not listed here" not in page and "1 older payment is not listed here." in page


# Pay an hour


def taking(assignment, seconds: int) -> Assignment:
    visits = PageVisit.objects.filter(assignment=assignment)
    visits.update(active_seconds=0)
    PageVisit.objects.filter(pk=visits.first().pk).update(active_seconds=seconds)
    return assignment


@pytest.mark.slow
def test_pay_in_another_currency_is_no_part_of_pay_an_hour():
    study = spa_study(user("owner"), target_n=12, wage_per_hour=Decimal("12.00"))
    here, elsewhere = panel(study), panel(study, currency="JPY", reward=Decimal("400.00"))
    taking(submitted(study, "a", recruitment=here), 900)
    for person in "bcdef":
        taking(submitted(study, person, recruitment=elsewhere), 1800)
    everybody, (arm,) = pay_overall_and_by_arm(study)
    for one in (everybody, arm):
        assert (one.n, one.in_study_currency, one.in_another_currency, str(one.hourly.median), one.below_wage) == (
            6,
            1,
            5,
            "10.00",
            1,
        )
        assert str(one.minutes.median) == "30.0"
    # One person is no reason to be alarmed.
    assert low_wage_warning(study, [arm]) == ""
    client = logged_in(user("owner"))
    page = text(client.get(f"/admin/studies/study/{study.pk}/pay/"))
    assert "1 of 1" in page and "5 in all are paid in another currency" in page
    collecting = text(client.get(f"/admin/studies/study/{study.pk}/collecting/"))
    assert (
        "10.00 USD (target: 12.00), by working time, including bonuses, 1 person; 5 in another currency" in collecting
    )
    Assignment.objects.filter(recruitment=here).update(recruitment=elsewhere)
    page = text(client.get(f"/admin/studies/study/{study.pk}/pay/"))
    assert page.count('<td class="number">–</td>') == 2 and "6 in all are paid" in page
    assert build_pay_report_by_arm_and_link(study)["arms"][0] | {"minutes": None} == {
        "arm": "all",
        "people": 6,
        "minutes": None,
        "per_hour": None,
        "below_declared": 0,
        "without_active_time": 0,
        "in_another_currency": 6,
    }


def test_who_was_rejected_came_to_nothing_and_a_bonus_comes_on_top_of_a_raise():
    study = spa_study(user("owner"), target_n=12)
    link = panel(study)
    done = taking(submitted(study, "a", recruitment=link), 3600)
    ledger.update_ledger(again(link), by=None)
    assert str(pay_by_arm(study)[0].hourly.median) == "2.50"
    ledger.add_extra_payments(
        again(link), [ledger.ExtraPayment(done, Decimal("1.00"), "thanks")], "bonus", user("owner")
    )
    Recruitment.objects.filter(pk=link.pk).update(reward=Decimal("3.00"))
    assert str(pay_by_arm(study)[0].hourly.median) == "4.00"
    verdict = rejected(done)
    ledger.update_ledger(again(link), by=None)
    assert str(pay_by_arm(study)[0].hourly.median) == "1.00"  # the bonus stays
    Verdict.objects.create(
        assignment=done, kind="reverse", reverses=verdict, message="", evidence={}, by=user("colleague")
    )
    assert str(pay_by_arm(study)[0].hourly.median) == "4.00"


def test_the_collecting_page_and_the_pay_page_tell_one_pay_an_hour():
    study = spa_study(user("owner"), target_n=12, wage_per_hour=Decimal("12.00"))
    link = panel(study)
    for n, seconds in enumerate((600, 900, 1500)):
        done = taking(submitted(study, str(n), recruitment=link), seconds)
        # Half of the time the page was out of sight.
        Assignment.objects.filter(pk=done.pk).update(started_at=F("submitted_at") - timedelta(seconds=2 * seconds))
    withdraw_annotator_and_erase_texts(Assignment.objects.latest("pk"))
    client = logged_in(user("owner"))
    pages = [text(client.get(f"/admin/studies/study/{study.pk}/{page}/")) for page in ("collecting", "pay")]
    assert "<dt>Pay per hour, median</dt><dd>10.00 USD (target: 12.00)" in pages[0] and "<b>10.00</b>" in pages[1]
