"""Every sum of money that a researcher reads, counted once more by loops over raw rows."""

import csv
import io
from collections import Counter
from decimal import Decimal
from statistics import quantiles

import pytest

from annotators.models import (
    Payment,
    Verdict,
)
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.annotators.pay.recount.rows import STANDING, holding, in_time, live
from tests.builders import user

pytestmark = pytest.mark.django_db


def sums_by_hand(link) -> Counter:
    sums = Counter()
    for row in Payment.objects.all():
        if row.assignment.recruitment_id == link.pk:
            assert row.currency == (link.currency or link.study.currency)
            sums[row.state] += row.amount
    return sums


def owed_by_hand(one, link, pages) -> Decimal:
    """As the documentation promises it. ``pages``: how many a whole visit has."""
    arm = one.batch.arm.name if one.batch else None
    rewards = {"all": Decimal("2.50"), "paid more": Decimal("3.50")}
    whole = link.reward or rewards.get(arm, Decimal("2.50"))
    sent = sum(bool(visit.recorded_at) for visit in one.visits.all())
    if one.submitted_at:
        return whole
    share = whole * sent / pages
    ends = {
        "screened_out": Decimal("0.30"),
        "full": Decimal("0.10"),
        "withdrawn": share.quantize(Decimal("0.01"), "ROUND_UP"),
    }
    return ends.get(one.released_reason, Decimal(0))


@pytest.mark.slow
def test_money_is_what_was_promised_and_every_page_says_the_same(world):
    study, panel, by_hand = world
    client, api = logged_in(user("owner")), api_of(user("owner"))
    pages = max(sum(bool(visit.recorded_at) for visit in one.visits.all()) for one in in_time(live(study)))
    rejections = {row.assignment.pk for row in Verdict.objects.filter(kind="reject")}
    taken_back = {row.assignment.pk for row in Verdict.objects.filter(kind="reverse")}
    assert len(rejections) == 2 and len(taken_back) == 1
    unwritten = Counter()
    for link in (panel, by_hand):
        for one in live(study):
            if one.recruitment_id != link.pk:
                continue
            standing = [row.amount for row in one.payments.all() if row.state in STANDING and row.kind != "bonus"]
            owed = Decimal(0) if one.pk in rejections - taken_back else owed_by_hand(one, link, pages)
            unwritten[link.pk] += owed - sum(standing)
            assert owed == sum(standing) or (one.submitted_at and not standing), (one.pk, owed, standing)
    assert unwritten == {panel.pk: 0, by_hand.pk: Decimal("2.00")}
    # A bonus is paid beside that: what the panel refused is due by hand.
    bonuses = [(str(row.amount), row.way, row.state) for row in Payment.objects.filter(kind="bonus").order_by("pk")]
    assert sorted(bonuses) == [
        ("0.40", "bonus", "paid"),
        ("0.75", "bonus", "failed"),
        ("0.75", "hand", "due"),
        ("1.20", "bonus", "paid"),
    ]
    report = {one["link"]: one for one in api.get(f"studies/{study.code}/pay/").json()["links"]}
    all_links = {one.pk: money for one, money in client.get(f"/admin/studies/study/{study.pk}/pay/").context["links"]}
    room = study.target_n - len([one for one in in_time(live(study)) if not one.replaced_at])
    for link, highest in ((panel, Decimal("3.50")), (by_hand, Decimal("2.00"))):
        sums = sums_by_hand(link)
        at_work = [one for one in holding(live(study)) if not one.submitted_at and one.recruitment_id == link.pk]
        n = max(room, len(at_work))
        page = client.get(f"/admin/annotators/recruitment/{link.pk}/pay/")
        for money in (page.context["money"], all_links[link.pk]):
            assert (money.paid, money.ordered, money.due) == (sums["paid"], sums["ordered"], sums["due"])
            assert (money.unsettled, money.people_to_come, money.to_come) == (unwritten[link.pk], n, n * highest)
            assert money.total == sum(sums[state] for state in STANDING) + unwritten[link.pk] + n * highest
            assert money.is_lower_bound == (link == panel)
        told = report[link.key]
        sums_in_report = [told[name] for name in ("paid", "ordered", "due", "unrecorded", "to_come", "total")]
        sums_on_page = (money.paid, money.ordered, money.due, money.unsettled, money.to_come, money.total)
        assert sums_in_report == [f"{amount:.2f}" for amount in sums_on_page]
        text = " ".join(page.content.decode().split())
        currency = "EUR" if link == by_hand else "USD"
        assert f"<dt>Paid</dt><dd>{sums['paid']:.2f} {currency}</dd>" in text and f"({n} parts still to finish)" in text
        assert f"{'at least ' if link == panel else ''}{money.total:.2f} {currency}</b>" in text
        due = [row for row in Payment.objects.filter(assignment__recruitment=link) if row.state == "due"]
        assert len(page.context["due"]) + page.context["n_approval"] == len(due) > 0
        file = list(
            csv.DictReader(
                io.StringIO(client.get(f"/admin/annotators/recruitment/{link.pk}/pay/file.csv").content.decode())
            )
        )
        assert sum(Decimal(row["amount"]) for row in file) == sum(row.amount for row in due if row.way != "approval")
    # Every payment over REST, and as a file.
    rows = api.get(f"studies/{study.code}/payments/?page_size=1000").json()["results"]
    file = list(csv.DictReader(io.StringIO(api.get(f"studies/{study.code}/payments.csv").body.decode())))
    assert (
        [(row["number"], row["amount"], row["state"]) for row in rows]
        == [(one.pk, f"{one.amount:.2f}", one.state) for one in Payment.objects.order_by("pk")]
        == [(int(row["number"]), row["amount"], row["state"]) for row in file]
    )


def test_pay_an_hour_is_of_those_whom_its_words_name(world):
    study, panel, _ = world
    client = logged_in(user("owner"))
    collecting = client.get(f"/admin/studies/study/{study.pk}/collecting/")
    arms = client.get(f"/admin/studies/study/{study.pk}/pay/").context["arms"]
    rejections = {row.assignment_id for row in Verdict.objects.filter(kind="reject", reversed_by=None)}
    for figures, people in [(collecting.context["everybody"], in_time(live(study)))] + [
        (arm, [one for one in in_time(live(study)) if one.batch.arm.name == arm.name]) for arm in arms
    ]:
        hourly = []
        for one in people:
            active = sum(visit.active_seconds for visit in one.visits.all())
            seconds = active or max(1, round((one.submitted_at - one.started_at).total_seconds()))
            got = sum((row.amount for row in one.payments.all() if row.state in STANDING), Decimal(0))
            assert got or one.pk in rejections or one.recruitment_id != panel.pk
            if one.recruitment_id == panel.pk:
                hourly.append(got * 3600 / seconds)
        assert (figures.n, figures.in_study_currency, figures.in_another_currency) == (
            len(people),
            len(hourly),
            len(people) - len(hourly),
        )
        quarters = [
            one.quantize(Decimal("0.01"), "ROUND_HALF_UP") for one in quantiles(hourly, n=4, method="inclusive")
        ]
        assert [figures.hourly.q1, figures.hourly.median, figures.hourly.q3] == quarters
        assert figures.below_wage == sum(one < 12 for one in hourly) > 0
        assert figures.without_active_time == sum(
            not sum(visit.active_seconds for visit in one.visits.all()) for one in people
        )
    assert (collecting.context["median_times"].n, collecting.context["everybody"].in_another_currency) == (
        len(in_time(live(study))),
        3,
    )
