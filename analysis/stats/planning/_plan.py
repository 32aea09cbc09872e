"""The input and output of a planner."""

from dataclasses import dataclass, field
from typing import Any

from analysis.stats.arrays import validate_level
from analysis.stats.results import Record


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

    `power` of finding `effect` at `significance` / `tests`. `n` counts units (`unit`), `labels` the expected number of
    answers.
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
    detail: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
