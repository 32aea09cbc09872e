"""Tables that several protocols fill: rankings of systems by a model of pairs, and reliability."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .cells import ends, pvalue
from .tables import Table, table

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


def ranking(
    strengths: Iterable["Estimate"],
    verdict: Mapping[str, Any],
    where: str,
    note: str,
    framing: "Estimate | None" = None,
) -> list[Table]:
    """Strengths of the systems, and the chances that the fitted model gives each pair beside those stated.

    ``verdict``: what was fitted, as plain values; ``framing``: the bonus of being named first.
    """
    named = [one for one in strengths if one.detail.get("system")]
    named.sort(key=lambda one: (one.estimate is None, -(one.estimate or 0.0), one.detail["system"]))
    rows = [
        {"rank": None if one.estimate is None else n, "system": one.detail["system"], **_strength(one)}
        for n, one in enumerate(named, 1)
    ]
    if framing is not None:
        rows.append({"system": "(bonus of being named first)", **_strength(framing)})
    made = [
        table(
            "ranking",
            f"Ranking of the systems ({where})",
            "rank|Rank|integer; system|System|text; strength|Strength, log-odds|number; interval|95% CI|wide_interval; p|p|p; n|n annotators|integer; reason|Note|text",
            rows,
            "sure",
            f"{note} p tests against the reference and is not adjusted. {verdict['reason']}".strip(),
        )
    ]
    systems, observed, fitted = verdict["systems"], verdict["observed"], verdict["probabilities"]
    pairs = [
        {
            "x": x,
            "y": y,
            "observed": observed[i][j],
            "fitted": fitted[i][j],
            "residual": None if None in (observed[i][j], fitted[i][j]) else observed[i][j] - fitted[i][j],
        }
        for i, x in enumerate(systems)
        for j, y in enumerate(systems)
        if i < j and observed[i][j] is not None
    ]
    made.append(
        table(
            "ranking_fit",
            f"Stated and fitted chances ({where})",
            "x|System x|text; y|System y|text; observed|Stated P[x > y]|fine_probability; fitted|Fitted|fine_probability; residual|Stated less fitted|fine_probability",
            pairs,
            "more",
        )
    )
    return made


def _strength(one: "Estimate") -> dict[str, Any]:
    return {"strength": one.estimate, "interval": ends(one), "p": pvalue(one), "n": one.n, "reason": one.reason}


def reliability(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Split-half reliability, agreement, and how much of the spread lies between batches; see ``reliability_row``."""
    return table(
        "reliability",
        "Reliability and agreement",
        "where|Where|text; what|Measure|text; estimate|Estimate|number; interval|95% CI|wide_interval; n|n|integer; unit|Unit|text; reason|Undefined because|text",
        rows,
        "sure",
        "Low agreement about preferences is information about people, and no rule may use it. The interval of alpha resamples "
        "outputs, not people: it is about these annotators.",
    )


def reliability_row(one: "Estimate", where: str) -> dict[str, Any]:
    return {
        "where": where,
        "what": one.estimand,
        "estimate": one.estimate,
        "interval": ends(one),
        "n": one.n,
        "unit": one.unit,
        "reason": one.reason,
    }
