"""Every sum about people and money that a researcher reads, counted once more by loops over raw rows.

One study in which people come to every end there is. What counts as what follows the words of the documentation, not the code.
"""

import csv
import io
import json
from collections import Counter
from decimal import Decimal
from statistics import quantiles

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from analysis import tasks as analysis_tasks
from analysis.data.flat.selection import assignment_name
from annotators.models import (
    Annotator,
    Assignment,
    Exclusion,
    PageVisit,
    PanelOrder,
    PanelSubmission,
    Payment,
    Recruitment,
    Response,
    Verdict,
)
from annotators.participation.withdraw import withdraw
from annotators.pay import ledger
from annotators.pay.verdicts.appeals import answer, open_appeal
from annotators.pay.verdicts.decide import reject, work_of_submission
from annotators.places import assign, leases
from annotators.places.exclude import exclude, reverse_exclusion
from annotators.places.receipts import receipt_of
from annotators.places.tries import try_out
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.prolific.policy import REFUSALS
from annotators.recruitment.panels import Seen
from annotators.recruitment.panels.orders import send_due
from annotators.recruitment.panels.reconcile import take_in
from annotators.recruitment.panels.secrets import keep
from studies.admin import life
from studies.design.burden import burdens
from studies.models import Arm, Batch, Study, StudyMember
from studies.services import lifecycle
from studies.services.copying import clone
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.annotators.recruitment.pretend import Pretend, recruitment_of, speaks
from tests.builders import launched, promised, recruitment, spa_draft, user
from tests.players import answered, claimed, submitted

from .verdicts.conftest import LONG, checks

pytestmark = pytest.mark.django_db
EARLY = {"screened_out": "0.30", "failed_checks": "all", "full": "0.10", "fault": "all", "withdrawn": "share"}


def started(study, person, link, pages=2, **answers) -> Assignment:
    mine = claimed(study, person, link)
    assign.begin(mine)
    for _ in range(pages):
        answered(mine)
    return Assignment.objects.get(pk=mine.pk)


def finished_late(study, person, link, taken_by) -> Assignment:
    """The place ran out, another has it, and the person sends the rest all the same."""
    mine = started(study, person, link)
    assign.release(mine.pk, "expired")
    assert claimed(study, taken_by, link).batch_id == mine.batch_id
    while answered(mine).following:
        pass
    return Assignment.objects.get(pk=mine.pk)


def screened_out(study, person, link) -> Assignment:
    mine = claimed(study, person, link)
    assign.begin(mine)
    answered(mine, **{"s1.q1": "no"})
    return Assignment.objects.get(pk=mine.pk)


@pytest.fixture
def service(monkeypatch):
    made = Pretend()
    speaks(monkeypatch, made)
    monkeypatch.setattr(type(REGISTRY["generic"]), "pays_by", frozenset({"approval", "bonus", "screen_out"}))
    monkeypatch.setattr(type(REGISTRY["generic"]), "refusals", REFUSALS)
    return made


@pytest.fixture
def world(service):
    """The study, a link by a panel, and a link whose people are paid by hand in another currency."""
    owner = user("owner")
    draft = spa_draft(
        owner=owner, m=1, both=False, with_rating=False, prompts=20, target_n=18, target_kind="kept", batches_per_annotator=2,
        wage_per_hour=Decimal("12.00"), rules=[("too_fast", {"words_per_minute": 700, "z": None})],
    )  # fmt: skip
    Arm.objects.create(study=draft, name="paid more", reward=Decimal("3.00"))
    StudyMember.objects.create(study=draft, user=user("colleague"), role="editor")
    answered(try_out(draft, owner))  # the launch clears it
    study = launched(draft, owner)
    panel, by_hand = recruitment_of(study), recruitment(study, currency="EUR", reward=Decimal("2.00"))
    for link in (panel, by_hand):
        promised(link, **EARLY)
    keep(panel, {"token": "t"})

    # Nobody is written down who does not agree.
    assert Client().post(f"/e/{by_hand.key}/", {"start": "1"}).status_code == 422
    done = {name: slow(submitted(study, name, recruitment=panel)) for name in ("ann", "bob", "cy", "dan", "eve", "flo")}
    done |= {name: slow(submitted(study, name, recruitment=by_hand)) for name in ("gus", "hal")}
    screened = screened_out(study, "ida", panel)
    gone, back = started(study, "joe", panel), started(study, "kim", panel)
    late = finished_late(study, "lea", panel, taken_by="max")
    assert late.is_late
    assign.release(gone.pk, "expired")
    assign.release(back.pk, "returned")
    asked = started(study, "ned", by_hand)
    assert leases.extend(asked)
    claimed(study, "oda", by_hand)
    withdraw(started(study, "pam", panel))
    withdraw(slow(submitted(study, "quy", recruitment=panel)))
    slow(submitted(study, "ann", recruitment=panel))  # a second batch of the same person
    submitted(study, "ray", recruitment=panel)  # in no time at all: a rule finds them
    exclude([done["bob"]], "too_fast", owner, reopen=True)
    (taken_back,) = exclude([done["cy"]], "copied_text", owner)
    exclude([done["gus"], late], "misunderstood", owner)
    reverse_exclusion(taken_back, owner)
    assert analysis_tasks.replace_who_left() == 3  # who withdrew after the end, who was too fast, who was left out
    submitted(study, "robot 1", origin="robot")
    claimed(study, "robot 2", origin="robot")
    imported(study)
    assign.turn_away(study, assign.annotator_of("panel", "sue"), panel)
    assign.turn_away(study, assign.annotator_of("panel", "tim"), by_hand)

    # What the panel shows, somebody unknown with the rest; a rejection that stands, and one that is taken back on appeal.
    show(panel, done, "submitted")
    show(panel, {"late": late, "ida": screened}, "submitted")
    take_in(panel, [Seen("T", "S-nobody", "a stranger", "submitted")], "service")
    clone(study, owner, "A clone")
    for name in ("dan", "eve"):
        shown = PanelSubmission.objects.get(assignment=done[name])
        checks(shown, 1, 2)
        reject(work_of_submission(panel, shown.pk), "FAILED_CHECK", LONG, owner)
    objection = open_appeal(done["eve"], "I answered as well as I could, and say so.")
    answer(objection, "So you did.", True, user("colleague"))
    send_due(panel, service, lambda *_: None)
    show(panel, {"ann": done["ann"], "bob": done["bob"], "eve": done["eve"]}, "approved")
    show(panel, {"dan": done["dan"]}, "rejected")
    show(panel, {"ida": screened}, "screened_out")

    # Pay rises in one arm while the study is paused.
    lifecycle.pause(study, owner)
    arm = Arm.objects.get(study=study, name="paid more")
    lifecycle.amend(study, {"arm": {arm.pk: {"reward": Decimal("3.50")}}}, owner, "It takes longer.")
    lifecycle.resume(study, owner)
    study, panel, by_hand = Study.objects.get(pk=study.pk), again(panel), again(by_hand)
    for link in (panel, by_hand):
        ledger.settle(link)
    # A bonus that is carried out, one that the panel refuses, one that waits; one reward is paid by hand.
    for name, amount in (("ann", "1.20"), ("bob", "0.75"), ("flo", "0.40")):
        ledger.add(panel, [ledger.Extra(done[name], Decimal(amount), "Thank you.")], "bonus", owner)
    total = ledger.total_of(ledger.to_order(panel, service.can))
    ledger.order(panel, service.can, total, owner)
    refused = Payment.objects.get(assignment=done["bob"], kind="bonus").order
    service.faults = [
        "refused" if one == refused else "" for one in PanelOrder.objects.filter(state="waiting").order_by("pk")
    ]
    send_due(panel, service, lambda *_: None)
    ledger.settle(panel)
    ledger.mark_paid(by_hand, [Payment.objects.filter(assignment=done["hal"]).get().pk], owner)
    slow(submitted(study, "uli", recruitment=by_hand))  # after the last look
    return study, panel, by_hand


def slow(assignment) -> Assignment:
    """Half an hour at work, and an hour from the first page to the last."""
    start = assignment.submitted_at - timezone.timedelta(hours=1)
    Assignment.objects.filter(pk=assignment.pk).update(started_at=start, claimed_at=start)
    PageVisit.objects.filter(assignment=assignment).update(active_seconds=0)
    PageVisit.objects.filter(pk=assignment.visits.first().pk).update(active_seconds=1800)
    return Assignment.objects.get(pk=assignment.pk)


def again(link) -> Recruitment:
    return Recruitment.objects.select_related("study").get(pk=link.pk)


def imported(study) -> None:
    last = study.batches.exclude(origin="test").order_by("number").last()
    batch = Batch.objects.create(
        study=study, arm=last.arm, number=last.number + 1, wanted=1, claimed=1, origin="answered"
    )
    person = Annotator.objects.create(pool="imported", external_id="x" * 64)
    now = timezone.now()
    Assignment.objects.create(
        study=study, batch=batch, annotator=person, origin="imported", design=study.designs.last(), started_at=now, submitted_at=now,
    )  # fmt: skip


def show(link, people, state) -> None:
    seen = []
    for one in people.values():
        if one.recruitment_id == link.pk:
            key = assign.pool_key(link.pool, f"person {one.annotator_id}")
            Annotator.objects.filter(pk=one.annotator_id).update(pool=link.pool, external_id=key)
            seen.append(Seen("T", f"S{one.pk}", f"person {one.annotator_id}", state, code=receipt_of(one.code)))
    take_in(link, seen, "service")


# Loops over raw rows


def live(study) -> list[Assignment]:
    return [one for one in Assignment.objects.order_by("pk") if one.study_id == study.pk and one.origin == "live"]


def holding(people) -> list[Assignment]:
    return [one for one in people if one.released_at is None]


def finished(people) -> list[Assignment]:
    return [one for one in people if one.submitted_at]


def in_time(people) -> list[Assignment]:
    return [one for one in finished(people) if not one.is_late]


def left_out(people) -> list[Assignment]:
    rows = list(Exclusion.objects.all())
    taken_back = {row.reverses_id for row in rows}
    out = {row.assignment_id for row in rows if row.reverses_id is None and row.pk not in taken_back}
    return [one for one in people if one.pk in out]


def open_batches(study) -> list[Batch]:
    return [one for one in Batch.objects.filter(study=study) if one.number < study.open_to and one.origin != "test"]


def free(batches) -> int:
    taken = Counter(one.batch_id for one in Assignment.objects.all() if one.released_at is None)
    assert all(one.claimed == taken[one.pk] for one in batches)
    return sum(one.wanted - taken[one.pk] for one in batches)


def counted_by_hand(study, arm=None) -> dict:
    people = [one for one in live(study) if arm is None or (one.batch and one.batch.arm_id == arm.pk)]
    batches = [one for one in open_batches(study) if arm is None or one.arm_id == arm.pk]
    inside = [one for one in holding(people) if not one.submitted_at]
    return {
        "wanted": sum(one.wanted for one in batches), "free": free(batches), "reserved": sum(not one.started_at for one in inside),
        "started": sum(bool(one.started_at) for one in inside), "submitted": len(finished(holding(people))),
        "excluded": len(left_out(people)), "replaced": sum(bool(one.replaced_at) for one in holding(people)),
        "late": sum(one.is_late for one in people),
        "released": dict(Counter(one.released_reason.replace("_", " ") for one in people if one.released_at)),
    }  # fmt: skip


def as_dict(places) -> dict:
    names = ("wanted", "free", "reserved", "started", "submitted", "excluded", "replaced", "late")
    return {name: getattr(places, name) for name in names} | {"released": dict(places.released)}


def test_people_are_counted_alike_wherever_they_are_counted(world):
    study, client, api = world[0], logged_in(user("owner")), api_of(user("owner"))
    page = client.get(f"/admin/annotators/inquiry/study/{study.pk}/collecting/")
    by_hand = counted_by_hand(study)
    assert as_dict(page.context["total"]) == by_hand
    arms = {arm.name: counted_by_hand(study, arm) for arm in study.arms.all()}
    assert {row.name: as_dict(row) for row in page.context["arms"]} == arms and len(arms) == 2
    # There is somebody in every cell, or this shows nothing.
    assert all(by_hand.values()) and len(by_hand["released"]) == 5, by_hand
    # Of the target: kept so far. One whom the cap or a pause would not let be replaced is none of these.
    kept = [one for one in in_time(live(study)) if not one.replaced_at]
    progress = api.get(f"studies/{study.code}/progress/").json()
    shown = next(one for one in client.get("/admin/studies/study/").context["cl"].result_list if one.pk == study.pk)
    assert (
        page.context["counted"]
        == progress["counted"]
        == shown.shown_progress.submitted
        == len(kept)
        == by_hand["submitted"] - 4
    )
    robots = [one for one in Assignment.objects.all() if one.origin == "robot"]
    assert page.context["robots"] == shown.shown_progress.robots == len(finished(robots)) == 1
    assert page.context["total"].held_by_robots == len(holding(robots)) == 2 and shown.shown_progress.imported == 1
    assert progress | {"state": "", "target_n": 0, "counted": 0} == {
        "state": "", "target_n": 0, "counted": 0, "places": by_hand["wanted"], "free": by_hand["free"],
        "claimed": len(holding(live(study))), "started": by_hand["started"] + by_hand["submitted"], "submitted": by_hand["submitted"],
        "released": sum(by_hand["released"].values()), "late": by_hand["late"],
        "withdrawn": sum(bool(one.withdrawn_at) for one in live(study)),
    }  # fmt: skip
    days = page.context["days"]
    assert sum(day.submitted for day in days) == by_hand["submitted"]
    assert sum(day.claimed for day in days) == len([one for one in live(study) if one.batch_id])
    # The list of assignments, by its filters: of all origins, as its column of origins says.
    everybody = list(Assignment.objects.filter(study=study))
    wanted = {
        "reserved": [one for one in holding(everybody) if not one.submitted_at], "submitted": finished(holding(everybody)),
        "late": [one for one in everybody if one.is_late], "released": [one for one in everybody if one.released_at],
        "withdrawn": [one for one in everybody if one.withdrawn_at], "excluded": left_out(everybody),
    }  # fmt: skip
    for state, rows in wanted.items():
        found = client.get(f"/admin/annotators/assignment/?study={study.pk}&state={state}").context["cl"]
        assert {one.pk for one in found.result_list} == {one.pk for one in rows} and found.result_count == len(
            rows
        ) > 0, state


def test_a_clone_and_a_study_of_nobody_count_nothing(world):
    client, copy = logged_in(user("owner")), Study.objects.get(clone_of=world[0])
    page = client.get(f"/admin/annotators/inquiry/study/{copy.pk}/collecting/")
    assert not any(value for value in as_dict(page.context["total"]).values()) and page.context["counted"] == 0
    progress = api_of(user("owner")).get(f"studies/{copy.code}/progress/").json()
    assert not any(n for name, n in progress.items() if name not in ("state", "target_n"))
    assert "nobody has submitted yet" in page.content.decode() and "Pay an hour, median" not in page.content.decode()


STANDING = ("due", "ordered", "paid")


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
    all_links = {
        one.pk: money
        for one, money in client.get(f"/admin/annotators/recruitment/study/{study.pk}/pay/").context["links"]
    }
    room = study.target_n - len([one for one in in_time(live(study)) if not one.replaced_at])
    for link, highest in ((panel, Decimal("3.50")), (by_hand, Decimal("2.00"))):
        sums = sums_by_hand(link)
        at_work = [one for one in holding(live(study)) if not one.submitted_at and one.recruitment_id == link.pk]
        n = max(room, len(at_work))
        page = client.get(f"/admin/annotators/recruitment/{link.pk}/pay/")
        for money in (page.context["money"], all_links[link.pk]):
            assert (money.paid, money.ordered, money.due) == (sums["paid"], sums["ordered"], sums["due"])
            assert (money.unwritten, money.people_to_come, money.to_come) == (unwritten[link.pk], n, n * highest)
            assert money.total == sum(sums[state] for state in STANDING) + unwritten[link.pk] + n * highest
            assert money.is_least == (link == panel)
        told = report[link.key]
        names = ("paid", "ordered", "due", "unwritten", "to_come", "total")
        assert [told[name] for name in names] == [f"{getattr(money, name):.2f}" for name in names]
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
    assert [(row["number"], row["amount"], row["state"]) for row in rows] == [
        (one.pk, f"{one.amount:.2f}", one.state) for one in Payment.objects.order_by("pk")
    ] == [(int(row["number"]), row["amount"], row["state"]) for row in file]  # fmt: skip


def test_pay_an_hour_is_of_those_whom_its_words_name(world):
    study, panel, _ = world
    client = logged_in(user("owner"))
    collecting = client.get(f"/admin/annotators/inquiry/study/{study.pk}/collecting/")
    arms = client.get(f"/admin/annotators/recruitment/study/{study.pk}/pay/").context["arms"]
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
        assert (figures.n, figures.compared, figures.elsewhere) == (len(people), len(hourly), len(people) - len(hourly))
        quarters = [
            one.quantize(Decimal("0.01"), "ROUND_HALF_UP") for one in quantiles(hourly, n=4, method="inclusive")
        ]
        assert [figures.hourly.low, figures.hourly.median, figures.hourly.high] == quarters
        assert figures.under == sum(one < 12 for one in hourly) > 0
        assert figures.uncounted == sum(not sum(visit.active_seconds for visit in one.visits.all()) for one in people)
    assert (collecting.context["pace"].n, collecting.context["everybody"].elsewhere) == (len(in_time(live(study))), 3)


def test_what_a_panel_shows_stands_as_its_table_says(world):
    """By the table of "Settle with a panel", of everybody whom the panel shows."""
    panel, client = world[1], logged_in(user("owner"))
    found = Counter()
    for row in PanelSubmission.objects.all():
        one = row.assignment
        if row.state in ("approved", "rejected"):
            found["approved or rejected"] += 1
        elif row.state == "submitted" and one is None:
            found["sent to the panel, unknown here"] += 1
        elif row.state == "submitted" and one.submitted_at:
            found["sent to both"] += 1
        else:
            found["given back or out of time"] += 1
    told = client.get(f"/admin/annotators/recruitment/{panel.pk}/panel/").context
    assert {what: n for n, what, _, _ in told["classes"]} == found and len(found) == 4
    assert told["matched"] == len(told["matched_rows"]) == found["sent to both"] == told["to_approve"]
    assert [words[0] for _, words, _, _, _ in told["people"]] == ["sent to the panel, unknown here"]


def test_the_form_of_a_report_counts_whom_a_report_counts(world):
    study, client = world[0], logged_in(user("owner"))
    page = client.get(reverse("analyses", args=[study.code]))
    stayed = Counter(one.origin for one in Assignment.objects.all() if one.submitted_at and not one.withdrawn_at)
    assert {box.data["value"]: n for box, n in page.context["origins"]} == stayed
    assert f"{stayed['live']} submitted and not withdrawn" in page.content.decode()


def test_what_batches_ask_is_read_off_their_placements(world):
    """Words of every text that is shown, and of each prompt once; a quarter of a minute an answer; the arm's own pay."""
    study = world[0]
    found = {}
    for batch in Batch.objects.filter(study=study):
        items = [row.item for row in batch.placements.all()]
        texts = [one.output.text for item in items for one in item.exposures.all()]
        prompts = {item.prompt for item in items}
        words = sum(
            len(text.split()) for text in [*texts, *(text for one in prompts for text in (one.text, one.source))]
        )
        if words:
            minutes = (
                words / study.words_per_minute + 4 / 4
            )  # one screening question, one pair asked both ways, one comment
            reward = batch.arm.reward if batch.arm.reward is not None else study.reward
            found[str(batch.number)] = (words, 4, pytest.approx(minutes), pytest.approx(float(reward) * 60 / minutes))
    told = {one.batch: (one.words, one.questions, one.minutes, one.per_hour) for one in burdens(study)}
    assert told == found and len(found) > 18
    loads = life.loads(study)
    by_minutes = sorted(one.minutes for one in burdens(study))
    assert [one.burden.minutes for one in loads] == [
        by_minutes[0],
        by_minutes[(len(by_minutes) - 1) // 2],
        by_minutes[-1],
    ]
    assert all(one.is_below_wage == (one.burden.per_hour < 12) for one in loads)


def test_exports_have_a_row_for_everybody_whom_they_name(world, tmp_path):
    study, api = world[0], api_of(user("owner"))
    study = Study.objects.get(pk=study.pk)
    lifecycle.unblind(study, user("owner"), "to look")
    for origins in (("live", "imported"), ("robot",)):
        for withdrawn in (False, True):
            stay = [
                one for one in Assignment.objects.filter(study=study).order_by("pk")
                if one.origin in origins and (withdrawn or not one.withdrawn_at)
            ]  # fmt: skip
            answers = [row for row in Response.objects.order_by("assignment_id", "pk") if row.assignment in stay]
            query = f"origin={','.join(origins)}&withdrawn={int(withdrawn)}"
            for table, mine in (("assignments", [assignment_name(one.code) for one in stay]), ("responses", [assignment_name(row.assignment.code) for row in answers])):  # fmt: skip
                sent = api.get(f"studies/{study.code}/exports/{table}.csv?{query}")
                rows = list(csv.DictReader(io.StringIO(sent.body.decode())))
                lines = [
                    json.loads(line)
                    for line in api.get(f"studies/{study.code}/exports/{table}.jsonl?{query}").body.splitlines()
                ]
                assert [row["assignment"] for row in rows] == [row["assignment"] for row in lines[:-1]] == mine
                assert int(sent["X-Heval-Rows"]) == lines[-1]["rows"] == len(mine)
                file = tmp_path / "file.csv"
                call_command(
                    "export", str(study.code), format="csv", table=table, origin=",".join(origins), withdrawn=withdrawn, output=str(file)
                )  # fmt: skip
                assert file.read_bytes() == sent.body
                if table == "responses":
                    found, path = [], f"studies/{study.code}/responses/?{query}&page_size=50"
                    while path:
                        answer = api.get(path).json()
                        found += [row["assignment"] for row in answer["results"]]
                        path = answer["next"] and answer["next"].partition("/api/v1/")[2]
                    assert found == mine
    everybody = api.get(f"studies/{study.code}/assignments/?page_size=1000").json()["results"]
    assert [row["assignment"] for row in everybody] == [
        assignment_name(one.code) for one in Assignment.objects.filter(study=study).order_by("pk")
    ]
    by_hand = {assignment_name(one.code) for one in left_out(live(study))}
    assert {row["assignment"] for row in everybody if row["exclusion"]} == by_hand
    rest = api.get(f"studies/{study.code}/exclusions/").json()["results"]
    assert {row["assignment"] for row in rest if row["is_standing"]} == by_hand and len(rest) == 5
