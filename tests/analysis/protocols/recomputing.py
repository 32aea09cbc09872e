"""Estimates are computed once more from exported rows: clustered tests, families, agreement."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.data.exports import csv_blocks
from analysis.data.flat_rows import Selection


def exported(study):
    """The export, as a colleague would read it: those who submitted and were not left out."""
    data = b"".join(csv_blocks("responses", Selection(study)))
    table = pd.read_csv(io.BytesIO(data), keep_default_na=False, na_values={"value": [""]})
    return table[(table["is_submitted"] == 1) & (table["exclusion"] == "")]


def found(report, name, mode="recommended"):
    return [e for b in report["blocks"] if (b["name"], b["mode"]) == (name, mode) for e in b["estimates"]]


def about(estimate):
    return estimate["settings"]["contrast"]


def claimed(values, people, prompts, null, weights=None, bounds=(0, 1)):
    """The weighted mean, and the p of t; None where bets on the answers take the place of t.

    On a scale with ends, the standard error is that of answers with the tested mean, if it is larger. With few people or prompts
    it is larger still near an end.
    """
    mean, se, df, least = claim(values, people, prompts, weights, bounds)
    if df is None:
        return mean, None
    if bounds is not None:
        room, own, most = ((m - bounds[0]) * (bounds[1] - m) for m in (null, mean, sum(bounds) / 2))
        se = max(se, max(se, least) * (room / own) ** 0.5 * (1 + 4 * (1 - room / most) / max(2, df)))
    return mean, 2 * stats.t.sf(abs(mean - null) / se, df)


def claim(values, people, prompts, weights=None, bounds=(0, 1)):
    """The weighted mean with the standard error and degrees of freedom for people and prompts like these, and the least standard error.

    Each way leaves out one person or one prompt at a time; what each pair of both varies by is in both ways and counts once.
    With fewer than five prompts the claim is about people alone. The least standard error is that of independent answers.
    """
    table = pd.DataFrame(
        {"v": np.asarray(values, float), "a": np.asarray(people, object), "i": np.asarray(prompts, object)}
    )
    table["w"] = 1.0 if weights is None else np.asarray(weights, float)
    mean = np.average(table["v"], weights=table["w"])
    table["e"] = table["w"] * (table["v"] - mean)

    def way(name):
        groups = sorted(set(table[name]))
        kept = [table[table[name] != one] for one in groups]
        without = np.array([np.average(rest["v"], weights=rest["w"]) for rest in kept])
        sizes, sums, n = table.groupby(name)["w"].sum(), table.groupby(name)["e"].sum(), len(groups)
        effective = sizes.sum() ** 2 / (sizes**2).sum()
        if bounds is not None and (sums**4).sum() > 0:
            effective = min(effective, 3 * (sums**2).sum() ** 2 / (sums**4).sum())
        return (n - 1) / n * ((without - mean) ** 2).sum(), max(1.0, effective - 1), sums, n

    ways = [way("a"), way("i")] if table["i"].nunique() >= 5 else [way("a")]
    variance, df = max((variance, df) for variance, df, _, _ in ways)
    squares, cubes = max((((sums**2).sum(), (sums**3).sum()) for _, _, sums, _ in ways), key=lambda pair: pair[0])
    least = 0.0
    if len(ways) == 2:
        sums = table.groupby(["a", "i"])["e"].sum()
        both = len(sums) / (len(sums) - 1) * (sums**2).sum() / table["w"].sum() ** 2
        combined = sum(one[0] for one in ways) - both
        if combined > variance * (1 + 1e-9):
            variance, df = combined, combined**2 / sum(part**2 / own for part, own, _, _ in ways)
        all_squares = sum((one[2] ** 2).sum() for one in ways) - (sums**2).sum()
        if all_squares > squares * (1 + 1e-9):
            squares, cubes = all_squares, sum((one[2] ** 3).sum() for one in ways) - (sums**3).sum()
        least = np.sqrt((table["w"] * (table["v"] - mean) ** 2).sum() * (table["w"] ** 2).sum() / table["w"].sum() ** 3)
    assert ways[0][3] >= 6, "too few people for a test"
    if bounds is not None:
        if variance < 1e-20:
            return mean, None, None, least
        explained = variance**0.5 * (sum(bounds) - 2 * mean) / (mean - bounds[0]) / (bounds[1] - mean)
        if abs(cubes / squares**1.5 - explained) > 0.35:
            return mean, None, None, least
    return mean, np.sqrt(variance), max(1.0, df), least


def is_same(estimate, value, pvalue, n=None):
    assert estimate["status"] == "ok", estimate
    assert estimate["estimate"] == pytest.approx(value, abs=1e-9)
    assert (estimate["test"]["name"] == "independent_units_betting") is (pvalue is None)
    if pvalue is not None:
        assert estimate["test"]["pvalue"] == pytest.approx(pvalue, rel=1e-6)
    assert n is None or estimate["n"] == n


def adjusted_within_families(estimates):
    """Adjust by hand: by Bonferroni with an interval that agrees, and the paper's by Holm. Return the size of each family.

    Holm: the k-th smallest of m is multiplied by m - k + 1, and never under one before it.
    """
    families = {}
    for estimate in estimates:
        test, interval = estimate["test"], estimate["interval_adjusted"]
        if test["adjust"] == "bonferroni":
            assert test["pvalue_adjusted"] == pytest.approx(min(1.0, test["family_size"] * test["pvalue"]))
            excludes = not interval["low"] <= test["null"] <= interval["high"]
            assert excludes == (test["pvalue_adjusted"] < 0.05), estimate["analysis"]
            assert interval["level"] == pytest.approx(1 - 0.05 / test["family_size"])
            continue
        assert interval is None
        families.setdefault(test["family"], []).append(test)
    for tests in families.values():
        assert {test["family_size"] for test in tests} == {len(tests)}
        most = 0.0
        for rank, test in enumerate(sorted(tests, key=lambda test: test["pvalue"])):
            most = max(most, min(1.0, (len(tests) - rank) * test["pvalue"]))
            assert test["pvalue_adjusted"] == pytest.approx(most)
    return {estimate["test"]["family"]: estimate["test"]["family_size"] for estimate in estimates}


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
