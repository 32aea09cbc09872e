"""Tables and figures of error marks. Nothing is computed here but what is put beside what."""

from collections.abc import Iterable, Sequence
from typing import Any

from analysis.cells import ends, plain, point, pvalue, role
from studies.protocols.marks import PENALTY, SCORE

WHAT = {SCORE: "score", PENALTY: "penalty"}


def _pair(contrast: dict[str, Any], several: bool) -> str:
    return f"{contrast['x']} > {contrast['y']}" + (f" (section {contrast['section']})" if several else "")


def pairs(estimates: Sequence[Any], estimand: str, several: bool) -> list[dict[str, Any]]:
    """Every pair of systems on one estimand."""
    rows = []
    for one in estimates:
        contrast = one.settings["contrast"]
        rows.append(
            {
                "pair": _pair(contrast, several), "role": role(contrast),
                "difference": one.estimate, "interval": ends(one), "p": pvalue(one),
                "verdict": str(one.detail.get("verdict") or "inconclusive").replace("_", " ") if one.test else "",
                "n": one.n, "n_rows": one.n_rows, "reason": one.reason,
            }
        )  # fmt: skip
    words = {SCORE: "score of x less that of y", PENALTY: "penalty of y less that of x"}[estimand]
    unit = {SCORE: "points", PENALTY: "weight of errors"}[estimand]
    return [
        {
            "name": f"marks_{estimand}_pairs", "title": f"Which is better, by {WHAT[estimand]}", "place": "first", "rows": rows,
            "columns": f"pair|Pair|text; role|Role|text; difference|Difference, {unit}|number; interval|95% CI|wide_interval; p|adj. p|p; "
            "verdict|Verdict|text; n|n annotators|integer; n_rows|Pairs of outputs|integer; reason|Undefined because|text",
            "note": f"Difference: {words}, within an annotator and prompt; above 0, x is better. Annotators are clusters, and prompts too "
            "where several people judged the same. p is adjusted within each planned family and within all pairs that were not planned.",
        }
    ]  # fmt: skip


def differences(estimates: Sequence[Any], estimand: str, several: bool) -> list[dict[str, Any]]:
    rows = [
        point(one, _pair(one.settings["contrast"], several), WHAT[estimand])
        for one in estimates
        if one.estimate is not None
    ]
    return [
        {
            "name": f"marks_{estimand}_pairs", "title": f"Differences of {WHAT[estimand]}", "axis": f"difference of {WHAT[estimand]}",
            "reference": 0.0, "limits": None, "description": "Above 0, the first named of a pair is better. Lines are confidence intervals, annotators as clusters.", "rows": rows,
        }
    ]  # fmt: skip


def systems(estimates: Sequence[Any], judged: Any, suffix: str) -> dict[str, Any]:
    by = {(one.settings["system"], one.settings["measure"]): one for one in estimates}
    rows = []
    for system in dict.fromkeys(system for system, _ in by):
        score, penalty, clean = (by.get((system, measure)) for measure in ("score", "penalty", "clean"))
        rows.append(
            {
                "system": system, "reference": judged.references.kind_of(system), "score": score and score.estimate, "score_interval": ends(score), "penalty": penalty.estimate,
                "penalty_interval": ends(penalty), "clean": clean.estimate, "clean_interval": ends(clean), "n": penalty.n,
                "outputs": penalty.n_rows, "reason": penalty.reason,
            }
        )  # fmt: skip
    rows.sort(key=lambda row: (bool(row["reference"]), row["penalty"] is None, row["penalty"], row["system"]))
    weights = ", ".join(f"{one.label} {one.weight:f}" for one in judged.book.severities)
    return {
        "name": f"marks_systems{suffix}", "title": f"Score, penalty and outputs without error, by system ({judged.title})", "place": "first", "rows": rows,
        "columns": f"system|System|text; {_planted(rows)}score|Score|number; score_interval|95% CI, score|wide_interval; penalty|Penalty|number; "
        "penalty_interval|95% CI, penalty|wide_interval; clean|Without error|percent; clean_interval|95% CI, without|interval; "
        "n|n annotators|integer; outputs|Outputs judged|integer; reason|Undefined because|text",
        "note": f"The least penalty first; the penalty of an output sums the weights of its errors ({weights}). Means over judged outputs, "
        "annotators as clusters.",
    }  # fmt: skip


def _planted(rows: Sequence[dict[str, Any]]) -> str:
    """The column that says which rows are planted references, where there are some."""
    return "reference|Planted as|text; " if any(row["reference"] for row in rows) else ""


def penalties(estimates: Sequence[Any], judged: Any, suffix: str) -> dict[str, Any]:
    rows = [
        point(one, one.settings["system"], "penalty")
        for one in estimates
        if one.settings["measure"] == "penalty"
        and one.estimate is not None
        and not judged.references.kind_of(one.settings["system"])
    ]
    return {
        "name": f"marks_penalties{suffix}", "title": f"Mean penalty of each system ({judged.title})", "axis": "penalty per output", "reference": None,
        "limits": None, "description": "The lower the better. Lines are confidence intervals over annotators.", "rows": rows,
    }  # fmt: skip


def kinds(estimates: Sequence[Any], judged: Any, suffix: str) -> dict[str, Any]:
    """A row an error, a column a system: a codebook of many kinds stays a table that can be read."""
    systems = sorted({one.settings["system"] for one in estimates})
    by: dict[tuple[str, str], dict[str, Any]] = {}
    for one in estimates:
        by.setdefault((one.settings["sort"], one.settings["measure"]), {})[one.settings["system"]] = one
    rows = [
        {
            "sort": sort, "what": what, "n": _span(one.n for one in mine.values()), "outputs": _span(one.n_rows for one in mine.values()),
            **{f"rate{place}": mine[system].estimate for place, system in enumerate(systems) if system in mine},
            **{f"interval{place}": ends(mine[system]) for place, system in enumerate(systems) if system in mine},
            "reason": "; ".join(sorted({one.reason for one in mine.values() if one.reason})),
        }
        for (sort, what), mine in by.items()
    ]  # fmt: skip
    heads = "; ".join(
        f"rate{place}|{name}|number; interval{place}|95% CI, {name}|wide_interval"
        for place, name in enumerate(plain(systems))
    )
    return {
        "name": f"marks_kinds{suffix}", "title": f"Errors per output, by kind and by grade ({judged.title})", "place": "sure", "rows": rows,
        "columns": f"what|Error|text; sort|Kind or grade|text; {heads}; n|n annotators|text; outputs|Outputs judged of each|text; "
        "reason|Undefined because|text",
        "note": "How many such errors an output of the system has on average. Intervals are for one rate each and are not adjusted for their "
        "number.",
    }  # fmt: skip


def _span(counts: Iterable[int]) -> str:
    """One number where systems have it in common, else the least and the most."""
    known = sorted(set(counts))
    return f"{known[0]}" if len(known) == 1 else f"{known[0]} to {known[-1]}"


def checks(estimates: Sequence[Any], judged: Any, suffix: str) -> dict[str, Any]:
    rows = [
        {
            "what": one.estimand, "estimate": one.estimate, "interval": ends(one), "agreement": one.detail.get("percent_agreement"),
            "p": pvalue(one), "n": one.n, "unit": one.unit, "reason": one.reason,
        }
        for one in estimates
    ]  # fmt: skip
    return {
        "name": f"marks_checks{suffix}", "title": f"Whether people mark the same, and score as they mark ({judged.title})", "place": "sure", "rows": rows,
        "columns": "what|What|text; estimate|Estimate|number; interval|95% CI|wide_interval; agreement|Same answer|percent; p|p|p; n|n|integer; "
        "unit|Unit|text; reason|Undefined because|text",
        "note": "Alpha is low where errors are rare, however often people agree that there is none: see the share of same answers. "
        "Its interval resamples whole outputs, not people: it is about these annotators.",
    }  # fmt: skip


def standard(estimates: Sequence[Any], judged: Any, suffix: str) -> dict[str, Any]:
    by: dict[str, dict[str, Any]] = {}
    for one in estimates:
        system = one.settings["system"]
        about = {"system": system, "reference": judged.references.kind_of(system), "n": one.n, **one.detail}
        row = by.setdefault(system, about)
        row[one.settings["measure"]] = one.estimate
    rows = sorted(by.values(), key=lambda row: (bool(row["reference"]), row["penalty"], row["system"]))
    return {
        "name": f"marks_standard{suffix}", "title": f"As campaigns print it ({judged.title})", "place": "sure", "rows": rows,
        "columns": f"system|System|text; {_planted(rows)}penalty|Penalty per output|number; per_100_words|Penalty per 100 words|number; score|Mean score|number; "
        "errors|Errors|integer; words|Words|integer; n|Outputs judged|integer; annotators|Annotators|integer",
        "note": "After all primary rules. Words as often as they were judged.",
    }  # fmt: skip
