"""The past and expected cost of a link, with the panel's fees."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Q, QuerySet, Sum

from annotators.models import Assignment, PanelSubmission, Payment, Recruitment
from annotators.places.monitor import progress_by_study
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.links import recruitment_link_state
from annotators.recruitment.panels import Fee
from annotators.recruitment.panels.alerts import cached_fees, cached_fees_by_link
from annotators.recruitment.panels.reconcile import finished_assignments_missing_at_panel, submissions_with_match_status
from studies.models import Study

from . import ledger
from .promises import ZERO, sorted_arm_rewards

# What earlier links of each channel really cost: the panel's fees, and the pay of people who were screened out.


# Links that are read, the newest first.
MOST_LINKS = 40
AT_PANEL = (Payment.Way.APPROVAL, Payment.Way.BONUS, Payment.Way.SCREEN_OUT)


@dataclass(slots=True)
class ChannelCost:
    """The sums over the links of a channel. Fees are those of links whose panel has reported them in this currency.

    ``paid_with_fees``: what the panel paid for these links. ``people``: those who were paid. ``screened_out``: people who were
    screened out and paid ``screened_out_pay`` in all.
    """

    links: int = 0
    people: int = 0
    links_with_fees: int = 0
    people_with_fees: int = 0
    paid_with_fees: Decimal = ZERO
    fees: Decimal = ZERO
    screened_out: int = 0
    screened_out_pay: Decimal = ZERO

    @property
    def fee_rate(self) -> float | None:
        """Return the fees with tax as a share of the pay, or None if no panel has reported them."""
        return float(self.fees / self.paid_with_fees) if self.links_with_fees and self.paid_with_fees else None

    @property
    def screen_out_pay(self) -> float | None:
        """Return the mean pay of a screened-out person, or None without one."""
        return float(self.screened_out_pay / self.screened_out) if self.screened_out else None


def channel_costs(studies: QuerySet[Study], currency: str) -> dict[str, ChannelCost]:
    """Return what live people of these studies were paid in this currency, by channel. As many queries with many links as with one."""
    links = Recruitment.objects.filter(study__in=studies).order_by("-pk")
    channel_by_link = dict(links.values_list("pk", "channel")[:MOST_LINKS])
    is_screened = Q(assignment__released_reason=Assignment.Released.SCREENED_OUT)
    rows = (
        Payment.objects.filter(
            assignment__recruitment__in=channel_by_link,
            assignment__origin=Assignment.Origin.LIVE,
            state=Payment.State.PAID,
            currency=currency,
        )
        .order_by()
        .values_list("assignment__recruitment")
        .annotate(
            people=Count("assignment", distinct=True),
            at_panel=Sum("amount", filter=Q(way__in=AT_PANEL), default=ZERO),
            screened=Count("assignment", distinct=True, filter=is_screened),
            screened_pay=Sum("amount", filter=is_screened, default=ZERO),
        )
    )
    fees_by_link = cached_fees_by_link(channel_by_link)
    costs: dict[str, ChannelCost] = defaultdict(ChannelCost)
    for link, people, at_panel, screened, screened_pay in rows:
        cost = costs[channel_by_link[link]]
        cost.links += 1
        cost.people += people
        cost.screened_out += screened
        cost.screened_out_pay += screened_pay
        reported = fees_by_link.get(link)
        if reported is not None and reported[0].currency == currency and at_panel:
            cost.links_with_fees += 1
            cost.people_with_fees += people
            cost.paid_with_fees += at_panel
            cost.fees += reported[0].rewards + reported[0].bonuses + reported[0].tax
    return dict(costs)


State = Payment.State


@dataclass(frozen=True, slots=True)
class LinkCost:
    """The amounts of a link.

    ``due``: due, not ordered. ``unsettled``: owed since the last settlement and not recorded yet; negative if more is
    recorded than owed. ``to_come``: for people who still have to finish, at the highest reward. ``fees``: as reported
    by the panel so far; empty if unknown. ``is_lower_bound``: further fees are
    possible, or the number of people is unknown.
    """

    currency: str
    paid: Decimal
    ordered: Decimal
    due: Decimal
    failed: int
    people_to_come: int
    to_come: Decimal
    fees: tuple[Fee, ...]
    is_lower_bound: bool = False
    unsettled: Decimal = ZERO

    @property
    def total(self) -> Decimal:
        known_total = self.paid + self.ordered + self.due + self.unsettled
        return known_total + self.to_come + sum((fee.amount for fee in self.fees), ZERO)


def cached_link_fees(recruitment: Recruitment, currency: str) -> tuple[Fee, ...]:
    """Return the fees last reported by the panel; amounts in another currency are left out."""
    cached = cached_fees(recruitment)
    if cached is None or cached[0].currency != currency:
        return ()
    fees, at = cached
    source = f"{REGISTRY[recruitment.channel].label}, on {at:%Y-%m-%d %H:%M} UTC, total so far"
    lines = (("on rewards", fees.rewards), ("on bonuses", fees.bonuses), ("tax on these fees", fees.tax))
    return tuple(Fee(label, amount, source) for label, amount in lines if amount)


def compute_link_cost(recruitment: Recruitment) -> LinkCost:
    study = recruitment.study
    rows = Payment.objects.filter(assignment__recruitment=recruitment).order_by().values_list("state")
    sums = {state: (n, amount) for state, n, amount in rows.annotate(n=Count("pk"), amount=Sum("amount"))}
    reward = sorted_arm_rewards(recruitment, recruitment.reward)[-1]
    may_come = count_people_yet_to_finish(recruitment)
    to_come = may_come or 0
    channel = REGISTRY.get(recruitment.channel)
    foreseen = ledger.preview_payments_after_ledger_update(recruitment) if channel else []
    currency = recruitment.currency or study.currency
    fees = cached_link_fees(recruitment, currency) if channel else ()
    no_payments = (0, ZERO)
    paid, ordered, due = (sums.get(state, no_payments)[1] for state in (State.PAID, State.ORDERED, State.DUE))
    return LinkCost(
        currency, paid, ordered, due, sums.get(State.FAILED, no_payments)[0], to_come, reward * to_come, fees,
        is_lower_bound=bool(channel and channel.pays_by) or may_come is None,
        unsettled=ledger.total_amount(foreseen) - (paid + ordered + due) if channel else ZERO,
    )  # fmt: skip


def count_people_yet_to_finish(recruitment: Recruitment) -> int | None:
    """Return how many people may still finish by this link; None if no target is set.

    If the link accepts no new people, only those at work count. People of other links fill the same study.
    """
    study = recruitment.study
    counts = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE).aggregate(
        done=Count("pk", filter=Q(submitted_at__isnull=False)),
        at_work=Count("pk", filter=Q(released_at=None, submitted_at=None)),
    )
    n_done, n_at_work = counts["done"], counts["at_work"]
    if study.state == Study.State.CLOSED:
        return 0
    if recruitment_link_state(study, recruitment).is_over:
        return n_at_work
    limits = [recruitment.wanted - n_done] if recruitment.wanted else []
    if study.target_n:
        progress = progress_by_study([study.pk]).get(study.pk)
        limits.append(study.target_n - (progress.submitted if progress else 0))
    return max(n_at_work, min(limits)) if limits else None


# Compensation for finished work that the panel never received: its reward is paid by hand.


COMPENSATION_REASON = "The work was done and did not reach the panel."


def rewards_unpayable_by_approval(recruitment: Recruitment) -> QuerySet[Payment]:
    """Return rewards that only an approval would pay, for people who finished here but whose work the panel does not
    have.
    """
    assignment_ids = [assignment.pk for assignment, _ in finished_assignments_missing_at_panel(recruitment)]
    submissions = submissions_with_match_status(recruitment).filter(
        standing__in=["unsent", "left_after_work", "surplus"], assignment__isnull=False
    )
    assignment_ids += submissions.values_list("assignment", flat=True)
    arrived = PanelSubmission.objects.filter(recruitment=recruitment, state__in=ledger.REACHED_PANEL).values(
        "assignment"
    )
    rows = ledger.recruitment_payments(recruitment).filter(
        assignment__in=assignment_ids, state=Payment.State.DUE, way=Payment.Way.APPROVAL
    )
    rows = rows.exclude(assignment__in=arrived.filter(assignment__isnull=False))
    return rows.select_related("assignment").order_by("pk")


def add_manual_payments_for_unsent_rewards(recruitment: Recruitment, payment_pks: Collection[int], by) -> int:
    """Record the named unsent rewards as due by hand. Return how many; no other payment changes."""
    extras = [
        ledger.ExtraPayment(row.assignment, row.amount, COMPENSATION_REASON)
        for row in rewards_unpayable_by_approval(recruitment).filter(pk__in=payment_pks)
    ]
    return ledger.add_extra_payments(recruitment, extras, Payment.Kind.COMPENSATION, by)
