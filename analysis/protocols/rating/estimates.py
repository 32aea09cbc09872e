"""Each comparison of two systems by their ratings: the paper's difference of means, and what rests on less."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import Context
from analysis.protocols.blocks.comparisons import Comparison, not_side_by_side

from .questions import Ratings, paired, wide

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

# A crossed mixed model takes seconds from here on; the two-way clustered mean says nearly the same.
MAX_MIXED_ROWS = 4000


def paper_difference(one: Ratings, compared: Comparison, context: Context) -> "Estimate":
    from analysis.stats import ratings

    pairs = paired(one.wide_paper, compared)
    if not len(pairs) and not_side_by_side(one.wide_paper, compared) is not None:
        found = ratings.paired_delta_paper([], [], level=context.level)
        return replace(
            found, status="not_applicable", reason="the paper's test is paired, and nobody judged both side by side"
        )
    means = pairs.groupby("annotator")[["x", "y"]].mean()
    return ratings.paired_delta_paper(means["x"].to_numpy(), means["y"].to_numpy(), level=context.level)


def recommended(one: Ratings, compared: Comparison, context: Context) -> tuple["Estimate", "Estimate"]:
    """The probability of superiority and the difference of means, each with the others beside it."""
    from analysis.stats import ratings

    samples = not_side_by_side(one.wide, compared)
    if samples is not None:
        return _unpaired(one, compared, context, samples)
    pairs = paired(one.wide, compared)
    level, resamples = context.level, context.resamples
    x, y, people = pairs["x"].to_numpy(float), pairs["y"].to_numpy(float), pairs["annotator"].to_numpy(object)
    apart = ratings.mean_difference(x, y, people, scale=one.ends, level=level)
    if pairs["prompt"].nunique() > 1 and pairs["prompt"].duplicated().any():
        two_way = ratings.mean_difference(
            x,
            y,
            people,
            prompts=pairs["prompt"].to_numpy(object),
            scale=one.ends,
            level=level,
            analysis="rating.mean_difference.two_way",
        )
        apart = replace(apart, sensitivity=(*apart.sensitivity, two_way))
    standardised = _standardised(one, compared, level)
    if standardised.estimate is not None:
        apart = replace(apart, sensitivity=(*apart.sensitivity, standardised))
    above = ratings.superiority(
        x,
        y,
        people,
        level=level,
        resamples=resamples,
        rng=context.rng("superiority", compared.key),
    )
    others = [*ratings.rank_tests(x, y, people), *_models(one, compared, level)]
    others += compared.equivalence(above, null=0.5, bounds=(0.0, 1.0))
    above = replace(above, sensitivity=(*above.sensitivity, *others))
    return above, _guarded(one, apart)


def _unpaired(
    one: Ratings, compared: Comparison, context: Context, samples: Mapping[str, Any]
) -> tuple["Estimate", "Estimate"]:
    """Both estimates where nobody judged the two side by side: annotators and prompts are samples, and nothing is within them."""
    from analysis.stats import unpaired

    level = context.level
    apart = unpaired.mean_difference(**samples, scale=one.ends, level=level)
    above = unpaired.superiority(**samples, level=level)
    others = [*_models(one, compared, level), *compared.equivalence(above, null=0.5, bounds=(0.0, 1.0))]
    return replace(above, sensitivity=(*above.sensitivity, *others)), _guarded(one, apart)


def _guarded(one: Ratings, apart: "Estimate") -> "Estimate":
    """A difference of means with the warning how far rounding to points can have moved it."""
    from analysis.stats import ratings

    if apart.estimate is None:
        return apart
    guard = ratings.reversal_guard(apart.estimate, step=one.step)
    return replace(apart, detail={**apart.detail, "reversal_guard": guard.as_dict()})


def _models(one: Ratings, compared: Comparison, level: float) -> list["Estimate"]:
    """The same comparison by models of all ratings of the two systems, paired or not."""
    from analysis.stats import ratings

    others = []
    mine = one.kept[one.kept["system"].isin([compared.x, compared.y]) & one.kept["rating"].notna()]
    columns = [
        mine[name].to_numpy(kind) for name, kind in (("rating", float), ("system", object), ("annotator", object))
    ]
    if one.scale.kind == "likert":
        others.append(ratings.cumulative_logit(*columns, system=compared.x, reference=compared.y, level=level))
    is_crossed = len(mine) > 2 * mine["annotator"].nunique() and mine["prompt"].nunique() > 1
    if is_crossed and len(mine) <= MAX_MIXED_ROWS:
        others.append(
            ratings.crossed_mixed(
                *columns, mine["prompt"].to_numpy(object), system=compared.x, reference=compared.y, level=level
            )
        )
    return others


def by_points(one: Ratings, compared: Comparison, apart: "Estimate") -> tuple["Estimate", Comparison]:
    """The difference of means as the comparison that names it, if one does: with a TOST in points."""
    if compared.key not in one.by_points:
        return apart, compared
    compared = one.by_points[compared.key]
    beside = (*apart.sensitivity, *compared.equivalence(apart, null=0.0))
    return replace(apart, sensitivity=beside, settings={**apart.settings, "null": 0.0}), compared


def _standardised(one: Ratings, compared: Comparison, level: float) -> "Estimate":
    """The difference in standard deviations of each annotator's own ratings, of all systems, from those with enough of them."""
    from analysis.stats import clusters, ratings

    rows = one.kept[one.kept["rating"].notna()]
    scores = ratings.z_scores(rows["rating"].to_numpy(float), rows["annotator"].to_numpy(object)).scores
    pairs = paired(wide(rows.assign(rating=scores)), compared)
    return clusters.clustered_mean(
        pairs["x"].to_numpy(float) - pairs["y"].to_numpy(float),
        pairs["annotator"].to_numpy(object),
        null=0.0,
        level=level,
        analysis="rating.mean_difference.z",
        unit="annotator",
        estimand="mean difference of ratings x - y, each in standard deviations of its annotator's own ratings",
    )
