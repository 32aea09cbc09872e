"""Which outputs people judge: samples of a fixed size with known probabilities."""

from collections.abc import Hashable, Mapping, Sequence
from random import Random
from typing import TypeVar

Unit = TypeVar("Unit", bound=Hashable)


def uncertainties(scores: Mapping[Unit, Sequence[float]], threshold: float) -> dict[Unit, float]:
    """Return how unsure a judge is of each output, from 0 to 1, by the scores of its runs.

    The larger of two numbers counts: the nearness of the mean score to the threshold (1 at the threshold, 0 at the largest distance of
    any output), and 4 p (1 - p), where p is the share of runs with the verdict “yes”.

    >>> uncertainties({"a": [5], "b": [3], "c": [2, 4]}, 3)
    {'a': 0.0, 'b': 1.0, 'c': 1.0}
    """
    distances = {unit: abs(sum(runs) / len(runs) - threshold) for unit, runs in scores.items()}
    largest = max(distances.values(), default=0.0)
    found = {}
    for unit, runs in scores.items():
        p = sum(score >= threshold for score in runs) / len(runs)
        nearness = 1 - distances[unit] / largest if largest else 1.0
        found[unit] = max(nearness, 4 * p * (1 - p))
    return found


def inclusion_probabilities(sizes: Mapping[Unit, float], n: int) -> dict[Unit, float]:
    """Return the probabilities of a sample of ``n`` units, in proportion to their sizes and at most 1. They sum to ``n``.

    >>> inclusion_probabilities({"a": 1, "b": 1, "c": 2}, 2)
    {'a': 0.5, 'b': 0.5, 'c': 1.0}
    """
    certain: set[Unit] = set()
    while True:
        rest = sum(size for unit, size in sizes.items() if unit not in certain)
        share = (n - len(certain)) / rest if rest else 0.0
        beyond = {unit for unit, size in sizes.items() if unit not in certain and size * share >= 1}
        if not beyond:
            return {unit: 1.0 if unit in certain else size * share for unit, size in sizes.items()}
        certain |= beyond


def draw_sample(probabilities: Mapping[Unit, float], n: int, rng: Random) -> list[Unit]:
    """Return ``n`` units by systematic sampling from a random order, which gives each unit exactly its probability."""
    units = list(probabilities)
    rng.shuffle(units)
    start = rng.random()
    drawn: list[Unit] = []
    reached = 0.0
    for unit in units:
        reached += probabilities[unit]
        # The next mark lies at start + the number of units drawn. Rounding must not lose the last unit.
        if reached > start + len(drawn) and len(drawn) < n:
            drawn.append(unit)
    missing = [unit for unit in reversed(units) if unit not in set(drawn)][: n - len(drawn)]
    return [*drawn, *missing]


def deal(units: Sequence[Unit], prompts: Mapping[Unit, int], n_batches: int, rng: Random) -> list[list[Unit]]:
    """Return the units in batches of almost equal size. Outputs for one prompt go to different batches as far as possible."""
    by_prompt: dict[int, list[Unit]] = {}
    for unit in units:
        by_prompt.setdefault(prompts[unit], []).append(unit)
    groups = list(by_prompt.values())
    rng.shuffle(groups)
    batches: list[list[Unit]] = [[] for _ in range(n_batches)]
    for number, unit in enumerate(unit for group in groups for unit in group):
        batches[number % n_batches].append(unit)
    for batch in batches:
        rng.shuffle(batch)
    return batches
