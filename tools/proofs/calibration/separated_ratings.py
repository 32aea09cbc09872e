"""How often ratings and rank sets hold when one system wins or loses everything.

    python -m tools.proofs.calibration.separated_ratings [--draws 400] [--people 15,40,150]

Five systems in a row (or all equal) and a sixth that is far better or far worse; each person gives twenty votes and likes each
system a little differently. Printed: the share of draws with a system that always won or lost, and among those the share in which
all rank sets hold, and all intervals of the rated systems hold; the mean number of ranks in the sets of the separated and of the
rated systems.
"""

import argparse

import numpy as np

from analysis.stats import vote_ratings

VOTES = 20


def draw_votes(draw: np.random.Generator, worth: np.ndarray, n_people: int):
    k, n = len(worth), n_people * VOTES
    who = np.repeat(np.arange(n_people), VOTES)
    x = draw.integers(0, k, n)
    y = (x + draw.integers(1, k, n)) % k
    own = worth + draw.normal(0, 0.3, (n_people, k))
    won = draw.random(n) < 1 / (1 + np.exp(-(own[who, x] - own[who, y])))
    return x, y, won.astype(float), who


def true_ranks(worth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best and the worst rank that each system can claim; equal systems share theirs."""
    better = np.sum(worth[None, :] > worth[:, None], axis=1)
    return 1 + better, len(worth) - np.sum(worth[None, :] < worth[:, None], axis=1)


def one_draw(worth: np.ndarray, n_people: int, seed: int) -> dict[str, float] | None:
    """Whether all rank sets and intervals hold, and the sizes of the sets; None if every system has a rating."""
    draw = np.random.default_rng(seed)
    found = vote_ratings.paired_ratings(
        *draw_votes(draw, worth, n_people), n_systems=len(worth), rng=draw, ties="half", resamples=499
    )
    if found.status != "separation":
        return None
    best, worst = true_ranks(worth)
    low, high = np.array(found.ranks.low), np.array(found.ranks.high)
    rated = np.array(found.rated, dtype=int)
    centred = worth[rated] - worth[rated].mean() if len(rated) else np.empty(0)
    intervals = [found.ratings[system].interval for system in rated]
    size = high - low + 1
    is_rated = np.isin(np.arange(len(worth)), rated)
    return {
        # The sets of equal systems must allow every order of them.
        "ranks": float(np.all((low <= best) & (high >= worst))),
        "intervals": float(
            all(one is not None and one.low <= true <= one.high for one, true in zip(intervals, centred, strict=True))
        ),
        "separated": float(size[~is_rated].mean()),
        "rated": float(size[is_rated].mean()) if len(rated) else float("nan"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--people", default="15,40,150")
    chosen = parser.parse_args()
    worlds = {
        "in a row, one far better": np.r_[np.linspace(0.6, -0.6, 5), 7.0],
        "equal, one far worse": np.r_[np.zeros(5), -7.0],
    }
    print("world                      people  separated  ranks  intervals  set of separated  set of rated")
    for name, worth in worlds.items():
        for n_people in map(int, chosen.people.split(",")):
            draws = [one_draw(worth, n_people, seed) for seed in range(chosen.draws)]
            found = [one for one in draws if one is not None]
            mean = {key: np.nanmean([one[key] for one in found]) for key in found[0]} if found else {}
            numbers = "".join(f"{value:11.3f}" for value in mean.values())
            print(f"{name:26} {n_people:6} {len(found) / len(draws):10.3f} {numbers}", flush=True)


if __name__ == "__main__":
    main()
