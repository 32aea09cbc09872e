"""The likelihood of the counts in a form that is fast to compute."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class TailIndicators:
    """The counts as tail indicators: log B(a + s, b + f) / B(a, b) is a sum of logarithms over j < s, j < f, j < n.

    Distinct rows only. `member` (rows, J) says which of the J terms a row has, `offset` (J,) is j, `kind` (J,) whether
    the term belongs to alpha, beta or their sum, whose terms count negatively (`sign`); (alpha, beta) @ `spread` gives
    each term its parameter.
    """

    counts: FloatArray
    member: FloatArray
    offset: FloatArray
    kind: IntArray
    sign: FloatArray
    spread: FloatArray
    binomial: FloatArray

    @classmethod
    def from_counts(cls, successes: IntArray, trials: IntArray) -> "TailIndicators":
        rows, counts = np.unique(np.column_stack([successes, trials]), axis=0, return_counts=True)
        parts = (rows[:, 0], rows[:, 1] - rows[:, 0], rows[:, 1])
        ranges = [np.arange(part.max(initial=0)) for part in parts]
        kind = np.repeat(np.arange(3), [len(values) for values in ranges])
        return cls(
            counts=counts.astype(np.float64),
            member=np.concatenate(
                [(part[:, None] > values).astype(np.float64) for part, values in zip(parts, ranges, strict=True)],
                axis=1,
            ),
            offset=np.concatenate(ranges).astype(np.float64),
            kind=kind,
            sign=np.where(kind == 2, -1.0, 1.0),
            spread=np.array([kind != 1, kind != 0], dtype=np.float64),
            binomial=np.asarray(
                special.gammaln(parts[2] + 1) - special.gammaln(parts[0] + 1) - special.gammaln(parts[1] + 1)
            ),
        )

    def terms(self, alphas: FloatArray, betas: FloatArray) -> FloatArray:
        """Return alpha + j, beta + j or alpha + beta + j; shape (..., J)."""
        return np.asarray(np.stack([alphas, betas], axis=-1) @ self.spread + self.offset)

    def log_likelihoods(self, alphas: FloatArray, betas: FloatArray) -> FloatArray:
        """Return the log-likelihood of each distinct row under each component; shape (..., rows)."""
        return np.asarray((np.log(self.terms(alphas, betas)) * self.sign) @ self.member.T + self.binomial)


MixtureSolution = tuple[FloatArray, FloatArray, FloatArray, float]
