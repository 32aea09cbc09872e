"""Balance within one person, over many seeds and shapes: which systems a batch shows, and where its pages show them."""

from collections import Counter
from itertools import combinations, pairwise
from random import Random

import pytest

from studies.design.draw import TurnQueue
from studies.protocols.base.pairs import ShownCounts, draw_balanced_positions, in_balanced_order


def spread(counts, keys) -> int:
    """The largest count minus the smallest."""
    values = [counts[key] for key in keys]
    return max(values) - min(values)


def first_systems(items, seed) -> list:
    """The system that each pair of outputs shows first."""
    drawn = draw_balanced_positions(items, Random(seed))
    return [systems[positions.index(0)] for systems, positions in zip(items, drawn, strict=True)]


@pytest.mark.parametrize("seed", range(200))
def test_positions_are_balanced_whatever_the_items_show(seed):
    rng = Random(seed)
    n_systems = rng.randint(1, 8)
    items = [rng.sample(range(n_systems), rng.randint(1, n_systems)) for _ in range(rng.randint(1, 40))]
    drawn = draw_balanced_positions(items, rng)
    assert [sorted(positions) for positions in drawn] == [list(range(len(systems))) for systems in items]
    for size in {len(systems) for systems in items}:
        shown = [
            (system, position)
            for systems, positions in zip(items, drawn, strict=True)
            if len(systems) == size
            for system, position in zip(systems, positions, strict=True)
        ]
        for system in range(n_systems):
            assert spread(Counter(p for s, p in shown if s == system), range(size)) <= 1


@pytest.mark.parametrize("seed", range(100))
def test_each_pair_is_shown_each_way_equally_often(seed):
    rng = Random(seed)
    items = [rng.sample(range(rng.choice((2, 4, 6))), 2) for _ in range(rng.randint(1, 40))]
    first = first_systems(items, seed)
    for x, y in combinations(range(6), 2):
        ways = Counter(system for systems, system in zip(items, first, strict=True) if {x, y} == set(systems))
        assert spread(ways, (x, y)) <= 1


def test_two_outputs_of_one_system_are_distinguished():
    drawn = draw_balanced_positions([("a", "a"), ("a", "a"), ("a", "b")], Random(1))
    assert Counter(positions[0] for positions in drawn[:2]) == {0: 1, 1: 1} and set(drawn[2]) == {0, 1}


def test_every_balanced_order_of_sides_is_equally_likely_and_no_page_foretells_the_next():
    orders = Counter(tuple(first_systems([(0, 1)] * 4, seed)) for seed in range(3000))
    assert len(orders) == 6 and min(orders.values()) > 420  # 500 expected, standard deviation 20
    # The next page shows the other way with the probability of a drawing without replacement, not surely.
    repeats = sum(x == y for seed in range(500) for x, y in pairwise(first_systems([(0, 1)] * 10, seed)))
    assert repeats / 4500 == pytest.approx(4 / 9, abs=0.04)


def test_a_single_page_shows_each_order_equally_often():
    orders = Counter(draw_balanced_positions([(1, 2, 3)], Random(seed))[0] for seed in range(3000))
    assert len(orders) == 6 and min(orders.values()) > 420


def all_pairs(n):
    return in_balanced_order(tuple(combinations(range(n), 2)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "sets, n_prompts, m",
    [
        (all_pairs(2), 20, 5),
        (all_pairs(3), 50, 10),
        (all_pairs(4), 100, 10),
        (all_pairs(4), 42, 10),
        (all_pairs(5), 30, 7),
        (all_pairs(6), 100, 10),
        (all_pairs(8), 100, 20),
        (all_pairs(4), 4, 4),
        (all_pairs(3), 7, 5),
        (all_pairs(4), 6, 3),
        (all_pairs(10), 200, 15),
        (((0, 1), (1, 2), (2, 3)), 21, 8),
        (((0, 3), (1, 3), (2, 3)), 30, 7),
    ],
)
def test_batches_meet_pairs_and_systems_equally_often(sets, n_prompts, m, seed):
    queue = TurnQueue(sets, list(range(n_prompts)), seed, "test")
    n_items = n_prompts * len(sets)
    prompts, items, over_all = Counter(), [], Counter()
    for _ in range(2 * n_items // m):
        batch = []
        for prompt in queue.take(m, set()):
            shown = sets[sum(queue.turns[prompt]) % len(sets)]
            batch.append((prompt, shown))
        assert len({prompt for prompt, _ in batch}) == m
        prompts.update(prompt for prompt, _ in batch)
        items += batch
        over_all.update(shown for _, shown in batch)
        assert spread(Counter(shown for _, shown in batch), sets) <= 2
        if sets[0] == (0, 1) and len(sets) != 3:
            assert spread(Counter(system for _, shown in batch for system in shown), {s for p in sets for s in p}) <= 2
    assert spread(prompts, range(n_prompts)) <= 1
    assert len(set(items[:n_items])) == n_items  # every item once before any comes again
    assert spread(over_all, sets) <= 3


def test_prompts_that_another_section_holds_come_first_in_the_next_batch():
    queue = TurnQueue(all_pairs(3), list(range(6)), 1, "test")
    kept_out = {0, 1}
    first = queue.take(4, kept_out)
    assert not kept_out & set(first)
    assert set(queue.take(2, set())) == kept_out


@pytest.mark.parametrize("n, size, pages", [(6, 4, 3), (5, 4, 7), (8, 3, 10), (4, 4, 2)])
def test_a_part_of_the_systems_is_shown_equally_often(n, size, pages):
    for seed in range(30):
        counts, rng = ShownCounts(), Random(seed)
        for _ in range(pages):
            assert len(set(counts.pick_and_count_systems(range(n), size, rng))) == size
        assert spread(counts.systems, range(n)) <= 1
