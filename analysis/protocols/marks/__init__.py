"""What error marks say: penalty and score of each system, what kinds of errors it makes, and whether people mark the same.

The penalty of a judged output is the sum of the weights of its marks. Systems are compared within an annotator and prompt, so that a
strict annotator and a hard prompt cancel; annotators are clusters, and prompts too where several people judged the same.

Source: Freitag et al. 2021 (weighted marks); Kocmi et al. 2024 (marks, then a score).
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import Context
from analysis.protocols.blocks import Block, Wording, concluded
from analysis.protocols.blocks.cells import sides_of
from analysis.protocols.blocks.comparisons import Comparison, comparison, not_side_by_side
from analysis.protocols.blocks.comparisons import judged as judged_by_family
from analysis.protocols.blocks.references import unplanned_pairs
from studies.protocols.base.contrasts import of_systems
from studies.protocols.marks import PENALTY, SCORE

from .. import ProtocolAnalysis, register
from . import layouts
from .outputs import Judged, judged

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate

ESTIMANDS = {SCORE: "mean difference of scores x - y", PENALTY: "mean difference of penalties y - x"}
# Under this many outputs an annotator's own rank correlation says nothing.
FEWEST_OUTPUTS = 4


@register
class MarksAnalysis(ProtocolAnalysis):
    slug = "marks"

    def analyse(self, context: Context) -> list[Block]:
        """Blocks for all sections of error marks; families run over all of them."""
        found = [judged(context.rows, section) for section in context.sections]
        several = len(found) > 1
        blocks = []
        for estimand in (SCORE, PENALTY):
            pairs = [
                (compared, _difference(one, estimand, compared, context.level))
                for one in found
                if estimand == PENALTY or one.has_score
                for compared in _comparisons(one, estimand)
            ]
            estimates = judged_by_family(pairs, f"marks.{estimand}", context.star_scheme)
            blocks.append(
                Block(
                    f"marks.{estimand}",
                    f"Compared by {layouts.WHAT[estimand]}",
                    "recommended",
                    estimates=estimates,
                    conclusions=concluded(estimates, _wording, 0.0),
                    tables=[layouts.pairs(estimates, estimand, several)],
                    figures=[layouts.differences(estimates, estimand, several)],
                    note="Within each annotator and prompt, where annotators judged both side by side; above 0, x is better.",
                )
            )
        for one in found:
            blocks += _about(one, context)
        return [block for block in blocks if block.estimates]


def _comparisons(one: Judged, estimand: str) -> list[Comparison]:
    """What was planned on this estimand, then every other pair of systems under evaluation."""
    contrasts = one.section.study.contrasts.select_related("x", "y", "section")
    default = SCORE if one.has_score else PENALTY
    planned = [
        comparison(each, one.section, each.criterion) for each in of_systems(contrasts, one.section, estimand, default)
    ]
    others = [
        Comparison(one.section.position, x, y)
        for x, y in unplanned_pairs(one.outputs["system"], planned, one.references)
    ]
    return list({each.key: each for each in [*planned, *others]}.values())


def _difference(one: Judged, estimand: str, compared: Comparison, level: float) -> "Estimate":
    from analysis.stats import clusters, unpaired

    rows = one.outputs[one.outputs["is_kept"].astype(bool)]
    wide = rows.pivot_table(
        index=["annotator", "item", "prompt"], columns="system", values=estimand, aggfunc="mean", sort=True
    )
    if (samples := not_side_by_side(wide, compared)) is not None:
        if estimand == PENALTY:
            # Fewer errors are better: above 0, x is better.
            samples |= {"x": -samples["x"], "y": -samples["y"]}
        estimate = unpaired.mean_difference(
            **samples,
            level=level,
            analysis=f"marks.{estimand}_unpaired",
            estimand=f"{ESTIMANDS[estimand]} (not side by side)",
        )
        return _named(estimate, estimand, compared)
    table = wide.reindex(columns=[compared.x, compared.y]).dropna().reset_index()
    sign = 1.0 if estimand == SCORE else -1.0
    apart = sign * (table[compared.x] - table[compared.y]).to_numpy(float)
    who, item = table["annotator"].to_numpy(object), table["item"].to_numpy(object)
    common: dict[str, Any] = {"null": 0.0, "level": level, "estimand": ESTIMANDS[estimand]}
    estimate = clusters.clustered_mean(apart, who, analysis=f"marks.{estimand}", **common)
    others = list(estimate.sensitivity)
    if table["item"].nunique() > 1 and table["item"].duplicated().any():
        by_annotator = replace(estimate, sensitivity=(), analysis=f"marks.{estimand}.by_annotator")
        estimate = clusters.two_way_mean(apart, who, item, analysis=f"marks.{estimand}", **common)
        others.append(by_annotator)
    return _named(replace(estimate, sensitivity=tuple(others)), estimand, compared)


def _named(estimate: "Estimate", estimand: str, compared: Comparison) -> "Estimate":
    """The estimate with its comparison, and with a TOST where a margin was set."""
    sensitivity = (*estimate.sensitivity, *compared.equivalence(estimate, null=0.0))
    return compared.named(replace(estimate, sensitivity=sensitivity), estimand, null=0.0)


def _wording(one: "Estimate") -> Wording:
    x, y, _ = sides_of(one)
    if one.settings["key"] == SCORE:
        return Wording(
            more=f"{x} was scored higher than {y}.",
            less=f"{y} was scored higher than {x}.",
            same=f"{x} and {y} were scored alike",
            open=f"It remains open whether {x} or {y} is scored higher.",
            before="The mean difference of scores is",
            symbol="Δscore",
        )
    return Wording(
        more=f"{x} has fewer or milder errors than {y}.",
        less=f"{y} has fewer or milder errors than {x}.",
        same=f"{x} and {y} have equally many and grave errors",
        open=f"It remains open whether {x} or {y} has fewer or milder errors.",
        before="The mean difference of penalties is",
        symbol="Δpenalty",
    )


def _about(one: Judged, context: Context) -> list[Block]:
    rows = one.outputs[one.outputs["is_kept"].astype(bool)]
    if not len(rows):
        return []
    systems = _systems(one, rows, context.level)
    # Whether people find what was planted, the table of systems says; how they agree and what errors are like, the others tell.
    evaluated = rows[~rows["system"].isin(one.references.names)]
    kinds = _kinds(one, evaluated, context.level)
    checks = _checks(one, evaluated, context)
    paper = _standard(one)
    return [
        Block(
            "marks.systems",
            f"Each system by itself ({one.title})",
            "recommended",
            estimates=systems,
            tables=[layouts.systems(systems, one)],
            figures=[layouts.penalties(systems, one)],
            note="Means over judged outputs, annotators as clusters. The penalty sums the weights of the marks.",
        ),
        Block(
            "marks.kinds",
            f"Errors by kind and grade ({one.title})",
            "recommended",
            estimates=kinds,
            tables=[layouts.kinds(kinds, one)],
            note="Errors per judged output.",
        ),
        Block(
            "marks.checks",
            f"Whether people mark the same ({one.title})",
            "recommended",
            estimates=checks,
            tables=[layouts.checks(checks, one)],
            note="Sentences of outputs that several annotators read; marks of no sentence are left out.",
        ),
        Block(
            "marks.standard",
            f"As campaigns print it ({one.title})",
            "paper",
            estimates=paper,
            tables=[layouts.standard(paper, one)],
            note="Outputs taken as independent, after all primary rules; no interval is given, because outputs of one annotator are not.",
        ),
    ]


def _systems(one: Judged, rows: "DataFrame", level: float) -> tuple["Estimate", ...]:
    """Score, penalty and the share without an error, of each system."""
    measures = [
        ("score", "mean score", one.score_ends),
        ("penalty", "mean penalty of an output", None),
        ("clean", "share of outputs without an error", (0.0, 1.0)),
    ]
    return tuple(
        _mean(mine[measure], mine, level, f"marks.system.{measure}", words, bounds, system=system, measure=measure)
        for system, mine in rows.assign(clean=(rows["errors"] == 0).astype(float)).groupby("system", sort=True)
        for measure, words, bounds in (measures if one.has_score else measures[1:])
    )


def _kinds(one: Judged, rows: "DataFrame", level: float) -> tuple["Estimate", ...]:
    of = [(f"is:{each.key}", each.label, "kind") for each in one.book.categories]
    of += [(f"at:{each.key}", each.label, "grade") for each in one.book.severities]
    return tuple(
        _mean(
            mine[column],
            mine,
            level,
            f"marks.{sort}",
            f"errors per output: {label}",
            None,
            system=system,
            measure=label,
            sort=sort,
        )
        for column, label, sort in of
        for system, mine in rows.groupby("system", sort=True)
    )


def _mean(values, rows, level, analysis, words, bounds, **settings) -> "Estimate":
    from analysis.stats import clusters

    found = clusters.clustered_mean(
        values.to_numpy(float),
        rows["annotator"].to_numpy(object),
        level=level,
        bounds=bounds,
        analysis=analysis,
        estimand=words,
    )
    return replace(found, settings={**found.settings, **settings})


def _checks(one: Judged, rows: "DataFrame", context: Context) -> tuple["Estimate", ...]:
    """Agreement on which sentences hold an error and how grave, agreement of scores, and whether score and penalty go together."""
    from analysis.stats import basic

    level = context.level
    kept = set(rows["assignment"])
    parts = one.parts[one.parts["assignment"].isin(kept) & ~one.parts["system"].isin(one.references.names)]
    parts = parts.assign(sentence=_joined(parts, "item", "system", "sample", "part"))
    checks = []
    for column, measured, words in (
        ("is_marked", "nominal", "which sentences hold an error"),
        ("worst", "ordinal", "how grave the worst error of a sentence is"),
    ):
        checks.append(_alpha(parts["sentence"], parts[column], measured, "sentence", words, context, cluster="output"))
    if one.has_score:
        checks.append(
            _alpha(_joined(rows, "item", "system", "sample"), rows["score"], "interval", "output", "scores", context)
        )
        own = []
        for _, mine in rows.groupby("annotator", sort=True):
            if len(mine) >= FEWEST_OUTPUTS and mine["score"].nunique() > 1 and mine["penalty"].nunique() > 1:
                own.append(mine["score"].corr(-mine["penalty"], method="spearman"))
        checks.append(
            basic.one_sample(
                own,
                null=0.0,
                level=level,
                bounds=(-1.0, 1.0),
                analysis="marks.consistency",
                estimand="rank correlation of score and (less) penalty within an annotator, mean",
            )
        )
    return tuple(checks)


def _alpha(units, values, measured, unit, words, context, cluster="") -> "Estimate":
    """``cluster``: what is resampled, where a unit's name begins with its name."""
    from analysis.stats import agreement

    counts, points = agreement.count_table(units.to_numpy(object), values.to_numpy(float))
    # The sentences of an output were read by the same people, and a bad output has more than one that is marked.
    clusters = [name.rpartition("\x1f")[0] for name in sorted(set(units))] if cluster else None
    found = agreement.krippendorff_alpha(
        counts,
        points,
        level_of_measurement=measured,
        level=context.level,
        rng=context.rng(words),
        unit=unit,
        analysis="marks.agreement",
        clusters=clusters,
        cluster=cluster,
    )
    return replace(found, estimand=f"Krippendorff's alpha: {words}")


def _joined(rows: "DataFrame", *names: str):
    joined = rows[names[0]].astype(str)
    for name in names[1:]:
        joined = joined + "\x1f" + rows[name].astype(str)
    return joined


def _standard(one: Judged) -> tuple["Estimate", ...]:
    """Penalty per output and per 100 words, and the mean score, as published tables have them."""
    from analysis.stats.results import Estimate

    rows = one.outputs[one.outputs["is_kept_paper"].astype(bool)]
    found = []
    for system, mine in rows.groupby("system", sort=True):
        words = float(mine["words"].sum())
        measures = {
            "penalty": ("weighted penalty per output", float(mine["penalty"].mean())),
            "per_100_words": (
                "weighted penalty per 100 words",
                100 * float(mine["penalty"].sum()) / words if words else None,
            ),
            "score": (
                "mean score",
                float(mine["score"].mean()) if one.has_score and mine["score"].notna().any() else None,
            ),
        }
        for measure, (estimand, value) in measures.items():
            found.append(
                Estimate(
                    analysis=f"marks.standard.{measure}",
                    estimand=estimand,
                    unit="judged output",
                    n=len(mine),
                    mode="paper",
                    status="ok" if value is not None else "not_applicable",
                    estimate=value,
                    reason="" if value is not None else "not asked, or no words",
                    settings={"system": system, "measure": measure},
                    detail={
                        "words": int(words),
                        "errors": int(mine["errors"].sum()),
                        "annotators": int(mine["annotator"].nunique()),
                    },
                )
            )
    return tuple(found)
