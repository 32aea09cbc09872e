"""The cells of ratings and of means."""

import numpy as np

from analysis.stats import basic, betting, clusters, judge_assisted, ratings
from tests.analysis.stats.comparisons import sandwich
from tests.analysis.stats.draws import bca_of_mean
from tools.proofs.calibration import worlds
from tools.proofs.calibration.cells.cell import COVERS, REJECTS, Cell, covered, rejected


def rating_cells():
    for n in (20, 60):
        yield Cell(
            "Ratings",
            REJECTS,
            "difference of means, clustered",
            "Likert 1..5, three prompts each",
            n,
            lambda rng, n=n: rejected(ratings.paired_mean_difference(*worlds.likert_pair(rng, n, 3), scale=(1, 5))),
        )
        yield Cell(
            "Ratings",
            REJECTS,
            "probability of superiority",
            "Likert 1..5, three prompts each",
            n,
            lambda rng, n=n: rejected(ratings.probability_of_superiority(*worlds.likert_pair(rng, n, 3))),
        )
        yield Cell(
            "Ratings",
            COVERS,
            "probability of superiority, interval",
            "Likert 1..5, three prompts each",
            n,
            lambda rng, n=n: covered(ratings.probability_of_superiority(*worlds.likert_pair(rng, n, 3)), 0.5),
            runs=1000,
            nominal=0.95,
        )
    yield Cell(
        "Ratings", REJECTS, "cumulative logit, clustered", "Likert 1..5, three prompts each", 60, _logit, runs=200
    )


def _logit(rng) -> bool | None:
    x, y, annotators = worlds.likert_pair(rng, 60, 3)
    values, systems = np.concatenate([x, y]), np.repeat(["x", "y"], len(x))
    return rejected(
        ratings.cumulative_logit(values, systems, np.concatenate([annotators] * 2), system="x", reference="y")
    )


def mean_cells():
    yield Cell(
        "Means",
        COVERS,
        "clustered mean (CV3)",
        "a few annotators give most labels",
        40,
        lambda rng: covered(clusters.clustered_mean(*worlds.heavy_tailed(rng)), 0),
        nominal=0.95,
    )
    yield Cell(
        "Means",
        COVERS,
        "clustered mean (CR1)",
        "a few annotators give most labels",
        40,
        lambda rng: covered(sandwich(*worlds.heavy_tailed(rng)).interval(0.95), 0),
        nominal=0.95,
        is_ours=False,
    )
    yield Cell(
        "Means",
        COVERS,
        "labels as if independent",
        "a few annotators give most labels",
        40,
        lambda rng: covered(basic.one_sample_t_test(worlds.heavy_tailed(rng)[0], null=0), 0),
        nominal=0.95,
        is_ours=False,
    )
    for n_annotators, n_items in ((20, 50), (10, 30), (5, 100)):
        yield Cell(
            "Means",
            COVERS,
            "annotators and items as clusters",
            f"everybody judges all {n_items} items",
            n_annotators,
            lambda rng, a=n_annotators, i=n_items: covered(
                clusters.two_way_clustered_mean(*worlds.grid(rng, a, i)), 0.5
            ),
            nominal=0.95,
        )
    yield Cell(
        "Means",
        COVERS,
        "annotators and items as clusters",
        "5 of 100 items each",
        130,
        lambda rng: covered(clusters.two_way_clustered_mean(*worlds.sparse(rng)), 0.5),
        runs=1000,
        nominal=0.95,
    )
    for shares, world, sizes in (
        (worlds.HIGH, "mean score .79", (20, 50, 100)),
        (worlds.CEILING, "mean score .95", (50, 100)),
    ):
        for n in sizes:
            warned = "ceiling" if n < 100 and shares is worlds.CEILING else ""
            yield Cell(
                "Means",
                COVERS,
                "BCa bootstrap",
                world,
                n,
                lambda rng, n=n, p=shares: _bca(rng, n, p),
                runs=1000,
                nominal=0.95,
                warned=warned,
            )
    for n in (20, 100):
        yield Cell(
            "Means",
            COVERS,
            "betting interval",
            "mean score .95",
            n,
            lambda rng, n=n: _betting(rng, n),
            runs=500,
            nominal=0.95,
            is_anytime=True,
        )
    yield Cell("Means", COVERS, "Wilson interval", "share .1", 50, lambda rng: _wilson(rng), nominal=0.95)
    yield Cell(
        "Means",
        COVERS,
        "metric and human scores together (PPI)",
        "correlation .6, 1000 metric scores",
        50,
        _ppi,
        nominal=0.95,
    )


def _scores(rng, n, shares):
    return rng.choice(worlds.SCORES, n, p=shares)


def _bca(rng, n, shares) -> bool | None:
    return covered(bca_of_mean(_scores(rng, n, shares), resamples=999, rng=rng), float(worlds.SCORES @ shares))


def _betting(rng, n) -> bool | None:
    found = betting.betting_interval(_scores(rng, n, worlds.CEILING), grid=401, rng=rng)
    return covered(found, float(worlds.SCORES @ worlds.CEILING))


def _wilson(rng) -> bool:
    low, high = basic.wilson_interval(int(rng.binomial(50, 0.1)), 50)
    return low <= 0.1 <= high


def _ppi(rng) -> bool | None:
    metric = rng.normal(0, 1, 1000)
    human = 0.6 * metric[:50] + 0.8 * rng.normal(0, 1, 50)
    return covered(judge_assisted.prediction_powered_mean(human, None, np.arange(50), judges=metric).combined, 0.0)
