"""Scores of several rounds of a board on one scale, and what changes between rounds and days."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap, cluster_variances, clusters, ranks
from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    label_codes,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.board_scores import SCALE, equal_item_weights
from analysis.stats.ranks import SimultaneousDifferences
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record
from analysis.stats.votes import connected_components

# The cells of systems and rounds, and what links the rounds: systems that were scored again in several of them.


# An anchor's cell with fewer answers, or of fewer annotators, links nothing.
MINIMUM = 2


@dataclass(frozen=True, slots=True)
class LinkedRounds:
    """Mean scores of the cells (system, round), and the least-squares fit score = system + round to the anchors' cells.

    `spread` has the cells' scores in points. `system`, `round`, `n_answers`, `is_anchor` (C,) describe the cells: an
    anchor's cell has enough answers of enough annotators, and its system another such cell. `groups` are the rounds that
    anchors link, each in order. `reference` is the first round. `shifts` (R, C) are the weights of the cells in each
    round's shift against the first round of its group.
    """

    systems: tuple[Any, ...]
    rounds: tuple[Any, ...]
    spread: ranks.ScoreSpread
    system: IntArray
    round: IntArray
    n_answers: IntArray
    n_annotators: IntArray
    is_anchor: BoolArray
    groups: tuple[tuple[int, ...], ...]
    reference: int
    shifts: FloatArray

    @property
    def anchors(self) -> IntArray:
        """Return the numbers of the anchor systems."""
        return np.asarray(np.unique(self.system[self.is_anchor]), dtype=np.int64)

    def group_of(self, round_number: int) -> tuple[int, ...]:
        """Return the rounds that are linked with a round, itself included."""
        return next(group for group in self.groups if round_number in group)

    def of_system(self, system: int) -> tuple[FloatArray, int]:
        """Return the cells' weights (C,) in a system's equated score, and one round of the group that it holds in.

        A system in several groups is scored in the reference's, or in that with most of its answers.
        """
        cells = np.flatnonzero(self.system == system)
        if self.is_anchor[cells].any():
            cells = cells[self.is_anchor[cells]]
        groups = [self.group_of(int(number)) for number in self.round[cells]]
        best = max(groups, key=lambda group: (self.reference in group, self._answers(cells, group)))
        used = cells[[group == best for group in groups]]
        shares = self.n_answers[used] / self.n_answers[used].sum()
        weights = np.zeros(len(self.system))
        weights[used] = shares
        return weights - shares @ self.shifts[self.round[used]], int(self.round[used[0]])

    def _answers(self, cells: IntArray, group: tuple[int, ...]) -> int:
        return int(self.n_answers[cells[np.isin(self.round[cells], group)]].sum())

    def residuals(self) -> tuple[FloatArray, IntArray]:
        """Return the cells' weights in what each anchor's cell deviates from the fit, and the numbers of these cells."""
        cells = np.flatnonzero(self.is_anchor)
        table = np.zeros((len(cells), len(self.system)))
        table[np.arange(len(cells)), cells] = 1.0
        for row, cell in enumerate(cells):
            table[row] -= self.shifts[self.round[cell]] + self.of_system(int(self.system[cell]))[0]
        varies = np.abs(table).max(axis=1, initial=0.0) > 1e-9
        return table[varies], cells[varies]


def linked_rounds(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    rounds: npt.ArrayLike,
    *,
    items_sampled: bool,
    item_groups: npt.ArrayLike | None = None,
) -> LinkedRounds:
    """Return the cells and their links. Raise ValueError with the argument for an invalid one."""
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    is_used = ~np.isnan(array)
    system_codes, _ = label_codes(np.asarray(systems), "systems", len(array))
    round_codes, _ = label_codes(np.asarray(rounds), "rounds", len(array))
    names, system_codes = np.unique(np.asarray(systems)[is_used], return_inverse=True)
    labels, round_codes = np.unique(np.asarray(rounds)[is_used], return_inverse=True)
    cell_labels, cells = np.unique(system_codes * len(labels) + round_codes, return_inverse=True)
    all_cells = np.zeros(len(array), dtype=np.int64)
    all_cells[is_used] = cells
    people = np.asarray(annotators)
    spread = ranks.score_spread(
        SCALE * array,
        people,
        all_cells,
        (items if item_groups is None else item_groups) if items_sampled else None,
        weights=equal_item_weights(array, all_cells, items),
    )
    system, of_round = np.divmod(cell_labels, max(1, len(labels)))
    n_answers = np.bincount(cells, minlength=len(cell_labels))
    people_codes, n_people = label_codes(people[is_used], "annotators", len(cells))
    n_annotators = np.bincount(np.unique(cells * max(1, n_people) + people_codes) // max(1, n_people))
    is_enough = (n_answers >= MINIMUM) & (n_annotators >= MINIMUM) & spread.is_defined
    is_anchor = is_enough & (np.bincount(system, is_enough, minlength=len(names))[system] > 1)
    asked = np.zeros((len(names), len(labels)), dtype=np.bool_)
    asked[system[is_anchor], of_round[is_anchor]] = True
    linked = asked.T.astype(np.float64) @ asked.astype(np.float64) > 0
    groups = connected_components(linked) if len(labels) else ()
    return LinkedRounds(
        tuple(names.tolist()),
        tuple(labels.tolist()),
        spread,
        np.asarray(system, dtype=np.int64),
        np.asarray(of_round, dtype=np.int64),
        np.asarray(n_answers, dtype=np.int64),
        np.asarray(n_annotators, dtype=np.int64),
        is_anchor,
        groups,
        0,
        _shifts(system, of_round, n_answers, is_anchor, groups),
    )


def _shifts(
    system: IntArray,
    of_round: IntArray,
    n_answers: IntArray,
    is_anchor: BoolArray,
    groups: tuple[tuple[int, ...], ...],
) -> FloatArray:
    """Return the cells' weights in the rounds' shifts; each cell counts as often as it has answers."""
    n_rounds = sum(len(group) for group in groups)
    shifts = np.zeros((n_rounds, len(system)))
    for group in groups:
        others = group[1:]
        cells = np.flatnonzero(is_anchor & np.isin(of_round, group))
        if not others:
            continue
        design = (of_round[cells, None] == np.array(others)).astype(np.float64)
        weight = n_answers[cells].astype(np.float64)
        _, codes = np.unique(system[cells], return_inverse=True)
        totals = np.bincount(codes, weight)
        # Subtract each system's mean, so that only the shifts are left to fit.
        means = np.stack([np.bincount(codes, weight * column) / totals for column in design.T], axis=1)
        centred = (design - means[codes]) * weight[:, None]
        shifts[np.array(others)[:, None], cells] = np.linalg.solve(centred.T @ design, centred.T)
    return shifts


# Rounds whose sample of items was renewed: which rows count in which sample, and how samples differ.


def rows_of_samples(
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    rounds: npt.ArrayLike,
    samples: Mapping[Any, Sequence[tuple[int, Collection[Any]]]],
) -> tuple[IntArray, IntArray]:
    """Count each row in the samples of items that its round scored, so that `equated_scores` can link the samples.

    `samples` has, for each round, the number and the items of each sample that it scored: one, or two in a round that
    links them; a round without a sample is an error. The result is the numbers of the rows and the sample that each is
    counted in, so a row whose item is in both samples of its round is counted twice. A system is counted in a sample
    only if it has a row on an item that its round's other sample lacks: the items that both share say nothing about how
    the samples differ.

    >>> old, new = (1, {"a", "b"}), (2, {"b", "c"})
    >>> rows, sample = rows_of_samples(["x"] * 4 + ["y"], ["a", "b", "c", "b", "b"], [1, 2, 2, 2, 1], {1: [old], 2: [old, new]})
    >>> rows.tolist(), sample.tolist()
    ([0, 4, 1, 2, 3], [1, 1, 2, 2, 2])
    """
    system_labels, item_labels, round_labels = np.asarray(systems), np.asarray(items), np.asarray(rounds)
    rows, numbers = [], []
    for label in np.unique(round_labels).tolist():
        if label not in samples:
            raise ValueError(f"samples: round {label!r} has none")
        in_round = np.flatnonzero(round_labels == label)
        of_round = samples[label]
        for number, own in of_round:
            used = in_round[np.isin(item_labels[in_round], list(own))]
            if len(of_round) > 1:
                other = {item for one, of_other in of_round if one != number for item in of_other}
                apart = used[~np.isin(item_labels[used], list(other))]
                used = used[np.isin(system_labels[used], np.unique(system_labels[apart]))]
            rows.append(used)
            numbers.append(np.full(len(used), number))
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return np.concatenate(rows).astype(np.int64), np.concatenate(numbers).astype(np.int64)


def numbered_occasions(
    rounds: npt.ArrayLike, samples: npt.ArrayLike | None
) -> tuple[list[tuple[Any, int]], npt.NDArray[Any]]:
    """Return the pairs (round, sample) in their order, and the number of each row's pair; without samples, the rounds."""
    labels = np.asarray(rounds)
    if samples is None:
        return [], labels
    rows = list(zip(labels.tolist(), np.asarray(samples).tolist(), strict=True))
    pairs = sorted(set(rows))
    number = {pair: place for place, pair in enumerate(pairs)}
    return pairs, np.array([number[row] for row in rows], dtype=np.int64)


# Scores of several rounds on one scale, by systems that were scored again in each round.


# With fewer anchors nobody can tell which of them moved.
ANCHORS_TO_COMPARE = 3


@dataclass(frozen=True, slots=True)
class AnchorCell(Record):
    """The score of an anchor in a round, in points of 100, with its counts: one point of the figure of drift."""

    system: Any
    round: Any
    score: float
    se: float | None
    n_answers: int
    n_annotators: int
    unit: str = "points"


@dataclass(frozen=True, slots=True)
class EquatedScores(Record):
    """Scores of the systems on the scale of one round.

    `shifts` has one Estimate per round: how much higher the same system scores in it than in `reference`. `scores` has
    one per system in the order of `systems`; those that no anchor links with the reference are `not_identified`, hold
    within the rounds of their `detail["holds_within"]`, and have no place in `ranks`. `drift` tests that no shift differs
    from another, `anchors_agree` that all anchors moved alike. `anchor_cells` are the points of the figure.
    `differences` of all pairs are in the order of `ranks.systems`; None if there are no rank sets. With samples, `rounds`,
    `reference` and `linked` have pairs (round, sample), and `offsets` says how much higher the same system scores on each
    renewed sample than on the one before it.
    """

    systems: tuple[Any, ...]
    rounds: tuple[Any, ...]
    reference: Any
    anchors: tuple[Any, ...]
    linked: tuple[tuple[Any, ...], ...]
    shifts: tuple[Estimate, ...]
    scores: tuple[Estimate, ...]
    ranks: ranks.RankSets
    drift: Estimate
    anchors_agree: Estimate
    anchor_cells: tuple[AnchorCell, ...]
    differences: SimultaneousDifferences | None = None
    offsets: tuple[Estimate, ...] = ()


def equated_scores(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    rounds: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    samples: npt.ArrayLike | None = None,
    level: float = 0.95,
    items_sampled: bool = True,
    item_groups: npt.ArrayLike | None = None,
    resamples: int = bootstrap.RESAMPLES,
) -> EquatedScores:
    """Scores of systems that were judged in different rounds, on the scale of one round.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers in 0..1; NaN is missing.
    systems, items, annotators, rounds : array_like, shape (n_rows,)
        Labels of each row's system, item, annotator and round. Anchors are systems with answers in several rounds.
    rng : numpy.random.Generator
        Source of the random draws.
    samples : array_like of int, shape (n_rows,), optional
        The sample of items that each row counts in (`rows_of_samples`). A round on two samples has a shift for each.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    items_sampled : bool, default True
        Whether the claim goes beyond the items of the study.
    item_groups : array_like, shape (n_rows,), optional
        Labels of what is sampled in place of items, such as the document of each row's item. The items if None.
    resamples : int, default bootstrap.RESAMPLES
        Number of normal draws for the quantile of the largest deviation.

    Returns
    -------
    EquatedScores
        Shifts, equated scores, and the tests of drift and of the anchors' agreement. No tests with fewer than six
        annotators.

    Raises
    ------
    ValueError
        If an argument is not allowed.

    Notes
    -----
    A cell is a system in a round; its score m_sr is the mean over items. The fixed-effects model m_sr = theta_s +
    gamma_r, with gamma = 0 for the reference (the first round in the order of the labels), is fitted to the anchors'
    cells by least squares, each cell weighted by its answers. An anchor's cell with fewer than two answers, or of fewer
    than two annotators, links nothing. The equated score of a system is the mean of its m_sr - gamma_r. All this is
    linear in the cells, so standard errors leave out one annotator and one item from all cells at once
    (`ranks.score_spread`), and the interval of an equated score includes the error of the link. An equated score can
    leave 0..100.

    The two tests take the largest standardised difference of two shifts, and the largest standardised residual of an
    anchor's cell ("max_t"). With samples, drift compares only rounds on the same sample. `anchors_agree` needs three anchors. If it fails, the shift of a round is not one number.

    References
    ----------
    Kolen and Brennan 2014, Test Equating, Scaling, and Linking, chapters 4 and 7 (common-item nonequivalent groups).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rounds, systems = np.repeat([1, 1, 2, 2], 60), np.repeat(["anchor", "old", "anchor", "new"], 60)
    >>> items, people = np.tile(np.arange(30), 8), np.arange(240) // 6 % 20
    >>> true = np.repeat([0.5, 0.6, 0.4, 0.6], 60)
    >>> found = equated_scores(np.clip(true + rng.normal(0, 0.1, 240), 0, 1), systems, items, people, rounds, rng=rng)
    >>> found.systems, [round(score.estimate) for score in found.scores]
    (('anchor', 'new', 'old'), [51, 70, 61])
    """
    validate_level(level)
    pairs, codes = numbered_occasions(rounds, samples)
    linked = linked_rounds(
        values, systems, items, annotators, codes, items_sampled=items_sampled, item_groups=item_groups
    )
    if pairs:
        linked = replace(linked, rounds=tuple(pairs[code] for code in linked.rounds))
    common = common_fields(linked, level)
    options: dict[str, Any] = {"level": level, "resamples": resamples, "rng": rng}
    spread, own_rounds = spread_of_equated_scores(linked)
    base_group = linked.group_of(linked.reference) if linked.rounds else ()
    on_scale = np.array([own in base_group for own in own_rounds], dtype=np.bool_)
    se, df = spread.of_scores()
    scores = tuple(
        _score(linked, system, own_rounds[system], spread, (se[system], df[system]), common)
        for system in range(len(linked.systems))
    )
    sets, differences = ranks.rank_confidence_sets_from_spread(spread.in_order(np.flatnonzero(on_scale)), level=level)
    se_of_cells, _ = linked.spread.of_scores()
    return EquatedScores(
        systems=linked.systems,
        rounds=linked.rounds,
        reference=linked.rounds[linked.reference] if linked.rounds else None,
        anchors=tuple(linked.systems[system] for system in linked.anchors),
        linked=tuple(tuple(linked.rounds[number] for number in group) for group in linked.groups),
        shifts=shift_estimates(linked, common),
        scores=scores,
        ranks=sets,
        drift=drift_test(linked, common, **options),
        anchors_agree=_anchors_agree(linked, common, **options),
        anchor_cells=tuple(
            AnchorCell(
                linked.systems[linked.system[cell]],
                linked.rounds[linked.round[cell]],
                float(linked.spread.scores[cell]),
                float(se_of_cells[cell]),
                int(linked.n_answers[cell]),
                int(linked.n_annotators[cell]),
            )
            for cell in np.flatnonzero(linked.is_anchor)
        ),
        differences=differences,
        offsets=_offsets(linked, common) if pairs else (),
    )


def _offsets(linked: LinkedRounds, common: dict[str, Any]) -> tuple[Estimate, ...]:
    """Return how much higher a system scores on each renewed sample than on the one before, in the round on both."""
    found = []
    place = {pair: number for number, pair in enumerate(linked.rounds)}
    for sample in sorted({number for _, number in linked.rounds})[1:]:
        both = [one for one, number in linked.rounds if number == sample and (one, sample - 1) in place]
        named: dict[str, Any] = {
            **common,
            "analysis": "leaderboard.sample_offset",
            "estimand": f"how much higher a system scores on sample {sample} than on sample {sample - 1}, in points",
            "detail": {"sample": sample, "n_systems": 0, "round": both[0] if both else None},
        }
        new, old = (place[both[0], sample], place[both[0], sample - 1]) if both else (-1, -1)
        on_both = _systems_of(linked, new) & _systems_of(linked, old)
        named["detail"]["n_systems"] = len(on_both)
        if not on_both:
            reason = "no system was scored on both samples; scores hold within the sample"
            found.append(Estimate(status="not_identified", reason=reason, **named))
            continue
        spread = linked.spread.combined([linked.shifts[new] - linked.shifts[old]], [sample])
        se, df = spread.of_scores()
        found.append(_t(float(spread.scores[0]), se[0], df[0], spread, null=0.0, **named))
    return tuple(found)


def _systems_of(linked: LinkedRounds, round_number: int) -> set[int]:
    return {int(system) for system in linked.system[linked.is_anchor & (linked.round == round_number)]}


def spread_of_equated_scores(linked: LinkedRounds) -> tuple[ranks.ScoreSpread, list[int]]:
    """Return the equated scores of all systems with their joint spread, and the number of a round of each."""
    weights, own_rounds = [], []
    for system in range(len(linked.systems)):
        of_cells, own = linked.of_system(system)
        weights.append(of_cells)
        own_rounds.append(own)
    return linked.spread.combined(weights, linked.systems), own_rounds


def common_fields(linked: LinkedRounds, level: float) -> dict[str, Any]:
    """Return the fields that all estimates of linked rounds share."""
    return {
        "unit": "annotator",
        "n": linked.spread.n_annotators,
        "n_clusters": linked.spread.n_annotators,
        "n_rows": linked.spread.n_rows,
        "warnings": linked.spread.warnings,
        "settings": {
            "level": level,
            "population": linked.spread.population,
            "minimum_answers": MINIMUM,
            "minimum_annotators": MINIMUM,
        },
    }


def _score(
    linked: LinkedRounds,
    system: int,
    own: int,
    spread: ranks.ScoreSpread,
    se_and_df: tuple[float, float],
    common: dict[str, Any],
) -> Estimate:
    se, df = se_and_df
    cells = linked.system == system
    within = tuple(linked.rounds[number] for number in linked.group_of(own))
    is_on_scale = linked.reference in linked.group_of(own)
    named: dict[str, Any] = {
        **common,
        "analysis": "leaderboard.equated_score",
        "estimand": f"score of {linked.systems[system]} on the scale of round "
        f"{linked.rounds[linked.reference] if is_on_scale else within[0]}, in points",
        "n_rows": int(linked.n_answers[cells].sum()),
        "detail": {"rounds": [linked.rounds[number] for number in linked.round[cells]], "holds_within": within},
    }
    value = float(spread.scores[system])
    if not spread.is_defined[system]:
        reason = "one annotator or one item alone has all answers of a cell; collect more answers"
        return Estimate(status="not_identified", reason=reason, estimate=value, **named)
    estimate = _t(value, se, df, spread, null=None, **named)
    if is_on_scale or estimate.status != "ok":
        return estimate
    reason = "no anchor links the system's rounds with the reference; the score holds within its rounds"
    named["detail"] = estimate.detail
    return Estimate(status="not_identified", reason=reason, estimate=value, interval=estimate.interval, **named)


def _t(value: float, se: float, df: float, spread: ranks.ScoreSpread, *, null: float | None, **named: Any) -> Estimate:
    is_two_way = spread.items is not None
    return clusters.t_estimate(
        value,
        se,
        df,
        fewest_clusters=spread.n_annotators,
        level=named["settings"]["level"],
        method="two_way_cv3_t" if is_two_way else "cv3_t",
        null=null,
        test_name="two_way_t" if is_two_way else "clustered_t",
        reason="the score does not vary, so the standard error is 0",
        **named,
    )


def shift_estimates(linked: LinkedRounds, common: dict[str, Any]) -> tuple[Estimate, ...]:
    """Return the shift of each round against the reference."""
    spread = linked.spread.combined(linked.shifts, linked.rounds)
    se, df = spread.of_scores()
    base = linked.group_of(linked.reference) if linked.rounds else ()
    estimates = []
    for number, name in enumerate(linked.rounds):
        own = np.isin(linked.round, [number, linked.reference]) & linked.is_anchor
        both = linked.system[own & (linked.round == number)]
        named: dict[str, Any] = {
            **common,
            "analysis": "leaderboard.round_shift",
            "estimand": f"how much higher a system scores in round {name} than in round "
            f"{linked.rounds[linked.reference]}, in points",
            "detail": {"n_anchors": len(np.unique(both))},
        }
        if number == linked.reference:
            named["estimate"] = 0.0
            estimates.append(Estimate(status="not_applicable", reason="this is the reference", **named))
        elif number not in base:
            reason = "too few answers of anchors link the round with the reference; scores hold within the round"
            estimates.append(Estimate(status="not_identified", reason=reason, **named))
        else:
            estimates.append(_t(float(spread.scores[number]), se[number], df[number], spread, null=0.0, **named))
    return tuple(estimates)


def drift_test(
    linked: LinkedRounds, common: dict[str, Any], *, level: float, resamples: int, rng: np.random.Generator
) -> Estimate:
    """Return the largest difference between two shifts of linked rounds, and the test that none differ."""
    group = linked.group_of(linked.reference) if linked.rounds else ()
    named: dict[str, Any] = {
        **common,
        "analysis": "leaderboard.drift",
        "estimand": "largest difference between the shifts of two rounds, in points",
        "detail": {"n_rounds": len(group), "rounds": [linked.rounds[number] for number in group]},
    }
    if len(linked.rounds) < 2:
        return Estimate(status="not_applicable", reason="all answers are of one round", **named)
    if len(group) < 2:
        reason = "too few answers of anchors link the reference with another round"
        return Estimate(status="not_identified", reason=reason, **named)
    # Each difference by itself: the reference cancels from that of two other rounds, and from its degrees of freedom.
    pairs = list(itertools.combinations(group, 2))
    if isinstance(linked.rounds[0], tuple):
        pairs = [(x, y) for x, y in pairs if linked.rounds[x][1] == linked.rounds[y][1]]
        if not pairs:
            return Estimate(status="not_applicable", reason="no sample was scored in two rounds", **named)
    spread = linked.spread.combined([linked.shifts[x] - linked.shifts[y] for x, y in pairs], pairs)
    found = ranks.simultaneous_scores(spread, level=level, resamples=resamples, rng=rng)
    return largest_difference(found, spread.n_annotators, named)


def _anchors_agree(
    linked: LinkedRounds, common: dict[str, Any], *, level: float, resamples: int, rng: np.random.Generator
) -> Estimate:
    named: dict[str, Any] = {
        **common,
        "analysis": "leaderboard.anchors_agree",
        "estimand": "deviation of an anchor's score in a round from system + round, the clearest one, in points",
        "detail": {"n_anchors": len(linked.anchors)},
    }
    if len(linked.anchors) < ANCHORS_TO_COMPARE:
        reason = f"with fewer than {ANCHORS_TO_COMPARE} anchors nobody can tell which of them moved"
        return Estimate(status="not_identified", reason=reason, **named)
    weights, cells = linked.residuals()
    if len(cells) == 0:
        return Estimate(status="not_identified", reason="no round has two anchors to compare", **named)
    spread = linked.spread.combined(weights, cells.tolist())
    found = ranks.simultaneous_scores(spread, level=level, resamples=resamples, rng=rng)
    if not found.decidable.any():
        return Estimate(status="zero_variance", reason="the deviations do not vary", **named)
    worst = int(np.nanargmin(np.where(found.decidable, found.pvalues - 1e-9 * np.abs(found.estimates), np.nan)))
    size, se = abs(float(found.estimates[worst])), float(found.standard_errors[worst])
    half = float(found.high[worst] - found.low[worst]) / 2
    detail = {
        **named.pop("detail"),
        "system": linked.systems[linked.system[cells[worst]]],
        "round": linked.rounds[linked.round[cells[worst]]],
        "se": se,
    }
    pvalue = float(found.pvalues[worst])
    tested = spread.n_annotators >= cluster_variances.TOO_FEW_CLUSTERS
    return Estimate(
        estimate=size,
        interval=Interval(level, max(0.0, size - half), size + half, "max_t"),
        test=HypothesisTest(name="max_t", null=0.0, statistic=size / se, pvalue=pvalue) if tested else None,
        detail=detail,
        **named,
    )


# Effects of days on the answers about the same systems.


def day_effects(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    days: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
) -> tuple[tuple[Estimate, ...], Estimate]:
    """Estimate how answers differ between days (or weekdays) for the same systems, and test it jointly over annotators.

    Answers are in 0..1; NaN is missing. The table has the shift of each day against the first day, without tests of
    single days; the other estimate is the test that no two days differ, and `resamples` counts the normal draws for its
    quantile of the largest deviation. The shifts are those of `equated_scores` with days as rounds and annotators as
    the only sample, so the table describes these items.

    >>> rng = np.random.default_rng(0)
    >>> days, systems, people = np.repeat([1, 2, 3], 80), np.tile(["x", "y"], 120), np.tile(np.arange(20), 12)
    >>> table, joint = day_effects(rng.choice([0.25, 0.5, 0.75], 240), systems, np.arange(240) % 40, people, days, rng=rng)
    >>> len(table), table[0].status, joint.test.name
    (3, 'not_applicable', 'max_t')
    """
    validate_level(level)
    linked = linked_rounds(values, systems, items, annotators, days, items_sampled=False)
    common = common_fields(linked, level)
    table = tuple(replace(one, test=None, analysis="leaderboard.day_shift") for one in shift_estimates(linked, common))
    joint = drift_test(linked, common, level=level, resamples=resamples, rng=rng)
    return table, replace(joint, analysis="leaderboard.day_differences")


# The stability of a score over days.


def largest_difference(
    found: ranks.SimultaneousDifferences | ranks.SimultaneousScores, n_annotators: int, named: dict[str, Any]
) -> Estimate:
    """Return the largest of several differences, its interval, and the test that all are 0.

    >>> values, people, systems = [1, 0.2, 0.5, 0.1, 0.8, 0], ["a", "a", "b", "b", "c", "c"], ["x", "y"] * 3
    >>> spread = ranks.score_spread(values, people, systems)
    >>> found = ranks.simultaneous_scores(spread, rng=np.random.default_rng(0))
    >>> named = {"analysis": "demo", "estimand": "largest score", "unit": "annotator", "n": 3}
    >>> round(largest_difference(found, 3, named).estimate, 3)
    0.767
    """
    sizes = np.abs(found.estimates)
    apart = float(np.max(sizes))
    if not found.decidable.any():
        return Estimate(status="zero_variance", reason="the differences do not vary", estimate=apart, **named)
    half = np.nan_to_num((found.high - found.low) / 2, nan=0.0)
    low, high = max(0.0, float(np.max(sizes - half))), float(np.max(sizes + half))
    pvalue = float(np.nanmin(found.pvalues))
    tested = n_annotators >= cluster_variances.TOO_FEW_CLUSTERS
    return Estimate(
        estimate=apart,
        interval=Interval(found.level, low, high, "max_t"),
        test=HypothesisTest(name="max_t", null=0.0, statistic=None, pvalue=pvalue) if tested else None,
        **named,
    )
