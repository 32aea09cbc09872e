"""Orders to panels: written down, sent, looked up where the reply was lost. The only writer of PanelOrder.

An order is committed as sent before the panel hears of it. A process that dies between leaves it sent; whoever comes next asks the
panel what became of it and sends it again, under the same token, only where the panel says that nothing did. Where the panel
cannot tell, a person does.
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
from studies.access import Action, check_permission
from studies.models import audit

from . import Order, OrderNotReady, PanelBusy, PanelService, RequestRefused, ResultUnclear

logger = logging.getLogger("heval.panels")

State = PanelOrder.State
# A sent order without an answer for so long has lost it: a call waits for half a minute at most.
LOST_AFTER = 120  # seconds
MAX_ATTEMPTS = 8
MAX_WORDS_LENGTH = 500  # of what a panel says, at most


def create_order(
    recruitment: Recruitment,
    operation: str,
    token: str,
    *,
    by,
    submission: PanelSubmission | None = None,
    **values: Any,
) -> PanelOrder:
    """Write an order down, once for its token: given again it is the same row. Raises ValueError for other values under a token.

    No person is ever among the values: who is meant stands with the submission, or beside the order, and is deciphered when it is sent.
    """
    allowed = set(OPERATIONS[operation]) - {"person", "people", "submission"}
    if unknown := set(values) - allowed:
        raise ValueError(f"{operation} takes no {', '.join(sorted(unknown))}.")
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
    """The same order about many submissions, by token, in a number of queries that does not depend on how many they are.

    Tokens that were given before are passed over. Gives how many orders are new.
    """
    with transaction.atomic():
        given = set(PanelOrder.objects.filter(token__in=list(submissions_by_token)).values_list("token", flat=True))
        new = {token: submission for token, submission in submissions_by_token.items() if token not in given}
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
                    "assignment_code": one.assignment.code if one.assignment else "",
                    "recruitment": recruitment.key,
                    "token": token,
                }
                for token, one in new.items()
            ],
            study=recruitment.study,
            by=by,
        )
    return len(new)


def cancel_order(order: PanelOrder, *, by) -> bool:
    """Take back what was not sent yet. False where it was."""
    check_permission(by, Action.PANEL, order.recruitment.study)
    with transaction.atomic():
        waiting = PanelOrder.objects.filter(pk=order.pk, state=State.WAITING, sent_at=None)
        is_taken_back = bool(waiting.update(state=State.CANCELLED, ended_at=Now()))
        if is_taken_back:
            audit.record("cancel order", study=order.recruitment.study, by=by, token=order.token)
    return is_taken_back


def resolve_order(order: PanelOrder, was_carried_out: bool, by) -> bool:
    """A person looked at the panel: the order was carried out, or shall be sent again. False where there is nothing to decide any more.

    Of an approval that the panel refused it may be said as well: panels refuse what somebody approved there before.
    """
    check_permission(by, Action.PANEL, order.recruitment.study)
    with transaction.atomic():
        mine = PanelOrder.objects.filter(pk=order.pk)
        if was_carried_out:
            open_to_it = Q(state=State.UNCLEAR) | Q(state=State.REFUSED, operation="approve")
            is_decided = mine.filter(open_to_it).update(state=State.DONE, ended_at=Now())
        else:
            # It counts as never sent: a panel that could not tell before could not tell now either.
            is_decided = mine.filter(state=State.UNCLEAR).update(
                state=State.WAITING, not_before=None, tries=0, sent_at=None
            )
        if is_decided:
            audit.record(
                "decide order", study=order.recruitment.study, by=by, token=order.token, is_carried_out=was_carried_out
            )
    return bool(is_decided)


def due_orders(recruitment: Recruitment) -> QuerySet[PanelOrder]:
    """Orders to be sent now, and sent ones whose answer is lost; the oldest first."""
    lost = Q(state=State.SENT, sent_at__lt=Now() - timedelta(seconds=LOST_AFTER))
    orders = PanelOrder.objects.filter(recruitment=recruitment)
    may_be_sent = Q(not_before=None) | Q(not_before__lte=Now())
    return orders.filter(Q(state=State.WAITING) | lost, may_be_sent).order_by("pk")


def send_due_orders(
    recruitment: Recruitment, service: PanelService, progress: Callable[[int, int, str], None]
) -> dict[str, int]:
    """Send what is due, one after the other. Gives how many ended in which state."""
    ended: dict[str, int] = {}
    pks = list(due_orders(recruitment).values_list("pk", flat=True))
    for n, pk in enumerate(pks):
        progress(n, len(pks), "Sending orders to the panel")
        order = _taken(pk)
        if order is None:
            continue
        state, goes_on = _carry_out(*order, service)
        ended[state] = ended.get(state, 0) + 1
        if not goes_on:
            break  # the panel asked to be left alone for a while, or is not to be reached
    return ended


def _taken(pk: int) -> tuple[PanelOrder, bool] | None:
    """The order, marked as sent, and whether it had been sent before; None where somebody else has it."""
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
    """Ask what became of one that was sent before, send what is not carried out, and write down what came of it: the state, and whether
    the panel takes others now."""
    try:
        sent = Order(order.operation, order.token, _complete(order))
    except RequestRefused as erased:
        return _end_order(order, State.UNCLEAR if was_sent else State.REFUSED, str(erased)), True
    result = None
    if was_sent:
        try:
            result = service.look(sent)
        except (RequestRefused, ResultUnclear) as words:
            return _end_order(order, State.UNCLEAR, str(words)), True
        except PanelBusy as later:
            return _postpone_lookup(order, later, later.seconds), isinstance(later, OrderNotReady)
    if result is None:
        try:
            result = service.do(sent)
        except RequestRefused as no:
            return _end_order(order, State.REFUSED, str(no)), True
        except PanelBusy as later:
            in_a_while = Now() + timedelta(seconds=later.seconds)
            # Nothing was done: it counts as never sent.
            _update_sent_order(
                order, state=State.WAITING, words=str(later)[:MAX_WORDS_LENGTH], not_before=in_a_while, sent_at=None
            )
            return State.WAITING, isinstance(later, OrderNotReady)
        except ResultUnclear as silence:
            if order.tries >= MAX_ATTEMPTS:
                return _end_order(order, State.UNCLEAR, str(silence)), True
            return _postpone_lookup(order, silence, 0), False
    return _end_order(order, State.DONE, "", result), True


def _postpone_lookup(order: PanelOrder, words: Exception, seconds: float) -> str:
    lost = Now() - timedelta(seconds=LOST_AFTER + 1)
    # A moment that is now is not past yet within the same millisecond.
    later = Now() + timedelta(seconds=seconds) if seconds else None
    _update_sent_order(order, words=str(words)[:MAX_WORDS_LENGTH], sent_at=lost, not_before=later)
    return State.SENT


def _complete(order: PanelOrder) -> Mapping[str, Any]:
    if order.operation == "bar":
        people = get_person_ids(PanelBar.objects.filter(order=order).values_list("annotator", flat=True))
        return {**order.values, "people": sorted(people.values())}
    if order.submission is None:
        return order.values
    about, person = order.submission, get_person_id(order.submission.annotator) or ""
    named = {"submission": submission_id_at_panel(about, person), "person": person}
    if not named["submission"]:
        raise RequestRefused("The panel's id of this work is erased, so it cannot be sent. Look at the panel itself.")
    return {"task": about.task.external_id if about.task else "", **order.values, **named}


def _end_order(order: PanelOrder, state: str, words: str, result: Mapping[str, Any] | None = None) -> str:
    with transaction.atomic():
        ended_at = None if state == State.UNCLEAR else Now()
        if not _update_sent_order(
            order, state=state, words=words[:MAX_WORDS_LENGTH], result=result or {}, ended_at=ended_at
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
    if words := columns.get("words"):
        columns["words"] = _without_people(order, words)
    return bool(PanelOrder.objects.filter(pk=order.pk, state=State.SENT).update(**columns))


def _without_people(order: PanelOrder, words: str) -> str:
    """What a panel says, without the ids that the order named: panels repeat them in their words, and words are kept in clear."""
    if order.operation == "bar":
        people = get_person_ids(PanelBar.objects.filter(order=order).values_list("annotator", flat=True)).values()
    else:
        people = get_person_ids([order.submission.annotator_id] if order.submission else []).values()
    for person in people:
        words = re.sub(rf"(?<!\w){re.escape(person)}(?!\w)", "…", words, flags=re.IGNORECASE)
    return words
