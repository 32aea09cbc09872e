"""Report blocks about codings: agreement of coders, topics of explanations by condition, and refused work.

Agreement uses the independent codings of the two coders, before the declared rule combines them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.coding.hints import HINT_LABELS
from analysis.coding.models import CodingSample
from analysis.coding.samples import CodedSample
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.cells import interval_bounds
from analysis.protocols.blocks.layouts import Column, Table, build_table, estimate_row, parse_columns

if TYPE_CHECKING:
    import numpy as np

AGREEMENT_RESAMPLES = 999
# How each rule combines two reviews. Only refusal counts, not the reasons.
REFUSAL_RULE_SENTENCES: dict[str, str] = {
    CodingSample.Rule.UNION: "Work counts as refused if at least one reviewer refuses it.",
    CodingSample.Rule.INTERSECTION: "Work counts as refused if both reviewers refuse it, even for different reasons.",
    CodingSample.Rule.BOTH_COUNTED: "Work counts as refused if at least one reviewer refuses it.",
}
LABEL_RULE_SENTENCES: dict[str, str] = {
    CodingSample.Rule.UNION: "A label counts if at least one coder gave it.",
    CodingSample.Rule.INTERSECTION: "A label counts if both coders gave it.",
    CodingSample.Rule.BOTH_COUNTED: "Both codings count, so each label counts once for each coder who gave it.",
    CodingSample.Rule.THIRD: "If the two coders differ, a third coder decides. Undecided items are not counted.",
}


def build_coding_blocks(samples: Sequence[CodedSample], *, level: float, resamples: int, seed: str) -> list[Block]:
    """Return the blocks of every sample in which both coders have coded at least one item."""
    sample_blocks = []
    for sample in samples:
        if sample.items_coded_by_both:
            build = _explanations if sample.kind == CodingSample.Kind.EXPLANATIONS else _rejections
            sample_blocks += build(sample, level, resamples, seed)
    return [replace(block, estimates=tuple(map(_about_these_coders, block.estimates))) for block in sample_blocks]


def _about_these_coders(estimate: Any) -> Any:
    """Return an estimate that says that coded units represent others like them, and the coders for nobody else."""
    population = f"{estimate.unit}s, for exactly these coders"
    return replace(estimate, settings={**estimate.settings, "population": population})


def _rng(seed: str, *purpose: Any) -> "np.random.Generator":
    from analysis.stats.seeds import seeded_generator

    return seeded_generator(seed, "coding", *purpose)


def _rows(sample: CodedSample) -> tuple[list[int], list[int], list[frozenset[str] | None]]:
    """Return (units, seats, label sets) of the first two coders. A set is None if the coder has not coded the item."""
    units, seats, sets = [], [], []
    for unit, item in enumerate(sample.items):
        for seat in (1, 2):
            units.append(unit)
            seats.append(seat)
            sets.append(item.labels_by_seat.get(seat))
    return units, seats, sets


def _agreement(sample: CodedSample, level: float, resamples: int, seed: str, unit: str) -> list[Any]:
    from analysis.stats import coding

    units, seats, sets = _rows(sample)
    options: dict[str, Any] = {"level": level, "resamples": min(AGREEMENT_RESAMPLES, resamples)}
    alpha = coding.label_set_alpha(units, seats, sets, rng=_rng(seed, sample.number, "alpha"), **options)
    labels = coding.kappa_by_label(
        units, seats, sets, sample.codebook.keys, rng=_rng(seed, sample.number, "labels"), **options
    )
    return [
        replace(estimate, unit=unit, settings={**estimate.settings, "sample": sample.number})
        for estimate in (alpha, *labels)
    ]


def _coverage_sentence(sample: CodedSample) -> str:
    n, n_both = len(sample.items), len(sample.items_coded_by_both)
    text = f"Both coders coded {n_both} of {n} items. {combination_rule_sentence(sample)} "
    if sample.n_unblinded_coders:
        text += (
            f"{sample.n_unblinded_coders} of the coders can see the study by another role, so may not have been blind. "
        )
    return text


def combination_rule_sentence(sample: CodedSample) -> str:
    """Return how the sample's rule combines the codings."""
    if sample.kind == CodingSample.Kind.REJECTIONS and sample.rule in REFUSAL_RULE_SENTENCES:
        return REFUSAL_RULE_SENTENCES[sample.rule]
    return LABEL_RULE_SENTENCES[sample.rule]


def _label_table(sample: CodedSample, estimates: Sequence[Any], title: str) -> Table:
    names = {label.key: label for label in sample.codebook.labels}
    rows = []
    for estimate in estimates:
        label = names.get(estimate.settings.get("label", ""))
        rows.append(
            estimate_row(
                estimate,
                label=label.name if label else "all labels together (α, MASI)",
                category=label.category if label else "",
                agreement=estimate.detail.get("percent_agreement") if label else None,
                prevalence=estimate.detail.get("prevalence"),
                positive=estimate.detail.get("positive_agreement"),
            )
        )
    return build_table(
        f"coding_agreement_{sample.number}",
        title,
        "label|Label|text; category|Category|text; estimate|Cohen's κ|number; interval|95% CI|wide_interval; "
        "agreement|Agreement|percent; prevalence|Prevalence|percent; positive|Positive agreement|percent; n|n items|integer; "
        "reason|Undefined because|text",
        rows,
        "sure",
        f"{_coverage_sentence(sample)}“No label applies” is a coding; an item that is not coded is not used. Agreement is computed before the rule is applied.",
    )


def _explanations(sample: CodedSample, level: float, resamples: int, seed: str) -> list[Block]:
    from analysis.stats import coding

    agreement = _agreement(sample, level, resamples, seed, "comment")
    codebook = sample.codebook
    categories = {name: [label.key for label in labels] for name, labels in codebook.categories.items()}
    rule = "union" if sample.rule == CodingSample.Rule.THIRD else sample.rule
    counts, undecided = {}, 0
    for condition in sample.conditions:
        units, coders, sets = [], [], []
        for unit, item in enumerate(pair for pair in sample.items_coded_by_both if pair.condition == condition):
            codings = sample.counted_codings(item)
            undecided += codings is None
            for seat, labels in enumerate(codings or ()):
                units.append(unit)
                coders.append(seat)
                sets.append(labels)
        counts[condition] = coding.merged_label_counts_of_coded_units(units, coders, sets, codebook.keys, rule=rule)
    options: dict[str, Any] = {"excluded": codebook.left_out, "level": level, "resamples": resamples}
    shares, differences = {}, []
    for condition, condition_counts in counts.items():
        rng = _rng(seed, sample.number, "shares", condition)
        estimates = coding.label_shares_by_category(condition_counts, codebook.keys, categories, rng=rng, **options)
        shares[condition] = [
            replace(share, settings={**share.settings, "condition": condition, "sample": sample.number})
            for share in estimates
        ]
        if condition != sample.conditions[0]:
            first = counts[sample.conditions[0]]
            rng = _rng(seed, sample.number, "differences", condition)
            estimates = coding.category_share_differences(
                condition_counts, first, codebook.keys, categories, rng=rng, **options
            )
            differences += [
                replace(
                    difference,
                    settings={
                        **difference.settings,
                        "condition": condition,
                        "reference": sample.conditions[0],
                        "sample": sample.number,
                    },
                )
                for difference in estimates
            ]
    tables = [_category_table(sample, shares, undecided), *_difference_tables(sample, differences)]
    return [
        Block(
            "coding.agreement",
            f"Agreement of coders, sample {sample.number}",
            estimates=tuple(agreement),
            tables=[_label_table(sample, agreement, f"Explanations: agreement by label (sample {sample.number})")],
        ),
        Block(
            "coding.categories",
            f"Topics of explanations, sample {sample.number}",
            estimates=(*(share for condition_shares in shares.values() for share in condition_shares), *differences),
            tables=tables,
        ),
    ]


def _category_table(sample: CodedSample, shares: Mapping[str, Sequence[Any]], undecided: int) -> Table:
    names = [share.settings["category"] for share in next(iter(shares.values()))]
    rows = [
        {"condition": condition, "n": estimates[0].n, "labels": estimates[0].n_rows, "reason": estimates[0].reason}
        | {f"c{number}": share.estimate for number, share in enumerate(estimates)}
        | {f"i{number}": interval_bounds(share) for number, share in enumerate(estimates)}
        for condition, estimates in shares.items()
    ]
    heads = parse_columns("condition|Training|text")
    for number, name in enumerate(names):
        heads.append(Column(key=f"c{number}", label=name, kind="percent"))
        heads.append(Column(key=f"i{number}", label=f"95% CI, {name}", kind="interval"))
    heads += parse_columns("n|n comments|integer; labels|Labels|integer; reason|Undefined because|text")
    waiting = f" {_pending_sentence(undecided)}".rstrip()
    return build_table(
        f"coding_categories_{sample.number}",
        f"Topics of explanations by training (sample {sample.number})",
        heads,
        rows,
        "sure",
        f"Shares of all labels given, not of comments, as in Table 3 of Clark et al. 2021. {_coverage_sentence(sample)}"
        f"Categories not counted: {', '.join(sample.codebook.left_out) or 'none'}.{waiting}",
    )


def _pending_sentence(n: int) -> str:
    if not n:
        return ""
    return f"{n} {'item waits' if n == 1 else 'items wait'} for the third coder and {'is' if n == 1 else 'are'} not counted. "


def _difference_tables(sample: CodedSample, differences: Sequence[Any]) -> list[Table]:
    rows = [
        estimate_row(
            difference,
            condition=f"{difference.settings['condition']} − {difference.settings['reference']}",
            category=difference.settings["category"],
        )
        for difference in differences
    ]
    if not rows:
        return []
    return [
        build_table(
            f"coding_differences_{sample.number}",
            f"Effect of training on explanations (sample {sample.number})",
            "condition|Training|text; category|Category|text; estimate|Difference of shares|fine_percent; interval|95% CI|fine_interval; "
            "n|n comments|integer; reason|Undefined because|text",
            rows,
            "sure",
            "Bootstrap over comments. Shares sum to 1, so if one grows, another shrinks.",
        )
    ]


def _rejections(sample: CodedSample, level: float, resamples: int, seed: str) -> list[Block]:
    from analysis.stats import basic, coding

    estimates = _agreement(sample, level, resamples, seed, "annotator")
    sides = [[bool(item.labels_by_seat[seat]) for item in sample.items_coded_by_both] for seat in (1, 2)]
    refused = coding.cohen_kappa(*sides, categories=[False, True], level=level)
    refused = refused.labelled(analysis="coding.refused", unit="annotator")
    estimates.append(replace(refused, settings={**refused.settings, "sample": sample.number, "label": "any"}))
    rows, shares, undecided = [], [], 0
    for condition in sample.conditions:
        decided = [sample.is_work_refused(item) for item in sample.items_coded_by_both if item.condition == condition]
        verdicts = [is_refused for is_refused in decided if is_refused is not None]
        undecided += len(decided) - len(verdicts)
        share = basic.proportion(sum(verdicts), len(verdicts), level=level)
        share = share.labelled(analysis="coding.refused_share", estimand="share of work refused")
        shares.append(replace(share, settings={**share.settings, "condition": condition, "sample": sample.number}))
        rows.append(estimate_row(share, "share", condition=condition, refused=sum(verdicts), n=len(verdicts)))
    labels = _label_table(sample, estimates[:-1], f"Rejections: agreement by reason (sample {sample.number})")
    labels["rows"].append(
        {
            "label": "any reason", "category": "", "estimate": refused.estimate,
            "interval": interval_bounds(refused),
            "agreement": refused.detail.get("percent_agreement"), "prevalence": None, "positive": None, "n": refused.n,
            "reason": refused.reason,
        }
    )  # fmt: skip
    by_condition = build_table(
        f"coding_refused_{sample.number}",
        f"Refused work by training (sample {sample.number})",
        "condition|Training|text; share|Refused|percent; interval|95% CI|interval; refused|n refused|integer; n|n reviewed|integer; reason|Undefined because|text",
        rows,
        "sure",
        f"{_coverage_sentence(sample)}{_pending_sentence(undecided)}Reviewers do not see the condition, the author of a text, or the correct answer.",
    )
    return [
        Block(
            "coding.agreement",
            f"Agreement of reviewers, sample {sample.number}",
            estimates=tuple(estimates),
            tables=[labels],
        ),
        Block(
            "coding.refused",
            f"Work refused, sample {sample.number}",
            estimates=tuple(shares),
            tables=[by_condition, _hint_table(sample)],
        ),
    ]


def _hint_table(sample: CodedSample) -> Table:
    """Return how often each automatic hint was given, and how often reviewers refused that work."""
    decided = {item.assignment: sample.is_work_refused(item) for item in sample.items_coded_by_both}
    rows = []
    for flag, label in HINT_LABELS.items():
        refusals = [
            decided[assignment]
            for assignment, flags in sample.hints.items()
            if flag in flags and decided.get(assignment) is not None
        ]
        rows.append(
            {
                "hint": label,
                "n": len(refusals),
                "refused": sum(map(bool, refusals)),
                "share": sum(map(bool, refusals)) / len(refusals) if refusals else None,
            }
        )
    return build_table(
        f"coding_hints_{sample.number}",
        f"Automatic hints and refusals (sample {sample.number})",
        "hint|Hint|text; n|n annotators|integer; refused|n refused|integer; share|Share refused|percent",
        rows,
        "more",
        "Reviewers saw these hints. A hint alone never refuses work.",
    )
