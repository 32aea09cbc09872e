"""Tables that several protocols share: rankings of systems by a model of pairs, and reliability."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks.layouts import estimate_row
from studies.design.subjects import in_parentheses

from .layouts import Table, build_table

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


def ranking_tables(
    strengths: Iterable["Estimate"],
    fit: Mapping[str, Any],
    title: str,
    note: str,
    first_named_bonus: "Estimate | None" = None,
) -> list[Table]:
    """Return tables of the systems' strengths, and of fitted and stated chances for each pair.

    ``fit``: the fitted model as plain values; ``first_named_bonus``: the bonus of being named first.
    """
    system_strengths = [strength for strength in strengths if strength.detail.get("system")]
    system_strengths.sort(
        key=lambda strength: (strength.estimate is None, -(strength.estimate or 0.0), strength.detail["system"])
    )
    rows = [
        estimate_row(
            strength, "strength", rank=None if strength.estimate is None else n, system=strength.detail["system"]
        )
        for n, strength in enumerate(system_strengths, 1)
    ]
    if first_named_bonus is not None:
        rows.append(estimate_row(first_named_bonus, "strength", system="(bonus for being named first)"))
    tables = [
        build_table(
            "ranking",
            f"Ranking of the systems{in_parentheses(title)}",
            "rank|Rank|integer; system|System|text; strength|Strength, log-odds|number; interval|95% CI|wide_interval; p|p|p; n|n annotators|integer; reason|Note|text",
            rows,
            "sure",
            f"{note} p tests against the reference and is not adjusted. {fit['reason']}".strip(),
        )
    ]
    systems, observed, fitted = fit["systems"], fit["observed"], fit["probabilities"]
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
    tables.append(
        build_table(
            "ranking_fit",
            f"Stated and fitted chances{in_parentheses(title)}",
            "x|System x|text; y|System y|text; observed|Stated P[x > y]|fine_probability; fitted|Fitted|fine_probability; residual|Stated less fitted|fine_probability",
            pairs,
            "more",
        )
    )
    return tables


def reliability_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of split-half reliability, agreement and variance between batches."""
    return build_table(
        "reliability",
        "Reliability and agreement",
        "where|Where|text; what|Measure|text; estimate|Estimate|number; interval|95% CI|wide_interval; n|n|integer; unit|Unit|text; reason|Undefined because|text",
        rows,
        "sure",
        "Low agreement about preferences is information about people, so no exclusion rule may use it. The interval of alpha "
        "resamples outputs, not people, so it applies only to these annotators.",
    )
