"""The strengths of ranked systems by Davidson's model."""

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks.populations import SECOND_SAMPLE, second_sample_noun

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

    from . import QuestionRankings


def davidson_strengths(
    rankings: "QuestionRankings", population: str, level: float
) -> tuple[tuple["Estimate", ...], dict[str, Any]]:
    """Fit Davidson's model to the pairs of all rankings."""
    import numpy as np

    from analysis.stats.clusters import without_interval_if_too_few
    from analysis.stats.davidson import fit_davidson

    systems = list(rankings.wide.columns)
    annotators, prompts = (
        rankings.wide.index.get_level_values(name).to_numpy(object) for name in ("annotator", SECOND_SAMPLE)
    )
    table = rankings.wide.to_numpy(float)
    first, second, outcomes, people, ranked_prompts = [], [], [], [], []
    for x, y in combinations(range(len(systems)), 2):
        is_compared = ~np.isnan(table[:, x] - table[:, y])
        first.append(np.full(int(is_compared.sum()), x))
        second.append(np.full(int(is_compared.sum()), y))
        outcomes.append((np.sign(table[is_compared, y] - table[is_compared, x]) + 1) / 2)
        people.append(annotators[is_compared])
        ranked_prompts.append(prompts[is_compared])
    if not outcomes or not sum(map(len, outcomes)):
        return (), {"systems": systems, "status": "no_data", "reason": "no two systems were ranked together"}
    fit = fit_davidson(
        np.concatenate(first),
        np.concatenate(second),
        np.concatenate(outcomes),
        np.concatenate(people),
        None if population == "people" else np.concatenate(ranked_prompts),
        n_systems=len(systems),
        level=level,
        analysis="ranking.davidson",
    )
    n_prompts, noun = len(set(prompts)), second_sample_noun(rankings.rows)
    named = zip((*systems, ""), (*fit.strengths, fit.tie), strict=True)
    strengths = [
        replace(
            strength if population == "people" else without_interval_if_too_few(strength, n_prompts, noun),
            estimand=f"log-odds of {system} against the mean of all" if system else strength.estimand,
            detail={**strength.detail, "system": system},
        )
        for system, strength in named
    ]
    return tuple(strengths), {
        "systems": systems,
        "status": fit.status,
        "reason": fit.reason,
        "probabilities": fit.probabilities.tolist(),
        "tie_probabilities": fit.tie_probabilities.tolist(),
    }
