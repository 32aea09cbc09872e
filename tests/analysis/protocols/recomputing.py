"""Estimates are computed once more from exported rows: clustered tests, families, agreement."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.data.exports import csv_blocks
from analysis.data.flat_rows.selection import Selection


def exported(study):
    """The export, as a colleague would read it: those who submitted and were not left out."""
    data = b"".join(csv_blocks("responses", Selection(study)))
    table = pd.read_csv(io.BytesIO(data), keep_default_na=False, na_values={"value": [""]})
    return table[(table["is_submitted"] == 1) & (table["exclusion"] == "")]


def found(report, name, mode="recommended"):
    return [e for b in report["blocks"] if (b["name"], b["mode"]) == (name, mode) for e in b["estimates"]]


def about(estimate):
    return estimate["settings"]["contrast"]


def jackknifed(values, people, null):
    """The mean of all values, and the p of t by leaving out one annotator at a time, on G* - 1 degrees of freedom."""
    values, people = np.asarray(values, float), np.asarray(people, object)
    mean = values.mean()
    groups = sorted(set(people))
    without = np.array([values[people != one].mean() for one in groups])
    variance = (len(groups) - 1) / len(groups) * ((without - mean) ** 2).sum()
    sizes = np.array([(people == one).sum() for one in groups])
    effective = sizes.sum() ** 2 / (sizes**2).sum()
    return mean, 2 * stats.t.sf(abs(mean - null) / np.sqrt(variance), effective - 1)


def two_way(values, people, items, null):
    """The mean and the p of t with annotators and items as clusters, from the sums of residuals over each."""
    table = pd.DataFrame({"e": np.asarray(values, float), "a": people, "i": items})
    mean = table["e"].mean()
    table["e"] -= mean

    def part(*names):
        sums = table.groupby(list(names))["e"].sum()
        return len(sums) / (len(sums) - 1) * (sums**2).sum() / len(table) ** 2

    a, i, both = part("a"), part("i"), part("a", "i")
    fewest = min(table["a"].nunique(), table["i"].nunique())
    return mean, 2 * stats.t.sf(abs(mean - null) / np.sqrt(max(a + i - both, a, i)), fewest - 1)


def is_same(estimate, value, pvalue, n=None):
    assert estimate["status"] == "ok", estimate
    assert estimate["estimate"] == pytest.approx(value, abs=1e-9)
    assert estimate["test"]["pvalue"] == pytest.approx(pvalue, rel=1e-6)
    assert n is None or estimate["n"] == n


def adjusted_within_families(estimates):
    """Holm by hand: the k-th smallest of m is multiplied by m - k + 1, and never under one before it."""
    families = {}
    for estimate in estimates:
        families.setdefault(estimate["test"]["family"], []).append(estimate["test"])
    for tests in families.values():
        assert {test["family_size"] for test in tests} == {len(tests)}
        most = 0.0
        for rank, test in enumerate(sorted(tests, key=lambda test: test["pvalue"])):
            most = max(most, min(1.0, (len(tests) - rank) * test["pvalue"]))
            assert test["pvalue_adjusted"] == pytest.approx(most)
    return {family: len(tests) for family, tests in families.items()}


def pairs_of(table, x, y, index=("annotator", "prompt"), values="value"):
    """A row an annotator and prompt, where both systems were judged."""
    wide = table.pivot_table(index=list(index), columns="system", values=values, aggfunc="mean")
    return wide[[x, y]].dropna().reset_index()


def opponents(study):
    """item > the names of its systems: a row of answers names the one that was judged."""
    table = pd.read_csv(io.BytesIO(b"".join(csv_blocks("items", Selection(study)))))
    return table.groupby("item")["system"].agg(set).to_dict()


class Coincidences:
    """Krippendorff's alpha from the pairs of values that each unit holds, which are added over what is resampled together."""

    def __init__(self, table, unit, together, is_ordinal):
        table = table[table["value"].notna()]
        table = table[table.groupby(unit)["annotator"].transform("nunique") > 1]
        counts = table.groupby([*unit, "value"]).size().unstack(fill_value=0)
        n = counts.to_numpy()
        pairs = (n[:, :, None] * n[:, None, :] - n[:, :, None] * np.eye(n.shape[1])) / (n.sum(axis=1) - 1)[
            :, None, None
        ]
        group = counts.reset_index().groupby(together).ngroup().to_numpy()
        self.pairs = np.array([pairs[group == one].sum(axis=0) for one in range(group.max() + 1)])
        self.values, self.is_ordinal = counts.columns.to_numpy(float), is_ordinal
        self.n, self.n_rows, self.n_groups = len(counts), n.sum(), len(self.pairs)

    def alpha(self, drawn):
        pairs = self.pairs[drawn].sum(axis=0)
        times = pairs.sum(axis=1)
        scale = times.cumsum() - times / 2 if self.is_ordinal else self.values
        apart = (scale[:, None] - scale[None, :]) ** 2
        expected = (np.outer(times, times) * apart).sum()
        return 1 - (times.sum() - 1) * (pairs * apart).sum() / expected if expected else np.nan
