"""The record of a probe, and the probes of any board."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters, ranks
from analysis.stats.arrays import vector
from analysis.stats.results import Estimate, Record

ALPHA = 0.05
# Answers that mostly decide nothing buy little.
LARGEST_NEUTRAL_SHARE = 0.5
# A board hardly separates its systems if more of them can be first.
LARGEST_FIRST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Probe(Record):
    """One question to a board: `fires` says that its `estimate` is beyond `limit`.

    Where the estimate has a test, it fires at p <= `limit`. Otherwise `limit` is on the scale of the estimate.
    """

    name: str
    fires: bool
    limit: float
    estimate: Estimate


def fires_by_test(name: str, estimate: Estimate, alpha: float) -> Probe:
    """Return the probe that fires if the test rejects at `alpha`; an estimate without a test never fires.

    >>> estimate = Estimate(analysis="demo", estimand="mean", unit="annotator", n=0, status="no_data", reason="empty")
    >>> fires_by_test("demo", estimate, 0.05).fires
    False
    """
    return Probe(name, estimate.pvalue is not None and estimate.pvalue <= alpha, alpha, estimate)


def neutral_share_probe(
    is_neutral: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    alpha: float = ALPHA,
) -> Probe:
    """Whether too many answers are ties or neutral: fires if the interval of their share lies above one half.

    Parameters
    ----------
    is_neutral : array_like, shape (n_rows,)
        1 for a tie or a neutral answer, 0 for another; NaN is missing.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.
    items : array_like, shape (n_rows,), optional
        Label of each row's item.
    alpha : float, default .05
        The interval has the level 1 - 2 alpha, so that a share at the limit fires in at most alpha of boards.

    Returns
    -------
    Probe
        The share of neutral answers.

    Examples
    --------
    >>> probe = neutral_share_probe(np.arange(200) % 10 < 8, np.arange(200) // 10)
    >>> probe.estimate.estimate, probe.fires
    (0.8, True)
    """
    values = vector(np.asarray(is_neutral, dtype=np.float64), "is_neutral")
    prompts = np.zeros(len(values), dtype=np.int64) if items is None else items
    estimate = clusters.annotator_prompt_clustered_mean(
        values,
        annotators,
        prompts,
        null=None,
        analysis="board_audit.neutral_share",
        estimand="share of answers that are ties or neutral",
        level=1 - 2 * alpha,
        bounds=(0.0, 1.0),
    )
    is_above = estimate.interval is not None and estimate.interval.low > LARGEST_NEUTRAL_SHARE
    return Probe("neutral_share", is_above, LARGEST_NEUTRAL_SHARE, estimate)


def separation_probe(sets: ranks.RankSets) -> Probe:
    """Whether a board hardly separates its systems: fires if more than half of them can be first.

    Parameters
    ----------
    sets : RankSets
        The rank sets of the board.

    Returns
    -------
    Probe
        The share of systems whose rank set holds 1. `detail["pairs_separated"]` is the share of pairs of which one is
        shown to be better.

    Examples
    --------
    >>> people, values = np.repeat(np.arange(8), 3), np.tile([0.8, 0.5, 0.49], 8) + np.tile([0.02, -0.02, 0, 0, 0.02], 5)[:24]
    >>> probe = separation_probe(ranks.rank_confidence_sets_from_rows(values, people, np.tile([0, 1, 2], 8)))
    >>> round(probe.estimate.estimate, 2), probe.fires, round(probe.estimate.detail["pairs_separated"], 2)
    (0.33, False, 0.67)
    """
    k = len(sets.systems)
    common: dict[str, Any] = {
        "analysis": "board_audit.separation",
        "estimand": "share of systems that can be first",
        "unit": "system",
    }
    if sets.low is None or sets.high is None:
        status = sets.status if sets.status != "ok" else "not_identified"
        reason = sets.reason or "there are no rank sets"
        return Probe("separation", False, LARGEST_FIRST_SHARE, Estimate(n=k, status=status, reason=reason, **common))
    share = sum(sets.best) / k
    # low - 1 systems are shown to be better than a system, so their sum counts each separated pair once.
    separated = sum(low - 1 for low in sets.low) / (k * (k - 1) / 2)
    detail = {"n_first": sum(sets.best), "pairs_separated": separated}
    estimate = Estimate(n=k, estimate=share, detail=detail, warnings=sets.warnings, **common)
    return Probe("separation", share > LARGEST_FIRST_SHARE, LARGEST_FIRST_SHARE, estimate)
