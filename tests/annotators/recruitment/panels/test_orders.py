"""Orders: written down once, sent once, looked up where the reply was lost, decided by a person where nobody can tell."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotators.models import PanelOrder, PanelSubmission, PanelTask
from annotators.models.constants import OPERATIONS
from annotators.models.identity import store_person_id
from annotators.recruitment.panels import ResultUnclear
from annotators.recruitment.panels.orders import (
    LOST_AFTER,
    MAX_ATTEMPTS,
    cancel_order,
    due_orders,
    get_or_create_order,
    resolve_order,
    send_due_orders,
)
from studies.models import AuditEvent
from tests.annotators.recruitment.pretend import Pretend, recruitment_of
from tests.builders import spa_study, user
from tests.players import submitted

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def recruitment():
    return recruitment_of(spa_study(user("owner")))


@pytest.fixture
def paid(recruitment):
    """A submission of a person whose raw id is known."""
    assignment = submitted(recruitment.study, "W1", recruitment=recruitment)
    store_person_id(assignment.annotator, "W1")
    task = PanelTask.objects.create(recruitment=recruitment, external_id="T9")
    return PanelSubmission.objects.create(
        recruitment=recruitment,
        task=task,
        external_id="S1",
        annotator=assignment.annotator,
        assignment=assignment,
        state="submitted",
        source="service",
    )


def bonus(recruitment, paid, **changed):
    values = {"amount": "1.50", "currency": "USD", "reason": "A difference."} | changed
    return get_or_create_order(recruitment, "bonus", "bonus-1", submission=paid, by=user("owner"), **values)


def sent(recruitment, panel):
    return send_due_orders(recruitment, panel, lambda *_: None)


def later(order, **columns):
    PanelOrder.objects.filter(pk=order.pk).update(**columns)


def test_an_order_is_sent_once_with_who_is_meant(recruitment, paid):
    panel, order = Pretend(), bonus(recruitment, paid)
    assert bonus(recruitment, paid) == order and PanelOrder.objects.count() == 1
    assert sent(recruitment, panel) == {"done": 1} and sent(recruitment, panel) == {}
    assert panel.done == {
        "bonus-1": (
            "bonus",
            {
                "task": "T9",
                "submission": "S1",
                "person": "W1",
                "amount": "1.50",
                "currency": "USD",
                "reason": "A difference.",
            },
        )
    }
    order.refresh_from_db()
    assert order.state == "done" and order.ended_at >= order.sent_at
    # Who is meant is deciphered when it is sent, and is stored nowhere.
    assert "W1" not in str(PanelOrder.objects.values().get())
    act = AuditEvent.objects.get(verb="order bonus")
    assert (act.by.username, act.assignment_code, act.data["token"]) == ("owner", paid.assignment.code, "bonus-1")


def test_a_token_names_one_order(recruitment, paid):
    bonus(recruitment, paid)
    with pytest.raises(ValueError, match="another order"):
        bonus(recruitment, paid, amount="15.00")
    with pytest.raises(ValueError, match="stop does not accept person"):
        get_or_create_order(recruitment, "stop", "stop-1", by=None, task="T9", person="W1")
    assert PanelOrder.objects.get().values["amount"] == "1.50"


@pytest.mark.parametrize("fault", ["", "lost before", "lost after", "busy", "refused"])
def test_each_order_is_carried_out_once_whatever_becomes_of_the_reply(recruitment, paid, fault):
    first = {"lost before": "sent", "lost after": "sent", "busy": "waiting", "refused": "refused", "": "done"}[fault]
    for operation, names in OPERATIONS.items():
        panel = Pretend()
        panel.faults = [fault]
        values = {name: "x" for name in names if name not in ("person", "people", "submission", "places")}
        order = get_or_create_order(recruitment, operation, f"once-{operation}", submission=paid, by=None, **values)
        assert sent(recruitment, panel) == {first: 1}, operation
        later(order, not_before=timezone.now() - timedelta(seconds=1))
        sent(recruitment, panel)
        sent(recruitment, panel)
        order.refresh_from_db()
        assert order.state == ("refused" if fault == "refused" else "done")
        assert list(panel.done) == ([] if fault == "refused" else [order.token])
        # Without a look at what became of the first one, this would be two.
        assert len(panel.given) == {"lost before": 2, "busy": 2}.get(fault, 1)
    assert PanelTask.objects.filter(external_id="T1").count() == (fault != "refused")


def test_a_panel_that_asks_for_patience_is_left_alone(recruitment, paid):
    panel = Pretend()
    panel.faults = ["busy"]
    first, second = bonus(recruitment, paid), get_or_create_order(recruitment, "stop", "stop-1", by=None, task="T9")
    assert sent(recruitment, panel) == {"waiting": 1} and len(panel.given) == 1
    first.refresh_from_db()
    assert 20 < (first.not_before - timezone.now()).total_seconds() <= 30
    assert (
        list(due_orders(recruitment)) == [second]
        and first.sent_at is None
        and first.panel_message == "Too many requests."
    )


def test_one_who_is_on_the_way_keeps_nobody_waiting(recruitment, paid):
    """At Prolific a submission may stand as active for long after it was sent here: it was the first of all orders, each time."""
    panel = Pretend()
    panel.faults = ["not yet"]
    first, second = bonus(recruitment, paid), get_or_create_order(recruitment, "stop", "stop-1", by=None, task="T9")
    assert sent(recruitment, panel) == {"waiting": 1, "done": 1} and list(panel.done) == [second.token]
    later(first, not_before=timezone.now() - timedelta(seconds=1))
    assert sent(recruitment, panel) == {"done": 1} and list(panel.done) == [second.token, first.token]


def test_a_lost_answer_is_looked_up_at_once(recruitment, paid):
    """Without a moment before which it is not: a moment that is now is not past yet in the same millisecond."""
    panel, order = Pretend(), bonus(recruitment, paid)
    panel.faults = ["lost before"]
    sent(recruitment, panel)
    order.refresh_from_db()
    assert order.state == "sent" and order.not_before is None and list(due_orders(recruitment)) == [order]


def test_a_process_that_died_after_sending_is_no_second_payment(recruitment, paid):
    panel, order = Pretend(), bonus(recruitment, paid)

    class Killed(BaseException):
        pass

    class Dying(Pretend):
        def carry_out(self, order):
            panel.carry_out(order)
            raise Killed

    with pytest.raises(Killed):
        sent(recruitment, Dying())
    order.refresh_from_db()
    assert order.state == "sent" and not due_orders(recruitment).exists()
    later(order, sent_at=timezone.now() - timedelta(seconds=LOST_AFTER + 5))
    assert sent(recruitment, panel) == {"done": 1} and len(panel.given) == 1


def test_a_bonus_that_the_panel_refused_is_not_said_to_be_paid(recruitment, paid):
    order = get_or_create_order(
        recruitment, "bonus", "bonus-1", submission=paid, by=None, amount="1.00", currency="USD", reason="r"
    )
    PanelOrder.objects.filter(pk=order.pk).update(state="refused", sent_at=order.made_at, ended_at=order.made_at)
    assert not resolve_order(order, True, user("owner")) and PanelOrder.objects.get().state == "refused"


def test_what_the_panel_cannot_tell_a_person_decides(recruitment, paid):
    panel, order, owner = Pretend(), bonus(recruitment, paid), user("owner")
    panel.faults, panel.is_forgetful = ["lost after"], True
    sent(recruitment, panel)
    assert sent(recruitment, panel) == {"unclear": 1} and sent(recruitment, panel) == {}
    order.refresh_from_db()
    assert order.state == "unclear" and order.ended_at is None
    assert resolve_order(order, True, owner) and not resolve_order(order, False, owner)
    order.refresh_from_db()
    assert order.state == "done" and AuditEvent.objects.filter(verb="decide order").count() == 1
    # The other way: sent again.
    panel.faults = ["lost before"]
    other = get_or_create_order(
        recruitment, "bonus", "bonus-2", submission=paid, by=None, amount="1.00", currency="USD", reason="r"
    )
    sent(recruitment, panel)
    sent(recruitment, panel)
    # A panel that cannot tell is not asked again what somebody has looked up.
    assert resolve_order(other, False, owner) and sent(recruitment, panel) == {"done": 1}
    assert list(panel.done) == ["bonus-1", "bonus-2"]


def test_a_panel_that_is_never_to_be_reached_ends_with_a_person(recruitment, paid):
    class Gone(Pretend):
        def carry_out(self, order):
            self.given.append(order)
            raise ResultUnclear("No route.")

    panel, order = Gone(), bonus(recruitment, paid)
    for _ in range(MAX_ATTEMPTS + 3):
        sent(recruitment, panel)
    order.refresh_from_db()
    assert order.state == "unclear" and order.panel_message == "No route." and len(panel.given) == MAX_ATTEMPTS


def test_only_what_was_not_sent_is_taken_back(recruitment, paid):
    panel, order = Pretend(), bonus(recruitment, paid)
    other = get_or_create_order(recruitment, "stop", "stop-1", by=None, task="T9")
    assert cancel_order(other, by=user("owner"))
    assert (
        sent(recruitment, panel) == {"done": 1} and not cancel_order(order, by=None) and list(panel.done) == ["bonus-1"]
    )


def test_a_task_is_published_and_stopped(recruitment):
    panel = Pretend()
    get_or_create_order(recruitment, "publish", "publish-1", by=None, title="t", url="https://x.example", places=9)
    sent(recruitment, panel)
    task = PanelTask.objects.get()
    assert (task.external_id, task.places, task.closed_at) == ("T1", 9, None)
    get_or_create_order(recruitment, "stop", "stop-1", by=None, task="T1")
    sent(recruitment, panel)
    task.refresh_from_db()
    assert task.closed_at is not None
