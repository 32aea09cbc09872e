"""Each probe fires on a board that has its fault, and is silent on a clean one."""

import json
import math

import numpy as np
import pytest
from scipy import special

from analysis.stats import board_audit, clusters, ranks
from tests.analysis.stats.draws import rng

STRENGTHS = np.array([1.2, 0.6, 0.0, -0.6, -1.2])


def votes(draw, *, n_people=60, per_person=25, order=0.0, ties=0.15, circle=0.0, drift=0.0, heavy=0):
    """Votes between five systems, each pair in random order; a fault at 0 is absent.

    `order` is the log-odds bonus of the first shown, `circle` that of each system over the next but one in a ring, `drift`
    what the first system gains in the second half, `heavy` the extra votes of one person who always takes the second system.
    """
    n = n_people * per_person
    who = np.r_[np.repeat(np.arange(n_people), per_person), np.zeros(heavy, dtype=int)]
    x = draw.integers(0, 5, n + heavy)
    y = (x + draw.integers(1, 5, n + heavy)) % 5
    late = draw.random(n + heavy) < 0.5
    taste = draw.normal(0, 0.3, (n_people, 5))
    worth = STRENGTHS * (circle == 0)
    logit = worth[x] - worth[y] + taste[who, x] - taste[who, y] + order
    logit += circle * (np.where((y - x) % 5 < 3, 1, -1)) + drift * late * ((x == 0) * 1.0 - (y == 0))
    wins = (draw.random(n + heavy) < special.expit(logit)).astype(float)
    wins[draw.random(n + heavy) < ties] = 0.5
    wins[n:] = np.where(y[n:] == 1, 0.0, np.where(x[n:] == 1, 1.0, wins[n:]))
    return (x, y, wins, who), late


def fired(draw, *, resamples=299, **fault):
    rows, late = votes(draw, **fault)
    points, systems = np.r_[rows[2], 1 - rows[2]], np.r_[rows[0], rows[1]]
    sets = ranks.rank_confidence_sets_from_rows(points, np.tile(rows[3], 2), systems)
    probes = board_audit.audit_votes(*rows, n_systems=5, rng=draw, is_late=late, resamples=resamples)
    probes = (*probes, board_audit.separation_probe(sets))
    for probe in probes:
        json.dumps(probe.as_dict(), allow_nan=False)
    return {probe.name: probe.fires for probe in probes}


FAULTS = {
    "first_shown": {"order": 0.35},
    "neutral_share": {"ties": 0.6},
    "cycles": {"circle": 0.8},
    "heavy_voter": {"heavy": 300},
    "separation": {"circle": 0.01},
    "drift": {"drift": 1.2},
}


def rates(runs, seed, **fault):
    draw = rng(seed)
    found = [fired(draw, **fault) for _ in range(runs)]
    return {name: sum(one[name] for one in found) / runs for name in FAULTS}


@pytest.mark.slow
def test_a_clean_board_is_silent_and_every_fault_is_found():
    clean = rates(40, 1)
    assert max(clean.values()) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 40), clean
    for name, fault in FAULTS.items():
        assert rates(15, 2, **fault)[name] >= 0.6, name


@pytest.mark.slow
def test_clean_boards_are_silent():
    clean = rates(200, 3)
    assert max(clean.values()) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200), clean


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_in_eight_of_ten_boards(name):
    assert rates(200, 4, **FAULTS[name])[name] >= 0.8


def test_similar_systems_are_no_cycle():
    # Majorities of equal systems go round in circles by chance; a shown win does not.
    draw, circles, shown = rng(5), 0, 0
    for _ in range(40):
        rows, _ = votes(draw, circle=1e-9)
        probe = board_audit.cycle_probe(*rows, n_systems=5)
        circles += probe.estimate.detail["n_cycles_of_means"] > 0
        shown += probe.fires
    assert circles > 20 and shown <= 5


def test_the_order_effect_does_not_depend_on_who_was_shown_first_more_often():
    draw = rng(6)
    rows, _ = votes(draw)
    # The best system comes first nine times in ten.
    turn = (rows[1] == 0) & (draw.random(len(rows[0])) < 0.8)
    x, y = np.where(turn, rows[1], rows[0]), np.where(turn, rows[0], rows[1])
    wins = np.where(turn, 1 - rows[2], rows[2])
    probe = board_audit.first_shown_probe(x, y, wins, rows[3], n_systems=5)
    assert not probe.fires and abs(probe.estimate.estimate - 0.5) < 0.03
    assert wins.mean() > 0.53


def test_the_cycles_p_value_is_the_level_at_which_it_begins_to_fire():
    rows, _ = votes(rng(7), circle=0.6)
    pvalue = board_audit.cycle_probe(*rows, n_systems=5).estimate.pvalue
    assert 0 < pvalue < 1
    for alpha, fires in ((pvalue * 1.0001, True), (pvalue * 0.999, False)):
        probe = board_audit.cycle_probe(*rows, n_systems=5, alpha=alpha)
        assert (probe.fires, bool(probe.estimate.detail["cycles"])) == (fires, fires)


def test_the_cycles_p_value_counts_all_pairs_in_both_directions():
    x, who = np.tile([0, 1, 2], 60), np.arange(180) // 6
    wins = (rng(10).random(180) < 0.75).astype(float)
    probe = board_audit.cycle_probe(x, (x + 1) % 3, wins, who, n_systems=3)
    pairs = [clusters.clustered_mean(wins[x == one], who[x == one], null=0.5).pvalue for one in range(3)]
    np.testing.assert_allclose(probe.estimate.pvalue, 3 * max(pairs), rtol=1e-9)


def test_influence_is_what_leaving_a_person_out_does():
    rows, _ = votes(rng(8), n_people=12)
    points, systems, people = np.r_[rows[2], 1 - rows[2]], np.r_[rows[0], rows[1]], np.tile(rows[3], 2)
    detail = board_audit.heavy_voter_probe(points, systems, people).estimate.detail

    def means(kept):
        return np.array([points[kept & (systems == one)].mean() for one in (0, 1)])

    whole = np.subtract(*means(people >= 0))
    moves = np.array([whole - np.subtract(*means(people != one)) for one in range(12)])
    se = np.sqrt(11 / 12 * np.sum(moves**2))
    np.testing.assert_allclose(detail["influence"], np.abs(moves).max() / se)
    assert detail["influential_annotator"] == int(np.argmax(np.abs(moves)))


def test_what_cannot_be_computed_is_a_status_and_silent():
    empty = board_audit.audit_votes([], [], [], [], n_systems=3, rng=rng(), is_late=[])
    assert not any(probe.fires for probe in empty)
    assert all(probe.estimate.status != "ok" for probe in empty)
    one_order = board_audit.first_shown_probe([0] * 20, [1] * 20, [1] * 20, range(20), n_systems=2)
    assert (one_order.fires, one_order.estimate.status) == (False, "no_data")
    few = board_audit.cycle_probe([0, 1, 2] * 4, [1, 2, 0] * 4, [1] * 12, [1, 2, 3] * 4, n_systems=3)
    assert (few.fires, few.estimate.status) == (False, "not_identified")
    with pytest.raises(ValueError, match="outcomes: row 0 is 2"):
        board_audit.cycle_probe([0], [1], [2], [1], n_systems=2)
    with pytest.raises(ValueError, match="is_late"):
        board_audit.vote_drift_probe([0], [1], [1], [1], [], n_systems=2, rng=rng())


def scored(draw, *, place=0.0, drift=0.0, n_items=60):
    """Three systems scored by people on shared items, in two rounds."""
    systems, items = np.repeat(np.arange(3), 2 * n_items), np.tile(np.arange(n_items), 6)
    rounds = np.tile(np.repeat([0, 1], n_items), 3)
    people, places = draw.integers(0, 30, len(items)), draw.integers(0, 3, len(items))
    mean = 0.4 + 0.15 * systems - place * places + drift * rounds + draw.normal(0, 0.05, 30)[people]
    values = np.clip(mean + draw.normal(0, 0.15, len(items)), 0, 1)
    return np.round(4 * values) / 4, systems, items, people, places, rounds


def test_a_board_of_scores_has_its_probes_too():
    def audited(seed, **fault):
        *rows, places, rounds = scored(rng(seed), **fault)
        found = board_audit.audit_scores(*rows, rng=rng(), positions=places, rounds=rounds, resamples=299)
        return {probe.name for probe in found if probe.fires}, {probe.name for probe in found}

    fires, names = audited(9)
    assert fires == set() and names == {"position", "neutral_share", "heavy_voter", "separation", "drift"}
    assert audited(9, place=0.08)[0] == {"position"}
    assert audited(9, drift=0.1)[0] == {"drift"}
