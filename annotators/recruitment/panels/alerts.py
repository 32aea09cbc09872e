"""Alerts: problems that a researcher should check before they cost money or time. heval only reports them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.core.cache import cache
from django.db.models import Exists, Max, OuterRef, Sum
from django.utils import timezone

from annotators.models import Assignment, PanelOrder, PanelSubmission, PanelTask, Recruitment
from annotators.models.constants import SUBMITTED
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.links import LinkState, recruitment_link_state
from annotators.recruitment.signals import collect_alerts
from studies.models import Batch

from . import ChargedFees, Funds, PanelBusy, PanelService, RequestRefused, ResultUnclear
from .reconcile import LEFT_STATES, count_submissions_and_missing_by_status
from .rounds import count_taken_panel_places

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
    if recruitment_link_state(study, recruitment) is not LinkState.OPEN or tasks["at"] is None:
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
