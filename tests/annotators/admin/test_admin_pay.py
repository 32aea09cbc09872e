"""The pages of pay."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from annotators.models import Assignment, PageVisit, PanelOrder, Payment
from annotators.models.identity import store_person_id
from annotators.pay import ledger
from annotators.pay.files import parse_bonuses
from annotators.pay.statement import build_hourly_pay_chart, low_wage_warning, pay_by_arm
from annotators.places import assign
from annotators.places.places import compute_receipt
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import BulkText
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from studies.models import AuditEvent, Job, StudyMember
from studies.services import jobs
from tests.admin_pages import logged_in
from tests.annotators.pay.submissions import shown
from tests.annotators.recruitment.pretend import Pretend, recruitment_of, speaks
from tests.builders import panel, promised, spa_study, user
from tests.players import claimed, submitted
from tests.studies.stimuli.workbooks import workbook

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return spa_study(user("owner"), target_n=12, wage_per_hour=Decimal("12.00"))


@pytest.fixture
def client():
    return logged_in(user("owner"))


def address(recruitment, what="") -> str:
    return f"/admin/annotators/recruitment/{recruitment.pk}/pay/{what}"


def page(client, recruitment) -> str:
    return client.get(address(recruitment)).content.decode()


def sent(client, recruitment, **fields) -> str:
    answer = client.post(address(recruitment), fields, follow=True)
    return answer.content.decode()


def test_what_is_due_is_paid_from_the_file_and_marked(study, client):
    recruitment = panel(study)
    done = [submitted(study, person, recruitment=recruitment) for person in ("a", "b")]
    store_person_id(done[0].annotator, "=1+1")
    assert "Nothing is recorded as due yet." in page(client, recruitment) and not Payment.objects.exists()
    assert "2 newly due, 5.00 USD" in sent(client, recruitment, settle="1")
    assert "Nothing new is due." in sent(client, recruitment, settle="1")
    file = client.get(address(recruitment, "file.csv"))
    assert "no-store" in file["Cache-Control"] and file.content.decode().splitlines() == [
        "receipt,person,amount,currency,what,reason",
        f"{compute_receipt(done[0].code)},'=1+1,2.50,USD,base,The reward of the study.",
        f"{compute_receipt(done[1].code)},,2.50,USD,base,The reward of the study.",
    ]
    first, second = Payment.objects.order_by("pk")
    assert "1 marked as paid." in sent(client, recruitment, paid="1", payment=[first.pk])
    assert "0 marked as paid." in sent(client, recruitment, paid="1", payment=[first.pk, "nonsense", "9" * 30])
    assert set(Payment.objects.values_list("pk", "state")) == {(first.pk, "paid"), (second.pk, "due")}
    # What is promised is not taken back.
    assert "0 taken back." in sent(client, recruitment, cancel="1", payment=[second.pk])
    assert "<dt>Paid</dt><dd>2.50 USD</dd>" in page(client, recruitment)
    assert AuditEvent.objects.get(verb="mark paid").data == {"recruitment": recruitment.key, "n": 1, "amount": "2.50"}


def test_who_may_only_look_pays_nobody_and_sees_no_ids(study, client):
    recruitment = panel(study)
    done = submitted(study, "a", recruitment=recruitment)
    store_person_id(done.annotator, "A-RAW-ID")
    ledger.update_ledger(recruitment, by=None)
    viewer, stranger = user("viewer"), user("stranger")
    StudyMember.objects.create(study=study, user=viewer, role="viewer")
    seen = page(logged_in(viewer), recruitment)
    assert (
        compute_receipt(done.code) in seen
        and "A-RAW-ID" not in seen
        and "Mark ticked" not in seen
        and "Give a bonus" not in seen
    )
    for fields in (
        {"settle": "1"},
        {"paid": "1", "payment": Payment.objects.get().pk},
        {"add": "1", "lines": "x"},
        {"order": "1", "total": "1"},
    ):
        assert logged_in(viewer).post(address(recruitment), fields).status_code == 403
    assert logged_in(viewer).get(address(recruitment, "file.csv")).status_code == 403
    assert logged_in(stranger).get(address(recruitment)).status_code == 404
    assert Payment.objects.get().state == "due"


def test_faults_of_a_bonus_file_are_named_by_row_and_nothing_is_written(study, client):
    recruitment = panel(study)
    done = submitted(study, "a", recruitment=recruitment)
    receipt = compute_receipt(done.code)
    rows = [
        "receipt,amount,reason",
        f"{receipt},1.50,Thank you",
        "AAAAA-AAAAA,1.50,who",
        f"{receipt},1.505,why",
        f"{receipt},-1,why",
        f"{receipt},NaN,why",
        f"{receipt},2.00,",
        f"{receipt},2.00,a,b",
        f"{receipt.lower().replace('-', '')},1.5,Thank you",
        f"{receipt},1e9,why",
    ]
    with pytest.raises(ValueError) as faults:
        parse_bonuses(recruitment, "\n".join(rows))
    assert str(faults.value).startswith(
        "Row 8: has 4 cells, the header has 3; put a text that contains the delimiter in quotes."
    )
    del rows[7]
    with pytest.raises(ValueError) as faults:
        parse_bonuses(recruitment, "\n".join(rows))
    assert [line.partition(":")[0] for line in str(faults.value).split("\n")] == [
        "Row 3, receipt", "Row 4, amount", "Row 5, amount", "Row 6, amount", "Row 7, reason", "Row 8", "Row 9, amount",
    ]  # fmt: skip
    answer = client.post(address(recruitment), {"lines": "\n".join(rows), "add": "1"})
    assert (
        answer.status_code == 400
        and "Row 8: it repeats row 2." in answer.content.decode()
        and not Payment.objects.exists()
    )
    for wrong, words in (("", "The file has no rows."), ('"a', "a quote is opened and never closed")):
        assert words in client.post(address(recruitment), {"lines": wrong, "see": "1"}).content.decode()
    good = f'{receipt},1.50,"Thank you, truly"'
    assert "1 bonus, <b>1.50 USD</b>. Nothing is recorded yet." in sent(client, recruitment, lines=good, see="1")
    assert not Payment.objects.exists()
    assert "1 payment recorded as due." in sent(client, recruitment, lines=good, add="1")
    assert (
        "this bonus is already recorded"
        in client.post(address(recruitment), {"lines": good, "add": "1"}).content.decode()
    )
    made = Payment.objects.get(kind="bonus")
    assert "1 taken back." in sent(client, recruitment, cancel="1", payment=[made.pk])
    assert "1 payment recorded as due." in sent(client, recruitment, lines=good, add="1")


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("header", ["receipt{0}amount{0}reason\n", "person{0}receipt{0}amount{0}reason\n", ""])
def test_bonuses_may_be_pasted_from_a_spreadsheet(study, mark, header):
    recruitment = panel(study)
    done = submitted(study, "a", recruitment=recruitment)
    cells = [compute_receipt(done.code), "1.50", "Thank you"]
    if header.startswith("person"):
        cells.insert(0, "P1")
    (extra,) = parse_bonuses(recruitment, header.format(mark) + mark.join(cells))
    assert (extra.assignment, str(extra.amount), extra.reason) == (done, "1.50", "Thank you")


def test_bonuses_may_be_a_workbook(study, client):
    recruitment = panel(study)
    done = submitted(study, "a", recruitment=recruitment)
    data = workbook({"s": [["receipt", "amount", "reason"], [compute_receipt(done.code), 1.5, "Thank you, truly"]]})
    page = sent(client, recruitment, file=SimpleUploadedFile("bonus.xlsx", data), see="1")
    assert "1 bonus, <b>1.50 USD</b>. Nothing is recorded yet." in page
    answer = client.post(address(recruitment), {"file": SimpleUploadedFile("bonus.xlsx", data[:500]), "see": "1"})
    assert answer.status_code == 400 and "or is cut off. Send it again." in answer.content.decode()


@pytest.fixture
def service(monkeypatch):
    made = Pretend()
    speaks(monkeypatch, made)
    channel = type(REGISTRY["generic"])
    monkeypatch.setattr(channel, "pays_by", frozenset({"approval", "bonus", "screen_out"}))
    monkeypatch.setattr(
        channel,
        "bulk_texts",
        lambda self, orders: [
            BulkText(
                "Lines", "".join(f"{o.operation} {o.values['person']} {o.values['amount']}\n" for o in orders), "there"
            )
        ],
    )
    return made


def test_bonuses_are_ordered_for_the_sum_that_was_typed_back(study, client, service):
    recruitment = promised(recruitment_of(study), screened_out="0.30")
    done, screened = submitted(study, "a", recruitment=recruitment), claimed(study, "b", recruitment)
    assign.release_assignment(screened.pk, "screened_out")
    shown(recruitment, (done, "submitted"), (screened, "submitted"))
    sent(client, recruitment, lines=f"{compute_receipt(done.code)},1.20,Thank you", add="1")
    sent(client, recruitment, lines=f"{compute_receipt(done.code)},0.10,And more", add="1")
    seen = page(client, recruitment)
    # Without a token: one line a person, in the panel's own form.
    assert (
        f"bonus person {done.pk} 1.30" in seen
        and f"screen_out person {screened.pk} 0.30" in seen
        and "Type the total" not in seen
    )
    assert "has no panel token" in sent(client, recruitment, order="1", total="1.60")
    store_or_delete_secrets(recruitment, {"token": "t"}, by=None)
    assert "3 payments, <b>1.60 USD</b>" in page(client, recruitment)
    assert "Enter it as shown" in sent(client, recruitment, order="1", total="all")
    assert "The total is now 1.60, but you entered 1.59." in sent(client, recruitment, order="1", total="1.59")
    assert not PanelOrder.objects.exists()
    assert "3 payments ordered at the panel." in sent(client, recruitment, order="1", total="1.60")
    assert "No due payment can be ordered" in sent(client, recruitment, order="1", total="1.60")
    for job in Job.objects.filter(state="waiting"):
        jobs.claim_and_run_job(job.pk)
    states = Payment.objects.exclude(way="approval").values_list("kind", "way", "state")
    assert sorted(states) == [("bonus", "bonus", "paid"), ("bonus", "bonus", "paid"), ("outcome", "screen_out", "paid")]
    assert sorted(order.values["amount"] for order in service.given) == ["0.10", "0.30", "1.20"]


def test_who_never_reached_the_panel_is_paid_by_hand(study, client, service):
    recruitment = recruitment_of(study)
    store_or_delete_secrets(recruitment, {"token": "secret-of-the-panel"}, by=None)
    done = submitted(study, "a", recruitment=recruitment)
    ledger.update_ledger(recruitment, by=None)
    assert "not submitted at the panel" not in page(client, recruitment)
    hour_ago = timezone.now() - timedelta(hours=1)
    Assignment.objects.filter(pk=done.pk).update(started_at=hour_ago - timedelta(hours=1), submitted_at=hour_ago)
    assert "not submitted at the panel" in page(client, recruitment)
    base = Payment.objects.get()
    # The panel has it after all: it is paid there. Given back there, it is not.
    shown(recruitment, (done, "submitted"))
    assert "not submitted at the panel" not in page(client, recruitment)
    shown(recruitment, (done, "returned"))
    assert "not submitted at the panel" in page(client, recruitment)
    assert "1 to be paid by hand." in sent(client, recruitment, compensate="1", payment=[base.pk])
    assert set(Payment.objects.values_list("kind", "way", "state")) == {
        ("base", "approval", "cancelled"),
        ("compensation", "hand", "due"),
    }
    assert "0 to be paid by hand." in sent(client, recruitment, compensate="1", payment=[base.pk])


def test_pay_an_hour_by_arm_with_its_warning(study, client):
    recruitment = panel(study)
    # 2.50 for 600, 750, 900, 1000, 1500 active seconds: 15, 12, 10, 9 and 6 an hour.
    for n, seconds in enumerate((600, 750, 900, 1000, 1500)):
        done = submitted(study, f"w{n}", recruitment=recruitment)
        visits = PageVisit.objects.filter(assignment=done)
        visits.update(active_seconds=0)
        PageVisit.objects.filter(pk=visits.first().pk).update(active_seconds=seconds)
        if n == 3:
            (arm,) = pay_by_arm(study)
            assert low_wage_warning(study, [arm]) == ""  # four people are few
    (arm,) = pay_by_arm(study)
    assert (arm.n, arm.below_wage, arm.without_active_time) == (5, 3, 0)
    assert [str(x) for x in (arm.minutes.q1, arm.minutes.median, arm.minutes.q3)] == ["12.5", "15.0", "16.7"]
    assert [str(x) for x in (arm.hourly.q1, arm.hourly.median, arm.hourly.q3)] == ["9.00", "10.00", "12.00"]
    assert low_wage_warning(study, [arm]).startswith(
        "Half of the people earn less per hour than the declared 12.00 USD"
    )
    chart = build_hourly_pay_chart([arm], study.wage_per_hour)
    assert chart.bars[0].low < chart.bars[0].median < chart.bars[0].high == chart.wage
    seen = client.get(f"/admin/studies/study/{study.pk}/pay/").content.decode()
    assert "<b>10.00</b>" in seen and "3 of 5" in seen and "<circle" in seen and "Half of the people" in seen
    collecting = client.get(f"/admin/studies/study/{study.pk}/collecting/").content.decode()
    assert "Half of the people earn less per hour" in collecting
    # A bonus is pay too; where no second was counted, the time from start to end replaces it.
    extras = [ledger.ExtraPayment(done, Decimal("2.50"), "thanks") for done in Assignment.objects.filter(study=study)]
    ledger.update_ledger(recruitment, by=None)
    ledger.add_extra_payments(recruitment, extras, "bonus", user("owner"))
    assert str(pay_by_arm(study)[0].hourly.median) == "20.00"
    PageVisit.objects.update(active_seconds=0)
    assert pay_by_arm(study)[0].without_active_time == 5
