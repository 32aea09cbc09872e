"""The analysis of a protocol, of rows that a test made up."""

from analysis.data.frames import SECOND_SAMPLE
from analysis.protocols import REGISTRY, AnalysisContext, StartedAnalysis
from analysis.protocols.blocks.comparisons import Comparison
from analysis.protocols.families import adjust_comparisons, planned_claims


def without_groups(rows):
    """Return rows in which no prompt belongs to a group, unless they say otherwise."""
    return rows if SECOND_SAMPLE in rows or "prompt" not in rows else rows.assign(**{SECOND_SAMPLE: rows["prompt"]})


def analysed(protocol, rows, sections, *, planned=None, declared=(), **settings):
    made = {"seed": "00", "resamples": 199} | settings
    rows = without_groups(rows)
    rows = rows if "id" in rows else rows.assign(id=range(len(rows)))
    context = AnalysisContext(protocol=protocol, rows=rows, sections=sections, **made)
    analysis = StartedAnalysis(REGISTRY[protocol], context)
    return analysis.finish(
        adjust_comparisons(analysis.compared, planned or {}, declared, star_scheme=context.star_scheme)
    )


def claims_of(protocol, section, family_size=1):
    """Return the planned claims of a section, with as many that have no estimate as the primary family needs for this size."""
    claims = planned_claims({protocol: [section]})
    n_missing = family_size - sum(len(comparisons) for comparisons in claims.values())
    missing = [
        Comparison(99, f"missing{number}", "y", role="primary", family="primary", is_planned=True)
        for number in range(n_missing)
    ]
    return claims | {"missing": missing}


def block(blocks, name, mode="recommended"):
    return next(one for one in blocks if one.name == name and one.mode == mode)
