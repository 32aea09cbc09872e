"""The input and output of a planner."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from analysis.stats.arrays import validate_level
from analysis.stats.bootstrap import monte_carlo_error
from analysis.stats.cost import Cost, study_cost
from analysis.stats.results import Record, ResultWarning

SECONDS_AN_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices(Record):
    """Prices of a label, see `cost.study_cost`. `seconds` per label is None if unknown."""

    pay: float
    fee_rate: float = 0.2
    overhead: float = 0.0
    test_share: float = 0.0
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Options of every planner.

    `significance` of the test is divided by `tests` (the first step of a Holm family). `wanted` is the power, `runs`
    the number of simulations. `detectable` says whether to search for the smallest effect by simulation (ten more
    simulations). `prices` are the prices. `progress(done, total)` is called after each block of runs.
    `is_cancelled()` is called before each block; if True, `SimulationCancelled` is raised.
    """

    significance: float = 0.05
    tests: int = 1
    wanted: float = 0.8
    runs: int = 1000
    find_detectable: bool = False
    prices: Prices | None = None
    progress: Callable[[int, int], None] | None = None
    is_cancelled: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        validate_level(self.significance)
        validate_level(self.wanted)
        if self.tests < 1:
            raise ValueError(f"tests: {self.tests} is less than 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Record):
    """The result of a design under its assumptions.

    `power` of finding `effect` at `significance` / `tests`. `power_error` is its Monte-Carlo standard error, None if
    exact. `detectable` is the smallest effect found with probability `wanted`, None if not searched or not found.
    `width` is the expected width of the 1 - significance interval. `n` counts units (`unit`), `labels` the paid
    answers (expected, if the study may stop early). `hours` are annotators' working hours.
    """

    protocol: str
    estimand: str
    method: str
    unit: str
    n: int
    effect: float
    power: float
    significance: float
    tests: int
    wanted: float
    labels: float
    power_error: float | None = None
    detectable: float | None = None
    width: float | None = None
    cost: Cost | None = None
    hours: float | None = None
    runs: int | None = None
    warnings: tuple[ResultWarning, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def build_plan(
    options: PlanOptions, *, method: str, power: float, labels: float, settings: dict[str, Any], **plan_fields: Any
) -> Plan:
    """Return a plan with its costs and, if simulated, its Monte-Carlo error."""
    is_simulated = method == "monte_carlo"
    bill, hours = None, None
    if options.prices is not None:
        prices = options.prices
        bill = study_cost(
            math.ceil(labels - 1e-9),
            pay=prices.pay,
            fee_rate=prices.fee_rate,
            overhead=prices.overhead,
            test_share=prices.test_share,
        )
        hours = None if prices.seconds is None else bill.n_labels * prices.seconds / SECONDS_AN_HOUR
    return Plan(
        method=method,
        power=power,
        power_error=monte_carlo_error(power, options.runs) if is_simulated else None,
        runs=options.runs if is_simulated else None,
        labels=float(labels),
        cost=bill,
        hours=hours,
        significance=options.significance,
        tests=options.tests,
        wanted=options.wanted,
        settings=settings,
        **plan_fields,
    )


def n_to_recruit(n: int, excluded_share: float) -> float:
    """Return how many annotators must be paid so that `n` remain."""
    if not 0 <= excluded_share < 1:
        raise ValueError(f"excluded_share: {excluded_share!r} is not in 0..1")
    return float(math.ceil(n / (1 - excluded_share) - 1e-9))


def require_positive(value: float, name: str) -> float:
    """Return `value`. Raise ValueError unless it is a positive number."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}: {value!r} is not a positive number")
    return value
