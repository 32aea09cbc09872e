"""Items of one group are no sample of items: boards resample groups, and still weight, pair and link by item."""

import numpy as np
import pytest

from analysis.stats import board_audit, board_rounds, board_scores, leaderboard
from analysis.stats.results import Estimate
from tests.analysis.stats.draws import rng

SIZE, GROUPS, PEOPLE = 10, 12, 16


def rows():
    """Three systems in two rounds, of which two were scored in both; the ten items of a group have one effect."""
    draw = rng(31)
    items = np.tile(np.arange(SIZE * GROUPS), 5)
    systems, rounds = np.repeat(["a", "b", "a", "b", "c"], SIZE * GROUPS), np.repeat([1, 1, 2, 2, 2], SIZE * GROUPS)
    people = draw.integers(0, PEOPLE, len(items))
    of_group = draw.normal(0, 0.15, (3, GROUPS))[np.repeat([0, 1, 0, 1, 2], SIZE * GROUPS), items // SIZE]
    values = 0.5 + of_group + draw.normal(0, 0.05, PEOPLE)[people] + draw.normal(0, 0.05, len(items))
    return np.clip(values, 0, 1).round(1), systems, items, people, rounds


def scores(values, systems, items, people, rounds, **options):
    own = systems == "a"
    groups = options.pop("item_groups", None)
    options |= {} if groups is None else {"item_groups": groups[own]}
    return [board_scores.system_score_in_points(values[own], items[own], people[own], rng=rng(1), **options)]


def board(values, systems, items, people, rounds, **options):
    found = leaderboard.leaderboard(values, systems, items, people, rng=rng(1), resamples=199, **options)
    return [*found.scores, *found.from_best]


def equated(*data, **options):
    found = board_rounds.equated_scores(*data, rng=rng(1), resamples=199, **options)
    return [*found.scores, *found.shifts, found.drift, found.anchors_agree]


def best_before(values, systems, items, people, rounds, **options):
    return leaderboard.compare_each_with_best_before(
        values, systems, items, people, new=["b", "c"], earlier=["a"], **options
    )


def best_before_over_rounds(values, systems, items, people, rounds, **options):
    return leaderboard.compare_each_with_best_before(
        values, systems, items, people, new=["c"], earlier=["a", "b"], rounds=rounds, **options
    )


def probes(values, systems, items, people, rounds, **options):
    found = board_audit.audit_scores(
        values,
        systems,
        items,
        people,
        rng=rng(1),
        rounds=rounds,
        positions=np.arange(len(items)) % 2.0,
        resamples=199,
        **options,
    )
    # How much one voter weighs is a count, without a sample.
    return [probe.estimate for probe in found if probe.estimate.interval]


WAYS = [scores, board, equated, best_before, best_before_over_rounds, probes]


def width(estimate: Estimate) -> float:
    return estimate.interval.high - estimate.interval.low


@pytest.mark.parametrize("way", WAYS)
def test_the_interval_is_that_of_the_groups_as_items(way):
    values, systems, items, people, rounds = rows()
    groups = items // SIZE
    found = way(values, systems, items, people, rounds, item_groups=groups)
    as_items = way(values, systems, groups, people, rounds)
    alone = way(values, systems, items, people, rounds)
    with_interval = [one for one in found if one.interval]
    assert with_interval
    for one, other in zip(found, as_items, strict=True):
        assert (one.interval is None) == (other.interval is None)
        if one.interval:
            ours = (one.estimate, one.interval.low, one.interval.high, one.pvalue)
            theirs = (other.estimate, other.interval.low, other.interval.high, other.pvalue)
            assert ours == pytest.approx(theirs, abs=1e-9)
    ratios = [
        width(one) / width(other) for one, other in zip(found, alone, strict=True) if one.interval if width(other)
    ]
    assert max(ratios) > 1.1


@pytest.mark.parametrize("way", WAYS)
def test_groups_of_one_item_change_nothing(way):
    values, systems, items, people, rounds = rows()
    found = way(values, systems, items, people, rounds, item_groups=items + 1000)
    plain = way(values, systems, items, people, rounds)
    assert [one.as_dict() for one in found] == [one.as_dict() for one in plain]
