"""What the work takes and what it comes to an hour, by arm: the pay report's first half, and its figure. Tells no outcome."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from django.db.models import Q, Sum

from annotators.models import Assignment, Payment
from studies.models import Study

from . import ledger
from .promises import CENT, ZERO

TENTH = Decimal("0.1")
# A median of fewer people is no reason to be alarmed.
MIN_PEOPLE_TO_WARN = 5
WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 420, 30, 96, 14, 22, 26


@dataclass(frozen=True, slots=True)
class Quartiles:
    low: Decimal
    median: Decimal
    high: Decimal


@dataclass(frozen=True, slots=True)
class ArmPay:
    """Those who submitted in time. ``uncounted``: whose page's script counted no active second, so that start to end stands for it;
    ``under``: how many came to less an hour than was declared; ``elsewhere``: how many are paid in another currency than the study's,
    whose pay an hour is in no figure here."""

    name: str
    n: int
    minutes: Quartiles | None
    hourly: Quartiles | None
    without_active_time: int = 0
    below_wage: int | None = None
    in_another_currency: int = 0

    @property
    def in_study_currency(self) -> int:
        """Of so many is the pay an hour told."""
        return self.n - self.in_another_currency


def quartiles(values: Sequence[Decimal], step: Decimal) -> Quartiles | None:
    """The quarter points, by straight lines between ordered values.

    >>> quartiles([Decimal(1), Decimal(2), Decimal(3), Decimal(4)], Decimal("0.01"))
    Quartiles(low=Decimal('1.75'), median=Decimal('2.50'), high=Decimal('3.25'))
    """
    if not values:
        return None
    ordered = sorted(values)

    def at(quarter: int) -> Decimal:
        place, rest = divmod((len(ordered) - 1) * quarter, 4)
        after = ordered[min(place + 1, len(ordered) - 1)]
        return (ordered[place] + (after - ordered[place]) * rest / 4).quantize(step, ROUND_HALF_UP)

    return Quartiles(at(1), at(2), at(3))


@dataclass(frozen=True, slots=True)
class _Person:
    """``pay`` is None where it came in another currency than the study's."""

    arm: int | None
    seconds: int
    is_counted: bool
    pay: Decimal | None


def pay_by_arm(study: Study) -> list[ArmPay]:
    """By arm, in its order; few reads, whatever the number of people."""
    return _arms(study, _people(study))


def pay_overall_and_by_arm(study: Study) -> tuple[ArmPay, list[ArmPay]]:
    """Of everybody, and by arm."""
    people = _people(study)
    return _arm("all", people, study.wage_per_hour), _arms(study, people)


def _people(study: Study) -> list[_Person]:
    """What was written down for somebody counts, bonuses too; before that, what their offer names, if nobody has rejected their work."""
    done = Assignment.objects.filter(
        study=study, origin=Assignment.Origin.LIVE, submitted_at__isnull=False, is_late=False, started_at__isnull=False
    )
    stands = Payment.objects.filter(assignment__in=done).exclude(
        state__in=[Payment.State.FAILED, Payment.State.CANCELLED]
    )
    covering, on_top = Q(kind__in=Payment.COVERING), Q(kind=Payment.Kind.BONUS)
    sums = stands.order_by().values_list("assignment")
    paid = {
        pk: (promised or ZERO, bonus or ZERO)
        for pk, promised, bonus in sums.annotate(
            promised=Sum("amount", filter=covering), bonus=Sum("amount", filter=on_top)
        )
    }
    rejected = ledger.rejected_assignment_ids(done)
    rows = (
        done.order_by()
        .annotate(active=Sum("visits__active_seconds"))
        .values_list(
            "pk", "batch__arm", "started_at", "submitted_at", "active", "recruitment__currency", "recruitment__reward", "batch__arm__reward"
        )
    )  # fmt: skip
    found = []
    for pk, arm, start, end, active, currency, *rewards in rows:
        seconds = active or max(1, round((end - start).total_seconds()))
        offered = next((one for one in (*rewards, study.reward) if one is not None), ZERO)
        covered, bonus = paid.get(pk, (ZERO, ZERO))
        pay = bonus + (covered if pk in rejected else max(covered, offered))
        found.append(
            _Person(arm, seconds, bool(active), pay if (currency or study.currency) == study.currency else None)
        )
    return found


def _arms(study: Study, people: Sequence[_Person]) -> list[ArmPay]:
    by_arm: dict[int | None, list[_Person]] = {}
    for one in people:
        by_arm.setdefault(one.arm, []).append(one)
    return [_arm(arm.name, by_arm.get(arm.pk, []), study.wage_per_hour) for arm in study.arms.order_by("pk")]


def _arm(name: str, people: Sequence[_Person], wage: Decimal | None) -> ArmPay:
    hourly = [one.pay * 3600 / one.seconds for one in people if one.pay is not None]
    return ArmPay(
        name,
        len(people),
        quartiles([Decimal(one.seconds) / 60 for one in people], TENTH),
        quartiles(hourly, CENT),
        sum(not one.is_counted for one in people),
        sum(one < wage for one in hourly) if wage else None,
        len(people) - len(hourly),
    )


def wage_warning(study: Study, arms: Sequence[ArmPay]) -> str:
    """What a researcher must know while people are still coming; '' where pay is as declared."""
    if not study.wage_per_hour:
        return ""
    low = [
        one
        for one in arms
        if one.hourly and one.in_study_currency >= MIN_PEOPLE_TO_WARN and one.hourly.median < study.wage_per_hour
    ]
    if not low:
        return ""
    said = ", ".join(
        f"{one.hourly.median} {study.currency}{f' in {one.name}' if len(arms) > 1 else ''}" for one in low if one.hourly
    )
    return f"Half of the people come to less an hour than the {study.wage_per_hour} {study.currency} that the study declares: {said}, median."


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    y: float
    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class HourlyPayChart:
    """Pay an hour in the pixels of its box: from quarter to quarter, a mark at the median, the declared wage as a line."""

    bars: tuple[Bar, ...]
    wage: float | None
    ticks: tuple[tuple[float, str], ...]
    height: int
    width, left, right = WIDTH, LEFT, WIDTH - RIGHT

    @property
    def bottom(self) -> int:
        return self.height - BOTTOM


def chart_of(arms: Sequence[ArmPay], wage: Decimal | None) -> HourlyPayChart | None:
    shown = [(one.name, one.hourly) for one in arms if one.hourly]
    if not shown:
        return None
    most = max([*(hourly.high for _, hourly in shown), wage or ZERO, Decimal(1)])
    step = next(one for power in range(12) for n in (1, 2, 5) if most / (one := Decimal(n * 10**power)) <= 6)

    def across(value: Decimal) -> float:
        return round(float(LEFT + (WIDTH - RIGHT - LEFT) * value / (most * Decimal("1.05"))), 1)

    bars = tuple(
        Bar(name[:14], TOP + ROW * n + ROW / 2, across(one.low), across(one.median), across(one.high))
        for n, (name, one) in enumerate(shown)
    )
    ticks = tuple((across(step * n), f"{step * n}") for n in range(int(most / step) + 1))
    return HourlyPayChart(bars, across(wage) if wage else None, ticks, TOP + ROW * len(shown) + BOTTOM)
