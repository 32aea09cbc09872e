"""Alerts: problems that a researcher should check before they cost money or time. heval only reports them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Sum
from django.db.models.fields.json import KT
from django.utils import timezone

from annotators.models import Assignment, PanelOrder, PanelSubmission, PanelTask, Recruitment
from annotators.models.constants import APPROVED, SUBMITTED, WORKING
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.links import LinkState, recruitment_link_state
from annotators.recruitment.signals import collect_alerts
from studies.models import Batch
from studies.services.events import record_attention

from . import ChargedFees, Funds, PanelBusy, PanelService, RequestRefused, ResultUnclear, SubmissionSnapshot
from .http_client import available_operations
from .orders import count_taken_panel_places, create_orders
from .reconcile import (
    LEFT_STATES,
    UNSENT_AFTER,
    count_submissions_and_missing_by_status,
    import_submissions_and_release_places,
)

if TYPE_CHECKING:
    from annotators.models.assignments import SignedUpAssignment


MOST_UNMATCHED, MOST_RETURNED = 0.05, 0.25
# One of ten is not a meaningful rate.
LEAST_CASES, LEAST_CAME = 2, 8
QUIET = timedelta(hours=2)
AUTO_APPROVAL_WARNING = timedelta(hours=12)
FUNDS_CACHE_SECONDS = 2 * 3600
FEES_CACHE_SECONDS = 90 * 86400  # shown with its time, because panels are not asked forever
Released = Assignment.Released


@dataclass(frozen=True, slots=True)
class Alert:
    """A ``problem`` of a panel, and ``advice`` on what to do."""

    kind: str
    problem: str
    advice: str


def find_panel_alerts(recruitment: Recruitment) -> list[Alert]:
    """Return the current alerts of this link's panel. Empty if all is well or nothing is known."""
    checks = (_unmatched_alerts, _returned_alerts, _quiet_alerts, _undecided_alerts, _balance_alerts)
    alerts = [alert for check in checks for alert in check(recruitment)]
    for _, app_alerts in collect_alerts.send(Recruitment, recruitment=recruitment):
        alerts += app_alerts
    return alerts


def _unmatched_alerts(recruitment: Recruitment) -> Iterator[Alert]:
    counts = count_submissions_and_missing_by_status(recruitment)
    total = sum(counts.values()) - counts.get("working", 0) - counts.get("left", 0)
    advice = {
        "orphan": "Check how far they got, and whether the link or a page fails. Try the link yourself.",
        "unsent": ("Their way back fails. Open your own last page, and check the code or return address at the panel."),
    }
    if REGISTRY[recruitment.channel].credits_on_completion:
        advice["unsent"] = "Their credit was not granted. See below how the panel answered the orders."
    for kind, description in (
        ("orphan", "submitted at the panel but not finished in heval"),
        ("unsent", "finished in heval but not submitted at the panel"),
    ):
        n = counts.get(kind, 0)
        if n >= LEAST_CASES and n > MOST_UNMATCHED * total:
            yield Alert(kind, f"{n} of {total} are {description}.", advice[kind])


def _returned_alerts(recruitment: Recruitment) -> Iterator[Alert]:
    rows = PanelSubmission.objects.filter(recruitment=recruitment).values_list("annotator", "state")
    arrivals = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE).exclude(
        released_reason=Released.FULL
    )
    people = {annotator: state in LEFT_STATES for annotator, state in rows.order_by("pk")}
    for annotator, reason, submitted_at in arrivals.order_by("pk").values_list(
        "annotator", "released_reason", "submitted_at"
    ):
        has_left = reason in (Released.RETURNED, Released.EXPIRED) and submitted_at is None
        people[annotator] = not submitted_at and (has_left or people.get(annotator, False))
    n = sum(people.values())
    if len(people) >= LEAST_CAME and n > MOST_RETURNED * len(people):
        yield Alert(
            "returned",
            f"{n} of {len(people)} people returned the task or ran out of time.",
            "Check where they left. Common causes: too long, low pay, an unsupported device, or a question "
            "that is impossible to answer.",
        )


def _quiet_alerts(recruitment: Recruitment) -> Iterator[Alert]:
    study, now = recruitment.study, timezone.now()
    tasks = PanelTask.objects.filter(recruitment=recruitment, closed_at=None).aggregate(
        n=Sum("places"), at=Max("made_at")
    )
    if tasks["at"] is None or recruitment_link_state(study, recruitment) is not LinkState.OPEN:
        return
    claims = Batch.objects.filter(study=study, number__lt=study.open_to).aggregate(
        wanted=Sum("wanted"), claimed=Sum("claimed")
    )
    has_place = (claims["claimed"] or 0) < (claims["wanted"] or 0)
    if not has_place or (tasks["n"] and count_taken_panel_places(recruitment).taken >= tasks["n"]):
        return
    last_claim = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE).aggregate(
        at=Max("claimed_at")
    )["at"]
    # A link that opens late in the day has not been without visitors before.
    last_sign = max(at for at in (last_claim, tasks["at"], recruitment.opens_at) if at)
    if now - last_sign > QUIET:
        hours = int((now - last_sign).total_seconds() // 3600)
        yield Alert(
            "quiet",
            f"No one has come for {hours} hours, although places are free.",
            "Check that the panel still lists the task and that its link opens. Old tasks sink in lists; a "
            "further round raises it again.",
        )


def _undecided_alerts(recruitment: Recruitment) -> Iterator[Alert]:
    warning_time = timezone.now() + AUTO_APPROVAL_WARNING
    rows = PanelSubmission.objects.filter(recruitment=recruitment, state=SUBMITTED, decides_itself_at__lt=warning_time)
    decisions = PanelOrder.objects.filter(submission=OuterRef("pk"), operation__in=["approve", "reject"])
    # Refused and cancelled orders do not count, because the panel did not act on them.
    decisions = decisions.exclude(state__in=[PanelOrder.State.REFUSED, PanelOrder.State.CANCELLED])
    if n := rows.filter(~Exists(decisions)).count():
        yield Alert(
            "undecided",
            f"The panel approves {n} automatically within 12 hours, and has received no decision about them.",
            "Approve them, or decide about the doubtful ones.",
        )


# Money


def refresh_cached_funds(recruitment: Recruitment, service: PanelService) -> None:
    """Store the panel's balance for some hours. A panel without a balance does not stop anything."""
    try:
        funds = service.funds()
    except (RequestRefused, ResultUnclear, PanelBusy):
        return
    if funds is not None:
        cache.set(_funds_key(recruitment), (str(funds.amount), funds.currency), FUNDS_CACHE_SECONDS)


def _funds_key(recruitment: Recruitment) -> str:
    return f"heval:panel:funds:{recruitment.pk}"


def cached_funds(recruitment: Recruitment) -> Funds | None:
    """Return the last known balance; None if the panel did not say."""
    cached = cache.get(_funds_key(recruitment))
    return Funds(Decimal(cached[0]), cached[1]) if cached else None


def refresh_cached_fees(recruitment: Recruitment, service: PanelService, tasks: Iterable[str]) -> None:
    """Store the fees that the panel charged for these tasks, with the time. If some tasks are missing, store no sum."""
    try:
        reported_fees = [service.charged_fees(task) for task in tasks]
    except (RequestRefused, ResultUnclear, PanelBusy):
        return
    known_fees = [fee for fee in reported_fees if fee is not None]
    currencies = {fee.currency for fee in known_fees}
    if len(currencies) != 1 or len(known_fees) < len(reported_fees):
        return
    sums = (sum(getattr(fee, name) for fee in known_fees) for name in ("rewards", "bonuses", "tax"))
    cache.set(
        _cost_key(recruitment.pk), (*map(str, sums), currencies.pop(), timezone.now().isoformat()), FEES_CACHE_SECONDS
    )


def _cost_key(link: int) -> str:
    return f"heval:panel:cost:{link}"


def cache_alert_count(recruitment: Recruitment) -> None:
    """Keep the number of this link's alerts for lists of many links. Each kind of alert is an event, once a day."""
    alerts = find_panel_alerts(recruitment)
    cache.set(_alerts_key(recruitment.pk), len(alerts), FUNDS_CACHE_SECONDS)
    for kind in {alert.kind for alert in alerts}:
        key = f"{recruitment.pk} {kind} {timezone.now():%Y-%m-%d}"
        record_attention(recruitment.study, "a panel has an alert", key, alert=kind)


def cached_alert_counts(links: Iterable[int]) -> dict[int, int]:
    """Return the number of alerts of each of these links that had one when its panel was last asked."""
    links_by_key = {_alerts_key(link): link for link in links}
    return {links_by_key[key]: n for key, n in cache.get_many(links_by_key).items() if n}


def _alerts_key(link: int) -> str:
    return f"heval:panel:alerts:{link}"


def cached_fees(recruitment: Recruitment) -> tuple[ChargedFees, datetime] | None:
    """Return the panel's last figure and its time; None if it gave no figure."""
    return cached_fees_by_link([recruitment.pk]).get(recruitment.pk)


def cached_fees_by_link(links: Iterable[int]) -> dict[int, tuple[ChargedFees, datetime]]:
    """Return the last figure and its time for each of these links whose panel gave one."""
    links_by_key = {_cost_key(link): link for link in links}
    found = {}
    for key, (rewards, bonuses, tax, currency, at) in cache.get_many(links_by_key).items():
        fees = ChargedFees(Decimal(rewards), Decimal(bonuses), Decimal(tax), currency)
        found[links_by_key[key]] = fees, datetime.fromisoformat(at)
    return found


def waiting_bonus_and_screen_out_total(recruitment: Recruitment) -> Decimal:
    """Return the amount still to be paid from the account: unsent bonuses and screen-outs.

    Rewards were reserved when the task was published.
    """
    waiting = PanelOrder.objects.filter(
        recruitment=recruitment, state=PanelOrder.State.WAITING, operation__in=["bonus", "screen_out"]
    )
    return sum((Decimal(amount) for amount in waiting.values_list("values__amount", flat=True) if amount), Decimal(0))


def _balance_alerts(recruitment: Recruitment) -> Iterator[Alert]:
    funds, due = cached_funds(recruitment), waiting_bonus_and_screen_out_total(recruitment)
    currency = recruitment.currency or recruitment.study.currency
    if funds is not None and funds.currency in ("", currency) and funds.amount < due:
        yield Alert(
            "money",
            f"{due:.2f} {currency} must still be paid, but the account holds {funds.amount:.2f}.",
            "Add money at the panel before you approve or pay. It refuses payments above its balance.",
        )


# Automatic credit for people who reach the last page, at channels that support it.
#
# heval never rejects by itself. Each step depends only on stored data, so the next run continues an interrupted one,
# and a repeated run changes nothing. If the panel refuses or does not answer clearly, a person decides, and heval
# does not order again.


State = PanelOrder.State
# A person must check these.
STUCK_STATES = (State.REFUSED, State.UNCLEAR, State.CANCELLED)
UNCREDITED_WORD, GRANTED_WORD = "no credit yet", "credit granted"
# The last page finds the order by this.
GIVEN, COMING = "given", "coming"


def credit_earning_assignments(recruitments: Iterable[Recruitment]) -> "QuerySet[SignedUpAssignment]":
    """Return people who reached the last page of automatically crediting links, with ``sign_up``, including later
    withdrawals.
    """
    crediting = [recruitment.pk for recruitment in recruitments if REGISTRY[recruitment.channel].credits_on_completion]
    finished = Assignment.objects.filter(
        recruitment__in=crediting, origin=Assignment.Origin.LIVE, submitted_at__isnull=False
    )
    signed_up = finished.filter(external_ids__has_key="session").exclude(external_ids__session="")
    return signed_up.annotate(sign_up=KT("external_ids__session"))


def _sign_up_filter(prefix: str = "") -> Q:
    """Return the condition for records about the sign-up of an assignment of ``credit_earning_assignments``.

    A person with several parts has one sign-up.
    """
    names = {"recruitment": "recruitment", "annotator": "annotator", "external_id": "sign_up"}
    return Q(**{f"{prefix}{name}": OuterRef(outer_name) for name, outer_name in names.items()})


def record_sign_ups_and_order_credits(recruitment: Recruitment) -> int:
    """Order credit for everyone who finished, once per sign-up. Return the number of new orders."""
    if not REGISTRY[recruitment.channel].credits_on_completion:
        return 0
    with transaction.atomic():
        # Lock out other processes that store an answer, so that older data read here does not overwrite it.
        Recruitment.objects.select_for_update(of=("self",), no_key=True).get(pk=recruitment.pk)
        known_submissions = PanelSubmission.objects.filter(_sign_up_filter())
        first_by_sign_up: dict[tuple[int, str], SignedUpAssignment] = {}
        for assignment in credit_earning_assignments([recruitment]).filter(~Exists(known_submissions)).order_by("pk"):
            first_by_sign_up.setdefault((assignment.annotator_id, assignment.sign_up), assignment)
        if first_by_sign_up:
            # Nothing has reached the panel yet. After half an hour a person should check this.
            assignments = {
                SubmissionSnapshot(
                    "", assignment.sign_up, assignment.sign_up, WORKING, word=UNCREDITED_WORD
                ): assignment
                for assignment in first_by_sign_up.values()
            }
            import_submissions_and_release_places(
                recruitment, assignments, PanelSubmission.Source.SERVICE, assignments=assignments
            )
        submissions = PanelSubmission.objects.filter(recruitment=recruitment, assignment__submitted_at__isnull=False)
        rows = list(submissions.filter(state=WORKING).select_related("assignment").order_by("pk"))
        if not rows:
            return 0
        # Skip people with an earlier order.
        return create_orders(recruitment, "approve", {f"approve-{row.pk}": row for row in rows}, by=None, message="")


def record_granted_credits(recruitment: Recruitment) -> None:
    """Mark carried-out orders as approved, because such a panel shows no other state."""
    if not REGISTRY[recruitment.channel].credits_on_completion:
        return
    granted = PanelOrder.objects.filter(recruitment=recruitment, operation="approve", state=State.DONE)
    new = granted.filter(submission__assignment__isnull=False).exclude(submission__state=APPROVED)
    assignments = {}
    for order in new.select_related("submission__assignment").order_by("pk"):
        row = order.submission
        assignments[
            SubmissionSnapshot(
                "", row.external_id, row.external_id, APPROVED, word=GRANTED_WORD, decided_at=order.ended_at
            )
        ] = row.assignment
    if assignments:
        import_submissions_and_release_places(
            recruitment, assignments, PanelSubmission.Source.SERVICE, assignments=assignments
        )


def recruitment_ids_with_pending_credits(recruitments: Iterable[Recruitment]) -> set[int]:
    """Return links with credit to order, send or record, except those that cannot order."""
    crediting = [
        recruitment
        for recruitment in recruitments
        if REGISTRY[recruitment.channel].credits_on_completion and "approve" in available_operations(recruitment)
    ]
    if not crediting:
        return set()
    stuck = PanelOrder.objects.filter(_sign_up_filter("submission__"), operation="approve", state__in=STUCK_STATES)
    credited = PanelSubmission.objects.filter(_sign_up_filter(), state=APPROVED)
    pending = credit_earning_assignments(crediting).filter(~Exists(stuck), ~Exists(credited)).order_by()
    return set(pending.values_list("recruitment", flat=True).distinct())


def credit_status(assignment: Assignment) -> str:
    """Return GIVEN or COMING for a person's own page; "" if credit is not automatic or cannot be promised."""
    recruitment = assignment.recruitment
    if recruitment is None or assignment.submitted_at is None or assignment.origin != Assignment.Origin.LIVE:
        return ""
    if not REGISTRY[recruitment.channel].credits_on_completion:
        return ""
    submissions = PanelSubmission.objects.filter(recruitment=recruitment, annotator=assignment.annotator_id)
    # Ids are erased later, but granted credit stays granted.
    is_same_sign_up = Q(assignment=assignment) | Q(external_id=assignment.external_ids.get("session", ""))
    row = submissions.filter(is_same_sign_up).order_by("pk").first()
    if row is not None and row.state == APPROVED:
        return GIVEN
    last = PanelOrder.objects.filter(submission=row, operation="approve").order_by("pk").last() if row else None
    is_stuck = last is not None and last.state in STUCK_STATES
    is_fresh = timezone.now() - assignment.submitted_at < UNSENT_AFTER and not assignment.is_late
    return COMING if is_fresh and not is_stuck and "approve" in available_operations(recruitment) else ""
