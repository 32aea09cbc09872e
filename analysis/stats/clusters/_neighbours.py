"""Whether items that follow each other have similar answers, as those of one document have."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import MIN_SPREAD, FloatArray, matrix
from analysis.stats.results import Record

# With fewer items no dependence between neighbours can be seen.
FEWEST_ITEMS = 20
# A warning costs a look at the prompts; at most this share of studies with independent items gets one.
FALSE_ALARMS = 0.02
PERMUTATIONS = 1999
# Weights of the next item and those after it. In documents of 4, 10 and 20 items with a correlation of neighbours of .2, 200 items then show
# it in .85, .84 and .80 of studies; the next item alone does so in .77, .66 and .60.
WEIGHTS = (1.0, 2 / 3, 1 / 3)


@dataclass(frozen=True, slots=True)
class NeighbourDependence(Record):
    """The dependence between neighbouring items.

    `correlation` is that of each item with the next; `pvalue` tests that the order of the items says nothing. Both are None
    if they are undefined, with a `reason`.
    """

    n_items: int
    correlation: float | None = None
    pvalue: float | None = None
    reason: str = ""

    @property
    def is_found(self) -> bool:
        """Return whether neighbours depend on each other, with few false alarms."""
        return self.pvalue is not None and self.pvalue <= FALSE_ALARMS


def neighbour_dependence(contributions: npt.ArrayLike, *, rng: np.random.Generator) -> NeighbourDependence:
    """Test whether neighbouring items contribute alike to one estimate or several.

    `contributions`, of shape (n_items, n_estimates), are the sums of the residuals of each item, such as those of
    answers from their mean, in the order of the items. The statistic is the sum of products with the next three items,
    with decreasing weights; the result has the correlation of neighbours over all estimates and the one-sided p-value.
    All permutations of the items are equally likely if their order says nothing, whatever the distribution of the
    answers, so the test is exact (Wald and Wolfowitz 1943, An exact test for randomness in the non-parametric case
    based on serial correlation). It permutes the items of all estimates together, because estimates share their
    answers.

    >>> documents = np.repeat(np.random.default_rng(0).normal(size=12), 5)
    >>> found = neighbour_dependence(documents[:, None], rng=np.random.default_rng(1))
    >>> round(found.correlation, 2), found.pvalue, found.is_found
    (0.88, 0.0005, True)
    """
    values = matrix(contributions, "contributions")
    values = values - values.mean(axis=0) if len(values) else values
    n_items, size = len(values), float(np.sum(values**2))
    if n_items < FEWEST_ITEMS:
        return NeighbourDependence(n_items, reason=f"fewer than {FEWEST_ITEMS} items")
    if size < MIN_SPREAD:
        return NeighbourDependence(n_items, reason="the items do not differ")
    observed = _neighbour_products(values)
    permuted = np.array([_neighbour_products(values[rng.permutation(n_items)]) for _ in range(PERMUTATIONS)])
    # Equal up to rounding counts as equal.
    n_exceeding = int(np.sum(permuted >= observed - 1e-12 * size))
    return NeighbourDependence(
        n_items, float(np.sum(values[:-1] * values[1:])) / size, (1 + n_exceeding) / (1 + PERMUTATIONS)
    )


def _neighbour_products(values: FloatArray) -> float:
    return sum(
        weight * float(np.sum(values[:-distance] * values[distance:])) for distance, weight in enumerate(WEIGHTS, 1)
    )
