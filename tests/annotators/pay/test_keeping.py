"""Ids of a panel stay with who is still owed something, and with nobody else, until it is paid."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotators import tasks
from annotators.models import Assignment, PanelSubmission, Payment
from annotators.models.identity import get_person_id, store_person_id
from annotators.pay import ledger
from annotators.pay.ledger import ids_retained_for_pay_past_erasure_time
from annotators.recruitment.panels.alerts import find_panel_alerts
from annotators.recruitment.panels.orders import get_or_create_order
from heval_site.runtime import doctor
from tests.admin_pages import logged_in
from tests.annotators.closed_studies import closed_long_ago
from tests.builders import panel, spa_study, user
from tests.players import submitted

pytestmark = pytest.mark.django_db


@pytest.fixture
def recruitment():
    return panel(spa_study(user("owner"), target_n=12, erase_after_days=30))


def came(recruitment, *people) -> list[Assignment]:
    """Finished, with ids of every kind."""
    made = []
    for person in people:
        one = submitted(recruitment.study, person, recruitment=recruitment, external_ids={"session": f"S-{person}"})
        store_person_id(one.annotator, person)
        PanelSubmission.objects.create(
            recruitment=recruitment,
            external_id=f"S-{person}",
            annotator=one.annotator,
            assignment=one,
            state="submitted",
            source="file",
        )
        made.append(one)
    return made


def ids_of(one: Assignment) -> list[bool]:
    """Whether each kind is there: of the person, of the assignment, of what the panel showed."""
    external = Assignment.objects.get(pk=one.pk).external_ids
    at_panel = PanelSubmission.objects.get(assignment=one).external_id
    return [get_person_id(one.annotator) is not None, external != {}, not at_panel.startswith("erased-")]


ALL, NONE = [True] * 3, [False] * 3


@pytest.mark.parametrize(
    ("state", "stays"),
    [
        ("due", True),
        ("ordered", True),
        ("paid", False),
        ("failed", False),
        ("cancelled", False),
    ],
)
def test_ids_stay_exactly_with_who_is_owed_something(recruitment, state, stays):
    owed, other = came(recruitment, "kim", "lee")
    row = Payment(assignment=owed, kind="base", amount=2, currency="USD", way="bonus", state=state)
    if state == "ordered":
        shown = PanelSubmission.objects.get(assignment=owed)
        row.order = get_or_create_order(
            recruitment, "bonus", "b", submission=shown, by=None, amount="2.00", currency="USD", reason="r"
        )
    row.ended_at = None if stays else timezone.now()
    row.save()
    closed_long_ago(recruitment.study, 29)
    tasks.erase_due_person_and_panel_ids()
    assert ids_of(owed) == ids_of(other) == ALL
    closed_long_ago_again(recruitment.study, 31)
    tasks.erase_due_person_and_panel_ids()
    assert ids_of(owed) == (ALL if stays else NONE) and ids_of(other) == NONE


def closed_long_ago_again(study, days):
    from django.db.models import QuerySet

    from studies.models import Study

    before = timezone.now() - timedelta(days=days)
    QuerySet(Study).filter(pk=study.pk).update(launched_at=before, closing_at=before, closed_at=before)
    study.refresh_from_db()


def test_of_who_is_owed_for_one_study_the_ids_of_another_go(recruitment):
    (owed,) = came(recruitment, "kim")
    ledger.update_ledger(recruitment, by=None)
    later = panel(spa_study(user("owner"), title="two", erase_after_days=30))
    (again,) = came(later, "kim")
    for one in (recruitment, later):
        closed_long_ago(one.study, 31)
    tasks.erase_due_person_and_panel_ids()
    assert again.annotator == owed.annotator
    assert ids_of(owed) == ALL and ids_of(again) == [True, False, False]


def test_what_is_kept_is_shown_until_it_is_paid(recruitment):
    first, second, third = came(recruitment, "kim", "lee", "max")
    ledger.update_ledger(recruitment, by=None)
    ledger.mark_payments_paid_and_erase_withdrawn_ids(
        recruitment, [Payment.objects.get(assignment=third).pk], user("owner")
    )
    bonus = ledger.ExtraPayment(second, Decimal("0.50"), "thanks")
    ledger.add_extra_payments(recruitment, [bonus], "bonus", user("owner"))
    client = logged_in(user("owner"))

    def told() -> tuple[str, str, str]:
        recruitment.refresh_from_db()
        pay = client.get(f"/admin/annotators/recruitment/{recruitment.pk}/pay/").content.decode()
        at_panel = client.get(f"/admin/annotators/recruitment/{recruitment.pk}/panel/").content.decode()
        return pay, at_panel, doctor._panels().message

    closed_long_ago(recruitment.study, 29)
    assert (
        not any("beyond the erasure date" in words for words in told())
        and ids_retained_for_pay_past_erasure_time(recruitment) is None
    )
    closed_long_ago_again(recruitment.study, 31)
    tasks.erase_due_person_and_panel_ids()
    day = (timezone.now() - timedelta(days=1)).date()
    pay, at_panel, finding = told()
    assert f"Ids of 2 people are kept beyond the erasure date ({day}), because 5.50 USD is still due to them" in pay
    assert (
        f"Ids of 2 people are kept beyond the erasure date ({day}), because 5.50 USD is still due to them" in at_panel
    )
    assert f"{recruitment}: Ids of 2 people" in finding
    assert [alert.kind for alert in find_panel_alerts(recruitment)] == ["ids"]
    ledger.mark_payments_paid_and_erase_withdrawn_ids(
        recruitment, [Payment.objects.get(assignment=first).pk], user("owner")
    )
    assert "Ids of 1 person are kept" in told()[0]
    ledger.mark_payments_paid_and_erase_withdrawn_ids(
        recruitment, list(Payment.objects.filter(assignment=second).values_list("pk", flat=True)), user("owner")
    )
    tasks.erase_due_person_and_panel_ids()
    assert not any("beyond the erasure date" in words for words in told())
    assert ids_of(first) == ids_of(second) == ids_of(third) == NONE


def test_who_never_had_an_id_of_a_panel_is_owed_and_nothing_is_kept(recruitment):
    submitted(recruitment.study, "", recruitment=recruitment)
    ledger.update_ledger(recruitment, by=None)
    closed_long_ago(recruitment.study, 31)
    recruitment.refresh_from_db()
    assert recruitment.study.state == "closed" and Payment.objects.get().state == "due"
    assert ids_retained_for_pay_past_erasure_time(recruitment) is None and find_panel_alerts(recruitment) == []


def test_erasing_asks_the_same_for_one_and_for_many(recruitment):
    def asked(*people) -> int:
        study = panel(spa_study(user("owner"), title=people[0], target_n=12, erase_after_days=30))
        made = came(study, *people)
        for one in made[: len(made) // 2]:
            Payment.objects.create(assignment=one, kind="base", amount=2, currency="USD", way="hand")
        closed_long_ago(study.study, 31)
        with CaptureQueriesContext(connection) as queries:
            tasks.erase_due_person_and_panel_ids()
        assert sum(ids_of(one) == ALL for one in made) == len(made) // 2
        return len(queries)

    assert asked("a1", "a2") == asked(*(f"b{n}" for n in range(8)))
