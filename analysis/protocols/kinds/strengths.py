"""Analyses by a model of pairs, which gives each system a strength."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from analysis.stats.davidson import PairedComparison
    from analysis.stats.results import Estimate

# The numbers of two systems, and for each answer about them: 1 if the first is better, annotator and second sample.
AnswersAboutPair = tuple[int, int, "np.ndarray", "np.ndarray", "np.ndarray"]


def fit_strengths(
    pairs: Iterable[AnswersAboutPair], population: str, *, n_systems: int, level: float, **options: Any
) -> "PairedComparison | None":
    """Fit Davidson's model to the answers about all pairs, with ties. Return None without any answer."""
    import numpy as np

    from analysis.stats.davidson import fit_davidson

    pairs = [pair for pair in pairs if len(pair[2])]
    if not pairs:
        return None
    first, second = (np.concatenate([np.full(len(pair[2]), pair[place]) for pair in pairs]) for place in (0, 1))
    outcomes, annotators, prompts = (np.concatenate([pair[place] for pair in pairs]) for place in (2, 3, 4))
    sampled = None if population == "people" else prompts
    return fit_davidson(first, second, outcomes, annotators, sampled, n_systems=n_systems, level=level, **options)


def named_by_system(
    estimates: Iterable["Estimate"],
    systems: Sequence[str],
    estimand: Callable[[str], str],
    settings: Mapping[str, Any] | None = None,
) -> list["Estimate"]:
    """Return estimates with the names of their systems in the detail and, if there are ``settings``, also in these.

    ``estimand`` returns the estimand of a system.
    """
    return [
        replace(
            estimate,
            estimand=estimand(system),
            settings=estimate.settings if settings is None else {**estimate.settings, "system": system, **settings},
            detail={**estimate.detail, "system": system},
        )
        for system, estimate in zip(systems, estimates, strict=True)
    ]


def without_intervals_if_too_few(estimates: Iterable["Estimate"], n_sampled: int, noun: str) -> list["Estimate"]:
    """Return the estimates, without intervals if there are too few prompts or groups of them to be a sample."""
    from analysis.stats.clusters import without_interval_if_too_few

    return [without_interval_if_too_few(estimate, n_sampled, noun) for estimate in estimates]


def plain_fit(fit: Any, systems: Sequence[str], **tables: Any) -> Any:
    """Return a fitted model as plain values, with the names of connected systems."""
    from analysis.stats.results import json_safe

    components = [[systems[n] for n in group] for group in fit.components]
    head = {"systems": systems, "status": fit.status, "reason": fit.reason}
    return json_safe({**head, **tables, "components": components})
