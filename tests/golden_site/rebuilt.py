"""Estimates of the stored reports, as records again."""

from typing import Any

from analysis.stats.results import Effect, Estimate, HypothesisTest, Interval, ResultWarning

PARTS = {"interval": Interval, "interval_adjusted": Interval, "test": HypothesisTest, "effect": Effect}


def estimate_of(stored: dict[str, Any]) -> Estimate:
    """Return the record that was stored. Words are not stored, so they are made up."""
    values = {name: value for name, value in stored.items() if name not in ("sensitivity", "warnings")}
    values |= {name: None if values[name] is None else make(**values[name]) for name, make in PARTS.items()}
    return Estimate(
        **values,
        estimand="the value",
        reason="" if stored["status"] == "ok" else "a reason",
        sensitivity=tuple(map(estimate_of, stored["sensitivity"])),
        warnings=tuple(ResultWarning(**one) for one in stored["warnings"]),
    )
