"""The frozen records that every statistic returns, and their JSON form.

All numbers of a report have one form. It says what was estimated (`estimand`) and over what (`n` counts units,
`unit` names them), with an interval, a test and an effect size. An undefined number has a `status` and a `reason`
instead. NaN and infinity never leave this module.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from analysis.stats.confidence import ConfidenceCurve

SCHEMA = "heval.analysis/1"
STATUSES = (
    "ok",
    "no_data",
    "n_lt_2",
    "zero_variance",
    "separation",
    "not_identified",
    "not_applicable",
    "failed",
)
MODES = ("recommended", "paper")
SEVERITIES = ("info", "warn", "block")


class Record:
    """Base of all results: a frozen dataclass with all its fields in the JSON.

    A field with a leading underscore is internal and not in the JSON.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-safe dict; see `json_safe`."""
        return {name: json_safe(getattr(self, name)) for name in self.__dataclass_fields__ if not name.startswith("_")}


@dataclass(frozen=True, slots=True)
class ResultWarning(Record):
    """A warning about a result; severity `block` forbids a claim based on it."""

    code: str
    severity: str = "warn"
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity: {self.severity!r} is not one of {', '.join(SEVERITIES)}")


@dataclass(frozen=True, slots=True)
class Interval(Record):
    """A confidence interval (or, for the Bayesian bootstrap, a credible one) on the scale of the estimate.

    `method` names the method. `clipped` says that an end was cut at the edge of the scale.
    """

    level: float
    low: float
    high: float
    method: str
    clipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisTest(Record):
    """A test in scipy's terms. `multiplicity.adjust_pvalues_and_intervals_of_family` sets `pvalue_adjusted` and the fields after it."""

    name: str
    null: float | None
    statistic: float | None
    pvalue: float
    df: float | None = None
    alternative: str = "two-sided"
    pvalue_adjusted: float | None = None
    adjust: str | None = None
    family: str | None = None
    family_size: int | None = None
    stars: str | None = None
    star_scheme: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.pvalue <= 1:
            raise ValueError(f"pvalue: {self.pvalue!r} is not in 0..1; an undefined test is a status, not a number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect(Record):
    """A standardised effect size; `low` and `high` bound `value`, or are None if they are undefined."""

    name: str
    value: float
    hedges_g: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None


@dataclass(frozen=True, slots=True)
class AnswersBehind:
    """The answers behind an estimate, one a row, and how to compute it again from some of them.

    `annotators`, and `items` if they are a sample too, are labels (n_rows,). `influences` returns, for each row, its share of
    the estimate's deviation: the estimate changes by minus their sum, to first order, without a whole annotator; and the same
    for a row that is left out alone. They differ if the other answers of its annotator take over its weight. `refit` returns
    the same estimate, about the same population, from the rows that a mask keeps.
    """

    annotators: npt.NDArray[Any]
    items: npt.NDArray[Any] | None
    influences: Callable[[], tuple[FloatArray, FloatArray]]
    refit: Callable[[BoolArray], "Estimate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Record):
    """One number of a report with everything needed to print it, to judge it and to compute it again.

    `n` counts units (`unit` names them), `n_clusters` the clusters behind the standard error, `n_rows` the answers
    used. An estimate with a status other than "ok" has no test, but it can have a value and a valid interval.
    `interval` belongs to the unadjusted p-value. `interval_adjusted` belongs to the adjusted one: all intervals of the
    family contain their true values at the stated level jointly.
    `detail` has further plain numbers (counts, shares, components) under names that depend on the analysis.

    >>> estimate = Estimate(analysis="demo", estimand="mean", unit="annotator", n=0, status="no_data", reason="empty")
    >>> estimate.as_dict()["estimate"] is None
    True
    """

    analysis: str
    estimand: str
    unit: str
    n: int
    mode: str = "recommended"
    status: str = "ok"
    reason: str = ""
    n_clusters: int | None = None
    n_rows: int | None = None
    estimate: float | None = None
    interval: Interval | None = None
    interval_adjusted: Interval | None = None
    test: HypothesisTest | None = None
    effect: Effect | None = None
    sensitivity: tuple["Estimate", ...] = ()
    warnings: tuple[ResultWarning, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    # The curve behind interval and test (`analysis.stats.confidence`), for other levels and for equivalence tests.
    _curve: "ConfidenceCurve | None" = field(default=None, repr=False, compare=False)
    # The answers behind the estimate, to find how few of them it rests on (`analysis.stats.removals`).
    _answers: AnswersBehind | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status: {self.status!r} is not one of {', '.join(STATUSES)}")
        if self.mode not in MODES:
            raise ValueError(f"mode: {self.mode!r} is not one of {', '.join(MODES)}")
        if self.status != "ok" and self.test is not None:
            raise ValueError(f"test: an estimate with status {self.status} has no test")
        if self.interval_adjusted is not None and (self.test is None or self.test.pvalue_adjusted is None):
            raise ValueError("interval_adjusted: an adjusted interval belongs to an adjusted p-value")
        if self.status != "ok" and not self.reason:
            raise ValueError(f"reason: status {self.status} must be explained")
        if self.estimate is not None and not math.isfinite(self.estimate):
            raise ValueError("estimate: not finite; an undefined estimate is None with a status")

    @property
    def curve(self) -> "ConfidenceCurve | None":
        """Return the confidence curve, or None if the interval and the test have no common one."""
        return self._curve

    @property
    def answers(self) -> AnswersBehind | None:
        """Return the answers behind the estimate, or None if its method does not keep them."""
        return self._answers

    @property
    def pvalue(self) -> float | None:
        """Return the unadjusted p-value, or None without a test."""
        return None if self.test is None else self.test.pvalue

    @property
    def is_blocked(self) -> bool:
        """Return whether a warning of severity `block` forbids a claim based on the estimate."""
        return any(warning.severity == "block" for warning in self.warnings)

    @property
    def supports_no_claim(self) -> bool:
        """Return whether the estimate is blocked and not the paper's, whose conclusions are reported as they are."""
        return self.is_blocked and self.mode != "paper"

    def labelled(self, **labels: str) -> "Estimate":
        """Return the estimate with other values of `analysis`, `estimand`, `unit` or `mode`.

        Its sensitivities get the same value where they shared the old one.

        >>> Estimate(analysis="mean", estimand="mean", unit="annotator", n=0).labelled(unit="prompt").unit
        'prompt'
        """
        if unknown := labels.keys() - {"analysis", "estimand", "unit", "mode"}:
            raise TypeError(f"{', '.join(sorted(unknown))}: not a label")
        shared = [
            {name: value for name, value in labels.items() if getattr(other, name) == getattr(self, name)}
            for other in self.sensitivity
        ]
        others = tuple(other.labelled(**own) for other, own in zip(self.sensitivity, shared, strict=True))
        changes: dict[str, Any] = {**labels, "sensitivity": others}
        return replace(self, **changes)

    def has_warning(self, code: str) -> bool:
        """Return whether the estimate has a warning with this code."""
        return any(warning.code == code for warning in self.warnings)

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict (no NaN, no infinity) with the same keys for every analysis."""
        return {"schema": SCHEMA, **self._body()}

    def _body(self) -> dict[str, Any]:
        # Only the top record names the schema, not each sensitivity.
        return Record.as_dict(self) | {"sensitivity": [other._body() for other in self.sensitivity]}


def json_safe(value: Any) -> Any:
    """Convert `value` to dict, list, str, bool, int, finite float and None.

    The value is a record, mapping, list, tuple, array, numpy scalar or plain value. Numbers that are not finite become
    None. A type without a JSON form raises TypeError.

    >>> json_safe({"a": np.float64("nan"), "b": (np.int64(2), np.array([0.5]))})
    {'a': None, 'b': [2, [0.5]]}
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (np.generic, np.ndarray)):
        return json_safe(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_safe(item) for item in value]
    if hasattr(value, "as_dict"):
        return json_safe(value.as_dict())
    raise TypeError(f"{type(value).__name__} has no plain form")
