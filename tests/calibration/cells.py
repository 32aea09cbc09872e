"""Each cell: a promise, a world in which its truth is known, and whether one run kept it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.stats import (
    agreement,
    basic,
    best_worst,
    betting,
    bootstrap,
    bradley_terry,
    choice,
    clusters,
    davidson,
    detection,
    equivalence,
    group_sequential,
    groups,
    multiplicity,
    prediction_powered,
    ranks,
    ratings,
    sequential,
    spa,
)

from . import worlds

REJECTS, COVERS = "rejects", "covers"
ALPHA = 0.05


@dataclass(frozen=True)
class Cell:
    """``run(rng)``: whether a true null was rejected, or a true value covered; None where no answer was given.

    ``is_ours`` is False for a procedure that is shown for what it does wrong.
    """

    group: str
    promise: str
    procedure: str
    world: str
    n: int
    run: Callable[[np.random.Generator], bool | None]
    runs: int = 2000
    nominal: float = ALPHA
    is_ours: bool = True
    is_anytime: bool = False
    # Where a small n is known to miss what is promised, and the report warns of it.
    warned: str = ""

    @property
    def name(self) -> str:
        return f"{self.group}: {self.procedure}, {self.world}, n = {self.n}"


def rejected(estimate) -> bool | None:
    return None if estimate.pvalue is None else estimate.pvalue < ALPHA


def covered(estimate, truth) -> bool | None:
    interval = getattr(estimate, "interval", estimate)
    return None if interval is None else interval.low <= truth <= interval.high


def spa_cells():
    for shape, sizes in (("even", (10, 30, 90)), ("at the ends", (30, 90)), ("skewed", (10, 30, 90))):
        for n in sizes:
            warned = "small_n_skew" if shape == "skewed" else ""
            yield Cell(
                "SPA", REJECTS, "mean of both orders, t", f"answers {shape}", n,
                lambda rng, n=n, shape=shape: rejected(spa.pair_paper(100 * spa.combined(*worlds.spa_answers(rng, n, shape=shape)))),
                warned=warned,
            )  # fmt: skip
    yield Cell("SPA", REJECTS, "five pairs, Holm (any rejection)", "answers even", 60, _family, runs=1000)
    yield Cell(
        "SPA", REJECTS, "order symmetry, mean gap", "noise .10 in both orders", 60,
        lambda rng: rejected(spa.order_symmetry(*worlds.noisy_orders(rng, 60))), runs=1000,
    )  # fmt: skip
    yield Cell(
        "SPA", REJECTS, "sign flips", "answers even", 30,
        lambda rng: rejected(basic.sign_flip(spa.combined(*worlds.spa_answers(rng, 30)), null=0.5, resamples=999, rng=rng)), runs=1000,
    )  # fmt: skip
    yield Cell(
        "SPA", REJECTS, "equivalence (TOST), margin .10", "true difference at the margin", 60,
        lambda rng: bool(equivalence.equivalence(np.clip(0.6 + rng.normal(0, 0.2, 60), 0, 1), null=0.5, margin=0.1).pvalue < ALPHA),
    )  # fmt: skip
    yield Cell(
        "SPA", REJECTS, "one order after tau (as published)", "noise .10", 60, _one_order_after_tau, is_ours=False
    )
    yield Cell("SPA", REJECTS, "Wilcoxon as a test of the mean", "answers skewed", 90, _wilcoxon, is_ours=False)
    for n in (20, 50, 100):
        yield Cell(
            "SPA", COVERS, "mean of both orders, t interval", "true preference .5", n,
            lambda rng, n=n: covered(spa.pair_paper(100 * spa.combined(*worlds.spa_answers(rng, n))), 0.5), nominal=0.95,
        )  # fmt: skip
    for n in (20, 60):
        yield Cell(
            "SPA", COVERS, "strengths (fractional Bradley-Terry)", "four systems, the last against the first", n,
            lambda rng, n=n: _strength(rng, n), runs=1000, nominal=0.95,
        )  # fmt: skip


def _family(rng) -> bool:
    shared = rng.normal(0, 0.1, 60)
    pvalues = []
    for _ in range(5):
        xy, yx = worlds.spa_answers(rng, 60)
        c = np.clip(spa.combined(xy, yx) + shared * rng.choice([-1, 1], 60), 0, 1)
        pvalues.append(basic.one_sample(c, null=0.5).pvalue)
    return min(p for p in multiplicity.holm(pvalues) if p is not None) < ALPHA


def _one_order_after_tau(rng) -> bool | None:
    xy, yx = worlds.noisy_orders(rng, 60)
    kept = ~spa.tau_flags(xy[:, None], yx[:, None]).incoherent
    return rejected(spa.pair_paper(xy[kept], is_after_tau=True))


def _wilcoxon(rng) -> bool | None:
    return rejected(basic.wilcoxon(spa.combined(*worlds.spa_answers(rng, 90, shape="skewed")), null=0.5))


def _tied_strength(rng, n) -> bool | None:
    if "tied" not in _TRUTH:
        labels = worlds.choices_with_ties(np.random.default_rng(1), 100_000)
        _TRUTH["tied"] = float(davidson.davidson(*labels, n_systems=4).difference(3, 0).estimate)
    labels = worlds.choices_with_ties(rng, n)
    found = davidson.davidson_bootstrap(*labels, n_systems=4, resamples=499, rng=rng)
    return covered(found.difference(3, 0), _TRUTH["tied"])


def _chosen_strength(rng) -> bool | None:
    """Labels that are independent of one another, 40 a pair."""
    strengths = np.array([0.0, 0.4, 0.8, 1.2])
    wins = np.zeros((4, 4))
    for x in range(4):
        for y in range(x + 1, 4):
            wins[x, y] = rng.binomial(40, 1 / (1 + np.exp(strengths[y] - strengths[x])))
            wins[y, x] = 40 - wins[x, y]
    found = davidson.bradley_terry_bootstrap(wins, resamples=499, rng=rng)
    return covered(found.difference(3, 0), 1.2)


def _population_strength(spread=0.4, noise=0.3, step=1.2) -> float:
    """What the fitted strength estimates: the logit of the mean answer shrinks with the annotators' spread.

    With four systems at equal steps the fit is not exactly the logit of one pair, so it is computed on a large sample.
    """
    rng = np.random.default_rng(1)
    fit = bradley_terry.fractional_bradley_terry(*worlds.comparisons(rng, 40_000, spread=spread), n_systems=4)
    return float(fit.strengths[3].estimate)


_TRUTH: dict[str, float] = {}


def _strength(rng, n) -> bool | None:
    truth = _TRUTH.setdefault("strength", _population_strength())
    fit = bradley_terry.fractional_bradley_terry(*worlds.comparisons(rng, n), n_systems=4)
    return covered(fit.strengths[3], truth)


def rating_cells():
    for n in (20, 60):
        yield Cell(
            "Ratings", REJECTS, "difference of means, clustered", "Likert 1..5, three prompts each", n,
            lambda rng, n=n: rejected(ratings.mean_difference(*worlds.likert_pair(rng, n, 3), scale=(1, 5))),
        )  # fmt: skip
        yield Cell(
            "Ratings", REJECTS, "probability of superiority", "Likert 1..5, three prompts each", n,
            lambda rng, n=n: rejected(ratings.superiority(*worlds.likert_pair(rng, n, 3), resamples=199, rng=rng)),
        )  # fmt: skip
        yield Cell(
            "Ratings", COVERS, "probability of superiority, interval", "Likert 1..5, three prompts each", n,
            lambda rng, n=n: covered(ratings.superiority(*worlds.likert_pair(rng, n, 3), resamples=999, rng=rng), 0.5),
            runs=1000, nominal=0.95,
        )  # fmt: skip
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
        "Means", COVERS, "clustered mean (CV3)", "a few annotators give most labels", 40,
        lambda rng: covered(clusters.clustered_mean(*worlds.heavy_tailed(rng)), 0), nominal=0.95,
    )  # fmt: skip
    yield Cell(
        "Means", COVERS, "clustered mean (CR1)", "a few annotators give most labels", 40,
        lambda rng: covered(clusters.clustered_mean(*worlds.heavy_tailed(rng), method="cr1"), 0), nominal=0.95, is_ours=False,
    )  # fmt: skip
    yield Cell(
        "Means", COVERS, "labels as if independent", "a few annotators give most labels", 40,
        lambda rng: covered(basic.one_sample(worlds.heavy_tailed(rng)[0], null=0), 0), nominal=0.95, is_ours=False,
    )  # fmt: skip
    for n_annotators, n_items in ((20, 50), (10, 30), (5, 100)):
        yield Cell(
            "Means", COVERS, "annotators and items as clusters", f"everybody judges all {n_items} items", n_annotators,
            lambda rng, a=n_annotators, i=n_items: covered(clusters.two_way_mean(*worlds.grid(rng, a, i)), 0.5), nominal=0.95,
        )  # fmt: skip
    yield Cell(
        "Means", COVERS, "annotators and items as clusters", "5 of 100 items each", 130,
        lambda rng: covered(clusters.two_way_mean(*worlds.sparse(rng)), 0.5), runs=1000, nominal=0.95,
    )  # fmt: skip
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
    return covered(
        bootstrap.bootstrap_mean(_scores(rng, n, shares), resamples=999, rng=rng), float(worlds.SCORES @ shares)
    )


def _betting(rng, n) -> bool | None:
    found = betting.betting_interval(_scores(rng, n, worlds.CEILING), grid=401, rng=rng)
    return covered(found, float(worlds.SCORES @ worlds.CEILING))


def _wilson(rng) -> bool:
    low, high = basic.wilson(int(rng.binomial(50, 0.1)), 50)
    return low <= 0.1 <= high


def _ppi(rng) -> bool | None:
    metric = rng.normal(0, 1, 1000)
    human = 0.6 * metric[:50] + 0.8 * rng.normal(0, 1, 50)
    return covered(prediction_powered.prediction_powered_mean(human, metric[:50], metric[50:]), 0.0)


def human_likeness_cells():
    for n in (20, 65):
        yield Cell(
            "Human or machine", REJECTS, "accuracy, annotators and texts as clusters", "5 of 100 texts each", n,
            lambda rng, n=n: rejected(detection.accuracy(*worlds.sparse(rng, n))), runs=1000,
        )  # fmt: skip
    yield Cell("Human or machine", REJECTS, "four conditions, Welch's ANOVA", "accuracies of 5 texts", 4 * 65, _anova)
    yield Cell(
        "Human or machine",
        REJECTS,
        "six differences, Games-Howell (any)",
        "accuracies of 5 texts",
        4 * 65,
        _games_howell,
        runs=1000,
    )


def _conditions(rng):
    return rng.binomial(5, 0.55, 4 * 65) / 5, np.repeat(list("abcd"), 65)


def _anova(rng) -> bool | None:
    return rejected(groups.welch_anova(*_conditions(rng)))


def _games_howell(rng) -> bool:
    found = [one.pvalue for one in groups.pairwise(*_conditions(rng)) if one.pvalue is not None]
    return min(found) < ALPHA


def choice_cells():
    yield Cell(
        "Two choices", REJECTS, "share at a fixed n, t over annotators", "20 labels each, annotators differ", 30, _share
    )
    yield Cell(
        "Two choices",
        REJECTS,
        "beta-binomial e-process, looked at after every label",
        "one label each",
        2000,
        _beta_binomial,
        is_anytime=True,
    )
    yield Cell(
        "Two choices",
        REJECTS,
        "betting e-process, looked at after every annotator",
        "annotators' means of 10",
        300,
        _betting_process,
        runs=1000,
        is_anytime=True,
    )
    yield Cell(
        "Two choices", REJECTS, "O'Brien-Fleming, five looks", "annotators' means of 10", 100, _five_looks, runs=1000
    )
    yield Cell(
        "Two choices",
        REJECTS,
        "t at five looks, uncorrected",
        "annotators' means of 10",
        100,
        _uncorrected,
        runs=1000,
        is_ours=False,
    )
    yield Cell(
        "Two choices",
        REJECTS,
        "Hoeffding at every n, level .05 (as published)",
        "one label each",
        2000,
        _hoeffding,
        is_ours=False,
    )
    for n in (20, 60):
        yield Cell(
            "Two choices", COVERS, "strengths with ties (Davidson), annotators resampled", "four systems, the last against the first", n,
            lambda rng, n=n: _tied_strength(rng, n), runs=1000, nominal=0.95,
        )  # fmt: skip
    yield Cell(
        "Two choices", COVERS, "strengths (Bradley-Terry), labels resampled", "four systems, 40 labels a pair", 240,
        _chosen_strength, runs=1000, nominal=0.95,
    )  # fmt: skip


def _share(rng) -> bool | None:
    annotators = np.repeat(np.arange(30), 20)
    chance = np.clip(0.5 + rng.normal(0, 0.15, 30), 0, 1)[annotators]
    return rejected(choice.preference((rng.random(600) < chance).astype(float), annotators))


def _beta_binomial(rng) -> bool:
    rule = sequential.beta_binomial_boundaries(2000, level=0.95)
    return bool(sequential.crossings(rng.integers(0, 2, 2000), rule).winner[0])


def _hoeffding(rng) -> bool:
    rule = sequential.hoeffding_boundaries(2000, delta=0.05)
    return bool(sequential.crossings(rng.integers(0, 2, 2000), rule).winner[0])


def _means(rng, n):
    return rng.binomial(10, np.clip(0.5 + rng.normal(0, 0.15, n), 0, 1)) / 10


def _betting_process(rng) -> bool:
    values = _means(rng, 300)
    return bool(sequential.sequential_test(values, process="betting", level=0.95).verdict in ("a_better", "b_better"))


LOOKS = (20, 40, 60, 80, 100)


def _five_looks(rng) -> bool:
    return group_sequential.group_sequential_test(_means(rng, 100), LOOKS).verdict in ("a_better", "b_better")


def _uncorrected(rng) -> bool:
    values = _means(rng, 100)
    return any(basic.one_sample(values[:look], null=0.5).pvalue < ALPHA for look in LOOKS)


def best_worst_cells():
    for n in (20, 60):
        yield Cell(
            "Best and worst", REJECTS, "five strengths are equal, joint F", "four of five systems a set, activity uneven", n,
            lambda rng, n=n: rejected(
                best_worst.best_worst_logit(*worlds.best_and_worst(rng, n, strengths=(0,) * 5), n_systems=5).omnibus
            ),
        )  # fmt: skip
    for n in (20, 60):
        yield Cell(
            "Best and worst", COVERS, "strengths (best-worst logit)", "five systems, the last against the first, activity uneven", n,
            lambda rng, n=n: _best_worst_strength(rng, n), runs=1000, nominal=0.95,
        )  # fmt: skip
    for n in (20, 60):
        yield Cell(
            "Best and worst", COVERS, "score (best less worst, by times shown)", "five systems of equal worth, activity uneven", n,
            lambda rng, n=n: covered(
                best_worst.maxdiff_counts(*worlds.best_and_worst(rng, n, strengths=(0,) * 5), n_systems=5).scores[0], 0.0
            ),
            runs=1000, nominal=0.95,
        )  # fmt: skip


def _best_worst_strength(rng, n) -> bool | None:
    if "best_worst" not in _TRUTH:
        answers = worlds.best_and_worst(np.random.default_rng(1), 20_000)
        fit = best_worst.best_worst_logit(*answers, n_systems=5, method="cr1")
        _TRUTH["best_worst"] = float(fit.difference(4, 0).estimate)
    fit = best_worst.best_worst_logit(*worlds.best_and_worst(rng, n), n_systems=5)
    return covered(fit.difference(4, 0), _TRUTH["best_worst"])


def agreement_and_rank_cells():
    yield Cell(
        "Agreement",
        COVERS,
        "Krippendorff's alpha, bootstrap of units",
        "100 units, three raters, true alpha .5",
        100,
        _alpha,
        runs=500,
        nominal=0.95,
    )
    for n in (30, 60):
        yield Cell(
            "Ranks",
            COVERS,
            "all rank sets hold the true ranks",
            "five systems, two of them equal",
            n,
            lambda rng, n=n: _rank_sets(rng, n),
            runs=300,
            nominal=0.95,
        )


def _alpha(rng) -> bool | None:
    # Binary, even margins: a rater repeats the unit's own value with probability r, so that alpha is r squared.
    truth = rng.integers(0, 2, 100)
    keeps = rng.random((100, 3)) < np.sqrt(0.5)
    given = np.where(keeps, truth[:, None], rng.integers(0, 2, (100, 3)))
    counts = np.stack([(given == 0).sum(axis=1), (given == 1).sum(axis=1)], axis=1)
    found = agreement.krippendorff_alpha(counts, [0, 1], level_of_measurement="nominal", resamples=999, rng=rng)
    return covered(found, 0.5)


def _rank_sets(rng, n) -> bool | None:
    worth = np.array([0.9, 0.7, 0.5, 0.5, 0.2])
    annotators = np.repeat(np.arange(n), 5)
    systems = np.tile(np.arange(5), n)
    values = worth[systems] + rng.normal(0, 0.3, n)[annotators] + rng.normal(0, 0.5, 5 * n)
    found = ranks.rank_sets_of_rows(values, annotators, systems, resamples=999, rng=rng)
    if found.low is None or found.high is None:
        return None
    best = [1, 2, 3, 3, 5]
    worst = [1, 2, 4, 4, 5]
    return all(low <= b and high >= w for low, high, b, w in zip(found.low, found.high, best, worst, strict=True))


def cells() -> list[Cell]:
    return [
        *spa_cells(), *rating_cells(), *mean_cells(), *human_likeness_cells(), *choice_cells(), *best_worst_cells(),
        *agreement_and_rank_cells(),
    ]  # fmt: skip
