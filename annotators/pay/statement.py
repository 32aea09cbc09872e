"""The pay statement on a person's own page, and pay per hour of arms and links. The statement reveals no other person and no condition."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db.models import Q, Sum

from annotators.models import Assignment, OutcomePay, PageVisit, Payment, Recruitment
from annotators.models.identity import get_person_id
from annotators.recruitment.channels import REGISTRY
from studies.figures import Axis, Frame, RangeBar, at, shortened
from studies.language import gettext
from studies.models import Study

from . import ledger
from .ledger import assignments_considered_for_pay, compute_amount_owed, payable_outcome, promises_for
from .promises import CENT, ZERO, Rule, get_pay_terms


@dataclass(frozen=True, slots=True)
class PayStatement:
    """The pay that a person reads on their own page. ``amount`` is 0 if the page said that this is not paid."""

    amount: Decimal
    currency: str
    payment_text: str
    is_share: bool
    sent: int


def pay_statement(assignment: Assignment, assumed_outcome: str = "") -> PayStatement | None:
    """Return this person's pay for how their work ended, or would end now with ``assumed_outcome``; None if nothing was
    promised.
    """
    recruitment = assignment.recruitment
    if recruitment is None or assignment.origin != Assignment.Origin.LIVE:
        return None
    # If a person found no place and got one later, only the work is paid.
    if (
        assignment.batch_id is None
        and not assignments_considered_for_pay(recruitment).filter(pk=assignment.pk).exists()
    ):
        return None
    outcome = (
        assumed_outcome
        if assumed_outcome and not assignment.submitted_at
        else payable_outcome(assignment, assignment.study)
    )
    terms = get_pay_terms(recruitment)
    if not outcome or (outcome != "complete" and terms.rules.keys().isdisjoint(promises_for(assignment, outcome))):
        return None
    n_sent = PageVisit.objects.filter(assignment=assignment, recorded_at__isnull=False).count()
    owed = compute_amount_owed(assignment, n_sent, terms, outcome)
    if not owed.reward:
        return None
    rule = terms.rules.get(outcome)
    return PayStatement(
        owed.amount,
        terms.currency,
        _payment_way_text(recruitment.channel, outcome),
        bool(rule and rule.rule == Rule.SHARE),
        n_sent,
    )


def _payment_way_text(channel: str, outcome: str) -> str:
    ways, name = REGISTRY[channel].pays_by, REGISTRY[channel].panel_name or REGISTRY[channel].label
    if outcome == "complete" and Payment.Way.APPROVAL in ways:
        # Translators: the pay. %(panel)s is the name of a panel, such as Prolific
        text = gettext("You receive it through %(panel)s, once the researchers approve your work there.")
    elif outcome == OutcomePay.Outcome.SCREENED_OUT and Payment.Way.SCREEN_OUT in ways:
        text = gettext("You receive it through %(panel)s.")
    elif Payment.Way.BONUS in ways:
        text = gettext("You receive it through %(panel)s, as a bonus or by approval.")
    else:
        text = gettext("You receive it from the panel or the people who invited you.")
    return text % {"panel": name}


def is_annotator_owed_on_withdrawal(assignment: Assignment) -> bool:
    """Return whether a person who leaves now is owed partial pay, so that their panel id is needed until it is paid."""
    same_person = {"annotator": assignment.annotator_id}
    if ledger.unpaid_payments().filter(
        assignment__annotator=assignment.annotator_id
    ).exists() or ledger.finished_assignments_awaiting_credit().filter(**same_person):
        return True
    assignments = Assignment.objects.filter(study=assignment.study_id, **same_person)
    paid = Payment.objects.filter(assignment__in=assignments, state=Payment.State.PAID, kind__in=Payment.COVERING)
    amount_by_assignment = dict(paid.order_by().values_list("assignment").annotate(Sum("amount")))
    parts = assignments.filter(Q(pk=assignment.pk) | Q(submitted_at__isnull=False))
    for part in parts.select_related("study", "recruitment", "batch__arm"):
        pay = pay_statement(part, "withdrawn")
        if pay is not None and pay.amount > amount_by_assignment.get(part.pk, ZERO):
            return True
    return False


def reason_id_retained_on_withdrawal(assignment: Assignment) -> str:
    """Return why the panel id of a leaving person is kept: "owed", "elsewhere" for another study, or "" if erased at
    once.
    """
    if assignment.recruitment_id is None or get_person_id(assignment.annotator) is None:
        return ""
    other_work = (
        ledger.unwithdrawn_assignments_before_id_erasure()
        .filter(annotator=assignment.annotator_id)
        .exclude(study=assignment.study_id)
    )
    return "owed" if is_annotator_owed_on_withdrawal(assignment) else "elsewhere" if other_work.exists() else ""


# Working time and hourly pay by arm, for the pay report and its figure. It reveals no outcome.


TENTH = Decimal("0.1")
# With fewer people, a median is not reliable enough for a warning.
MIN_PEOPLE_TO_WARN = 5
WIDTH, ROW, LEFT, RIGHT, TOP = 420, 30, 96, 406, 22


@dataclass(frozen=True, slots=True)
class Quartiles:
    q1: Decimal
    median: Decimal
    q3: Decimal


@dataclass(frozen=True, slots=True)
class ArmPay:
    """People who submitted in time.

    ``without_active_time``: people without active seconds, for whom start to end is used. ``below_wage``: people below
    the declared hourly wage. ``in_another_currency``: people paid in another currency; their hourly pay is in no figure.
    """

    name: str
    n: int
    minutes: Quartiles | None
    hourly: Quartiles | None
    without_active_time: int = 0
    below_wage: int | None = None
    in_another_currency: int = 0

    @property
    def in_study_currency(self) -> int:
        """Return the number of people with a known hourly pay."""
        return self.n - self.in_another_currency


def quartiles(values: Sequence[Decimal], rounding_step: Decimal) -> Quartiles | None:
    """Compute quartiles by linear interpolation between ordered values.

    >>> quartiles([Decimal(1), Decimal(2), Decimal(3), Decimal(4)], Decimal("0.01"))
    Quartiles(q1=Decimal('1.75'), median=Decimal('2.50'), q3=Decimal('3.25'))
    """
    if not values:
        return None
    ordered = sorted(values)

    def at(quarter: int) -> Decimal:
        index, rest = divmod((len(ordered) - 1) * quarter, 4)
        after = ordered[min(index + 1, len(ordered) - 1)]
        return (ordered[index] + (after - ordered[index]) * rest / 4).quantize(rounding_step, ROUND_HALF_UP)

    return Quartiles(at(1), at(2), at(3))


@dataclass(frozen=True, slots=True)
class _Person:
    """One person's time and pay. ``pay`` is None if it is in another currency than the study's."""

    arm: int | None
    seconds: int
    is_counted: bool
    pay: Decimal | None


def pay_by_arm(study: Study) -> list[ArmPay]:
    """Return the rows by arm, in order, with a constant number of queries."""
    return _all_arm_pays(study, _load_people(study))


def pay_overall_and_by_arm(study: Study) -> tuple[ArmPay, list[ArmPay]]:
    """Return the figures for everyone, and by arm."""
    people = _load_people(study)
    return _arm_pay("all", people, study.wage_per_hour), _all_arm_pays(study, people)


def typical_time_and_pay(
    study: Study, recruitment: Recruitment | None = None
) -> tuple[Quartiles | None, Quartiles | None]:
    """Return the quartiles of the minutes and of the pay of a person, of all people or of those of one link."""
    people = _load_people(study, **({"recruitment": recruitment} if recruitment else {}))
    pays = [person.pay for person in people if person.pay is not None]
    return quartiles([Decimal(person.seconds) / 60 for person in people], TENTH), quartiles(pays, CENT)


def _load_people(study: Study, **filters: Any) -> list[_Person]:
    """Return each person's pay: the ledger's amounts with bonuses; otherwise the offer, if the work is not rejected."""
    submitted = Assignment.objects.filter(
        study=study,
        origin=Assignment.Origin.LIVE,
        submitted_at__isnull=False,
        is_late=False,
        started_at__isnull=False,
        **filters,
    )
    payments = Payment.objects.filter(assignment__in=submitted).exclude(
        state__in=[Payment.State.FAILED, Payment.State.CANCELLED]
    )
    covering, on_top = Q(kind__in=Payment.COVERING), Q(kind=Payment.Kind.BONUS)
    sums = payments.order_by().values_list("assignment")
    paid = {
        pk: (promised or ZERO, bonus or ZERO)
        for pk, promised, bonus in sums.annotate(
            promised=Sum("amount", filter=covering), bonus=Sum("amount", filter=on_top)
        )
    }
    rejected = ledger.rejected_assignment_ids(submitted)
    rows = (
        submitted.order_by()
        .annotate(active=Sum("visits__active_seconds"))
        .values_list(
            "pk", "batch__arm", "started_at", "submitted_at", "active", "recruitment__currency", "recruitment__reward", "batch__arm__reward"
        )
    )  # fmt: skip
    people = []
    for pk, arm, start, end, active, currency, *rewards in rows:
        seconds = active or max(1, round((end - start).total_seconds()) if start and end else 0)
        offered = next((reward for reward in (*rewards, study.reward) if reward is not None), ZERO)
        covered, bonus = paid.get(pk, (ZERO, ZERO))
        pay = bonus + (covered if pk in rejected else max(covered, offered))
        people.append(
            _Person(arm, seconds, bool(active), pay if (currency or study.currency) == study.currency else None)
        )
    return people


def _all_arm_pays(study: Study, people: Sequence[_Person]) -> list[ArmPay]:
    by_arm: dict[int | None, list[_Person]] = {}
    for person in people:
        by_arm.setdefault(person.arm, []).append(person)
    return [_arm_pay(arm.name, by_arm.get(arm.pk, []), study.wage_per_hour) for arm in study.arms.order_by("pk")]


def _arm_pay(name: str, people: Sequence[_Person], wage: Decimal | None) -> ArmPay:
    hourly = [person.pay * 3600 / person.seconds for person in people if person.pay is not None]
    return ArmPay(
        name,
        len(people),
        quartiles([Decimal(person.seconds) / 60 for person in people], TENTH),
        quartiles(hourly, CENT),
        sum(not person.is_counted for person in people),
        sum(value < wage for value in hourly) if wage else None,
        len(people) - len(hourly),
    )


def low_wage_warning(study: Study, arms: Sequence[ArmPay]) -> str:
    """Return a warning while people are still coming; '' if pay is as declared."""
    if not study.wage_per_hour:
        return ""
    low = [
        arm
        for arm in arms
        if arm.hourly and arm.in_study_currency >= MIN_PEOPLE_TO_WARN and arm.hourly.median < study.wage_per_hour
    ]
    if not low:
        return ""
    medians = ", ".join(
        f"{arm.hourly.median} {study.currency}{f' in {arm.name}' if len(arms) > 1 else ''}" for arm in low if arm.hourly
    )
    return (
        f"Half of the people earn less per hour than the declared {study.wage_per_hour} {study.currency}: "
        f"{medians}, median."
    )


@dataclass(frozen=True, slots=True)
class HourlyPayChart:
    """Hourly pay of each arm: its quartile range, a mark at the median, and a line at the declared wage."""

    frame: Frame
    bars: tuple[RangeBar, ...]
    wage: str


def build_hourly_pay_chart(arms: Sequence[ArmPay], declared_wage: Decimal | None) -> HourlyPayChart | None:
    rows = [(arm.name, arm.hourly) for arm in arms if arm.hourly]
    if not rows:
        return None
    most = max([*(hourly.q3 for _, hourly in rows), declared_wage or ZERO, Decimal(1)])
    across = Axis([0.0, float(most)], LEFT, RIGHT)
    bottom = TOP + ROW * len(rows)
    bars = tuple(
        RangeBar(
            shortened(name, 14),
            at(TOP + ROW * n + ROW / 2),
            *(at(across.place(float(value))) for value in (hourly.q1, hourly.median, hourly.q3)),
        )
        for n, (name, hourly) in enumerate(rows)
    )
    frame = Frame(WIDTH, bottom + 26, LEFT, RIGHT, TOP, bottom, across.ticks, has_columns=True)
    return HourlyPayChart(frame, bars, at(across.place(float(declared_wage))) if declared_wage else "")
