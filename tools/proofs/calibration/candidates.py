"""Methods that were compared with that of the reports and are not offered: a wild bootstrap and a mixed model."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analysis.stats.confidence import TCurve

# With 399 draws and a level of .05 the test of the bootstrap is exact if its statistic has the same distribution in all worlds.
DRAWS = 399
# With fewer clusters there are so few combinations of two signs that a p-value has steps.
FEW_CLUSTERS = 13
TWO_SIGNS = np.array([-1.0, 1.0])
SIX_POINTS = np.array([-math.sqrt(1.5), -1.0, -math.sqrt(0.5), math.sqrt(0.5), 1.0, math.sqrt(1.5)])
MAX_STEPS = 200
TOLERANCE = 1e-9


def drawn_factors(rng: np.random.Generator, n_clusters: int, n: int = DRAWS) -> np.ndarray:
    """Return factors with mean 0 and variance 1, shape (n, n_clusters): two signs, or six points for few clusters."""
    points = SIX_POINTS if n_clusters < FEW_CLUSTERS else TWO_SIGNS
    return points[rng.integers(len(points), size=(n, n_clusters))]


@dataclass(frozen=True)
class WildBootstrap:
    """The wild bootstrap of a weighted mean over two ways of clusters, with the null hypothesis imposed.

    Under a null value m, each draw replaces the values by m + f (value - m), where f is the factor of the row's cluster in the
    way with fewer clusters. The p-value is the share of draws whose |t| is larger than that of the data. Both t have the
    two-way variance CR1, the largest of V_a, V_p and V_a + V_p - V_ap. A mean whose null is imposed has no estimated parameter,
    so bootstraps with classic and with transformed scores are the same.

    Source: MacKinnon, Nielsen and Webb 2021, Wild bootstrap and asymptotic inference with multiway clustering; Webb 2023 (six
    points).
    """

    values: np.ndarray
    weights: np.ndarray
    annotators: np.ndarray
    prompts: np.ndarray
    factors: np.ndarray

    @classmethod
    def drawn(
        cls,
        rng: np.random.Generator,
        values: np.ndarray,
        weights: np.ndarray,
        annotators: np.ndarray,
        prompts: np.ndarray,
    ) -> "WildBootstrap":
        """Draw the factors of the way with fewer clusters; the codes of both ways run from 0."""
        fewer = min(int(annotators.max()) + 1, int(prompts.max()) + 1)
        return cls(values, weights, annotators, prompts, drawn_factors(rng, fewer))

    @cached_property
    def codes(self) -> tuple[np.ndarray, np.ndarray]:
        """The clusters of the way with fewer, and those of the other way."""
        ways = (self.annotators, self.prompts)
        return ways if self.annotators.max() <= self.prompts.max() else ways[::-1]

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return the sums of rows by the clusters of both ways. A pair of them has at most one row."""
        drawn, other = self.codes
        shape = (int(drawn.max()) + 1, int(other.max()) + 1)
        return np.bincount(drawn * shape[1] + other, rows, shape[0] * shape[1]).reshape(shape)

    @cached_property
    def weight_table(self) -> np.ndarray:
        return self.table(self.weights)

    def t(self, null: float, factors: np.ndarray) -> np.ndarray:
        """Return the t of the values m + f (value - m) for each row of factors; factors of 1 give that of the data."""
        weights, residuals = self.weight_table, self.table(self.weights * (self.values - null))
        by_drawn, of_drawn = residuals.sum(axis=1), weights.sum(axis=1)
        total = weights.sum()
        shift = factors @ by_drawn / total  # mean - null of each draw

        def factor(n: int) -> float:
            return n / (n - 1)

        one = factor(len(by_drawn)) * np.sum((factors * by_drawn - shift[:, None] * of_drawn) ** 2, axis=1)
        sums = factors @ residuals - shift[:, None] * weights.sum(axis=0)
        other = factor(residuals.shape[1]) * np.sum(sums**2, axis=1)
        squares = (
            factors**2 @ np.sum(residuals**2, axis=1)
            - 2 * shift * (factors @ np.sum(residuals * weights, axis=1))
            + shift**2 * np.sum(weights**2)
        )
        pairs = factor(len(self.values)) * squares
        se = np.sqrt(np.maximum(np.maximum(one, other), one + other - pairs)) / total
        with np.errstate(divide="ignore", invalid="ignore"):
            # A draw without spread counts as more extreme than the data, which makes the p-value larger.
            return np.where(se > TOLERANCE, shift / se, np.inf)

    def pvalue(self, null: float) -> float:
        """Return the two-sided p-value of the null value."""
        own = self.t(null, np.ones((1, self.factors.shape[1])))[0]
        return float(np.mean(np.abs(self.t(null, self.factors)) > abs(own)))


@dataclass(frozen=True)
class CrossedModel:
    """A fitted mean with random intercepts of annotators and of prompts: y = m + a + b + e, by restricted likelihood.

    ``variances``: those of annotators, of prompts, and of the rest. ``se`` and ``df`` are Kenward and Roger's. A way without two
    rows in any cluster has no variance of its own. One whose variance is estimated as 0 does not count in the degrees of
    freedom.
    """

    mean: float
    variances: tuple[float, float, float]
    se: float
    df: float

    @property
    def curve(self) -> TCurve:
        return TCurve(self.mean, self.se, self.df)


def crossed_model(values: np.ndarray, annotators: np.ndarray, prompts: np.ndarray) -> CrossedModel | None:
    """Fit the model by Fisher's scoring; None if the values do not vary.

    With P = V^-1 - V^-1 1 1' V^-1 / (1' V^-1 1), the score of a variance with design Z is (|Z' P y|^2 - tr(Z' P Z)) / 2, and the
    expected information of two of them is |Z_k' P Z_l|^2 / 2. All products need matrices of the clusters only.
    Source: Kenward and Roger 1997, Biometrics 53, 983-997.
    """
    rows = _Rows(values, annotators, prompts)
    if rows.total < TOLERANCE or len(values) < 3:
        return None
    scale = rows.total / (len(values) - 1)
    variances = np.where(rows.is_identified, scale / 3, 0.0)
    fit = _Fit(rows, variances)
    for _ in range(MAX_STEPS):
        # A variance at 0 whose likelihood falls stays there.
        free = rows.is_identified & ((fit.variances > 0) | (fit.score > 0))
        step = np.zeros(3)
        step[free] = np.linalg.solve(fit.information[np.ix_(free, free)], fit.score[free])
        better = None
        for halving in range(12):
            moved = np.maximum(fit.variances + step / 2**halving, 0.0)
            moved[2] = max(moved[2], 1e-6 * scale)
            candidate = _Fit(rows, moved)
            if candidate.log_likelihood > fit.log_likelihood:
                better = candidate
                break
        if better is None:
            break
        gain, fit = better.log_likelihood - fit.log_likelihood, better
        if gain < TOLERANCE:
            break
    return fit.model()


class _Rows:
    """What the likelihood needs of the rows: sums over clusters, and how often both ways meet."""

    def __init__(self, values: np.ndarray, annotators: np.ndarray, prompts: np.ndarray) -> None:
        n_annotators, n_prompts = int(annotators.max()) + 1, int(prompts.max()) + 1
        self.n = len(values)
        self.y = values - values.mean()
        self.total = float(self.y @ self.y)
        self.centre = float(values.mean())
        self.ways = (slice(0, n_annotators), slice(n_annotators, n_annotators + n_prompts))
        together = np.bincount(annotators * n_prompts + prompts, minlength=n_annotators * n_prompts)
        together = together.reshape(n_annotators, n_prompts).astype(float)
        self.counts = np.concatenate([together.sum(axis=1), together.sum(axis=0)])
        self.sums = np.concatenate([np.bincount(annotators, self.y), np.bincount(prompts, self.y)])
        self.gram = np.diag(self.counts)
        self.gram[self.ways[0], self.ways[1]] = together
        self.gram[self.ways[1], self.ways[0]] = together.T
        self.is_identified = np.array([*(bool(self.counts[way].max() > 1) for way in self.ways), True])


class _Fit:
    """The restricted likelihood at given variances, with its score and expected information."""

    def __init__(self, rows: _Rows, variances: np.ndarray) -> None:
        self.rows, self.variances = rows, variances
        of_annotators, of_prompts, rest = variances
        gram, counts, sums = rows.gram, rows.counts, rows.sums
        root = np.concatenate(
            [np.full(way.stop - way.start, math.sqrt(v)) for way, v in zip(rows.ways, variances[:2], strict=True)]
        )
        factor = np.linalg.cholesky(rest * np.eye(len(root)) + root[:, None] * gram * root)
        half = np.linalg.solve(factor, root[:, None] * np.column_stack([gram, counts, sums]))
        # For any columns u and v of [Z, 1, y], u' V^-1 v = (u' v - half(u)' half(v)) / rest.
        by_z, by_one, by_y = half[:, :-2], half[:, -2], half[:, -1]
        self.inner = (gram - by_z.T @ by_z) / rest  # Z' V^-1 Z
        self.of_one = (counts - by_z.T @ by_one) / rest  # Z' V^-1 1
        of_y = (sums - by_z.T @ by_y) / rest
        self.precision = float(rows.n - by_one @ by_one) / rest  # 1' V^-1 1
        cross = -float(by_one @ by_y) / rest
        self.variance = 1 / self.precision
        self.mean = cross * self.variance
        squares = (rows.total - float(by_y @ by_y)) / rest - cross * self.mean
        log_det = (rows.n - len(root)) * math.log(rest) + 2 * float(np.sum(np.log(np.diag(factor))))
        self.log_likelihood = -0.5 * (log_det + math.log(self.precision) + squares)
        outer = self.inner - self.variance * np.outer(self.of_one, self.of_one)  # Z' P Z
        of_residuals = of_y - self.mean * self.of_one  # Z' P y
        ways, v = rows.ways, np.array([of_annotators, of_prompts])
        traces = np.array([np.trace(outer[way, way]) for way in ways])
        fitted = np.array([float(of_residuals[way] @ of_residuals[way]) for way in ways])
        # P V P = P gives the products with the rest from those with the clusters.
        trace = (rows.n - 1 - v @ traces) / rest
        self.score = 0.5 * np.array([*(fitted - traces), (squares - v @ fitted) / rest - trace])
        norms = np.array([[np.sum(outer[one, other] ** 2) for other in ways] for one in ways])
        with_rest = (traces - norms @ v) / rest
        self.information = 0.5 * np.block(
            [[norms, with_rest[:, None]], [with_rest[None, :], np.array([[(trace - v @ with_rest) / rest]])]]
        )

    def model(self) -> CrossedModel:
        """Return the mean with Kenward and Roger's standard error and degrees of freedom."""
        ways, v, rest = self.rows.ways, self.variances[:2], self.variances[2]
        is_free = self.rows.is_identified & (self.variances > TOLERANCE * self.variances[2])
        ones = [self.of_one[way] for way in ways]
        squared = np.array([one @ one for one in ones])
        twice = (self.precision - v @ squared) / rest  # 1' V^-2 1
        slopes = np.append(squared, twice)
        of_twice = (self.of_one - self.inner @ np.concatenate([v[0] * ones[0], v[1] * ones[1]])) / rest  # Z' V^-2 1
        q = np.empty((3, 3))
        for i, way in enumerate(ways):
            q[i, 2] = q[2, i] = ones[i] @ of_twice[way]
            for j, other in enumerate(ways):
                q[i, j] = ones[i] @ self.inner[way, other] @ ones[j]
        q[2, 2] = (twice - v @ q[:2, 2]) / rest
        free = np.ix_(is_free, is_free)
        inverse = np.linalg.inv(self.information[free])
        slope = slopes[is_free]
        adjustment = 2 * self.variance**2 * float(np.sum(inverse * (q[free] - self.variance * np.outer(slope, slope))))
        df = 2 / (self.variance**2 * float(slope @ inverse @ slope))
        variances = (float(self.variances[0]), float(self.variances[1]), float(self.variances[2]))
        se = math.sqrt(self.variance + max(0.0, adjustment))
        return CrossedModel(float(self.rows.centre + self.mean), variances, se, max(1.0, float(df)))
