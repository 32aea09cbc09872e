"""Whether one person makes a board."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import ranks
from analysis.stats.arrays import group_sizes, label_codes_where, vector
from analysis.stats.board_audit._probes import Probe
from analysis.stats.results import Estimate

# A person without whom the lead changes by more than its standard error has most of the say in it.
LARGEST_INFLUENCE = 1.0
LARGEST_SHARE = 0.1
N_SHOWN = 5


def heavy_voter_probe(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> Probe:
    """Whether one person gave too many answers, or decides the lead: fires on the share or on the influence.

    Parameters
    ----------
    values, systems, annotators : array_like, shape (n_rows,)
        Answers (NaN is missing), and labels of each row's system and annotator.
    weights : array_like, shape (n_rows,), optional
        Weights of the rows within a system, as the board's scores have them; 1 if None.

    Returns
    -------
    Probe
        The largest share of the answers. `detail` has the largest shares, the largest influence and whose it is.

    Notes
    -----
    The limit of one person's share of the answers is a tenth. With ten people or fewer equal shares are no fault, so the
    limit is then twice an equal share. The limit of the change of the lead when one person is left out is one standard
    error of the lead.

    Examples
    --------
    >>> people = np.r_[np.zeros(60), np.arange(1, 141)].astype(int)
    >>> probe = heavy_voter_probe(np.arange(200) % 3 / 2, np.arange(200) % 2, people)
    >>> round(probe.estimate.estimate, 2), probe.fires, probe.estimate.detail["annotator"]
    (0.3, True, 0)
    """
    array = vector(values, "values")
    is_used = ~np.isnan(array)
    codes, n = label_codes_where(annotators, "annotators", is_used)
    common: dict[str, Any] = {
        "analysis": "board_audit.heavy_voter",
        "estimand": "largest share of the answers by one annotator",
        "unit": "annotator",
        "n": n,
        "n_rows": len(codes),
        "settings": {"largest_share": LARGEST_SHARE, "largest_influence": LARGEST_INFLUENCE},
    }
    if n == 0:
        reason = "no answer to analyse"
        return Probe("heavy_voter", False, LARGEST_SHARE, Estimate(status="no_data", reason=reason, **common))
    names = np.unique(np.asarray(annotators)[is_used])
    shares = group_sizes(codes, n) / len(codes)
    order = np.argsort(-shares, kind="stable")[:N_SHOWN]
    limit = max(LARGEST_SHARE, 2 / n) if n <= 1 / LARGEST_SHARE else LARGEST_SHARE
    detail: dict[str, Any] = {
        "annotator": names[order[0]].item(),
        "largest": [(names[one].item(), float(shares[one])) for one in order],
        "influence": None,
        "influential_annotator": None,
    }
    spread = ranks.score_spread(array, annotators, systems, weights=weights)
    influence = 0.0
    if len(spread.systems) > 1 and n > 1:
        first, second = np.argsort(-spread.scores, kind="stable")[:2]
        contrast = np.zeros((1, len(spread.systems)))
        contrast[0, first], contrast[0, second] = 1.0, -1.0
        lead = spread.combined(contrast, ["lead"])
        se = float(lead.of_scores()[0][0])
        if np.isfinite(se) and se > 0:
            # The moves have the factor (G - 1) / G of the variance; take it out again.
            moves = np.abs(lead.annotators.moves[:, 0]) * np.sqrt(n / (n - 1)) / se
            influence = float(moves.max())
            detail |= {"influence": influence, "influential_annotator": names[int(np.argmax(moves))].item()}
    fires = bool(shares[order[0]] > limit or influence > LARGEST_INFLUENCE)
    estimate = Estimate(estimate=float(shares[order[0]]), detail=detail, warnings=spread.warnings, **common)
    return Probe("heavy_voter", fires, limit, estimate)
