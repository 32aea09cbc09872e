"""Rounds are linked by the systems that were judged again, and by nothing else."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import board_rounds
from tests.analysis.stats.draws import rng


def rounds_of(draw, shifts, *, n_anchors=4, moved=0.0, n_items=40, n_people=24, per_item=1, knack=0.08, taste=0.06):
    """Each round has its own people, the anchors and one new system; all rounds share the items.

    An anchor has the true score .5, a new system .6. The first anchor is `moved` in the last round.
    """
    parts, knacks = [], draw.normal(0, knack, (n_anchors + len(shifts), n_items))
    for number, shift in enumerate(shifts):
        for system in (*range(n_anchors), n_anchors + number):
            items = np.repeat(np.arange(n_items), per_item)
            true = 0.5 if system < n_anchors else 0.6
            true += shift + moved * (system == 0 and number == len(shifts) - 1)
            people = draw.integers(0, n_people, len(items))
            parts.append((np.full(len(items), true) + knacks[system, items], system, items, people, number))
    mean = np.concatenate([part[0] for part in parts])
    systems, rounds = (np.repeat([part[place] for part in parts], len(parts[0][2])) for place in (1, 4))
    items, people = (np.concatenate([part[place] for part in parts]) for place in (2, 3))
    people = people + 1000 * rounds
    tastes = dict(zip(np.unique(people).tolist(), draw.normal(0, taste, len(np.unique(people))), strict=True))
    mean = mean + np.array([tastes[one] for one in people.tolist()]) + draw.normal(0, 0.15, len(items))
    return np.clip(mean, 0, 1), systems, items, people, rounds


def equated(data, **options):
    return board_rounds.equated_scores(*data, **{"rng": rng(), "resamples": 499, **options})


def test_the_shifts_and_scores_are_those_of_least_squares():
    draw = rng(1)
    data = rounds_of(draw, [0.0, 0.1, -0.05])
    keep = draw.random(len(data[0])) < 0.8
    values, systems, items, people, rounds = (one[keep] for one in data)
    found = equated((values, systems, items, people, rounds))
    cells = sorted(set(zip(systems.tolist(), rounds.tolist(), strict=True)))
    design, means, weights = [], [], []
    for system, number in cells:
        own = (systems == system) & (rounds == number)
        design.append([*(np.arange(7) == system), *(np.arange(1, 3) == number)])
        means.append(100 * np.mean([values[own & (items == item)].mean() for item in np.unique(items[own])]))
        weights.append(np.sqrt(own.sum()))
    wanted = np.linalg.lstsq(np.array(design) * np.array(weights)[:, None], np.array(means) * weights, rcond=None)[0]
    assert_allclose([one.estimate for one in found.scores], wanted[:7])
    assert_allclose([one.estimate for one in found.shifts], [0.0, *wanted[7:]])
    assert found.anchors == (0, 1, 2, 3) and found.linked == ((0, 1, 2),)
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_standard_error_leaves_out_people_and_prompts_of_all_rounds_at_once():
    data = rounds_of(rng(2), [0.0, 0.1], n_items=80, n_people=10)

    def left_out(place):
        whole, labels = equated(data), data[place]
        names = np.unique(labels)
        found = np.array(
            [
                [one.estimate for one in (*again.scores, again.shifts[1])]
                for again in (equated(tuple(part[labels != name] for part in data), resamples=9) for name in names)
            ]
        )
        at = np.array([one.estimate for one in (*whole.scores, whole.shifts[1])])
        return (len(names) - 1) / len(names) * np.sum((found - at) ** 2, axis=0)

    found = equated(data)
    people, items = left_out(3), left_out(2)
    alone = equated(data, items_sampled=False)
    got = np.array([one.detail["se"] for one in (*alone.scores, alone.shifts[1])])
    # The shares of answers that weigh the cells are taken as known; leaving people out changes them a little.
    assert_allclose(got, np.sqrt(people), rtol=0.1)
    both = np.array([one.detail["se"] for one in (*found.scores, found.shifts[1])])
    assert (both[:-1] >= 0.95 * np.sqrt(np.maximum(people, items))[:-1]).all()


def test_an_interval_of_an_equated_score_has_the_error_of_the_link():
    data = rounds_of(rng(3), [0.0, 0.1])
    found, alone = equated(data), equated(tuple(part[data[4] == 1] for part in data))
    new = found.systems.index(5)
    se, se_alone = found.scores[new].detail["se"], alone.scores[alone.systems.index(5)].detail["se"]
    # The link adds the error of the first round, and shares the people of the second.
    assert se > 0.9 * se_alone and se != se_alone
    assert_allclose(found.scores[new].estimate, alone.scores[-1].estimate - found.shifts[1].estimate)


def test_without_enough_answers_of_anchors_scores_hold_within_their_round():
    values, systems, items, people, rounds = rounds_of(rng(4), [0.0, 0.1, 0.2])
    renamed = np.where((rounds == 2) & (systems < 4), systems + 100, systems)
    found = equated((values, renamed, items, people, rounds))
    assert found.linked == ((0, 1), (2,))
    assert [one.status for one in found.shifts] == ["not_applicable", "ok", "not_identified"]
    last = found.scores[found.systems.index(6)]
    assert last.status == "not_identified" and last.reason and last.interval is not None
    assert last.detail["holds_within"] == (2,) and 6 not in found.ranks.systems and 5 in found.ranks.systems
    apart = equated((values, systems + 100 * rounds, items, people, rounds))
    assert apart.anchors == () and {one.status for one in apart.shifts[1:]} == {"not_identified"}
    assert apart.drift.status == apart.anchors_agree.status == "not_identified"
    lonely = np.where((rounds == 1) & (systems < 4), people[rounds == 1][0], people)
    assert equated((values, systems, items, lonely, rounds)).shifts[1].status == "not_identified"


def test_one_round_and_none_are_statuses():
    data = rounds_of(rng(5), [0.0])
    found = equated(data)
    assert found.drift.status == "not_applicable" and {one.status for one in found.scores} == {"ok"}
    empty = equated(([], [], [], [], []))
    assert (empty.scores, empty.shifts, empty.ranks.status) == ((), (), "no_data")


def test_drift_and_an_anchor_that_moves_are_seen():
    moved = equated(rounds_of(rng(6), [0.0, 0.0], moved=0.25))
    assert moved.anchors_agree.pvalue < 0.01 and moved.anchors_agree.detail["system"] == 0
    assert equated(rounds_of(rng(7), [0.0, 0.2])).drift.pvalue < 0.01
    few = equated(rounds_of(rng(6), [0.0, 0.1], n_anchors=2))
    assert few.anchors_agree.status == "not_identified" and few.drift.status == "ok"
    points = [(one.system, one.round) for one in few.anchor_cells]
    assert points == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_days_have_a_table_and_one_joint_test():
    draw = rng(8)
    days, systems = np.repeat(np.arange(5), 200), np.tile(np.arange(2), 500)
    people, items = draw.integers(0, 40, 1000), np.tile(np.arange(100), 10)
    noise = draw.normal(0.5, 0.2, 1000)
    table, joint = board_rounds.day_effects(np.clip(noise, 0, 1), systems, items, people, days, rng=rng())
    assert len(table) == 5 and all(one.test is None for one in table) and joint.pvalue > 0.05
    shifted = np.clip(noise + 0.15 * (days == 3), 0, 1)
    table, joint = board_rounds.day_effects(shifted, systems, items, people, days, rng=rng())
    assert joint.pvalue < 0.01 and 8 < table[3].estimate < 22


@pytest.mark.slow
@pytest.mark.parametrize(
    "design", [{}, {"n_anchors": 3, "n_items": 25, "knack": 0.15}, {"taste": 0.15, "n_people": 12}]
)
def test_intervals_cover_and_tests_keep_their_level(design):
    draw, runs = rng(9), 600
    kept = np.zeros(5)
    for _ in range(runs):
        found = equated(rounds_of(draw, [0.0, 0.05, 0.0], **design), rng=draw, resamples=299)
        new = found.scores[-1].interval
        kept[0] += new.low <= 60 <= new.high
        kept[1] += found.shifts[1].interval.low <= 5 <= found.shifts[1].interval.high
        kept[2] += found.anchors_agree.pvalue >= 0.05
        level = equated(rounds_of(draw, [0.0, 0.0, 0.0], **design), rng=draw, resamples=299)
        kept[3] += level.drift.pvalue >= 0.05
        kept[4] += (
            equated(rounds_of(draw, [0.0, 0.15], moved=0.0, **design), rng=draw, resamples=299).drift.pvalue < 0.05
        )
    assert (kept[:4] / runs >= 0.95 - 2 * 0.009).all(), kept / runs
    assert kept[4] / runs > 0.5, kept / runs
