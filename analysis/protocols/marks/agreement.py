"""Agreement of annotators on error marks and on scores."""

from typing import TYPE_CHECKING

from analysis.data.context import AnalysisContext

from .judged_outputs import JudgedOutputs

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate

# With fewer outputs than this, an annotator's rank correlation is meaningless.
MIN_OUTPUTS = 4


def agreement_checks(
    judged_outputs: JudgedOutputs, rows: "DataFrame", context: AnalysisContext
) -> tuple["Estimate", ...]:
    """Return agreement on erroneous sentences, on severity and on scores, and the correlation of score and penalty."""
    from analysis.stats import basic

    level = context.level
    assignments = set(rows["assignment"])
    parts = judged_outputs.parts[
        judged_outputs.parts["assignment"].isin(assignments)
        & ~judged_outputs.parts["system"].isin(judged_outputs.references.names)
    ]
    parts = parts.assign(sentence=_join_columns(parts, "item", "system", "sample", "part"))
    checks = []
    for column, measurement, measured_text in (
        ("is_marked", "nominal", "which sentences hold an error"),
        ("worst", "ordinal", "how grave the worst error of a sentence is"),
    ):
        checks.append(
            _agreement_alpha(
                parts["sentence"], parts[column], measurement, "sentence", measured_text, context, cluster="output"
            )
        )
    if judged_outputs.has_score:
        checks.append(
            _agreement_alpha(
                _join_columns(rows, "item", "system", "sample"), rows["score"], "interval", "output", "scores", context
            )
        )
        correlations = []
        for _, annotator_rows in rows.groupby("annotator", sort=True):
            if (
                len(annotator_rows) >= MIN_OUTPUTS
                and annotator_rows["score"].nunique() > 1
                and annotator_rows["penalty"].nunique() > 1
            ):
                correlations.append(annotator_rows["score"].corr(-annotator_rows["penalty"], method="spearman"))
        checks.append(
            basic.one_sample_t_test(
                correlations,
                null=0.0,
                level=level,
                bounds=(-1.0, 1.0),
            ).labelled(
                analysis="marks.consistency",
                estimand="rank correlation of score and (less) penalty within an annotator, mean",
            )
        )
    return tuple(checks)


def _agreement_alpha(units, values, level_of_measurement, unit, measured_text, context, cluster="") -> "Estimate":
    """Return Krippendorff's alpha. ``cluster``: the prefix of unit names that is resampled."""
    from analysis.stats import agreement

    counts, points = agreement.value_counts_by_unit(units.to_numpy(object), values.to_numpy(float))
    # The same people read all sentences of an output, and a bad output has several marked sentences.
    clusters = [name.rpartition("\x1f")[0] for name in sorted(set(units))] if cluster else None
    estimate = agreement.krippendorff_alpha(
        counts,
        points,
        level_of_measurement=level_of_measurement,
        level=context.level,
        rng=context.rng(measured_text),
        clusters=clusters,
        cluster_name=cluster,
    )
    estimand = f"Krippendorff's alpha: {measured_text}"
    return estimate.labelled(analysis="marks.agreement", estimand=estimand, unit=unit)


def _join_columns(rows: "DataFrame", *names: str):
    joined = rows[names[0]].astype(str)
    for name in names[1:]:
        joined = joined + "\x1f" + rows[name].astype(str)
    return joined
