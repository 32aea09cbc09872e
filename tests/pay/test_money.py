"""What a link has cost and will cost, and what that comes to an hour: each sum is of the people whom its words name."""

from datetime import timedelta
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import call_command
from django.db.models.functions import Now
from django.utils import timezone

from analysis import pay_report
from annotators.exclude import replace
from annotators.models import Assignment, Payment, Recruitment, Verdict
from annotators.pay import book
from annotators.pay.money import money_of
from studies import lifecycle
from studies.models import Study
from tests.admin_pages import logged_in
from tests.builders import draft_study, panel, promised, spa_study, user
from tests.players import claimed, submitted

pytestmark = pytest.mark.django_db


def again(link) -> Recruitment:
    return Recruitment.objects.select_related("study").get(pk=link.pk)


def still(link) -> tuple[int, str]:
    money = money_of(again(link))
    return money.people_to_come, str(money.to_come)


def text(page) -> str:
    return " ".join(page.content.decode().split())


def test_what_is_owed_and_not_written_down_is_in_the_sum_and_said():
    study = spa_study(user("owner"), target_n=4)
    link = promised(panel(study), full="0.10", withdrawn="share")
    submitted(study, "a", recruitment=link)
    submitted(study, "b", recruitment=link)
    found = money_of(again(link))
    assert (found.paid, found.due, found.unwritten, found.total) == (0, 0, Decimal("5.00"), Decimal("10.00"))
    assert not Payment.objects.exists()
    client = logged_in(user("owner"))
    address = f"/admin/annotators/recruitment/{link.pk}/pay/"
    page = text(client.get(address))
    assert '<dt>Not written down yet</dt><dd>5.00 USD <span class="quiet">(owed since the last look: look' in page
    everything = text(client.get(f"/admin/annotators/recruitment/study/{study.pk}/pay/"))
    assert "Not written down yet" in everything and "10.00 USD</td>" in everything
    out = StringIO()
    call_command("pay", link.key, "--dry-run", stdout=out)
    assert "0.00 due, 5.00 not written down yet, 5.00 to come" in out.getvalue()
    assert pay_report.report_of(study)["links"][0]["unwritten"] == "5.00"
    client.post(address, {"settle": "1"})
    found = money_of(again(link))
    assert (found.due, found.unwritten, found.total) == (Decimal("5.00"), 0, Decimal("10.00"))
    for page in (client.get(address), client.get(f"/admin/annotators/recruitment/study/{study.pk}/pay/")):
        assert "Not written down yet" not in text(page)
    # A raise is owed to who is done, before anybody has looked.
    Recruitment.objects.filter(pk=link.pk).update(reward=Decimal("3.00"))
    assert money_of(again(link)).unwritten == Decimal("1.00")
    # What somebody may not get any more is no cost either.
    book.settle(again(link))
    rejected(Assignment.objects.earliest("pk"))
    assert money_of(again(link)).unwritten == Decimal("-3.00")
    assert "(written down and owed no more: look" in text(client.get(address))


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
    # One place is left, whoever fills it.
    assert [still(one), still(other)] == [(1, "2.50"), (1, "2.50")]


def test_who_was_replaced_is_still_to_come():
    study = spa_study(user("owner"), target_n=4, target_kind="kept")
    link = panel(study)
    done = [submitted(study, person, recruitment=link) for person in "abcd"]
    assert still(link) == (0, "0.00")
    replace(study, [done[0].pk])
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
    lifecycle.close(study)
    assert still(link)[0] == 1
    lifecycle.finish(Study.objects.get(pk=study.pk))
    assert still(link) == (0, "0.00")


def test_a_sum_for_nobody_knows_how_many_people_is_a_least_one():
    study = draft_study(owner=user("owner"), target_n=None)
    link = panel(study)
    assert money_of(link).is_least and money_of(link).people_to_come == 0
    Recruitment.objects.filter(pk=link.pk).update(wanted=2)
    assert not money_of(again(link)).is_least and still(link) == (2, "5.00")


def test_parts_of_one_person_are_not_called_people():
    study = spa_study(user("owner"), target_n=4, batches_per_annotator=2, prompts=16)
    link = panel(study)
    submitted(study, "a", recruitment=link)
    page = text(logged_in(user("owner")).get(f"/admin/annotators/recruitment/{link.pk}/pay/"))
    assert "(3 parts still to finish)" in page and "people still" not in page
