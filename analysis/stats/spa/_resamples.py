"""Resampling analyses of all pairs from one set of resamples."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.stats import basic, bootstrap
from analysis.stats.arrays import MIN_SPREAD, FloatArray
from analysis.stats.results import Estimate, HypothesisTest


@dataclass(frozen=True, slots=True)
class Resamples:
    """Resampling results of all pairs, from one set of resamples of the annotators."""

    values: FloatArray
    bootstrap: FloatArray
    posterior: FloatArray
    sign_flips: FloatArray
    is_exact: bool
    resamples: int

    def sensitivity_estimates(self, column: int, *, level: float) -> list[Estimate]:
        """Return the sensitivity analyses of one pair."""
        observed = self.values[:, column]
        is_observed = ~np.isnan(observed)
        observed = observed[is_observed]
        n, mean = len(observed), float(np.mean(observed))
        varies = float(np.std(observed)) >= MIN_SPREAD
        common: dict[str, Any] = {"unit": "annotator", "n": n, "n_rows": n}
        settings = {"null": 0.5, "level": level, "resamples": self.resamples}
        constant: dict[str, Any] = {"status": "zero_variance", "reason": "all values are equal"}
        flip: dict[str, Any] = constant
        interval: dict[str, Any] = constant
        if varies:
            test = HypothesisTest(
                name="sign_flip", null=0.5, statistic=mean - 0.5, pvalue=float(self.sign_flips[column])
            )
            flip = {"test": test, "detail": {"is_exact": self.is_exact}}
            ones = np.ones(n)
            bca = bootstrap.bootstrap_ratio_interval(mean, self.bootstrap[:, column], observed, ones, level=level)
            interval = {"interval": bca}
        posterior: Estimate
        estimand = "posterior probability that the mean exceeds 0.5"
        named = {"analysis": "spa.pair.bayesian_bootstrap", "estimand": estimand, **common, "settings": settings}
        if varies:
            rest = {key: value for key, value in named.items() if key != "n"}
            posterior = bootstrap.posterior_probability_estimate(
                self.posterior[:, column], n=n, null=0.5, level=level, common=rest
            )
        else:
            posterior = Estimate(**constant, **named)
        return [
            Estimate(
                analysis="spa.pair.sign_flip", estimand="mean", estimate=mean, settings=settings, **common, **flip
            ),
            basic.wilcoxon(observed, null=0.5).labelled(analysis="spa.pair.wilcoxon", unit="annotator"),
            Estimate(analysis="spa.pair.bca", estimand="mean", estimate=mean, settings=settings, **common, **interval),
            posterior,
            basic.sign_test(observed, null=0.5, level=level).labelled(analysis="spa.pair.sign_test", unit="annotator"),
        ]


def draw_resamples_of_all_pairs(values: FloatArray, *, resamples: int, rng: np.random.Generator) -> Resamples:
    """Draw the bootstrap, the Bayesian bootstrap and the sign flips of all pairs; `values` has shape (n_annotators,
    n_pairs).
    """
    is_observed = ~np.isnan(values)
    filled, ones = np.where(is_observed, values, 0.0), is_observed.astype(np.float64)
    n_annotators, n_pairs = values.shape
    if n_annotators == 0:
        empty = np.empty((0, n_pairs))
        return Resamples(values, empty, empty, np.ones(n_pairs), False, resamples)
    for_bootstrap, for_posterior, for_flips = rng.spawn(3)
    draws = bootstrap.ratio_draws(filled, ones, bootstrap.multinomial_weights(n_annotators, resamples, for_bootstrap))
    posterior = bootstrap.ratio_draws(
        filled, ones, bootstrap.unnormalised_dirichlet_weights(n_annotators, resamples, for_posterior)
    )
    pvalues, is_exact = basic.sign_flip_pvalues(values - 0.5, resamples=resamples, rng=for_flips)
    return Resamples(values, draws, posterior, pvalues, is_exact, resamples)
