"""Coherence of the pairs, ranking of the systems and reliability of the answers of one section."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.common_tables import ranking_tables, reliability_row, reliability_table
from analysis.protocols.blocks.subjects import in_parentheses, join_words

from . import layouts
from .answers import SectionAnswers
from .prompt_groups import read_prompt_groups


def coherence_ranking_and_reliability_blocks(
    kept_answers: SectionAnswers, comparison_columns: Sequence[int], title: str, context: AnalysisContext
) -> list[Block]:
    """Return coherence of the pairs, ranking of the systems and reliability, on one criterion."""
    import numpy as np

    from analysis.stats import coherence, reliability, spa
    from analysis.stats.bradley_terry import fractional_bradley_terry
    from analysis.stats.cluster_variances import TOO_FEW_ITEMS
    from analysis.stats.clusters import without_interval_if_too_few
    from analysis.stats.results import json_safe

    comparisons = [kept_answers.comparisons[n] for n in comparison_columns]
    systems = list(dict.fromkeys(name for compared in comparisons for name in (compared.x, compared.y)))
    systems.sort()
    number = {name: n for n, name in enumerate(systems)}
    pairs = [(number[compared.x], number[compared.y]) for compared in comparisons]
    table = spa.combine_orders(kept_answers.xy, kept_answers.yx)[:, comparison_columns]
    random_key = (kept_answers.section.position, comparisons[0].criterion)
    common: dict[str, Any] = {"level": context.level, "resamples": context.resamples}
    blocks = []
    if len(systems) > 2:
        result = coherence.coherence(
            table, pairs, n_systems=len(systems), rng=context.rng("coherence", *random_key), **common
        )
        cycles = [" > ".join(systems[n] for n in (*cycle, cycle[0])) for cycle in result.cycles]
        sums = tuple(replace(total, settings={**total.settings, "systems": systems}) for total in result.cycle_sums)
        estimates = (*result.transitivity, result.cycle, *sums)
        blocks.append(
            Block(
                "spa.coherence",
                f"Coherence of the pairs{in_parentheses(title)}",
                "recommended",
                estimates=estimates,
                other_results={"cycles": cycles, "systems": systems},
                tables=[layouts.coherence_table(estimates, cycles, title)],
            )
        )
    first, second, chances, people = [], [], [], []
    for column, (x, y) in zip(comparison_columns, pairs, strict=True):
        for subject, other, answers in ((x, y, kept_answers.xy), (y, x, kept_answers.yx)):
            is_answered = ~np.isnan(answers[:, column])
            n = int(is_answered.sum())
            first += [subject] * n
            second += [other] * n
            chances.append(answers[is_answered, column] / 100)
            people.append(np.flatnonzero(is_answered))
    data = (
        np.asarray(first, dtype=np.int64),
        np.asarray(second, dtype=np.int64),
        np.concatenate(chances),
        np.concatenate(people),
    )
    groups, _ = read_prompt_groups(kept_answers)
    declared = {compared.population for compared in comparisons if compared.is_planned}
    if "people" in declared:
        groups = None
    options: dict[str, Any] = {"n_systems": len(systems), "level": context.level}
    sets = None if groups is None else groups[data[3]]
    fit = fractional_bradley_terry(*data, sets, **options)
    framed = fractional_bradley_terry(*data, sets, framing=True, **options)
    # Groups of unknown prompts are no sample.
    n_groups = TOO_FEW_ITEMS if declared != {"people_and_prompts"} else 0 if groups is None else len(set(groups))
    framing = framed.framing and without_interval_if_too_few(framed.framing, n_groups, "sets of prompts")
    strengths = [
        replace(
            without_interval_if_too_few(strength, n_groups, "sets of prompts"),
            estimand=f"log-odds of {systems[n]} against {systems[0]}",
            detail={**strength.detail, "system": systems[n]},
        )
        for n, strength in enumerate(fit.strengths)
    ]
    verdict = json_safe(
        {
            "systems": systems,
            "status": fit.status,
            "reason": fit.reason,
            "probabilities": fit.probabilities,
            "observed": fit.observed,
            "components": [[systems[n] for n in group] for group in fit.components],
        }
    )
    note = "Strengths in log-odds; an interval is against the reference, the system whose strength is 0."
    blocks.append(
        Block(
            "spa.ranking",
            f"Ranking of the systems, fractional Bradley-Terry{in_parentheses(title)}",
            "recommended",
            estimates=(*strengths, *([framing] if framing is not None else [])),
            other_results=verdict,
            tables=ranking_tables(strengths, verdict, title, note, framing),
            note=note,
        )
    )
    halves = reliability.split_half_reliability(
        table,
        level=context.level,
        resamples=min(999, context.resamples),
        rng=context.rng("halves", *random_key),
    ).labelled(unit="pair")
    blocks.append(
        Block(
            "spa.reliability",
            f"Split-half reliability of the pairs{in_parentheses(title)}",
            "recommended",
            estimates=(halves,),
            tables=[reliability_table([reliability_row(halves, join_words("stated chances", title))])],
        )
    )
    return blocks
