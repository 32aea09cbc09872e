"""What ratings of single outputs say: the paper's difference of means, and beside it what rests on less.

A row is one rating on 0..1; here it is put back on the question's own scale, on which differences are printed in
points. The columns ``is_kept`` and ``is_kept_paper`` are those of the SPA analysis.

Source: Ethayarajh and Jurafsky 2022, sections 3, 4 and 6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.blocks import Block
from analysis.comparisons import Comparison, comparison, judged, not_side_by_side
from analysis.context import Context
from analysis.references import Ends, ends_of
from studies.contrasts import of_systems
from studies.protocols.rating import settings_of
from studies.scales import ScaleSpec, read_scale

from .. import ProtocolAnalysis, register
from .utilities import UTILITY, Utilities, utilities
from .utilities import blocks as utility_blocks

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate

DIFFERENCE, SUPERIORITY = "difference", "superiority"
# A crossed mixed model takes seconds from here on; the two-way clustered mean says nearly the same.
MAX_MIXED_ROWS = 4000


@dataclass(frozen=True, slots=True)
class Ratings:
    """The ratings of one question: ``kept`` for the recommended estimates; ``wide`` and ``wide_paper`` have a row an annotator
    and prompt, a column a system. ``ends``: what its points are scored between. ``references`` are the study's planted ends,
    ``utilities`` the ratings between them.
    ``by_points``: by key, the comparisons that name the difference of means, whose margins are in points."""

    section: Any
    question: Any
    scale: ScaleSpec
    comparisons: tuple[Comparison, ...]
    kept: "DataFrame"
    wide: "DataFrame"
    wide_paper: "DataFrame"
    ends: tuple[float, float]
    is_overall: bool
    references: Ends
    utilities: Utilities | None
    named: tuple[Comparison, ...]
    by_points: Mapping[str, Comparison]

    @property
    def step(self) -> float:
        """The distance of two neighbouring points."""
        return (self.ends[1] - self.ends[0]) / (self.scale.maximum - self.scale.minimum)

    @property
    def words(self) -> str:
        """The question as a reader finds it: its key, whether it is the overall one, and how its points are scored."""
        said = ["overall"] * (self.is_overall and self.question.key != "overall")
        said += ["0 to 1"] * (self.ends != (self.scale.minimum, self.scale.maximum))
        return self.question.key + (f" ({', '.join(said)})" if said else "")

    @property
    def scored(self) -> str:
        """The unit of its means and differences: what its points are scored between."""
        return f"points, {self.ends[0]:g} to {self.ends[1]:g}"

    @property
    def title(self) -> str:
        return f"section {self.section.position}, {self.question.criterion or self.words}"


@register
class RatingAnalysis(ProtocolAnalysis):
    slug = "rating"

    def analyse(self, context: Context) -> list[Block]:
        """Blocks for all rating sections of a study; families run over all of them."""
        asked = [one for section in context.sections for one in _questions(context.rows, section)]
        paper, difference, superiority = [], [], []
        for one in asked:
            for compared in one.comparisons:
                paper.append((compared, compared.named(_paper(one, compared, context), DIFFERENCE, scored=one.scored)))
                above, apart = _recommended(one, compared, context)
                superiority.append((compared, compared.named(above, SUPERIORITY)))
                apart, compared = _by_points(one, compared, apart)
                difference.append((compared, compared.named(apart, DIFFERENCE, scored=one.scored)))
        blocks = [
            Block("rating.superiority", "Probability of being rated higher", "recommended",
                  estimates=judged(superiority, "rating.superiority", context.star_scheme),
                  note="The chance that an annotator rates x above y for the same prompt, a tie counting half: only the order of points counts. "
                       "Where nobody judged both side by side: the chance that a rating of x is above a rating of y."),
            Block("rating.difference", "Difference of mean ratings", "recommended",
                  estimates=judged(difference, "rating.difference", context.star_scheme),
                  note="On the scale on which its answers are scored; takes the points to be equally far apart."),
            Block("rating.difference", "Difference of mean ratings, as in the paper", "paper",
                  estimates=judged(paper, "rating.paper", context.star_scheme),
                  note="One difference an annotator, after all primary rules; paired t test."),
        ]  # fmt: skip
        if found := [one.utilities for one in asked if one.utilities is not None]:
            named = [(compared, one.utilities) for one in asked if one.utilities is not None for compared in one.named]
            blocks += utility_blocks(found, named, asked[0].references, context)
        for one in asked:
            blocks += _about_question(one, context)
        return [block for block in blocks if block.estimates]


def _questions(frame: "DataFrame", section: Any) -> list[Ratings]:
    contrasts = list(section.study.contrasts.select_related("x", "y", "section"))
    rows = frame[(frame["section"] == section.position) & frame["system"].notna()]
    references = ends_of(section.study)
    questions = list(section.questions.all())
    is_unit = settings_of(section)["scores"] == "unit"
    found = []
    for question in questions:
        try:
            scale = read_scale(question.scale)
        except (ValueError, TypeError, KeyError):
            continue  # the frame lists it among its problems
        mine = rows[rows["question"] == question.key]
        low, high = (0, 1) if is_unit else (scale.minimum, scale.maximum)
        # Rounded back to what was chosen: points must stay equal to one another.
        mine = mine.assign(rating=(low + mine["value"] * (high - low)).round(6))
        kept, paper = mine[mine["is_kept"].astype(bool)], mine[mine["is_kept_paper"].astype(bool)]
        is_overall = not question.criterion and any(other.criterion for other in questions)
        comparisons, by_points = _compared(contrasts, section, question)
        one = Ratings(
            section, question, scale, comparisons, kept, _wide(kept), _wide(paper), (float(low), float(high)), is_overall, references,
            None, _planned(contrasts, section, question, UTILITY), by_points,
        )  # fmt: skip
        where = f"section {section.position}, {one.words}"
        found.append(replace(one, utilities=utilities(kept, references, one.ends, where)))
    return found


def _compared(
    contrasts: Sequence[Any], section: Any, question: Any
) -> tuple[tuple[Comparison, ...], dict[str, Comparison]]:
    """All comparisons by either estimand, and by key those that name the difference of means itself."""
    points = [contrast for contrast in contrasts if contrast.estimand == DIFFERENCE]
    rest = [contrast for contrast in contrasts if contrast.estimand != DIFFERENCE]
    by_points = {one.key: one for one in _planned(points, section, question, DIFFERENCE)}
    others = {one.key: one for one in _planned(rest, section, question, DIFFERENCE, SUPERIORITY)}
    found = []
    for one in _planned(contrasts, section, question, DIFFERENCE, SUPERIORITY):
        # A margin in points is none of a probability: without a comparison of its own, that one has no margin.
        expected = "" if one.expected == "~" else one.expected
        found.append(others.get(one.key) or replace(one, margin=None, expected=expected))
    return tuple(found), by_points


def _planned(contrasts: Sequence[Any], section: Any, question: Any, *estimands: str) -> tuple[Comparison, ...]:
    found = [
        comparison(contrast, section, question.criterion, question.key)
        for estimand in estimands
        for contrast in of_systems(contrasts, section, estimand, DIFFERENCE)
        if contrast.criterion in ("", question.criterion)
    ]
    return tuple({one.key: one for one in found}.values())


def _wide(rows: "DataFrame") -> "DataFrame":
    return rows.pivot_table(index=["annotator", "prompt"], columns="system", values="rating", aggfunc="mean", sort=True)


def _paired(wide: "DataFrame", compared: Comparison) -> "DataFrame":
    """A row an annotator and prompt for which both systems were rated: columns x and y."""
    table = wide.reindex(columns=[compared.x, compared.y]).dropna()
    table.columns = ["x", "y"]
    return table.reset_index()


def _paper(one: Ratings, compared: Comparison, context: Context) -> "Estimate":
    from analysis.stats import ratings

    pairs = _paired(one.wide_paper, compared)
    if not len(pairs) and not_side_by_side(one.wide_paper, compared) is not None:
        found = ratings.paired_delta_paper([], [], level=context.level)
        return replace(
            found, status="not_applicable", reason="the paper's test is paired, and nobody judged both side by side"
        )
    means = pairs.groupby("annotator")[["x", "y"]].mean()
    return ratings.paired_delta_paper(means["x"].to_numpy(), means["y"].to_numpy(), level=context.level)


def _recommended(one: Ratings, compared: Comparison, context: Context) -> tuple["Estimate", "Estimate"]:
    """The probability of superiority and the difference of means, each with the others beside it."""
    from analysis.stats import ratings

    samples = not_side_by_side(one.wide, compared)
    if samples is not None:
        return _unpaired(one, compared, context, samples)
    pairs = _paired(one.wide, compared)
    level, resamples = context.level, context.resamples
    x, y, people = pairs["x"].to_numpy(float), pairs["y"].to_numpy(float), pairs["annotator"].to_numpy(object)
    apart = ratings.mean_difference(x, y, people, scale=one.ends, level=level)
    if pairs["prompt"].nunique() > 1 and pairs["prompt"].duplicated().any():
        two_way = ratings.mean_difference(
            x, y, people, prompts=pairs["prompt"].to_numpy(object), scale=one.ends, level=level,
            analysis="rating.mean_difference.two_way",
        )  # fmt: skip
        apart = replace(apart, sensitivity=(*apart.sensitivity, two_way))
    standardised = _standardised(one, compared, level)
    if standardised.estimate is not None:
        apart = replace(apart, sensitivity=(*apart.sensitivity, standardised))
    above = ratings.superiority(
        x, y, people, level=level, resamples=resamples,
        rng=context.rng("superiority", compared.key),
    )  # fmt: skip
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


def _by_points(one: Ratings, compared: Comparison, apart: "Estimate") -> tuple["Estimate", Comparison]:
    """The difference of means as the comparison that names it: with a TOST in points, and with what a sentence may say of it."""
    if compared.key not in one.by_points:
        return apart, compared
    compared = one.by_points[compared.key]
    beside = (*apart.sensitivity, *compared.equivalence(apart, null=0.0))
    x, y = compared.x, compared.y
    about = f" on {compared.criterion}" if compared.criterion else ""
    words = {
        "more": f"{x} has a higher mean rating than {y}{about}.", "less": f"{x} has a lower mean rating than {y}{about}.",
        "same": f"{x} and {y} have equivalent mean ratings{about}",
        "open": f"It remains open whether {x} or {y} has the higher mean rating{about}.",
        "what": f"The mean rating of {x} less that of {y} ({one.scored})", "symbol": "Δ", "kind": "number",
    }  # fmt: skip
    return replace(apart, sensitivity=beside, settings={**apart.settings, "null": 0.0, "words": words}), compared


def _standardised(one: Ratings, compared: Comparison, level: float) -> "Estimate":
    """The difference in standard deviations of each annotator's own ratings, of all systems, from those with enough of them."""
    from analysis.stats import clusters, ratings

    rows = one.kept[one.kept["rating"].notna()]
    scores = ratings.z_scores(rows["rating"].to_numpy(float), rows["annotator"].to_numpy(object)).scores
    pairs = _paired(_wide(rows.assign(rating=scores)), compared)
    return clusters.clustered_mean(
        pairs["x"].to_numpy(float) - pairs["y"].to_numpy(float), pairs["annotator"].to_numpy(object), null=0.0, level=level,
        analysis="rating.mean_difference.z", unit="annotator",
        estimand="mean difference of ratings x - y, each in standard deviations of its annotator's own ratings",
    )  # fmt: skip


def _about_question(one: Ratings, context: Context) -> list[Block]:
    """Means of the systems, agreement where several rated the same output, and whether the place on the page mattered."""
    from analysis.stats import agreement, ranks, ratings

    rows = one.kept[one.kept["rating"].notna()]
    level = context.level
    means = tuple(_mean(one, system, mine, level) for system, mine in rows.groupby("system", sort=True))
    checks = []
    # Planted ends are told apart by everybody: they say nothing of how far people agree, and take no rank.
    judged_rows = rows[~rows["system"].isin(one.references.names)]
    shared = judged_rows.assign(
        output=judged_rows["prompt"].astype(str)
        + "\x1f"
        + judged_rows["system"].astype(str)
        + "\x1f"
        + judged_rows["sample"].astype(str)
    )
    shared = shared[shared.groupby("output")["annotator"].transform("nunique") > 1]
    what = (one.section.position, one.question.key)
    if len(shared):
        outputs = shared["output"].to_numpy(object)
        counts, points = agreement.count_table(outputs, shared["rating"].to_numpy(float))
        checks.append(
            agreement.krippendorff_alpha(
                counts, points, level=level, rng=context.rng("alpha", *what),
                level_of_measurement="ordinal" if one.scale.kind == "likert" else "interval", unit="output",
            )
        )  # fmt: skip
        table = shared.pivot_table(index="annotator", columns="output", values="rating", aggfunc="mean", sort=True)
        checks.append(
            agreement.split_half_reliability(
                table.to_numpy(float), level=level, rng=context.rng("halves", *what), unit="output",
                resamples=min(999, context.resamples),
            )
        )  # fmt: skip
    if len(rows):
        letters = sorted(set(rows["label"]), key=lambda label: (len(label), label))
        place = {label: n for n, label in enumerate(letters)}
        checks.append(
            ratings.position_effect(
                rows["rating"].to_numpy(float), rows["label"].map(place).to_numpy(float),
                rows["annotator"].to_numpy(object), systems=rows["system"].to_numpy(object), level=level,
            )
        )  # fmt: skip
    ranked = ranks.rank_sets_of_rows(
        *(judged_rows[name].to_numpy(kind) for name, kind in (("rating", float), ("annotator", object), ("system", object))), level=level,
        resamples=context.resamples, rng=context.rng("ranks", *what),
    )  # fmt: skip
    return [
        Block("rating.means", f"Mean rating of each system ({one.title})", "recommended", estimates=means,
              verdict={"ranks": ranked.as_dict()},
              note="Every annotator weighs the same. These are no expected utilities: those lie between references. All sets of ranks "
                   "together hold the true ranks at the stated level."),
        Block("rating.checks", f"Agreement and place on the page ({one.title})", "recommended", estimates=tuple(checks)),
    ]  # fmt: skip


def _mean(one: Ratings, system: str, mine: "DataFrame", level: float) -> "Estimate":
    from analysis.stats import ratings

    mean = ratings.expected_utility(
        mine["rating"].to_numpy(float), mine["annotator"].to_numpy(object), has_references=False, level=level, analysis="rating.mean"
    )  # fmt: skip
    settings = {
        "level": level,
        "system": system,
        "section": one.section.position,
        "question": one.words,
        "scored": one.scored,
    }
    # Where references are planted, utilities stand beside the means: nothing to warn of.
    kept = [warning for warning in mean.warnings if one.utilities is None or warning.code != "no_references"]
    return replace(mean, settings=settings, warnings=tuple(kept))


