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

from . import Busy, Charged, Funds, Refused, Service, Unclear
from .reconcile import LEFT, counts
from .rounds import places_taken

MOST_UNMATCHED, MOST_RETURNED = 0.05, 0.25
# One of ten is no rate yet.
LEAST_CASES, LEAST_CAME = 2, 8
QUIET = timedelta(hours=2)
DECIDES_WITHIN = timedelta(hours=12)
FUNDS_KEPT = 2 * 3600
COST_KEPT = 90 * 86400  # it is shown with its moment, and panels are not asked for ever
Released = Assignment.Released


@dataclass(frozen=True, slots=True)
class Alert:
    """``words``: what was found; ``advice``: what to do."""

    kind: str
    words: str
    advice: str


def alerts(recruitment: Recruitment) -> list[Alert]:
    """What stands out at this link's panel now. Empty where all is well, or nothing is known."""
    checks = (_unmatched, _returned, _quiet, _undecided, _short_of_money)
    found = [alert for check in checks for alert in check(recruitment)]
    for _, further in collect_alerts.send(Recruitment, recruitment=recruitment):
        found += further
    return found


def _unmatched(recruitment: Recruitment) -> Iterator[Alert]:
    found = counts(recruitment)
    of = sum(found.values()) - found.get("working", 0) - found.get("left", 0)
    advice = {
        "orphan": "Look at how far they came, and whether the link or a page fails: try it yourself.",
        "unsent": "Their way back fails: open your own last page, and check the code or the return address at the panel.",
    }
    if REGISTRY[recruitment.channel].credits_who_finish:
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
    people = {annotator: state in LEFT for annotator, state in rows.order_by("pk")}
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
    if not has_place or (tasks["n"] and places_taken(recruitment).taken >= tasks["n"]):
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
    soon = timezone.now() + DECIDES_WITHIN
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


def note_funds(recruitment: Recruitment, service: Service) -> None:
    """Remember what the panel says is there, for the next hours. A panel that does not say is no reason to stop."""
    try:
        funds = service.funds()
    except (Refused, Unclear, Busy):
        return
    if funds is not None:
        cache.set(_funds_key(recruitment), (str(funds.amount), funds.currency), FUNDS_KEPT)


def _funds_key(recruitment: Recruitment) -> str:
    return f"heval:panel:funds:{recruitment.pk}"


def funds_of(recruitment: Recruitment) -> Funds | None:
    """What the panel said lately; None where it said nothing."""
    kept = cache.get(_funds_key(recruitment))
    return Funds(Decimal(kept[0]), kept[1]) if kept else None


def note_cost(recruitment: Recruitment, service: Service, tasks: Iterable[str]) -> None:
    """Remember what the panel says it has taken for these tasks, and when it said so. Of a part of them alone there is no sum."""
    try:
        told = [service.cost(task) for task in tasks]
    except (Refused, Unclear, Busy):
        return
    known = [one for one in told if one is not None]
    currencies = {one.currency for one in known}
    if len(currencies) != 1 or len(known) < len(told):
        return
    sums = (sum(getattr(one, name) for one in known) for name in ("rewards", "bonuses", "tax"))
    cache.set(_cost_key(recruitment), (*map(str, sums), currencies.pop(), timezone.now().isoformat()), COST_KEPT)


def _cost_key(recruitment: Recruitment) -> str:
    return f"heval:panel:cost:{recruitment.pk}"


def charged_of(recruitment: Recruitment) -> tuple[Charged, datetime] | None:
    """What the panel said last, and when; None where it said nothing."""
    kept = cache.get(_cost_key(recruitment))
    return (Charged(*map(Decimal, kept[:3]), kept[3]), datetime.fromisoformat(kept[4])) if kept else None


def liability(recruitment: Recruitment) -> Decimal:
    """What is still to be taken from the account: bonuses and screen-outs that wait to be sent. The rewards were put aside when the
    task was published."""
    waiting = PanelOrder.objects.filter(
        recruitment=recruitment, state=PanelOrder.State.WAITING, operation__in=["bonus", "screen_out"]
    )
    return sum((Decimal(amount) for amount in waiting.values_list("values__amount", flat=True) if amount), Decimal(0))


def _short_of_money(recruitment: Recruitment) -> Iterator[Alert]:
    funds, due = funds_of(recruitment), liability(recruitment)
    currency = recruitment.currency or recruitment.study.currency
    if funds is not None and funds.currency in ("", currency) and funds.amount < due:
        yield Alert(
            "money",
            f"{due:.2f} {currency} are still to be paid, and the account holds {funds.amount:.2f}.",
            "Add money at the panel before you approve or pay: it refuses what it cannot pay.",
        )
