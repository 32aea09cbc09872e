"""Probes that look for what is wrong with a board: each has a number, a limit, and whether it fires.

The probes of votes need pairs of systems and who was chosen, those of scores need answers in 0..1. A probe that cannot
be computed has an estimate with a status, and does not fire.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import (
    board_rounds,
    board_scores,
    bootstrap,
    cluster_variances,
    clusters,
    coherence,
    leaderboard,
    ranks,
    ratings,
)
from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    group_sizes,
    label_codes,
    label_codes_where,
    validate_within_bounds,
    vector,
)
from analysis.stats.board_rounds import largest_difference
from analysis.stats.results import Estimate, HypothesisTest, Record
from analysis.stats.votes import checked_system_pairs

# The record of a probe, and the probes of any board.


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
    """Probe whether too many answers are ties or neutral: fires if the interval of their share lies above one half.

    `is_neutral` has 1 for a tie or a neutral answer, 0 for another, and NaN for missing. `annotators` and `items` have
    the labels of each row. The estimate is the share of neutral answers. Its interval has the level 1 - 2 alpha, so
    that a share at the limit fires in at most `alpha` of boards.

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
    """Probe whether a board hardly separates its systems: fires if more than half of them can be first.

    The estimate is the share of systems whose rank set holds 1. `detail["pairs_separated"]` is the share of pairs of
    which one is shown to be better.

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


# Whether one person makes a board.


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
    """Probe whether one person gave too many answers, or decides the lead: fires on the share or on the influence.

    All arrays have one entry per row, and NaN is a missing answer. `weights` are those of the rows within a system, as
    the board's scores have them; 1 if None. The estimate is the largest share of the answers, and `detail` has the
    largest shares, the largest influence and whose it is. The limit of one person's share of the answers is a tenth.
    With ten people or fewer equal shares are no fault, so the limit is then twice an equal share. The limit of the
    change of the lead when one person is left out is one standard error of the lead.

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


# The audit of a board of scores.


def audit_scores(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    positions: npt.ArrayLike | None = None,
    rounds: npt.ArrayLike | None = None,
    samples: npt.ArrayLike | None = None,
    alpha: float = ALPHA,
    items_sampled: bool = True,
    item_groups: npt.ArrayLike | None = None,
    resamples: int = bootstrap.RESAMPLES,
) -> tuple[Probe, ...]:
    """Compute the probes of a board of scores: place on the page, neutral answers, heavy voters, separation, and drift.

    Each row is an answer in 0..1; NaN is missing and .5 is neutral. Without `positions`, the place of each output on
    the page, there is no probe of the place; without `rounds`, the round or the part of the time of each row, there is
    no probe of drift. Drift needs systems with answers in several rounds (`board_rounds.equated_scores`) and compares
    rounds on one sample of items; `samples` says which one each row counts in (`board_rounds.rows_of_samples`).
    `items_sampled` says whether the claims go beyond the items of the study, and `item_groups` are what is sampled in
    place of items, such as the document of each row's item. `resamples` counts the normal draws for the quantile of the
    largest deviation.

    >>> rng = np.random.default_rng(0)
    >>> people, systems, items = np.tile(np.arange(20), 12), np.repeat(["a", "b"], 120), np.tile(np.arange(60), 4)
    >>> values = rng.choice([0, 0.25, 0.5, 0.75, 1], 240)
    >>> [(probe.name, probe.fires) for probe in audit_scores(values, systems, items, people, rng=rng, resamples=999)]
    [('neutral_share', False), ('heavy_voter', False), ('separation', True)]
    """
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    item_groups = items if item_groups is None else item_groups
    options: dict[str, Any] = {"rng": rng, "items_sampled": items_sampled, "resamples": resamples}
    options["item_groups"] = item_groups
    sampled = item_groups if items_sampled else None
    probes = []
    if positions is not None:
        effect = ratings.rating_change_per_position(
            100 * array,
            positions,
            annotators,
            sampled,
            systems=systems,
        ).labelled(analysis="board_audit.position")
        probes.append(fires_by_test("position", effect, alpha))
    is_neutral = np.where(np.isnan(array), np.nan, array == 0.5)
    probes.append(neutral_share_probe(is_neutral, annotators, sampled, alpha=alpha))
    weights = board_scores.equal_item_weights(array, systems, items)
    probes.append(heavy_voter_probe(array, systems, annotators, weights=weights))
    board = leaderboard.leaderboard(array, systems, items, annotators, **options)
    probes.append(separation_probe(board.ranks))
    if rounds is not None:
        equated = board_rounds.equated_scores(array, systems, items, annotators, rounds, samples=samples, **options)
        probes.append(fires_by_test("drift", equated.drift, alpha))
    return tuple(probes)


# The audit of a board of votes between two systems.


def first_shown_probe(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_systems: int,
    alpha: float = ALPHA,
) -> Probe:
    """Test over people whether the system shown first is favoured, or the one shown second.

    `first` and `second` are system numbers 0..n_systems-1 in the order shown; an outcome is 1 if the first was chosen,
    0 if the second was, .5 for a tie, and NaN if it is missing. The estimate is the share of votes for the first shown,
    if each pair had been shown equally often in both orders. Only pairs shown in both orders count. A pair with a votes
    in one order and b in the other has the weight a b / (a + b) in each order, so the strengths of the systems cancel
    whatever they are.

    >>> first, people = np.tile([0, 1], 60), np.arange(120) // 6
    >>> probe = first_shown_probe(first, 1 - first, np.arange(120) % 5 < 4, people, n_systems=2)
    >>> round(probe.estimate.estimate, 2), probe.fires
    (0.8, True)
    """
    values = _checked_outcomes(outcomes)
    x, y = checked_system_pairs(first, second, len(values), n_systems)
    is_used = ~np.isnan(values)
    pairs = np.minimum(x, y) * n_systems + np.maximum(x, y)
    orders = 2 * pairs + (x > y)
    counts = np.bincount(orders[is_used], minlength=2 * n_systems**2)
    own, other = counts[orders], counts[orders ^ 1]
    weights = np.where(is_used & (other > 0), other / np.maximum(1, own + other), 0.0)
    kept = weights > 0
    people = np.asarray(annotators)[kept]
    prompts = np.zeros(int(kept.sum()), dtype=np.int64)
    estimate = clusters.annotator_prompt_clustered_mean(
        values[kept],
        people,
        prompts,
        weights=weights[kept],
        null=0.5,
        analysis="board_audit.first_shown",
        estimand="share of votes for the system shown first, pairs in both orders equally often",
        bounds=(0.0, 1.0),
    )
    return fires_by_test("first_shown", estimate, alpha)


def cycle_probe(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_systems: int,
    alpha: float = ALPHA,
) -> Probe:
    """Test whether systems beat one another in a circle, by the wins that are shown for all pairs at once.

    Systems have the numbers 0..n_systems-1; an outcome is 1 if the first was chosen, 0 if the second was, .5 for a tie,
    and NaN if it is missing. A pair's win is shown if its one-sided t test over annotators (CV3) has p <= alpha / (2
    m), for m pairs in two directions, and the probe fires if the shown wins form a cycle. If the true preferences have
    no cycle, each cycle of shown wins has a false one, so the probe fires in at most alpha of boards. The estimate is
    the number of cycles in the shown wins (`detail["cycles"]`) with the test that no cycle exists, whose p-value is the
    smallest alpha at which a cycle appears. The detail's `n_cycles_of_means` counts cycles in the plain majorities,
    which chance alone produces between similar systems.

    >>> first, people = np.tile([0, 1, 2], 40), np.arange(120) // 6
    >>> probe = cycle_probe(first, (first + 1) % 3, np.arange(120) % 10 < 9, people, n_systems=3)
    >>> probe.fires, probe.estimate.detail["cycles"]
    (True, ((0, 1, 2),))
    """
    values = _checked_outcomes(outcomes)
    x, y = checked_system_pairs(first, second, len(values), n_systems)
    oriented = np.where(x < y, values, 1 - values)
    labels = np.minimum(x, y) * n_systems + np.maximum(x, y)
    spread = ranks.score_spread(oriented - 0.5, annotators, labels)
    common: dict[str, Any] = {
        "analysis": "board_audit.cycles",
        "estimand": "number of cycles of systems that are shown to beat one another",
        "unit": "annotator",
        "n": spread.n_annotators,
        "n_clusters": spread.n_annotators,
        "n_rows": spread.n_rows,
        "warnings": spread.warnings,
        "settings": {"alpha": alpha},
    }
    if len(spread.systems) < 3:
        reason = "fewer than three pairs cannot form a cycle"
        return fires_by_test("cycles", Estimate(status="not_applicable", reason=reason, **common), alpha)
    if spread.n_annotators < cluster_variances.TOO_FEW_CLUSTERS:
        reason = f"no test with fewer than {cluster_variances.TOO_FEW_CLUSTERS} annotators"
        return fires_by_test("cycles", Estimate(status="not_identified", reason=reason, **common), alpha)
    low, high = np.divmod(np.array(spread.systems, dtype=np.int64), n_systems)
    winner, loser = np.where(spread.scores > 0, low, high), np.where(spread.scores > 0, high, low)
    se, df = spread.of_scores()
    is_tested = np.nan_to_num(se) > 0
    m = len(winner)
    with np.errstate(divide="ignore", invalid="ignore"):
        one_sided = special.stdtr(df, -np.abs(spread.scores) / se)
    pvalues = np.where(is_tested & (spread.scores != 0), np.minimum(1.0, 2 * m * one_sided), 1.0)

    def beats(limit: float) -> npt.NDArray[np.bool_]:
        table = np.zeros((n_systems, n_systems), dtype=np.bool_)
        shown = pvalues <= limit
        table[winner[shown], loser[shown]] = True
        return table

    majorities = np.zeros((n_systems, n_systems), dtype=np.bool_)
    majorities[winner[spread.scores != 0], loser[spread.scores != 0]] = True
    cycles = coherence.shortest_cycles(beats(alpha))
    detail = {
        "cycles": cycles,
        "n_pairs": m,
        "n_pairs_shown": int(np.sum(pvalues <= alpha)),
        "n_cycles_of_means": len(coherence.shortest_cycles(majorities)),
    }
    # The more wins count as shown, the more cycles there are: bisect for the first limit with one.
    limits = np.unique(np.append(pvalues, 1.0))
    below, above = -1, len(limits) - 1
    while above - below > 1:
        middle = (below + above) // 2
        if coherence.is_cyclic(beats(float(limits[middle]))[None])[0]:
            above = middle
        else:
            below = middle
    test = HypothesisTest(name="bonferroni_cycle", null=0.0, statistic=None, pvalue=float(limits[above]))
    return fires_by_test("cycles", Estimate(estimate=float(len(cycles)), test=test, detail=detail, **common), alpha)


def vote_drift_probe(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    is_late: npt.ArrayLike,
    *,
    n_systems: int,
    alpha: float = ALPHA,
    rng: np.random.Generator,
    resamples: int = bootstrap.RESAMPLES,
) -> Probe:
    """Test whether votes about the same pairs changed: whether some system's share of wins differs, late against early.

    Systems have the numbers 0..n_systems-1; an outcome is 1 if the first was chosen, 0 if the second was, .5 for a tie,
    and NaN if it is missing; `is_late` marks the votes of the second part of the time. The estimate is the largest
    change of a system's share of wins, in points of 100, with the test "max_t" over all systems, and `resamples` counts
    the normal draws for the quantile of the largest deviation. Only pairs with votes in both parts count, each with the
    weight a b / (a + b) for a early and b late votes, so a change of which pairs are asked is no drift.

    >>> rng = np.random.default_rng(0)
    >>> first, people, late = np.zeros(200, dtype=int), np.arange(200) // 5, np.arange(200) >= 100
    >>> votes = rng.random(200) < np.where(late, 0.9, 0.3)
    >>> vote_drift_probe(first, first + 1, votes, people, late, n_systems=2, rng=rng).fires
    True
    """
    values = _checked_outcomes(outcomes)
    x, y = checked_system_pairs(first, second, len(values), n_systems)
    late = np.asarray(is_late, dtype=np.bool_)
    if late.shape != values.shape:
        raise ValueError(f"is_late: {len(late)} where outcomes has {len(values)}")
    codes, _ = label_codes(np.asarray(annotators), "annotators", len(values))
    columns, weights, points, people = _by_system_and_part(x, y, values, late, codes, n_systems)
    common: dict[str, Any] = {
        "analysis": "board_audit.drift",
        "estimand": "largest change of a system's share of wins, late minus early, in points",
        "unit": "annotator",
        "settings": {"level": 1 - alpha, "resamples": resamples},
    }
    if len(columns) == 0:
        n = len(np.unique(codes[~np.isnan(values)]))
        reason = "no pair of systems has votes in both parts of the time"
        return fires_by_test("drift", Estimate(n=n, status="not_identified", reason=reason, **common), alpha)
    spread = ranks.score_spread(100 * points, people, columns, weights=weights)
    common |= {"n": spread.n_annotators, "n_clusters": spread.n_annotators, "n_rows": spread.n_rows // 2}
    systems = [name // 2 for name in spread.systems[::2]]
    contrasts = np.kron(np.eye(len(systems)), [[-1.0, 1.0]])
    changes = spread.combined(contrasts, systems)
    found = ranks.simultaneous_scores(changes, level=1 - alpha, resamples=resamples, rng=rng)
    largest = int(np.argmax(np.abs(found.estimates)))
    common |= {"warnings": spread.warnings, "detail": {"system": systems[largest], "n_systems": len(systems)}}
    return fires_by_test("drift", largest_difference(found, spread.n_annotators, common), alpha)


def _by_system_and_part(
    x: IntArray, y: IntArray, values: FloatArray, late: npt.NDArray[np.bool_], people: IntArray, n_systems: int
) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
    """Return each vote twice, once for each of its systems: 2 system + late, weight, points, person."""
    parts = 2 * (np.minimum(x, y) * n_systems + np.maximum(x, y)) + late
    is_used = ~np.isnan(values)
    counts = group_sizes(parts[is_used], 2 * n_systems**2)
    own, other = counts[parts], counts[parts ^ 1]
    weights = np.where(is_used & (other > 0), other / np.maximum(1, own + other), 0.0)
    kept = weights > 0
    columns = np.concatenate([2 * system[kept] + late[kept] for system in (x, y)])
    points = np.concatenate([values[kept], 1 - values[kept]])
    return columns, np.tile(weights[kept], 2), points, np.tile(people[kept], 2)


def audit_votes(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_systems: int,
    rng: np.random.Generator,
    is_late: npt.ArrayLike | None = None,
    alpha: float = ALPHA,
    resamples: int = bootstrap.RESAMPLES,
) -> tuple[Probe, ...]:
    """Compute the probes of a board of votes: order, ties, cycles, heavy voters, and drift.

    `first` and `second` are system numbers 0..n_systems-1 in the order shown; an outcome is 1 if the first was chosen,
    0 if the second was, .5 for a tie, and NaN if it is missing. Without `is_late`, which marks the votes of the second
    part of the time, there is no probe of drift. The heavy voter's influence is on the shares of wins of the first two
    systems. `resamples` counts the normal draws for the quantile of the largest deviation.

    >>> rng = np.random.default_rng(0)
    >>> first, people = np.tile([0, 1, 2], 80), np.arange(240) // 6
    >>> votes = rng.random(240) < 0.5
    >>> probes = audit_votes(first, (first + 1) % 3, votes, people, n_systems=3, rng=rng, is_late=np.arange(240) % 2)
    >>> [(probe.name, probe.fires) for probe in probes]
    [('first_shown', False), ('neutral_share', False), ('cycles', False), ('heavy_voter', False), ('drift', False)]
    """
    values = _checked_outcomes(outcomes)
    x, y = checked_system_pairs(first, second, len(values), n_systems)
    rows = x, y, values, annotators
    common: dict[str, Any] = {"n_systems": n_systems, "alpha": alpha}
    is_neutral = np.where(np.isnan(values), np.nan, values == 0.5)
    twice = np.asarray(annotators)
    probes = [
        first_shown_probe(*rows, **common),
        neutral_share_probe(is_neutral, annotators, alpha=alpha),
        cycle_probe(*rows, **common),
        heavy_voter_probe(np.r_[values, 1 - values], np.r_[x, y], np.r_[twice, twice]),
    ]
    if is_late is not None:
        probes.append(vote_drift_probe(*rows, is_late, rng=rng, resamples=resamples, **common))
    return tuple(probes)


def _checked_outcomes(outcomes: npt.ArrayLike) -> FloatArray:
    values = vector(np.asarray(outcomes, dtype=np.float64), "outcomes")
    validate_within_bounds(values, (0.0, 1.0), "outcomes")
    return values
