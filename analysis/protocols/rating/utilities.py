"""Utilities between planted references: the scale that a maximal and a minimal reference give each annotator.

Source: Ethayarajh and Jurafsky 2022, section 4, point 2; equation (1) for the expected expected utility (EEU).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import Context
from analysis.protocols.blocks import Block, Wording, concluded
from analysis.protocols.blocks.cells import ends, sides_of
from analysis.protocols.blocks.comparisons import Comparison, judged, not_side_by_side
from analysis.protocols.blocks.references import Ends
from analysis.protocols.blocks.tables import table

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.ratings import Rescaled
    from analysis.stats.results import Estimate

UTILITY = "utility"
# Two references closer than this share of the scale are no ends: 10 points of 0 to 100.
LEAST_SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class Utilities:
    """The ratings of one question on each annotator's own scale: ``rows`` with ``utility``, those of references among them."""

    where: str
    rows: "DataFrame"
    rescaled: "Rescaled"
    n_annotators: int

    @property
    def left_out(self) -> dict[str, tuple[Any, ...]]:
        return {
            "extremum_violation": self.rescaled.extremum_violation,
            "narrow_references": self.rescaled.narrow_references,
            "references_not_rated": self.rescaled.no_references,
        }


def utilities(rows: "DataFrame", references: Ends, scale: tuple[float, float], where: str) -> Utilities | None:
    """``rows``: the kept ratings of one question, with ``rating`` on its scale. None where the study plants no two ends."""
    from analysis.stats import ratings

    rows = rows[rows["rating"].notna()]
    if not references.is_complete or not len(rows):
        return None
    found = ratings.between_references(
        rows["rating"].to_numpy(float),
        rows["annotator"].to_numpy(object),
        is_minimum=rows["system"].isin(references.minimal).to_numpy(bool),
        is_maximum=rows["system"].isin(references.maximal).to_numpy(bool),
        minimum_spread=LEAST_SPREAD * (scale[1] - scale[0]),
    )
    return Utilities(where, rows.assign(utility=found.values), found, rows["annotator"].nunique())


def difference(one: Utilities, compared: Comparison, level: float) -> "Estimate":
    """EEU of x less that of y, over the annotators who have a scale: within those who rated both for the same prompt, where any did."""
    from analysis.stats import basic, equivalence, unpaired

    wide = one.rows.pivot_table(
        index=["annotator", "prompt"], columns="system", values="utility", aggfunc="mean", sort=True
    )
    pairs = wide.reindex(columns=[compared.x, compared.y]).dropna()
    each = (pairs[compared.x] - pairs[compared.y]).groupby(level="annotator", sort=True).mean().to_numpy(float)
    words = {"estimand": "EEU of x minus EEU of y, in parts of the distance between the references"}
    samples = not_side_by_side(wide, compared)
    if samples is not None:
        estimate = unpaired.mean_difference(
            **samples,
            level=level,
            analysis="rating.utility_difference_unpaired",
            estimand=f"{words['estimand']} (not side by side)",
        )
        estimate = replace(
            estimate, sensitivity=compared.equivalence(estimate, null=0.0), warnings=(*estimate.warnings, *_flags(one))
        )
    else:
        estimate = basic.one_sample(each, null=0.0, level=level, analysis="rating.utility_difference", **words)
        estimate = replace(estimate, n_rows=2 * len(pairs), warnings=(*estimate.warnings, *_flags(one)))
    if samples is None and compared.margin and len(each):
        tost = equivalence.equivalence(
            each,
            null=0.0,
            margin=compared.margin,
            significance=compared.level,
            analysis="rating.utility_difference.equivalence",
            **words,
        )
        estimate = replace(estimate, sensitivity=(*estimate.sensitivity, tost))
    return compared.named(estimate, UTILITY, null=0.0)


def _wording(one: "Estimate") -> Wording:
    x, y, about = sides_of(one)
    return Wording(
        more=f"{x} has a higher expected utility than {y}{about}.",
        less=f"{x} has a lower expected utility than {y}{about}.",
        same=f"{x} and {y} have equivalent expected utilities{about}",
        open=f"It remains open whether {x} or {y} has the higher expected utility{about}.",
        before=f"EEU of {x} less that of {y} is",
        symbol="Δ EEU",
    )


def _flags(one: Utilities) -> tuple[Any, ...]:
    from analysis.stats.results import Warning

    return tuple(
        Warning(code, "warn", {"n": len(people), "of": one.n_annotators})
        for code, people in one.left_out.items()
        if people
    )


def utility_blocks(
    found: Sequence[Utilities], compared: Iterable[tuple[Comparison, Utilities]], references: Ends, context: Context
) -> list[Block]:
    """EEU of each system for each question, who had no scale, and the differences that a contrast names."""
    estimates, rows, people = [], [], []
    for one in found:
        for system, estimate in _of_systems(one, references, context.level):
            estimates.append(estimate)
            rows.append(
                {
                    "where": one.where,
                    "system": system,
                    "eeu": estimate.estimate,
                    "interval": ends(estimate),
                    "n": estimate.n,
                    "reason": estimate.reason,
                }
            )
        gone = one.left_out
        people.append(
            {
                "where": one.where,
                "n": one.n_annotators,
                "kept": one.n_annotators - sum(map(len, gone.values())),
                **{code: len(names) for code, names in gone.items()},
                "who": ", ".join(str(name) for names in gone.values() for name in sorted(names)),
            }
        )
    pairs = [(about, difference(one, about, context.level)) for about, one in compared]
    tables = [
        table(
            "utilities",
            "Expected utility of each system",
            "where|Question|text; system|System|text; eeu|EEU|number; interval|95% CI|wide_interval; n|n annotators|integer; "
            "reason|Undefined because|text",
            rows,
            "sure",
            "Each rating as a part of the way from its annotator's mean rating of the minimal reference (0) to that of the maximal one "
            "(1); every annotator weighs the same.",
        ),
        table(
            "references",
            "Who used the references as ends",
            "where|Question|text; n|Annotators|integer; kept|With a scale of their own|integer; "
            "extremum_violation|Rated the maximal no higher|integer; narrow_references|Kept them too close|integer; "
            "references_not_rated|Did not rate both|integer; who|Left out of utilities|text",
            people,
            "sure",
            "Whoever rates the maximal reference no higher than the minimal one does not share the ends that utilities need, and has no "
            "part in them. Two references less than a tenth of the scale apart give no scale either.",
        ),
    ]
    differences = judged(pairs, "rating.utility", context.star_scheme)
    return [
        Block(
            "rating.utility",
            "Expected utility between the references",
            "recommended",
            estimates=tuple(estimates),
            tables=tables,
        ),
        Block(
            "rating.utility_difference",
            "Difference of expected utilities",
            "recommended",
            estimates=differences,
            conclusions=concluded(differences, _wording, 0.0),
        ),
    ]


def _of_systems(one: Utilities, references: Ends, level: float) -> Iterable[tuple[str, "Estimate"]]:
    from analysis.stats import ratings

    for system, mine in one.rows[~one.rows["system"].isin(references.names)].groupby("system", sort=True):
        estimate = ratings.expected_utility(
            mine["utility"].to_numpy(float), mine["annotator"].to_numpy(object), has_references=True, level=level
        )
        settings = {**estimate.settings, "system": system, "question": one.where}
        yield system, replace(estimate, settings=settings, warnings=(*estimate.warnings, *_flags(one)))
