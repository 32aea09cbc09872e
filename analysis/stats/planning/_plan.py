"""The input and output of a planner."""

import math
from dataclasses import dataclass, field
from typing import Any

from analysis.stats.arrays import validate_level
from analysis.stats.results import Record, ResultWarning


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Options of a test with an exact power.

    `significance` of the test is divided by `tests` (the first step of a Holm family). `wanted` is the power.
    """

    significance: float = 0.05
    tests: int = 1
    wanted: float = 0.8

    def __post_init__(self) -> None:
        validate_level(self.significance)
        validate_level(self.wanted)
        if self.tests < 1:
            raise ValueError(f"tests: {self.tests} is less than 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Record):
    """The result of a design under its assumptions.

    `power` of finding `effect` at `significance` / `tests`. `detectable` is the smallest effect found with probability
    `wanted`, None if not searched or not found. `width` is the expected width of the 1 - significance interval. `n`
    counts units (`unit`), `labels` the paid answers (expected, if the study may stop early).
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
    detectable: float | None = None
    width: float | None = None
    warnings: tuple[ResultWarning, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def build_plan(
    options: PlanOptions, *, method: str, power: float, labels: float, settings: dict[str, Any], **plan_fields: Any
) -> Plan:
    """Return a plan with the level and the wanted power of the options."""
    return Plan(
        method=method,
        power=power,
        labels=float(labels),
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
