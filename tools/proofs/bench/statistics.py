"""What the statistics cost, beside the usual way to compute the same, in one process.

    python -m tools.proofs.bench.statistics [--sizes 10000,100000,1000000] [--rounds 3] [--only WORDS]
    python -m tools.proofs.bench.statistics --sizes 5000000 --rounds 1 --only ratings
    python -m tools.proofs.bench.statistics --sizes 200000 --only stated --bounds

Each row: our seconds of CPU, the other way's, their ratio, and whether both gave the same answer. What would take minutes the other way
is measured on a tenth or a hundredth of its resamples and multiplied; the row says so. ``--bounds`` fails if a row takes longer than its
bound, or gives another answer.

arena-rank pins its own numpy and jax and cannot be installed beside heval. To compare with it, call ``votes_of_people`` with the
same seed in an environment of its own, fit the same arrays there, and compare strengths after their mean is subtracted. Its
intervals take votes as independent, so only strengths agree.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

# As in a worker: several threads of the linear algebra wait for one another on problems of this size.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from scipy import optimize, sparse, special

from analysis.stats import (
    agents,
    agreement,
    choice,
    davidson,
    judge_assisted,
    leaderboard,
    mixture,
    spa,
    stopping_boundaries,
    vote_ratings,
)


@dataclass
class Row:
    """``same``: what both ways gave, compared; None where they draw at random and only resemble each other.

    ``most``: the bound, in times the other way, or 0 without a bound.
    """

    what: str
    n: int
    ours: Callable[[], object]
    other: Callable[[], object] | None
    other_way: str
    times: float = 1.0
    same: Callable[[object, object], bool] | None = None
    most: float = 0.0


def seconds(rounds: int, *works: Callable[[], object]) -> list[tuple[float, object]]:
    """The median seconds and the last result of each work; the works take turns, because a busy machine is slower."""
    taken, results = [[] for _ in works], [None for _ in works]
    for _ in range(rounds):
        for place, work in enumerate(works):
            start = time.process_time()
            results[place] = work()
            taken[place].append(time.process_time() - start)
    return list(zip(map(median, taken), results, strict=True))


def ratings(rng, n, per=5):
    """``n`` ratings 1..5, five a unit."""
    units = np.repeat(np.arange(n // per), per)
    quality = rng.normal(3, 0.9, n // per)
    return units, np.clip(np.rint(quality[units] + rng.normal(0, 0.8, len(units))), 1, 5)


def plain_alpha(counts):
    """Interval alpha from all pairs of values, without the coincidence trick."""
    values = np.arange(1, counts.shape[1] + 1)
    n = counts.sum(axis=1)
    distance = (values[:, None] - values[None, :]) ** 2.0
    within = np.einsum("ui,uj,ij->u", counts, counts, distance) / (n - 1)
    total = counts.sum(axis=0)
    expected = total @ distance @ total / (total.sum() - 1)
    return 1 - within.sum() / expected


def alpha_rows(rng, n):
    units, values = ratings(rng, n)
    counts, points = agreement.value_counts_by_unit(units, values)
    settings = {"level_of_measurement": "interval"}

    def rows_resampled():
        found = []
        for _ in range(10):
            chosen = rng.integers(0, len(counts), len(counts))
            found.append(plain_alpha(counts[chosen]))
        return found

    yield Row(
        "Krippendorff's alpha",
        n,
        lambda: agreement.krippendorff_alpha(counts, points, resamples=0, rng=rng, **settings).estimate,
        lambda: plain_alpha(counts),
        "every pair of values",
        same=lambda a, b: abs(a - b) < 1e-9,
    )
    yield Row(
        "Krippendorff's alpha, 1,000 resamples",
        n,
        lambda: agreement.krippendorff_alpha(counts, points, resamples=1000, rng=rng, **settings),
        rows_resampled,
        "units resampled (10, times 100)",
        times=100,
    )


def bradley_terry_rows(rng, n, systems=100):
    worth = rng.normal(0, 1, systems)
    first, second = rng.integers(0, systems, n), rng.integers(0, systems - 1, n)
    second += second >= first
    won = rng.random(n) < special.expit(worth[first] - worth[second])
    winner, loser = np.where(won, first, second), np.where(won, second, first)

    def counted():
        return np.bincount(winner * systems + loser, minlength=systems**2).reshape(systems, systems)

    def ours():
        return davidson.bradley_terry_strengths(counted())

    def bare_newton():
        wins, at = counted().astype(float), np.zeros(systems)
        asked = wins + wins.T
        for _ in range(50):
            expected = 1 / (1 + np.exp(at[None] - at[:, None]))
            spread = asked * expected * (1 - expected)
            curve = np.diag(spread.sum(1)) - spread + spread.mean()
            step = np.linalg.solve(curve, wins.sum(1) - (asked * expected).sum(1))
            at = at + step - (at + step).mean()
            if np.abs(step).max() < 1e-10:
                return at

    def by_rows():
        def loss(beta):
            difference = beta[winner] - beta[loser]
            wrong = special.expit(-difference)
            slope = np.bincount(loser, wrong, systems) - np.bincount(winner, wrong, systems)
            return float(np.logaddexp(0, -difference).sum()) / n, slope / n

        return optimize.minimize(
            loss, np.zeros(systems), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
        ).x

    def same(a, b):
        return bool(np.abs((a - a.mean()) - (b - b.mean())).max() < 1e-3)

    yield Row(
        f"Bradley-Terry, {systems} systems, strengths",
        n,
        ours,
        bare_newton,
        "Newton on the win table, no checks",
        same=same,
    )
    yield Row(f"Bradley-Terry, {systems} systems", n, ours, by_rows, "likelihood over rows, L-BFGS", same=same)


def votes_of_people(seed, n, systems=400, per_person=50):
    """Votes between systems by people with about fifty each: first, second, 1, .5 or 0, and the person."""
    rng = np.random.default_rng(seed)
    worth = np.linspace(1, -1, systems)
    first = rng.integers(0, systems, n)
    second = (first + rng.integers(1, systems, n)) % systems
    won = (rng.random(n) < special.expit(worth[first] - worth[second])).astype(float)
    won[rng.random(n) < 0.2] = 0.5
    return first, second, won, rng.integers(0, max(2, n // per_person), n)


def ratings_rows(rng, n, systems=400):
    if n < 20 * systems:
        return
    first, second, won, people = votes_of_people(2, n, systems)

    def ours():
        found = vote_ratings.paired_ratings(first, second, won, people, n_systems=systems, rng=rng, ties="half")
        return np.array([[one.estimate, one.detail["se"]] for one in found.ratings])

    def by_rows():
        """Strengths from the rows, and the plain sandwich from a sparse table of people; no intervals, no rank sets."""

        def loss(beta):
            odds = beta[first] - beta[second]
            rest = special.expit(odds) - won
            slope = np.bincount(first, rest, systems) - np.bincount(second, rest, systems)
            return float((np.logaddexp(0, odds) - won * odds).sum()) / n, slope / n

        options = {"ftol": 1e-15, "gtol": 1e-9}
        beta = optimize.minimize(loss, np.zeros(systems), jac=True, method="L-BFGS-B", options=options).x
        chance = special.expit(beta[first] - beta[second])
        spread = np.bincount(first * systems + second, chance * (1 - chance), minlength=systems**2)
        spread = spread.reshape(systems, systems) + spread.reshape(systems, systems).T
        inverse = np.linalg.inv(np.diag(spread.sum(1)) - spread + spread.mean())
        rest = won - chance
        cells = np.r_[people, people], np.r_[first, second]
        scores = sparse.coo_array((np.r_[rest, -rest], cells)).tocsr()
        covariance = inverse @ (scores.T @ scores).toarray() @ inverse
        return np.column_stack([beta - beta.mean(), np.sqrt(np.diag(covariance))])

    def same(a, b):
        return bool(np.abs(a[:, 0] - b[:, 0]).max() < 1e-3 and np.abs(a[:, 1] / b[:, 1] - 1).max() < 0.05)

    yield Row(f"ratings of {systems} systems by person", n, ours, by_rows, "L-BFGS and a sparse sandwich", same=same)


def stated_rows(rng, n, systems=100):
    """A ranking from stated chances as a report of SPA computes it, with the bonus of being named first, beside a board's."""
    if n < 20 * systems:
        return
    first, second, _, people = votes_of_people(2, n, systems)
    worth = np.linspace(1, -1, systems)
    stated = np.round(special.expit(worth[first] - worth[second] + 0.2 + rng.normal(0, 1, n)), 2)
    rows = first, second, stated, people

    def of_a_report():
        found = davidson.fit_davidson(*rows, n_systems=systems, ties="half", reference=0)
        davidson.first_named_bonus(*rows, n_systems=systems)
        return np.array([one.estimate for one in found.strengths])

    def of_a_board():
        found = vote_ratings.paired_ratings(*rows, n_systems=systems, rng=rng, ties="half")
        return np.array([one.estimate for one in found.ratings])

    yield Row(
        f"strengths of {systems} systems, stated chances",
        n,
        of_a_report,
        of_a_board,
        "the ratings of a board",
        same=lambda a, b: bool(np.abs(a - (b - b[0])).max() < 1e-9),
        most=3.0,
    )


def board_rows(rng, n, systems=200, items=500):
    """A board of scores with rank sets over people and prompts."""
    which, item, person = rng.integers(0, systems, n), rng.integers(0, items, n), rng.integers(0, max(20, n // 100), n)
    values = np.clip(0.5 + 0.1 * rng.normal(size=systems)[which] + 0.3 * rng.normal(size=n), 0, 1)
    yield Row(
        f"leaderboard, {systems} systems x {items} prompts",
        n,
        lambda: leaderboard.leaderboard(values, which, item, person, rng=rng),
        None,
        "",
    )


def mixture_rows(rng, n):
    """A board with many annotators, of whom some answered hundreds of test questions."""
    trials = np.clip(np.rint(rng.lognormal(2.3, 1, n)), 1, 400).astype(int)
    right = rng.binomial(trials, np.where(rng.random(n) < 0.12, rng.beta(2, 6, n), rng.beta(19, 1, n)))

    def fitted(right, trials, method="likelihood"):
        return mixture.fit_beta_mixture(right, trials, n_components=2, rng=np.random.default_rng(0), method=method)

    def after_one_answer():
        more, correct = trials.copy(), right.copy()
        more[0] += 1
        correct[0] += 1
        found = fitted(correct, more)
        return mixture.noisy_annotator_posterior(found.mixture, correct, more, criterion="class")

    yield Row("annotator mixture, the fit of a board", n, lambda: fitted(right, trials), None, "")
    yield Row("annotator mixture, fit and posteriors after one answer", n, after_one_answer, None, "")
    yield Row("annotator mixture, as published (paper)", n, lambda: fitted(right, trials, "em"), None, "")


def judge_rows(rng, prompts=500, systems=10, labelled=100, judges=4):
    """People judge some outputs of all systems, and several judges all of them."""
    system, prompt = np.repeat(np.arange(systems), prompts), np.tile(np.arange(prompts), systems)
    quality = rng.normal(size=prompts)[prompt] + 0.05 * system + 0.5 * rng.normal(size=len(system))
    scores = quality[:, None] + rng.normal(size=(len(system), judges))
    items = np.repeat(np.flatnonzero(prompt < labelled), 2)
    people = rng.integers(0, 60, len(items))
    values = quality[items] + 0.5 * rng.normal(size=len(items))
    options = {"judges": scores, "prompts": prompt, "strata": prompt % 3}
    yield Row(
        "people and judges, mean of all outputs",
        len(items),
        lambda: judge_assisted.prediction_powered_mean(values, people, items, **options),
        None,
        "",
    )
    yield Row(
        "people and judges, all pairs of 10 systems",
        len(items),
        lambda: judge_assisted.prediction_powered_differences(values, people, items, systems=system, **options),
        None,
        "",
    )


def once_rows(rng):
    trials = rng.integers(5, 40, 300)
    right = rng.binomial(trials, np.where(rng.random(300) < 0.15, 0.5, 0.95))
    yield Row(
        "annotator mixture, 2 components",
        300,
        lambda: mixture.fit_beta_mixture(right, trials, n_components=2, rng=np.random.default_rng(0)),
        lambda: mixture.fit_beta_mixture(right, trials, n_components=2, rng=np.random.default_rng(0), method="em"),
        "expectation-maximisation",
    )
    yield from mixture_rows(rng, 10_000)
    yield from judge_rows(rng)
    n, systems = 500, 10
    pairs = systems - 1
    xy = np.clip(np.rint(60 + rng.normal(0, 22, (n, pairs))), 0, 100)
    yx = np.clip(np.rint(40 + rng.normal(0, 22, (n, pairs))), 0, 100)
    yield Row(
        "SPA, all pairs of a report",
        n,
        lambda: spa.pair_preferences_recommended(
            xy, yx, pair_names=[str(k) for k in range(pairs)], rng=np.random.default_rng(0)
        ),
        None,
        "",
    )
    yield Row("Table 3: 3 difficulties, 5 strategies, 1,000 runs", 15_000, lambda: _table_3(rng), None, "")


def _table_3(rng):
    strategies = [
        choice.Strategy("one"),
        choice.Strategy("fixed"),
        choice.Strategy("majority", workers=3),
        choice.Strategy("majority", workers=7),
        choice.Strategy("max_three"),
    ]
    rule = stopping_boundaries.hoeffding_boundaries(15_000, delta=0.001)
    for difficulty in (0.25, 0.125, 0.0625):
        for strategy in strategies:
            agents.simulate_effort_of_new_agents(difficulty, 15_000, strategy, rule=rule, runs=1000, rng=rng)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.proofs.bench.statistics")
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--bounds", action="store_true", help="fail if a bound is broken")
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    rows = list(once_rows(rng))
    for n in map(int, given.sizes.split(",")):
        for make in (alpha_rows, bradley_terry_rows, ratings_rows, stated_rows, board_rows):
            rows += make(rng, n)
    broken = []
    print(f"{'what':44} {'n':>9} | {'ours':>9} {'other':>9} {'ratio':>8} | other way, answer")
    for row in sorted(rows, key=lambda row: row.what):
        if given.only not in row.what:
            continue
        is_whole = row.times == 1
        (ours, mine), *others = seconds(given.rounds, row.ours, *([row.other] if row.other and is_whole else []))
        line = f"{row.what:44} {row.n:>9,} | {ours:9.4f} "
        if row.other:
            other, theirs = others[0] if is_whole else seconds(1, row.other)[0]
            other *= row.times
            answer = "" if row.same is None else ", the same" if row.same(mine, theirs) else ", ANOTHER ANSWER"
            if row.most and (ours > row.most * other or "ANOTHER" in answer):
                broken.append(
                    f"{row.what}, {row.n:,}: {ours / other:.1f} times the other way (at most {row.most:g}){answer}"
                )
            line += f"{other:9.3f} {other / ours:7.1f}x | {row.other_way}{answer}"
        print(line, flush=True)
    if given.bounds and broken:
        raise SystemExit("Broken bounds: " + "; ".join(broken))


if __name__ == "__main__":
    main()
