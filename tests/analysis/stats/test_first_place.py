"""The fewest answers and people who decide the first place are those that brute force finds."""

import itertools
import json

import numpy as np
import pytest

from analysis.stats import first_place
from analysis.stats.davidson import bradley_terry_strengths
from tests.analysis.stats.draws import rng


def small_board(draw, *, per_item=1):
    """Three systems, six items, four people."""
    items = np.tile(np.repeat(np.arange(6), per_item), 3)
    systems = np.repeat(np.arange(3), 6 * per_item)
    people = draw.integers(0, 4, len(items))
    return draw.integers(0, 5, len(items)) / 4, systems, items, people


def scores_of(values, systems, items, kept):
    def one(system):
        own = kept & (systems == system)
        return np.mean([values[own & (items == i)].mean() for i in np.unique(items[own])]) if own.any() else -1.0

    return np.array([one(system) for system in range(3)])


def changes(scores, first):
    return scores[first] >= 0 and scores.max() > scores[first] + 1e-12


def fewest_of(n, is_enough, largest):
    for size in range(1, largest + 1):
        if any(is_enough(np.array(chosen)) for chosen in itertools.combinations(range(n), size)):
            return size
    return None


def brute_answers(data, largest=4):
    values, systems, items, _ = data
    whole = np.ones(len(values), dtype=bool)
    first = int(np.argmax(scores_of(values, systems, items, whole)))

    def is_enough(chosen):
        kept = whole.copy()
        kept[chosen] = False
        return changes(scores_of(values, systems, items, kept), first)

    return fewest_of(len(values), is_enough, largest)


def brute_people(data):
    values, systems, items, people = data
    first = int(np.argmax(scores_of(values, systems, items, people >= 0)))

    def is_enough(chosen):
        return changes(scores_of(values, systems, items, ~np.isin(people, np.unique(people)[chosen])), first)

    return fewest_of(len(np.unique(people)), is_enough, 3)


def test_with_one_answer_an_item_no_smaller_set_of_answers_exists():
    draw, seen = rng(1), set()
    for _ in range(25):
        data = small_board(draw)
        wanted, found = brute_answers(data), first_place.first_place_sensitivity(*data).answers
        if wanted is not None:
            assert found.n == wanted == found.predicted and found.is_confirmed
            seen.add(wanted)
    assert len(seen) >= 3


@pytest.mark.slow
def test_with_several_answers_an_item_and_for_people_the_search_is_close():
    draw, equal, total = rng(2), 0, 0
    for _ in range(25):
        data = small_board(draw, per_item=2)
        found = first_place.first_place_sensitivity(*data)
        for wanted, removal in ((brute_answers(data, 2), found.answers), (brute_people(data), found.people)):
            if wanted is not None and removal.n is not None:
                assert removal.n >= wanted
                equal, total = equal + (removal.n == wanted), total + 1
    assert total >= 20 and equal >= 0.7 * total


def test_the_board_without_the_removed_is_led_by_the_challenger():
    draw = rng(3)
    items, systems = np.tile(np.arange(80), 4), np.repeat(list("abcd"), 80)
    people = draw.integers(0, 25, 320)
    values = np.clip(np.repeat([0.4, 0.5, 0.6, 0.65], 80) + draw.normal(0, 0.25, 320), 0, 1)
    found = first_place.first_place_sensitivity(values, systems, items, people)
    for removal, kept in (
        (found.answers, ~np.isin(np.arange(320), found.answers.removed)),
        (found.people, ~np.isin(people, found.people.removed)),
    ):
        means = {name: values[kept & (systems == name)].mean() for name in "abcd"}
        assert max(means, key=means.get) == removal.challenger != found.first == "d"
        assert removal.n == len(removal.removed) and removal.share == removal.n / removal.total
    assert found.people.n <= 25 and found.answers.n < 40
    json.dumps(found.as_dict(), allow_nan=False)


def some_votes(draw, n, n_systems, n_people):
    x = draw.integers(0, n_systems, n)
    y = (x + draw.integers(1, n_systems, n)) % n_systems
    worth = np.linspace(0.5, 0, n_systems)
    wins = (draw.random(n) < 1 / (1 + np.exp(worth[y] - worth[x]))).astype(float)
    wins[draw.random(n) < 0.1] = 0.5
    return x, y, wins, draw.integers(0, n_people, n)


def strengths_of(x, y, wins, kept, k):
    table = np.zeros((k, k))
    np.add.at(table, (x[kept], y[kept]), wins[kept])
    np.add.at(table, (y[kept], x[kept]), 1 - wins[kept])
    return bradley_terry_strengths(table)


@pytest.mark.slow
@pytest.mark.parametrize("of", ["answers", "people"])
def test_votes_agree_with_brute_force(of):
    draw, equal, total = rng(4), 0, 0
    for _ in range(20):
        x, y, wins, people = some_votes(draw, 30, 3, 8)
        whole = strengths_of(x, y, wins, np.full(30, True), 3)
        removal = getattr(first_place.first_place_sensitivity_of_votes(x, y, wins, people, n_systems=3), of)
        if whole is None or removal.n is None:
            continue
        labels = np.arange(30) if of == "answers" else people
        first = int(np.argmax(whole))

        def is_enough(chosen, labels=labels, data=(x, y, wins), first=first):
            again = strengths_of(*data, ~np.isin(labels, np.unique(labels)[chosen]), 3)
            return again is not None and again.max() > again[first] + 1e-12

        wanted = fewest_of(len(np.unique(labels)), is_enough, 2)
        if wanted is not None:
            assert removal.n >= wanted
            equal, total = equal + (removal.n == wanted), total + 1
    assert total >= 8 and equal >= 0.85 * total


def test_of_many_votes_those_with_the_largest_influence_are_left_out():
    draw = rng(5)
    x, y, wins, people = some_votes(draw, 3000, 3, 60)
    found = first_place.first_place_sensitivity_of_votes(x, y, wins, people, n_systems=3)
    # Each removed vote was a win of the first system, or a loss of the challenger.
    rows = np.array(found.answers.removed)
    helped = np.where(x[rows] == found.first, wins[rows], np.where(y[rows] == found.first, 1 - wins[rows], 0))
    hurt = np.where(
        x[rows] == found.answers.challenger,
        1 - wins[rows],
        np.where(y[rows] == found.answers.challenger, wins[rows], 0),
    )
    assert found.answers.n < 600 and (np.maximum(helped, hurt) == 1).all()
    assert 0.8 * found.answers.predicted <= found.answers.n <= found.answers.predicted


def test_boards_without_a_challenger_are_statuses():
    one = first_place.first_place_sensitivity([1, 0], ["x", "x"], [1, 2], ["a", "b"])
    assert (one.first, one.answers.status, one.people.status) == ("x", "not_applicable", "not_applicable")
    none = first_place.first_place_sensitivity([], [], [], [])
    assert (none.first, none.answers.n) == (None, None)
    apart = first_place.first_place_sensitivity([1, 1, 0, 0], list("xxyy"), [1, 2, 1, 2], list("abab"))
    assert apart.answers.status == apart.people.status == "not_identified" and apart.answers.reason
    separated = first_place.first_place_sensitivity_of_votes([0, 0], [1, 1], [1, 1], ["a", "b"], n_systems=2)
    assert separated.answers.status == "not_identified"
