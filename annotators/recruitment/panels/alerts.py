"""What a researcher should look at while a panel works, before it costs money or people's time. Said, never acted on."""

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
from annotators.recruitment.links import LinkState, link_state
from annotators.recruitment.signals import collect_alerts
from studies.models import Batch

from . import ChargedFees, Funds, PanelBusy, PanelService, RequestRefused, ResultUnclear
from .reconcile import LEFT_STATES, match_status_counts
from .rounds import count_places

MOST_UNMATCHED, MOST_RETURNED = 0.05, 0.25
# One of ten is no rate yet.
LEAST_CASES, LEAST_CAME = 2, 8
QUIET = timedelta(hours=2)
AUTO_APPROVAL_WARNING = timedelta(hours=12)
FUNDS_CACHE_SECONDS = 2 * 3600
FEES_CACHE_SECONDS = 90 * 86400  # it is shown with its moment, and panels are not asked for ever
Released = Assignment.Released


@dataclass(frozen=True, slots=True)
class Alert:
    """``words``: what was found; ``advice``: what to do."""

    kind: str
    words: str
    advice: str


def find_alerts(recruitment: Recruitment) -> list[Alert]:
    """What stands out at this link's panel now. Empty where all is well, or nothing is known."""
    checks = (_unmatched, _returned, _quiet, _undecided, _short_of_money)
    found = [alert for check in checks for alert in check(recruitment)]
    for _, further in collect_alerts.send(Recruitment, recruitment=recruitment):
        found += further
    return found


def _unmatched(recruitment: Recruitment) -> Iterator[Alert]:
    found = match_status_counts(recruitment)
    of = sum(found.values()) - found.get("working", 0) - found.get("left", 0)
    advice = {
        "orphan": "Look at how far they came, and whether the link or a page fails: try it yourself.",
        "unsent": "Their way back fails: open your own last page, and check the code or the return address at the panel.",
    }
    if REGISTRY[recruitment.channel].credits_on_completion:
        advice["unsent"] = "Their credit did not come through: read below what the panel answered to the orders."
    for kind, what in (
        ("orphan", "sent to the panel and not finished here"),
        ("unsent", "finished here and not sent to the panel"),
    ):
        n = found.get(kind, 0)
        if n >= LEAST_CASES and n > MOST_UNMATCHED * of:
            yield Alert(kind, f"{n} of {of} are {what}.", advice[kind])


def _returned(recruitment: Recruitment) -> Iterator[Alert]:
    rows = PanelSubmission.objects.filter(recruitment=recruitment).values_list("annotator", "state")
    came = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE).exclude(
        released_reason=Released.FULL
    )
    people = {annotator: state in LEFT_STATES for annotator, state in rows.order_by("pk")}
    for annotator, reason, submitted_at in came.order_by("pk").values_list(
        "annotator", "released_reason", "submitted_at"
    ):
        has_left = reason in (Released.RETURNED, Released.EXPIRED) and submitted_at is None
        people[annotator] = not submitted_at and (has_left or people.get(annotator, False))
    n = sum(people.values())
    if len(people) >= LEAST_CAME and n > MOST_RETURNED * len(people):
        yield Alert(
            "returned",
            f"{n} of {len(people)} people gave it back or ran out of time.",
            "Look where they left: too long, too little pay, a device on which it does not work, or a question that nobody can answer.",
        )


def _quiet(recruitment: Recruitment) -> Iterator[Alert]:
    study, now = recruitment.study, timezone.now()
    tasks = PanelTask.objects.filter(recruitment=recruitment, closed_at=None).aggregate(
        n=Sum("places"), at=Max("made_at")
    )
    if link_state(study, recruitment) is not LinkState.OPEN or tasks["at"] is None:
        return
    claims = Batch.objects.filter(study=study, number__lt=study.open_to).aggregate(
        wanted=Sum("wanted"), claimed=Sum("claimed")
    )
    has_place = (claims["claimed"] or 0) < (claims["wanted"] or 0)
    if not has_place or (tasks["n"] and count_places(recruitment).taken >= tasks["n"]):
        return
    came = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE).aggregate(
        at=Max("claimed_at")
    )["at"]
    # Whoever opens the link late in the day has not been left alone before.
    since = max(at for at in (came, tasks["at"], recruitment.opens_at) if at)
    if now - since > QUIET:
        hours = int((now - since).total_seconds() // 3600)
        yield Alert(
            "quiet",
            f"Nobody has come for {hours} hours, and places are free.",
            "Is the task still listed at the panel, and does its link open? Old tasks sink in lists: a further round brings it up again.",
        )


def _undecided(recruitment: Recruitment) -> Iterator[Alert]:
    soon = timezone.now() + AUTO_APPROVAL_WARNING
    rows = PanelSubmission.objects.filter(recruitment=recruitment, state=SUBMITTED, decides_itself_at__lt=soon)
    told = PanelOrder.objects.filter(submission=OuterRef("pk"), operation__in=["approve", "reject"])
    # What the panel refused, and what was taken back, has told it nothing.
    told = told.exclude(state__in=[PanelOrder.State.REFUSED, PanelOrder.State.CANCELLED])
    if n := rows.filter(~Exists(told)).count():
        yield Alert(
            "undecided",
            f"The panel approves {n} by itself within 12 hours, and no decision about them has reached it.",
            "Approve them, or decide on those that are in doubt.",
        )


# Money


def cache_funds(recruitment: Recruitment, service: PanelService) -> None:
    """Remember what the panel says is there, for the next hours. A panel that does not say is no reason to stop."""
    try:
        funds = service.funds()
    except (RequestRefused, ResultUnclear, PanelBusy):
        return
    if funds is not None:
        cache.set(_funds_key(recruitment), (str(funds.amount), funds.currency), FUNDS_CACHE_SECONDS)


def _funds_key(recruitment: Recruitment) -> str:
    return f"heval:panel:funds:{recruitment.pk}"


def cached_funds(recruitment: Recruitment) -> Funds | None:
    """What the panel said lately; None where it said nothing."""
    kept = cache.get(_funds_key(recruitment))
    return Funds(Decimal(kept[0]), kept[1]) if kept else None


def cache_fees(recruitment: Recruitment, service: PanelService, tasks: Iterable[str]) -> None:
    """Remember what the panel says it has taken for these tasks, and when it said so. Of a part of them alone there is no sum."""
    try:
        told = [service.cost(task) for task in tasks]
    except (RequestRefused, ResultUnclear, PanelBusy):
        return
    known = [one for one in told if one is not None]
    currencies = {one.currency for one in known}
    if len(currencies) != 1 or len(known) < len(told):
        return
    sums = (sum(getattr(one, name) for one in known) for name in ("rewards", "bonuses", "tax"))
    cache.set(
        _cost_key(recruitment), (*map(str, sums), currencies.pop(), timezone.now().isoformat()), FEES_CACHE_SECONDS
    )


def _cost_key(recruitment: Recruitment) -> str:
    return f"heval:panel:cost:{recruitment.pk}"


def cached_fees(recruitment: Recruitment) -> tuple[ChargedFees, datetime] | None:
    """What the panel said last, and when; None where it said nothing."""
    kept = cache.get(_cost_key(recruitment))
    return (ChargedFees(*map(Decimal, kept[:3]), kept[3]), datetime.fromisoformat(kept[4])) if kept else None


def unsent_payments_total(recruitment: Recruitment) -> Decimal:
    """What is still to be taken from the account: bonuses and screen-outs that wait to be sent. The rewards were put aside when the
    task was published."""
    waiting = PanelOrder.objects.filter(
        recruitment=recruitment, state=PanelOrder.State.WAITING, operation__in=["bonus", "screen_out"]
    )
    return sum((Decimal(amount) for amount in waiting.values_list("values__amount", flat=True) if amount), Decimal(0))


def _short_of_money(recruitment: Recruitment) -> Iterator[Alert]:
    funds, due = cached_funds(recruitment), unsent_payments_total(recruitment)
    currency = recruitment.currency or recruitment.study.currency
    if funds is not None and funds.currency in ("", currency) and funds.amount < due:
        yield Alert(
            "money",
            f"{due:.2f} {currency} are still to be paid, and the account holds {funds.amount:.2f}.",
            "Add money at the panel before you approve or pay: it refuses what it cannot pay.",
        )
