"""Orders to panels: stored, sent, and checked if the reply was lost.

The only writer of PanelOrder.
An order is committed as sent before the panel receives it. If the process dies in between, the order stays sent. The
next process asks the panel, and sends it again under the same token only if the panel says that nothing was done. If
the panel cannot say, a person decides.
"""

import logging
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from annotators.models import PanelBar, PanelOrder, PanelSubmission, PanelTask, Recruitment
from annotators.models.constants import OPERATIONS
from annotators.models.identity import get_person_id, get_person_ids, submission_id_at_panel
from studies.access import Action, check_permission_or_404
from studies.models import audit

from . import Order, OrderNotReady, PanelBusy, PanelService, RequestRefused, ResultUnclear

logger = logging.getLogger("heval.panels")

State = PanelOrder.State
# The reply to a sent order is lost after this time; a call waits at most half a minute.
LOST_AFTER = 120  # seconds
MAX_ATTEMPTS = 8
MAX_WORDS_LENGTH = 500  # maximum length of a panel's message


def get_or_create_order(
    recruitment: Recruitment,
    operation: str,
    token: str,
    *,
    by,
    submission: PanelSubmission | None = None,
    **values: Any,
) -> PanelOrder:
    """Store an order, once per token; repeated calls return the same row.

    Raises ValueError for other values under a token.
    The values never contain a person. The person is stored with the submission or beside the order, and decrypted when
    the order is sent.
    """
    allowed = set(OPERATIONS[operation]) - {"person", "people", "submission"}
    if unknown := set(values) - allowed:
        raise ValueError(f"{operation} does not accept {', '.join(sorted(unknown))}.")
    columns = {"recruitment": recruitment, "operation": operation, "values": values, "submission": submission, "by": by}
    with transaction.atomic():
        order, is_new = PanelOrder.objects.get_or_create(token=token, defaults=columns)
        same = (order.recruitment_id, order.operation, order.values, order.submission_id)
        if same != (recruitment.pk, operation, values, submission and submission.pk):
            raise ValueError("This token belongs to another order.")
        if is_new:
            audit.record(
                f"order {operation}",
                study=recruitment.study,
                by=by,
                recruitment=recruitment.key,
                token=token,
                assignment_code=submission.assignment.code if submission and submission.assignment else "",
            )
    return order


def create_orders(
    recruitment: Recruitment, operation: str, submissions_by_token: Mapping[str, PanelSubmission], *, by, **values: Any
) -> int:
    """Store the same order for many submissions, by token, with a constant number of queries.

    Existing tokens are skipped. Return the number of new orders.
    """
    with transaction.atomic():
        existing_tokens = set(
            PanelOrder.objects.filter(token__in=list(submissions_by_token)).values_list("token", flat=True)
        )
        new = {token: submission for token, submission in submissions_by_token.items() if token not in existing_tokens}
        PanelOrder.objects.bulk_create(
            [
                PanelOrder(
                    recruitment=recruitment,
                    operation=operation,
                    token=token,
                    values=values,
                    submission=submission,
                    by=by,
                )
                for token, submission in new.items()
            ],
            batch_size=500,
        )
        audit.bulk_record(
            f"order {operation}",
            [
                {
                    "assignment_code": submission.assignment.code if submission.assignment else "",
                    "recruitment": recruitment.key,
                    "token": token,
                }
                for token, submission in new.items()
            ],
            study=recruitment.study,
            by=by,
        )
    return len(new)


def cancel_order(order: PanelOrder, *, by) -> bool:
    """Cancel an order that was not sent yet. Return False if it was sent."""
    check_permission_or_404(by, Action.PANEL, order.recruitment.study)
    with transaction.atomic():
        waiting = PanelOrder.objects.filter(pk=order.pk, state=State.WAITING, sent_at=None)
        is_taken_back = bool(waiting.update(state=State.CANCELLED, ended_at=Now()))
        if is_taken_back:
            audit.record("cancel order", study=order.recruitment.study, by=by, token=order.token)
    return is_taken_back


def resolve_order(order: PanelOrder, was_carried_out: bool, by) -> bool:
    """Record a person's answer about an unclear order: it was carried out, or must be sent again.

    Return False if nothing is left to decide. This also works for a refused approval, because panels refuse work that
    was approved there before.
    """
    check_permission_or_404(by, Action.PANEL, order.recruitment.study)
    with transaction.atomic():
        unresolved = PanelOrder.objects.filter(pk=order.pk)
        if was_carried_out:
            is_resolvable = Q(state=State.UNCLEAR) | Q(state=State.REFUSED, operation="approve")
            is_decided = unresolved.filter(is_resolvable).update(state=State.DONE, ended_at=Now())
        else:
            # Treat it as never sent: a panel that could not say before cannot say now.
            is_decided = unresolved.filter(state=State.UNCLEAR).update(
                state=State.WAITING, not_before=None, tries=0, sent_at=None
            )
        if is_decided:
            audit.record(
                "decide order", study=order.recruitment.study, by=by, token=order.token, is_carried_out=was_carried_out
            )
    return bool(is_decided)


def due_orders(recruitment: Recruitment) -> QuerySet[PanelOrder]:
    """Return orders to send now, and sent ones without a reply; the oldest first."""
    is_lost = Q(state=State.SENT, sent_at__lt=Now() - timedelta(seconds=LOST_AFTER))
    orders = PanelOrder.objects.filter(recruitment=recruitment)
    may_be_sent = Q(not_before=None) | Q(not_before__lte=Now())
    return orders.filter(Q(state=State.WAITING) | is_lost, may_be_sent).order_by("pk")


def send_due_orders(
    recruitment: Recruitment, service: PanelService, progress: Callable[[int, int, str], None]
) -> dict[str, int]:
    """Send all due orders, one after the other. Return the number of orders by final state."""
    ended: dict[str, int] = {}
    pks = list(due_orders(recruitment).values_list("pk", flat=True))
    for n, pk in enumerate(pks):
        progress(n, len(pks), "Sending orders to the panel")
        order = _mark_sent(pk)
        if order is None:
            continue
        state, may_continue = _carry_out(*order, service)
        ended[state] = ended.get(state, 0) + 1
        if not may_continue:
            break  # the panel asked to wait, or cannot be reached
    return ended


def _mark_sent(pk: int) -> tuple[PanelOrder, bool] | None:
    """Mark the order as sent. Return it and whether it had been sent before; None if another process has it."""
    with transaction.atomic():
        order = (
            PanelOrder.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("recruitment__study", "submission__annotator", "submission__task")
            .filter(pk=pk, state__in=[State.WAITING, State.SENT])
            .first()
        )
        if order is None or not due_orders(order.recruitment).filter(pk=pk).exists():
            return None
        was_sent = order.sent_at is not None
        PanelOrder.objects.filter(pk=pk).update(state=State.SENT, sent_at=Now(), tries=order.tries + 1)
        order.tries += 1
    return order, was_sent


def _carry_out(order: PanelOrder, was_sent: bool, service: PanelService) -> tuple[str, bool]:
    """Send one order and store the result; first check the state if it was sent before.

    Return the state, and whether the panel accepts further orders now.
    """
    try:
        order_to_send = Order(order.operation, order.token, _values_with_ids(order))
    except RequestRefused as erased:
        return _end_order(order, State.UNCLEAR if was_sent else State.REFUSED, str(erased)), True
    result = None
    if was_sent:
        try:
            result = service.find_order_result(order_to_send)
        except (RequestRefused, ResultUnclear) as error:
            return _end_order(order, State.UNCLEAR, str(error)), True
        except PanelBusy as error:
            return _postpone_lookup(order, error, error.seconds), isinstance(error, OrderNotReady)
    if result is None:
        try:
            result = service.carry_out(order_to_send)
        except RequestRefused as error:
            return _end_order(order, State.REFUSED, str(error)), True
        except PanelBusy as error:
            not_before = Now() + timedelta(seconds=error.seconds)
            # Nothing was done, so treat it as never sent.
            _update_sent_order(
                order,
                state=State.WAITING,
                panel_message=str(error)[:MAX_WORDS_LENGTH],
                not_before=not_before,
                sent_at=None,
            )
            return State.WAITING, isinstance(error, OrderNotReady)
        except ResultUnclear as error:
            if order.tries >= MAX_ATTEMPTS:
                return _end_order(order, State.UNCLEAR, str(error)), True
            return _postpone_lookup(order, error, 0), False
    return _end_order(order, State.DONE, "", result), True


def _postpone_lookup(order: PanelOrder, error: Exception, seconds: float) -> str:
    lost_at = Now() - timedelta(seconds=LOST_AFTER + 1)
    # Within the same millisecond, "now" does not count as past.
    not_before = Now() + timedelta(seconds=seconds) if seconds else None
    _update_sent_order(order, panel_message=str(error)[:MAX_WORDS_LENGTH], sent_at=lost_at, not_before=not_before)
    return State.SENT


def _values_with_ids(order: PanelOrder) -> Mapping[str, Any]:
    if order.operation == "bar":
        people = get_person_ids(PanelBar.objects.filter(order=order).values_list("annotator", flat=True))
        return {**order.values, "people": sorted(people.values())}
    if order.submission is None:
        return order.values
    submission, person = order.submission, get_person_id(order.submission.annotator) or ""
    ids = {"submission": submission_id_at_panel(submission, person), "person": person}
    if not ids["submission"]:
        raise RequestRefused(
            "The panel's id of this work has been erased, so heval cannot send the order. Decide at the panel itself."
        )
    return {"task": submission.task.external_id if submission.task else "", **order.values, **ids}


def _end_order(order: PanelOrder, state: str, message: str, result: Mapping[str, Any] | None = None) -> str:
    with transaction.atomic():
        ended_at = None if state == State.UNCLEAR else Now()
        if not _update_sent_order(
            order, state=state, panel_message=message[:MAX_WORDS_LENGTH], result=result or {}, ended_at=ended_at
        ):
            return state
        if state == State.DONE and order.operation == "publish":
            PanelTask.objects.get_or_create(
                recruitment=order.recruitment,
                external_id=str((result or {})["task"]),
                defaults={"places": order.values.get("places")},
            )
        if state == State.DONE and order.operation == "extend" and (places := order.values.get("places")):
            task = PanelTask.objects.filter(recruitment=order.recruitment, external_id=order.values["task"])
            task.update(places=places)
        if state == State.DONE and order.operation == "stop":
            PanelTask.objects.filter(recruitment=order.recruitment, external_id=order.values["task"]).update(
                closed_at=Now()
            )
    if state != State.DONE:
        logger.warning(
            "Order %s (%s) of recruitment %s: %s", order.token, order.operation, order.recruitment.key, state
        )
    return state


def _update_sent_order(order: PanelOrder, **columns: Any) -> bool:
    if message := columns.get("panel_message"):
        columns["panel_message"] = _redact_person_ids(order, message)
    return bool(PanelOrder.objects.filter(pk=order.pk, state=State.SENT).update(**columns))


def _redact_person_ids(order: PanelOrder, message: str) -> str:
    """Return the panel's message without the ids in the order.

    Panels repeat ids, and messages are stored unencrypted.
    """
    if order.operation == "bar":
        people = get_person_ids(PanelBar.objects.filter(order=order).values_list("annotator", flat=True)).values()
    else:
        people = get_person_ids([order.submission.annotator_id] if order.submission else []).values()
    for person in people:
        message = re.sub(rf"(?<!\w){re.escape(person)}(?!\w)", "…", message, flags=re.IGNORECASE)
    return message
