"""How often ratings from stated chances hold, of all systems at once.

    python -m tools.proofs.calibration.stated_ratings [--boards 400]

Each person states the chance of every ordered pair, as an annotator of SPA does: log-odds of strengths that are the person's own,
with an error for each answer, rounded to percent. The true strengths are those that fit the mean chances of 20,000 people. Printed
for each design: the share of boards in which all intervals hold, and in which all rank sets hold.
"""

import argparse

import numpy as np

from analysis.stats import vote_ratings

# People, systems, standard deviation of a person's strengths, and of the error of an answer.
DESIGNS = ((12, 4, 0.6, 0.7), (40, 4, 0.6, 0.7), (12, 8, 1.0, 0.7), (24, 3, 0.3, 1.2))


def stated(rng: np.random.Generator, people: int, systems: int, sd_people: float, sd_answers: float):
    """The pairs (first, second) and the chances of each person; (people, pairs)."""
    first, second = np.nonzero(~np.eye(systems, dtype=bool))
    own = np.linspace(0.8, -0.8, systems) + rng.normal(0, sd_people, (people, systems))
    odds = own[:, first] - own[:, second] + rng.normal(0, sd_answers, (people, len(first)))
    return first, second, np.round(1 / (1 + np.exp(-odds)), 2)


def rate(first, second, chances, rng: np.random.Generator):
    n = len(chances)
    return vote_ratings.paired_ratings(
        np.tile(first, n),
        np.tile(second, n),
        chances.ravel(),
        np.repeat(np.arange(n), len(first)),
        n_systems=int(first.max()) + 1,
        ties="half",
        rng=rng,
        resamples=499,
    )


def true_strengths(design) -> np.ndarray:
    rng = np.random.default_rng(1)
    first, second, chances = stated(rng, 20_000, *design[1:])
    found = rate(first, second, np.tile(chances.mean(axis=0), (10, 1)), rng)
    return np.array([one.estimate for one in found.ratings])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", type=int, default=400)
    n_boards = parser.parse_args().boards
    print("people systems sd_people sd_answers  intervals  rank sets")
    for design in DESIGNS:
        truth, held, ranked = true_strengths(design), 0, 0
        for seed in range(n_boards):
            rng = np.random.default_rng((seed, *design[:2]))
            found = rate(*stated(rng, *design), rng)
            held += all(
                one.interval.low <= true <= one.interval.high for one, true in zip(found.ratings, truth, strict=True)
            )
            sets = zip(found.ranks.systems, found.ranks.low, found.ranks.high, strict=True)
            ranked += all(low <= system + 1 <= high for system, low, high in sets)
        print(*(f"{value:8}" for value in design), f"{held / n_boards:9.3f}", f"{ranked / n_boards:9.3f}", flush=True)


if __name__ == "__main__":
    main()
