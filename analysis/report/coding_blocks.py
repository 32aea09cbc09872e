"""What the codings of a study's samples say: how far coders agree, what explanations speak of by condition, whose work is refused.

Agreement is computed from what the two coders gave by themselves, before the declared rule makes one coding of two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.coding.hints import HINT_LABELS
from analysis.coding.models import CodingSample
from analysis.coding.samples import CodedSample
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.cells import interval_bounds
from analysis.protocols.blocks.tables import Column, Table, build_table, parse_columns

if TYPE_CHECKING:
    import numpy as np

AGREEMENT_RESAMPLES = 999
# What each rule makes of two reviews: work is refused or not, whatever label says why.
REFUSAL_RULE_SENTENCES = {
    CodingSample.Rule.UNION: "Work is refused that either refuses.",
    CodingSample.Rule.INTERSECTION: "Work is refused that both refuse, if not for the same reason.",
    CodingSample.Rule.BOTH_COUNTED: "Work is refused that either refuses.",
}


def blocks(samples: Sequence[CodedSample], *, level: float, resamples: int, seed: str) -> list[Block]:
    """Blocks of every sample that somebody has coded twice."""
    made = []
    for sample in samples:
        if sample.pairs:
            make = _explanations if sample.kind == CodingSample.Kind.EXPLANATIONS else _rejections
            made += make(sample, level, resamples, seed)
    return made


def _rng(seed: str, *what: Any) -> "np.random.Generator":
    from analysis.stats.seeds import generator

    return generator(seed, "coding", *what)


def _rows(sample: CodedSample) -> tuple[list[int], list[int], list[frozenset[str] | None]]:
    """(units, seats, sets) of the first two coders; None where one has not coded."""
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
    options = {"level": level, "resamples": min(AGREEMENT_RESAMPLES, resamples), "unit": unit}
    alpha = coding.label_set_alpha(units, seats, sets, rng=_rng(seed, sample.number, "alpha"), **options)
    labels = coding.label_agreement(
        units, seats, sets, sample.codebook.keys, rng=_rng(seed, sample.number, "labels"), **options
    )
    return [replace(one, settings={**one.settings, "sample": sample.number}) for one in (alpha, *labels)]


def _coverage_sentence(sample: CodedSample) -> str:
    n, both = len(sample.items), len(sample.pairs)
    words = f"{both} of {n} coded by both. {rule_sentence(sample)} "
    if sample.n_unblinded_coders:
        words += f"{sample.n_unblinded_coders} of the coders may see the study otherwise and need not have been blind. "
    return words


def rule_sentence(sample: CodedSample) -> str:
    if sample.kind == CodingSample.Kind.REJECTIONS and sample.rule in REFUSAL_RULE_SENTENCES:
        return REFUSAL_RULE_SENTENCES[sample.rule]
    label = CodingSample.Rule(sample.rule).label
    return f"{label[:1].upper()}{label[1:]}."


def _label_table(sample: CodedSample, estimates: Sequence[Any], title: str) -> Table:
    names = {label.key: label for label in sample.codebook.labels}
    rows = []
    for one in estimates:
        label = names.get(one.settings.get("label", ""))
        rows.append(
            {
                "label": label.name if label else "all labels together (α, MASI)",
                "category": label.category if label else "",
                "estimate": one.estimate,
                "interval": interval_bounds(one),
                "agreement": one.detail.get("percent_agreement") if label else None,
                "prevalence": one.detail.get("prevalence"),
                "positive": one.detail.get("positive_agreement"),
                "n": one.n,
                "reason": one.reason,
            }
        )
    return build_table(
        f"coding_agreement_{sample.number}",
        title,
        "label|Label|text; category|Category|text; estimate|Cohen's κ|number; interval|95% CI|wide_interval; "
        "agreement|Agreement|percent; prevalence|Given to|percent; positive|Given again by the other|percent; n|n items|integer; "
        "reason|Undefined because|text",
        rows,
        "sure",
        f"{_coverage_sentence(sample)}“No label applies” is an answer, “not coded” is none. Agreement is that of the two by themselves.",
    )


def _explanations(sample: CodedSample, level: float, resamples: int, seed: str) -> list[Block]:
    from analysis.stats import coding

    agreement = _agreement(sample, level, resamples, seed, "comment")
    book = sample.codebook
    categories = {name: [label.key for label in labels] for name, labels in book.categories.items()}
    rule = "union" if sample.rule == CodingSample.Rule.THIRD else sample.rule
    counts, undecided = {}, 0
    for condition in sample.conditions:
        units, coders, sets = [], [], []
        for unit, item in enumerate(one for one in sample.pairs if one.condition == condition):
            codings = sample.counted_codings(item)
            undecided += codings is None
            for seat, labels in enumerate(codings or ()):
                units.append(unit)
                coders.append(seat)
                sets.append(labels)
        counts[condition] = coding.label_counts(units, coders, sets, book.keys, rule=rule)
    options = {"excluded": book.left_out, "level": level, "resamples": resamples}
    shares, differences = {}, []
    for condition, given in counts.items():
        rng = _rng(seed, sample.number, "shares", condition)
        found = coding.category_shares(given, book.keys, categories, rng=rng, **options)
        shares[condition] = [
            replace(one, settings={**one.settings, "condition": condition, "sample": sample.number}) for one in found
        ]
        if condition != sample.conditions[0]:
            first = counts[sample.conditions[0]]
            rng = _rng(seed, sample.number, "differences", condition)
            found = coding.category_share_differences(given, first, book.keys, categories, rng=rng, **options)
            differences += [
                replace(
                    one,
                    settings={
                        **one.settings,
                        "condition": condition,
                        "reference": sample.conditions[0],
                        "sample": sample.number,
                    },
                )
                for one in found
            ]
    tables = [_category_table(sample, shares, undecided), *_difference_tables(sample, differences)]
    return [
        Block(
            "coding.agreement",
            f"Agreement of coders, sample {sample.number}",
            "recommended",
            estimates=tuple(agreement),
            tables=[_label_table(sample, agreement, f"Explanations: agreement by label (sample {sample.number})")],
        ),
        Block(
            "coding.categories",
            f"What explanations speak of, sample {sample.number}",
            "recommended",
            estimates=(*(one for found in shares.values() for one in found), *differences),
            tables=tables,
        ),
    ]


def _category_table(sample: CodedSample, shares: Mapping[str, Sequence[Any]], undecided: int) -> Table:
    names = [one.settings["category"] for one in next(iter(shares.values()))]
    rows = [
        {"condition": condition, "n": found[0].n, "labels": found[0].n_rows, "reason": found[0].reason}
        | {f"c{place}": one.estimate for place, one in enumerate(found)}
        | {f"i{place}": interval_bounds(one) for place, one in enumerate(found)}
        for condition, found in shares.items()
    ]
    heads = parse_columns("condition|Training|text")
    for place, name in enumerate(names):
        heads.append(Column(key=f"c{place}", label=name, kind="percent"))
        heads.append(Column(key=f"i{place}", label=f"95% CI, {name}", kind="interval"))
    heads += parse_columns("n|n comments|integer; labels|Labels|integer; reason|Undefined because|text")
    waiting = f" {_pending_sentence(undecided)}".rstrip()
    return build_table(
        f"coding_categories_{sample.number}",
        f"What explanations speak of, by training (sample {sample.number})",
        heads,
        rows,
        "sure",
        f"As in the paper's Table 3: shares of the labels given, not of the comments. {_coverage_sentence(sample)}"
        f"Left out: {', '.join(sample.codebook.left_out) or 'nothing'}.{waiting}",
    )


def _pending_sentence(n: int) -> str:
    if not n:
        return ""
    return f"{n} {'item waits' if n == 1 else 'items wait'} for the third coder and {'does' if n == 1 else 'do'} not count. "


def _difference_tables(sample: CodedSample, differences: Sequence[Any]) -> list[Table]:
    rows = [
        {
            "condition": f"{one.settings['condition']} less {one.settings['reference']}",
            "category": one.settings["category"],
            "estimate": one.estimate,
            "interval": interval_bounds(one),
            "n": one.n,
            "reason": one.reason,
        }
        for one in differences
    ]
    if not rows:
        return []
    return [
        build_table(
            f"coding_differences_{sample.number}",
            f"What training changes in explanations (sample {sample.number})",
            "condition|Training|text; category|Category|text; estimate|Difference of shares|fine_percent; interval|95% CI|fine_interval; "
            "n|n comments|integer; reason|Undefined because|text",
            rows,
            "sure",
            "Bootstrap over comments. Shares sum to 1: where one grows another must shrink.",
        )
    ]


def _rejections(sample: CodedSample, level: float, resamples: int, seed: str) -> list[Block]:
    from analysis.stats import basic, coding

    estimates = _agreement(sample, level, resamples, seed, "annotator")
    sides = [[bool(item.labels_by_seat[seat]) for item in sample.pairs] for seat in (1, 2)]
    refused = coding.cohen_kappa(
        *sides, categories=[False, True], level=level, analysis="coding.refused", unit="annotator"
    )
    estimates.append(replace(refused, settings={**refused.settings, "sample": sample.number, "label": "any"}))
    rows, shares, undecided = [], [], 0
    for condition in sample.conditions:
        decided = [sample.is_work_refused(item) for item in sample.pairs if item.condition == condition]
        known = [one for one in decided if one is not None]
        undecided += len(decided) - len(known)
        share = basic.proportion(
            sum(known), len(known), level=level, analysis="coding.refused_share", estimand="share of work refused"
        )
        shares.append(replace(share, settings={**share.settings, "condition": condition, "sample": sample.number}))
        interval = interval_bounds(share)
        rows.append(
            {
                "condition": condition,
                "share": share.estimate,
                "interval": interval,
                "refused": sum(known),
                "n": len(known),
                "reason": share.reason,
            }
        )
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
        f"Work that reviewers refuse, by training (sample {sample.number})",
        "condition|Training|text; share|Refused|percent; interval|95% CI|interval; refused|n refused|integer; n|n reviewed|integer; reason|Undefined because|text",
        rows,
        "sure",
        f"{_coverage_sentence(sample)}{_pending_sentence(undecided)}Reviewers do not know the condition, who wrote a text, or what was right.",
    )
    return [
        Block(
            "coding.agreement",
            f"Agreement of reviewers, sample {sample.number}",
            "recommended",
            estimates=tuple(estimates),
            tables=[labels],
        ),
        Block(
            "coding.refused",
            f"Work refused, sample {sample.number}",
            "recommended",
            estimates=tuple(shares),
            tables=[by_condition, _hint_table(sample)],
        ),
    ]


def _hint_table(sample: CodedSample) -> Table:
    """How often a program noticed something, and how often the reviewers refused that work."""
    decided = {item.assignment: sample.is_work_refused(item) for item in sample.pairs}
    rows = []
    for flag, words in HINT_LABELS.items():
        mine = [decided[one] for one, flags in sample.hints.items() if flag in flags and decided.get(one) is not None]
        rows.append(
            {
                "hint": words,
                "n": len(mine),
                "refused": sum(map(bool, mine)),
                "share": sum(map(bool, mine)) / len(mine) if mine else None,
            }
        )
    return build_table(
        f"coding_hints_{sample.number}",
        f"What a program noticed, and what reviewers said (sample {sample.number})",
        "hint|Noticed|text; n|n annotators|integer; refused|Of them refused|integer; share|Share|percent",
        rows,
        "more",
        "Reviewers saw these flags. A flag refuses nobody.",
    )
