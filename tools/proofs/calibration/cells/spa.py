"""The cells of successive paired answers."""

from functools import cache

import numpy as np

from analysis.stats import basic, davidson, margins, multiplicity, spa
from tools.proofs.calibration import worlds
from tools.proofs.calibration.cells.cell import ALPHA, COVERS, REJECTS, Cell, covered, rejected


def spa_cells():
    for shape, sizes in (("even", (10, 30, 90)), ("at the ends", (30, 90)), ("skewed", (10, 30, 90))):
        for n in sizes:
            warned = "small_n_skew" if shape == "skewed" else ""
            yield Cell(
                "SPA",
                REJECTS,
                "mean of both orders, t",
                f"answers {shape}",
                n,
                lambda rng, n=n, shape=shape: rejected(
                    spa.pair_preference_paper(100 * spa.combine_orders(*worlds.spa_answers(rng, n, shape=shape)))
                ),
                warned=warned,
            )
    yield Cell("SPA", REJECTS, "five pairs, Holm (any rejection)", "answers even", 60, _family, runs=1000)
    yield Cell(
        "SPA",
        REJECTS,
        "order symmetry, mean gap",
        "noise .10 in both orders",
        60,
        lambda rng: rejected(spa.naming_order_effect(*worlds.noisy_orders(rng, 60))),
        runs=1000,
    )
    yield Cell(
        "SPA",
        REJECTS,
        "sign flips",
        "answers even",
        30,
        _sign_flips,
        runs=1000,
    )
    yield Cell(
        "SPA",
        REJECTS,
        "equivalence (TOST), margin .10",
        "true difference at the margin",
        60,
        lambda rng: bool(
            margins.equivalence_test(np.clip(0.6 + rng.normal(0, 0.2, 60), 0, 1), null=0.5, margin=0.1).pvalue < ALPHA
        ),
    )
    yield Cell(
        "SPA", REJECTS, "one order after tau (as published)", "noise .10", 60, _one_order_after_tau, is_ours=False
    )
    yield Cell("SPA", REJECTS, "Wilcoxon as a test of the mean", "answers skewed", 90, _wilcoxon, is_ours=False)
    for n in (20, 50, 100):
        yield Cell(
            "SPA",
            COVERS,
            "mean of both orders, t interval",
            "true preference .5",
            n,
            lambda rng, n=n: covered(
                spa.pair_preference_paper(100 * spa.combine_orders(*worlds.spa_answers(rng, n))), 0.5
            ),
            nominal=0.95,
        )
    for n in (20, 60):
        yield Cell(
            "SPA",
            COVERS,
            "strengths (fractional Bradley-Terry)",
            "four systems, the last against the first",
            n,
            lambda rng, n=n: _strength(rng, n),
            runs=1000,
            nominal=0.95,
        )


def _sign_flips(rng) -> bool:
    distances = spa.combine_orders(*worlds.spa_answers(rng, 30)) - 0.5
    return bool(basic.sign_flip_pvalues(distances[:, None], resamples=999, rng=rng)[0][0] < ALPHA)


def _family(rng) -> bool:
    shared = rng.normal(0, 0.1, 60)
    pvalues = []
    for _ in range(5):
        xy, yx = worlds.spa_answers(rng, 60)
        c = np.clip(spa.combine_orders(xy, yx) + shared * rng.choice([-1, 1], 60), 0, 1)
        pvalues.append(basic.one_sample_t_test(c, null=0.5).pvalue)
    return min(p for p in multiplicity.holm(pvalues) if p is not None) < ALPHA


def _one_order_after_tau(rng) -> bool | None:
    xy, yx = worlds.noisy_orders(rng, 60)
    kept = ~spa.tau_incoherence_flags(xy[:, None], yx[:, None]).incoherent
    return rejected(spa.pair_preference_paper(xy[kept], is_after_tau=True))


def _wilcoxon(rng) -> bool | None:
    return rejected(basic.wilcoxon(spa.combine_orders(*worlds.spa_answers(rng, 90, shape="skewed")), null=0.5))


@cache
def _population_strength(spread=0.4, noise=0.3, step=1.2) -> float:
    """What the fitted strength estimates: the logit of the mean answer shrinks with the annotators' spread.

    With four systems at equal steps the fit is not exactly the logit of one pair, so it is computed on a large sample.
    """
    rng = np.random.default_rng(1)
    fit = davidson.fit_davidson(*worlds.comparisons(rng, 40_000, spread=spread), n_systems=4, ties="half")
    return float(fit.difference(3, 0).estimate)


def _strength(rng, n) -> bool | None:
    fit = davidson.fit_davidson(*worlds.comparisons(rng, n), n_systems=4, ties="half")
    return covered(fit.difference(3, 0), _population_strength())
