"""Tables and figures of rankings. Nothing is computed here but what is put beside what."""

from collections.abc import Sequence
from typing import Any

from analysis.cells import ends, point, pvalue, role


def _verdict(one: Any) -> str:
    return str(one.detail.get("verdict") or "inconclusive").replace("_", " ") if one.test else ""


def _pair(contrast: dict[str, Any], several: bool) -> str:
    where = f" ({contrast['criterion'] or contrast['question']}, section {contrast['section']})" if several else ""
    return f"{contrast['x']} > {contrast['y']}{where}"


def pairs(estimates: Sequence[Any], several: bool) -> list[dict[str, Any]]:
    """Every pair of systems: which was ranked higher, how often."""
    rows = []
    for one in estimates:
        contrast, detail = one.settings["contrast"], one.detail
        rows.append(
            {
                "pair": _pair(contrast, several), "role": role(contrast),
                "share": one.estimate, "interval": ends(one), "p": pvalue(one),
                "verdict": _verdict(one), "above": detail["n_above"], "ties": detail["n_ties"],
                "below": detail["n_below"], "n": one.n, "reason": one.reason,
            }
        )  # fmt: skip
    return [
        {
            "name": "ranking_pairs", "title": "Which was ranked higher", "place": "first", "rows": rows,
            "columns": "pair|Pair|text; role|Role|text; share|Share above|percent; interval|95% CI|interval; p|adj. p|p; verdict|Verdict|text; "
            "above|Above|integer; ties|Same place|integer; below|Below|integer; n|n annotators|integer; reason|Undefined because|text",
            "note": "Of the rankings that hold both; the same place counts half. p tests 50 %, annotators as clusters, and is adjusted within "
            "each planned family and within all pairs that were not planned.",
        }
    ]  # fmt: skip


def shares(estimates: Sequence[Any], several: bool) -> list[dict[str, Any]]:
    rows = [
        point(one, _pair(one.settings["contrast"], several), "share of rankings")
        for one in estimates
        if one.estimate is not None
    ]
    return [
        {
            "name": "ranking_pairs", "title": "Share of rankings with x above y", "axis": "P(x above y)", "reference": 0.5, "limits": [0, 1],
            "description": "Above 50 %, the first named of a pair ranks higher; the same place counts half. Lines are confidence intervals over annotators.", "rows": rows,
        }
    ]  # fmt: skip


def systems(means: Sequence[Any], sets: Any, strengths: Sequence[Any], suffix: str, title: str) -> dict[str, Any]:
    """The systems, best first: mean rank, the ranks that each may have among the systems, strength."""
    may = dict(zip(sets.systems, zip(sets.low or (), sets.high or (), strict=True), strict=False))
    by_system = {one.detail.get("system"): one for one in strengths}
    rows = []
    for one in sorted(means, key=lambda one: (one.estimate is None, one.estimate, one.settings["system"])):
        system = one.settings["system"]
        strength = by_system.get(system)
        low, high = may.get(system, (None, None))
        rows.append(
            {
                "system": system, "mean": one.estimate, "interval": ends(one), "highest": low, "lowest": high,
                "strength": strength.estimate if strength else None, "strength_interval": ends(strength) if strength else None,
                "n": one.n, "rankings": one.n_rows,
                "reason": "; ".join(filter(None, [one.reason, sets.reason, strength.reason if strength else ""])),
            }
        )  # fmt: skip
    return {
        "name": f"ranking_systems{suffix}", "title": f"Systems by mean rank ({title})", "place": "first", "rows": rows,
        "columns": "system|System|text; mean|Mean rank|number; interval|95% CI|wide_interval; highest|May be as high as|integer; "
        "lowest|May be as low as|integer; strength|Strength, log-odds|number; strength_interval|95% CI, strength|wide_interval; "
        "n|n annotators|integer; rankings|Rankings|integer; reason|Note|text",
        "note": "Rank 1 is the best. All that systems may be hold together at the stated level. Strengths: Davidson's model, their sum 0.",
    }  # fmt: skip


def means(estimates: Sequence[Any], suffix: str, title: str) -> dict[str, Any]:
    rows = [point(one, one.settings["system"], "mean rank") for one in estimates if one.estimate is not None]
    return {
        "name": f"ranking_means{suffix}", "title": f"Mean rank of each system ({title})", "axis": "mean rank, 1 the best", "reference": None,
        "description": "Lines are confidence intervals over annotators.", "limits": None, "rows": rows,
    }  # fmt: skip


def checks(estimates: Sequence[Any], suffix: str, title: str) -> dict[str, Any]:
    rows = [
        {"what": one.estimand, "estimate": one.estimate, "interval": ends(one), "p": pvalue(one), "n": one.n, "unit": one.unit, "reason": one.reason}
        for one in estimates
    ]  # fmt: skip
    return {
        "name": f"ranking_checks{suffix}", "title": f"Agreement of the rankings ({title})", "place": "sure", "rows": rows,
        "columns": "what|What|text; estimate|Estimate|number; interval|95% CI|wide_interval; p|p|p; n|n|integer; unit|Unit|text; "
        "reason|Undefined because|text",
        "note": "Kendall's W is of one ranking an annotator, its p Friedman's; where nobody agrees it is 1 / n on average, not 0. "
        "The interval of alpha resamples whole prompts, not people: it is about these annotators.",
    }  # fmt: skip


def references(estimates: Sequence[Any], suffix: str, title: str) -> dict[str, Any]:
    rows = [
        {
            "system": one.settings["system"], "reference": one.settings["reference"], "share": one.estimate, "interval": ends(one),
            "n": one.n, "rankings": one.n_rows, "reason": one.reason,
        }
        for one in estimates
    ]  # fmt: skip
    return {
        "name": f"ranking_references{suffix}", "title": f"Where the planted references stood ({title})", "place": "sure", "rows": rows,
        "columns": "system|System|text; reference|Planted as|text; share|Systems that it stands above|percent; interval|95% CI|interval; "
        "n|n annotators|integer; rankings|Rankings|integer; reason|Undefined because|text",
        "note": "Planted references are no systems under evaluation: ranks, strengths and agreement are of the others among themselves.",
    }  # fmt: skip
