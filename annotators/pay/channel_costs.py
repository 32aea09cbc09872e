"""What earlier links of each channel really cost: the panel's fees, and the pay of people who were screened out."""

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Q, QuerySet, Sum

from annotators.models import Assignment, Payment, Recruitment
from annotators.recruitment.panels.alerts import cached_fees_by_link
from studies.models import Study

from .promises import ZERO

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
