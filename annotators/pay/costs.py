"""The past and expected cost of a link, with the panel's fees."""

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Q, Sum

from annotators.models import Assignment, Payment, Recruitment
from annotators.places.monitor import progress_by_study
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.links import recruitment_link_state
from annotators.recruitment.panels import Fee
from annotators.recruitment.panels.alerts import cached_fees
from studies.models import Study

from . import ledger
from .promises import ZERO, sorted_arm_rewards

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
