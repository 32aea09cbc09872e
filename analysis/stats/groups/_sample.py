"""One value per unit, by group."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import power
from analysis.stats.arrays import FloatArray, IntArray, label_codes, vector


@dataclass(frozen=True, slots=True)
class GroupSample:
    """One value a unit, by group; groups sorted."""

    names: tuple[Any, ...]
    members: tuple[FloatArray, ...]
    sizes: FloatArray
    means: FloatArray
    variances: FloatArray
    grand_mean: float
    n_missing: int

    @classmethod
    def from_arrays(cls, values: npt.ArrayLike, groups: npt.ArrayLike) -> "GroupSample":
        array = vector(values, "values")
        positions, names = label_codes_and_names(groups, "groups", len(array))
        is_observed = ~np.isnan(array)
        members = tuple(array[is_observed & (positions == group)] for group in range(len(names)))
        sizes = np.array([len(member) for member in members], dtype=np.float64)
        means = np.array([np.mean(member) if len(member) else 0.0 for member in members])
        variances = np.array([np.var(member, ddof=1) if len(member) > 1 else 0.0 for member in members])
        grand = float(np.mean(array[is_observed])) if is_observed.any() else 0.0
        return cls(names, members, sizes, means, variances, grand, int((~is_observed).sum()))

    def common(self, analysis: str, mode: str, level: float) -> dict[str, Any]:
        n = int(self.sizes.sum())
        return {
            "analysis": analysis,
            "estimand": "eta squared",
            "unit": "annotator",
            "mode": mode,
            "n": n,
            "n_rows": n,
            "settings": {"level": level},
        }

    def detail(self) -> dict[str, Any]:
        return {
            "n_missing": self.n_missing,
            "groups": {
                str(name): {"n": int(n), "mean": float(mean) if n else None}
                for name, n, mean in zip(self.names, self.sizes, self.means, strict=True)
            },
        }

    def undefined_status_and_reason(self, *, min_group_size: int) -> tuple[str, str] | None:
        """Return a status and reason if a group has fewer than `min_group_size` values or there is only one group."""
        if not np.any(self.sizes):
            return "no_data", "no value to analyse"
        if len(self.sizes) < 2:
            return "not_identified", "there is one group only"
        small = np.flatnonzero(self.sizes < min_group_size)
        if len(small):
            name, n = self.names[int(small[0])], int(self.sizes[small[0]])
            return ("no_data", f"group {name} has no value") if n == 0 else ("n_lt_2", f"group {name} has one value")
        return None


def label_codes_and_names(labels: npt.ArrayLike, name: str, length: int) -> tuple[IntArray, tuple[Any, ...]]:
    """Return the codes of labels, and the labels in the order of their codes."""
    array = np.asarray(labels)
    positions, n_groups = label_codes(array, name, length)
    first = np.full(n_groups, length, dtype=np.int64)
    np.minimum.at(first, positions, np.arange(length))
    return positions, tuple(array[first].tolist())


def difference_detectable_at_power_80(se: float, df: float, level: float, tests: int = 1) -> float:
    """Return the smallest distance that a t test with this standard error finds with power .8."""
    n = max(2, int(df) + 1)
    return power.t_test_detectable_difference(n, sd=se * math.sqrt(n), significance=1 - level, tests=tests)
