"""What a comparison of studies says: tables and sentences, from its estimates."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks import cells
from analysis.protocols.blocks.layouts import Table, build_table

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

SIGNIFICANCE = 0.05
# What a value of a headline's kind says about x and y, and the unit of differences: percent points, or points of the scale.
MEANINGS = {
    "preference": ("The share of answers that prefer {x} to {y}", "percent"),
    "superiority": ("The chance that {x} is rated above {y}", "percent"),
    "chance": ("The stated chance that {x} is better than {y}", "percent"),
    "point": ("The mean point in favour of {x} over {y}", "number"),
    "score": ("The mean score (of 100) of {x} minus that of {y}", "number"),
    "source": ("The share of right answers about {x}", "percent"),
}


def build_tables(
    names: Sequence[str], efforts: Sequence[Mapping[str, Any]], compared: Sequence[Mapping[str, Any]]
) -> Iterable[Table]:
    """Yield the tables: differences, sizes, estimates, equality of more than two studies, agreement, effort and pay."""
    pairs = list(combinations(names, 2))
    differences = [estimate for one in compared for estimate in one["found"].differences]
    about = sorted({estimate.settings["population"] for estimate in differences})
    yield build_table(
        "differences",
        "Differences between the studies",
        "pair|Comparison|text; label|Difference|text; estimate|First minus second|fine_number; interval|95% CI|fine_wide_interval; p|p|p; "
        "holm|p, Holm|p; reason|Undefined because|text",
        _rows(compared, "differences", [f"{one} − {other}" for one, other in pairs]),
        "first",
        f"Intervals and p-values are about {' or '.join(about)} like these. Studies share people of one pool, and prompts with the same key and "
        "text; everything else counts as independent.",
        [warning for estimate in differences for warning in estimate.warnings],
    )
    yield build_table(
        "sizes",
        "Sizes of the differences",
        "pair|Comparison|text; label|Difference|text; d|Cohen's d|number; g|Hedges' g|number; interval|95% CI of d|wide_interval; "
        "n|People|integer; reason|Undefined because|text",
        _size_rows(compared, [f"{one} − {other}" for one, other in pairs]),
        "first",
        "The difference of people's means, divided by the standard deviation between people, which depends on the number of answers of "
        "each. A size is for studies that share nobody. The interval takes equal variances.",
    )
    yield build_table(
        "estimates",
        "Estimates of each study",
        "pair|Comparison|text; label|Study|text; estimate|Estimate|fine_number; interval|95% CI|fine_wide_interval; n|People|integer; "
        "answers|Answers|integer; reason|Undefined because|text",
        _rows(compared, "means", names),
        "first",
    )
    if len(names) > 2:
        yield build_table(
            "equality",
            "Whether all studies are equal",
            "pair|Comparison|text; statistic|F|number; p|p|p; holm|p, Holm|p; n|People|integer; reason|Undefined because|text",
            [_row(one, one["found"].equality, "") for one in compared],
            "first",
        )
    agreements = _rows(compared, "agreements", [f"{one} and {other}" for one, other in pairs])
    yield build_table(
        "agreement",
        "Agreement between the studies",
        "pair|Comparison|text; label|Studies|text; estimate|Correlation|number; interval|95% CI|wide_interval; n|Shared prompts|integer; "
        "people|Shared people|integer; reason|Undefined because|text",
        [
            row | {"people": estimate.detail["n_shared_people"]}
            for row, estimate in zip(agreements, differences, strict=True)
        ],
        "sure",
        "Pearson's correlation of the mean answers about shared prompts. Few answers about each prompt make it lower.",
    )
    yield build_table(
        "within",
        "Agreement in each study",
        "pair|Comparison|text; label|Study|text; measure|Measure|text; estimate|Agreement|number; interval|95% CI|wide_interval; "
        "n|Items|integer; reason|Undefined because|text",
        [
            _row(one, estimate, name) | {"measure": estimate.estimand}
            for one in compared
            for name, estimate in zip(names, one["within"], strict=True)
            if estimate is not None
        ],
        "sure",
        "As in the report of the study, over items that several people judged.",
    )
    yield build_table(
        "effort",
        "Effort and pay",
        "study|Study|text; people|People who submitted|integer; kept|Kept|integer; answers|Answers|integer; minutes|Minutes a person|number; "
        "pay|Pay a person|number; currency|Currency|text",
        efforts,
        "sure",
        "Minutes and pay are medians of people who submitted in time. Imported answers and robots have neither.",
    )


def _size_rows(compared: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> list[dict[str, Any]]:
    found = []
    differences = [estimate for one in compared for estimate in one["found"].differences]
    for row, estimate in zip(_rows(compared, "differences", labels), differences, strict=True):
        effect, shared = estimate.effect, estimate.detail["n_shared_people"]
        reason = f"{shared} people worked in both" if shared else "fewer than two people, or none differ"
        own = {"d": effect.value, "g": effect.hedges_g, "interval": [effect.low, effect.high]} if effect else {}
        found.append(row | {"interval": None, "reason": "" if effect else reason} | own)
    return found


def _rows(compared: Sequence[Mapping[str, Any]], what: str, labels: Sequence[str]) -> list[dict[str, Any]]:
    return [
        _row(one, estimate, label)
        for one in compared
        for label, estimate in zip(labels, getattr(one["found"], what), strict=True)
    ]


def _row(compared: Mapping[str, Any], estimate: "Estimate", label: str) -> dict[str, Any]:
    return {
        "pair": compared["name"],
        "label": label,
        "estimate": estimate.estimate,
        "interval": cells.finite_bounds(estimate.interval),
        "statistic": estimate.test.statistic if estimate.test else None,
        "p": estimate.pvalue,
        "holm": estimate.test.pvalue_adjusted if estimate.test else None,
        "n": estimate.n,
        "answers": estimate.n_rows,
        "reason": estimate.reason,
    }


def difference_sentences(names: Sequence[str], compared: Mapping[str, Any]) -> list[str]:
    """Return a sentence about each difference: which study is higher, by how much, and how sure that is."""
    pairs = combinations(range(len(names)), 2)
    return [
        _sentence(names, pair, compared, estimate)
        for pair, estimate in zip(pairs, compared["found"].differences, strict=True)
    ]


def _sentence(names: Sequence[str], pair: tuple[int, int], compared: Mapping[str, Any], estimate: "Estimate") -> str:
    value, bounds = estimate.estimate or 0.0, cells.finite_bounds(estimate.interval)
    higher, lower = pair if value >= 0 else pair[::-1]
    if bounds and value < 0:
        bounds = [-bounds[1], -bounds[0]]
    number, low, high = (
        text.removesuffix(" %")
        for text in cells.format_estimate_with_bounds(abs(value), bounds, compared["unit"], [0.0])
    )
    numbers = [f"{cells.format_confidence_level(estimate)} CI {low} to {high}"] if bounds else []
    is_shown = False
    if test := estimate.test:
        adjusted = 1.0 if test.pvalue_adjusted is None else test.pvalue_adjusted
        is_shown = adjusted < SIGNIFICANCE and not estimate.is_blocked
        numbers.append(cells.format_equation("p", cells.format_pvalue(adjusted)))
        numbers += [f"Holm over {test.family_size} tests"] if (test.family_size or 1) > 1 else []
    else:
        numbers.append(f"not tested: {estimate.reason or 'too few people or prompts'}")
    people = " and ".join(str(compared["found"].means[study].n) for study in (higher, lower))
    found = f"{number} points higher in “{names[higher]}” than in “{names[lower]}” ({'; '.join(numbers)}; n = {people} people)."
    if is_shown:
        return f"{compared['meaning']} is {found}"
    open_question = f"It remains open whether “{names[pair[0]]}” and “{names[pair[1]]}” differ."
    return f"{open_question} {compared['meaning']} was {found}"
