"""Agreement of annotators, and the reliability of their mean scores.

Agreement describes the people and the question as well as quality: low agreement on a question of taste means
that tastes differ. The numbers get no adjectives. A coefficient corrected for chance also depends on how often
each answer is given, so the report shows the share of agreement and the prevalence next to each coefficient.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import MIN_SPREAD, FloatArray, IntArray, label_codes, matrix, validate_level, vector
from analysis.stats.bootstrap import estimate_with_percentile_interval, multinomial_weights
from analysis.stats.results import Estimate, Record

# Tables of counts: validation, reduction to distinct rows, and resampling of units.


@dataclass(frozen=True, slots=True)
class PairableUnits:
    """The distinct rows (P, k) of a table with two or more ratings, and the number of units (P,) with each.

    `n_unpairable` units have fewer ratings. `has_ratings` says whether there was any rating.
    """

    patterns: FloatArray
    weights: IntArray
    n_unpairable: int
    has_ratings: bool

    @classmethod
    def from_counts(cls, counts: npt.ArrayLike) -> "PairableUnits":
        """Build from counts (n_units, k). Raise ValueError for invalid counts."""
        patterns, weights = distinct_rows_and_counts(checked_counts(counts))
        ratings = patterns.sum(axis=1)
        is_pairable = ratings > 1
        return cls(patterns[is_pairable], weights[is_pairable], int(weights[~is_pairable].sum()), bool(ratings.any()))

    @property
    def n_units(self) -> int:
        return int(self.weights.sum())

    @property
    def marginals(self) -> FloatArray:
        """Return how often each value was given; shape (k,)."""
        return np.asarray(self.weights @ self.patterns, dtype=np.float64)

    def undefined_estimate(self, detail: dict[str, Any], common: dict[str, Any]) -> Estimate:
        """Return the estimate without a value if no unit has two ratings."""
        status = "not_identified" if self.has_ratings else "no_data"
        return Estimate(status=status, reason="no unit has two ratings", detail=detail, **common)


def distinct_rows_and_counts(count_table: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows and the number of units with each."""
    base = int(count_table.max(initial=0)) + 1
    if base ** count_table.shape[1] >= 2**62:
        rows, counts = np.unique(count_table, axis=0, return_counts=True)
        return rows, np.asarray(counts, dtype=np.int64)
    places = base ** np.arange(count_table.shape[1], dtype=np.int64)
    keys = count_table.astype(np.int64) @ places
    if base ** count_table.shape[1] < 4 * len(count_table) + 1024:
        # There are few possible patterns, so they can be counted without sorting the units.
        times = np.bincount(keys)
        occurring = np.flatnonzero(times)
        counts = times[occurring]
    else:
        occurring, counts = np.unique(keys, return_counts=True)
    return (occurring[:, None] // places % base).astype(np.float64), np.asarray(counts, dtype=np.int64)


def checked_counts(counts: npt.ArrayLike) -> FloatArray:
    """Return `counts` as a table of floats. Raise ValueError unless all are whole, non-negative numbers."""
    table = matrix(counts, "counts")
    # NaN also fails this comparison.
    if np.any(table != np.floor(table)) or table.min(initial=0) < 0:
        raise ValueError("counts: only whole, non-negative numbers count ratings")
    return table


def count_pairable_patterns_by_cluster(
    counts: npt.ArrayLike, clusters: npt.ArrayLike, patterns: FloatArray
) -> FloatArray:
    """Return how many units of each cluster have each of the `patterns` (P, k); shape (n_clusters, P).

    `clusters` (n_units,) has the cluster of each row of `counts`. Clusters without a pairable unit are left out.
    """
    table = checked_counts(counts)
    is_pairable = table.sum(axis=1) > 1
    labels, _ = label_codes(np.asarray(clusters), "clusters", len(table))
    inside, n_clusters = label_codes(labels[is_pairable], "clusters", int(is_pairable.sum()))
    pattern_number = {tuple(row): number for number, row in enumerate(patterns.tolist())}
    pattern_codes = np.array([pattern_number[tuple(row)] for row in table[is_pairable].tolist()], dtype=np.int64)
    counts_flat = np.bincount(inside * len(patterns) + pattern_codes, minlength=n_clusters * len(patterns))
    return counts_flat.reshape(n_clusters, len(patterns)).astype(np.float64)


def estimate_with_unit_bootstrap(
    estimate: float,
    pattern_counts: IntArray,
    statistic: Callable[[FloatArray], FloatArray],
    *,
    rng: np.random.Generator,
    pattern_counts_by_cluster: FloatArray | None = None,
    **common: Any,
) -> Estimate:
    """Return the estimate with the percentile interval over resampled units.

    `pattern_counts` counts the units of each pattern. With `pattern_counts_by_cluster` (see
    `count_pairable_patterns_by_cluster`) whole clusters of units are resampled.
    """
    n_units, level, resamples = int(pattern_counts.sum()), common["settings"]["level"], common["settings"]["resamples"]
    n_clusters = n_units if pattern_counts_by_cluster is None else len(pattern_counts_by_cluster)
    common |= {"estimate": estimate, "n_clusters": n_clusters}
    if n_clusters < 2:
        resampled_unit = common["settings"].get("resampled") or "unit"
        return Estimate(status="n_lt_2", reason=f"one {resampled_unit} has no spread", **common)
    if pattern_counts_by_cluster is None:
        drawn = rng.multinomial(n_units, pattern_counts / n_units, size=resamples).astype(np.float64)
    else:
        blocks = multinomial_weights(n_clusters, resamples, rng)
        drawn = np.concatenate([block @ pattern_counts_by_cluster for block in blocks])
    return estimate_with_percentile_interval(statistic(drawn), level=level, **common)


def pairwise_agreement_and_prevalence(patterns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean agreement of pairs of raters (n_resamples,) and the categories' shares (n_resamples, k)."""
    per_unit = patterns.sum(axis=1)
    agreeing = (np.sum(patterns**2, axis=1) - per_unit) / (per_unit * (per_unit - 1))
    n_units = weights.sum(axis=1)
    return weights @ agreeing / n_units, weights @ (patterns / per_unit[:, None]) / n_units[:, None]


# Convert rows of ratings and labels to tables of counts (units by values).


def value_counts_by_unit(units: npt.ArrayLike, values: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Count how often each value was given to each unit.

    `units` and `values` have one entry per row, and a missing value is left out. The result is the table (n_units,
    n_values) and the sorted values of its columns.

    >>> counts, values = value_counts_by_unit(["a", "a", "b"], [1, 3, 3])
    >>> counts.tolist(), values.tolist()
    ([[1.0, 1.0], [0.0, 1.0]], [1.0, 3.0])
    """
    array = vector(values, "values")
    positions, n_units = label_codes(np.asarray(units), "units", len(array))
    is_observed = ~np.isnan(array)
    observed = array if is_observed.all() else array[is_observed]
    positions = positions if is_observed.all() else positions[is_observed]
    distinct, columns = _scale(observed)
    table = np.bincount(positions * len(distinct) + columns, minlength=n_units * len(distinct))
    return table.reshape(n_units, len(distinct)).astype(np.float64), distinct


def as_label_list(labels: Sequence[Any] | npt.NDArray[Any]) -> list[Any]:
    """Convert labels of any kind (text, numbers or sets) to a list of Python objects; None is missing.

    >>> as_label_list(np.array([1, 2])), as_label_list([np.int64(3), None])
    ([1, 2], [3, None])
    """
    if isinstance(labels, np.ndarray):
        return list(labels.tolist())
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def category_codes(
    labels: Sequence[Any] | npt.NDArray[Any], *, categories: Sequence[Any] | None = None, name: str = "labels"
) -> tuple[IntArray, tuple[Any, ...]]:
    """Code each label by its place among the categories.

    None and NaN are missing labels, with the code -1. `categories` are in their order; if None, they are the sorted
    labels. The result is the codes and the categories. A label that is none of the categories raises ValueError with
    `name`, the name of the argument, and the row. So do a repeated category, and labels other than text or numbers
    without `categories`, both with `categories` as the name.

    >>> category_codes(["yes", None, "no"], categories=["no", "yes", "maybe"])[0].tolist()
    [1, -1, 0]
    """
    label_list = as_label_list(labels)
    occurring = {label for label in label_list if label is not None and label == label}
    if categories is None:
        unordered = [label for label in occurring if not isinstance(label, (str, int, float))]
        if unordered:
            raise ValueError(f"categories: needed to order labels such as {unordered[0]!r}")
        categories = sorted(occurring, key=lambda label: (isinstance(label, str), label))
    column_of = {category: column for column, category in enumerate(categories)}
    if len(column_of) < len(categories):
        raise ValueError("categories: a category is repeated")
    unknown = occurring - set(column_of)
    if unknown:
        row = next(row for row, label in enumerate(label_list) if label in unknown)
        raise ValueError(f"{name}: row {row} is {label_list[row]!r}, none of the categories")
    return np.array([column_of.get(label, -1) for label in label_list], dtype=np.int64), tuple(categories)


def category_counts_by_unit(
    units: npt.ArrayLike, labels: Sequence[Any] | npt.NDArray[Any], *, categories: Sequence[Any] | None = None
) -> tuple[FloatArray, tuple[Any, ...]]:
    """Count how often each category was given to each unit.

    `units` and `labels` have one entry per row. None and NaN are left out, but a unit stays in the table if its labels
    are missing. `categories` are the answers that were offered, in their order; `gwet_ac1` depends on their number,
    also on those never chosen. The result is the table (n_units, n_categories) and the category of each column.

    >>> table, categories = category_counts_by_unit(["i", "i", "j"], ["A", "B", "A"])
    >>> table.tolist(), categories
    ([[1.0, 1.0], [1.0, 0.0]], ('A', 'B'))
    """
    columns, offered = category_codes(labels, categories=categories)
    positions, n_units = label_codes(np.asarray(units), "units", len(columns))
    is_known = columns >= 0
    table = np.bincount(positions[is_known] * len(offered) + columns[is_known], minlength=n_units * len(offered))
    return table.reshape(n_units, len(offered)).astype(np.float64), offered


def _scale(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct values, ascending, and the place of each rating among them."""
    integers = values.astype(np.int64)
    if len(values) and np.array_equal(integers, values):
        places, n_values = label_codes(integers, "values", len(values))
        distinct = np.empty(n_values)
        distinct[places] = values
        return distinct, places
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, np.asarray(places, dtype=np.int64)


# Krippendorff's alpha for any level of measurement and any distance.


LEVELS = ("nominal", "ordinal", "interval", "ratio")
Distance = Callable[[Any, Any], float]


def krippendorff_alpha(
    counts: npt.ArrayLike,
    values: npt.ArrayLike | Sequence[Any],
    *,
    level_of_measurement: str | None = None,
    distance: npt.ArrayLike | Distance | None = None,
    clusters: npt.ArrayLike | None = None,
    cluster_name: str = "cluster",
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> Estimate:
    """Krippendorff's alpha, 1 - observed / expected disagreement, with a bootstrap interval over units.

    Parameters
    ----------
    counts : array_like, shape (n_units, n_values)
        Number of ratings with each value for each unit (see `value_counts_by_unit`, `category_counts_by_unit`).
        Units with fewer than two ratings are left out.
    values : array_like or sequence[Any], shape (n_values,)
        Values of the columns: ascending numbers for a level of measurement, anything that `distance` accepts
        otherwise.
    level_of_measurement : {"nominal", "ordinal", "interval", "ratio"}, optional
        Distance of two values: nominal 0 or 1; ordinal the squared difference of mid-ranks; interval the squared
        difference; ratio ((a - b) / (a + b))^2.
    distance : array_like or Distance, optional
        A matrix (n_values, n_values) or a function of two values: symmetric, non-negative, 0 between equals. It is
        not squared.
    clusters : array_like, shape (n_units,), optional
        Units that do not vary independently, such as outputs ranked against each other. They are resampled together.
    cluster_name : str, default 'cluster'
        Name of a cluster.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    Estimate
        Alpha; `n` counts units with two or more ratings. One value only, or no such unit: `not_identified`, with the
        percentage of agreement in `detail`.

    Notes
    -----
    With n_uc ratings of value c among m_u of unit u, and n_c in all N pairable ratings: alpha = 1 - (N - 1) sum_u
    sum_ck n_uc n_uk d_ck / (m_u - 1) / sum_ck n_c n_k d_ck. The interval is about other units, not about other
    raters.

    References
    ----------
    Krippendorff 2011, Computing Krippendorff's alpha-reliability; used in Clark et al. 2021, section 3.

    Examples
    --------
    >>> table = [[3, 0], [1, 2], [0, 3], [2, 1]]
    >>> result = krippendorff_alpha(table, [1, 2], level_of_measurement="nominal", rng=np.random.default_rng(0))
    >>> round(result.estimate, 4), round(result.detail["percent_agreement"], 4)
    (0.3889, 0.6667)
    >>> apart = lambda a, b: float(a != b)
    >>> same = krippendorff_alpha(table, ["no", "yes"], distance=apart, rng=np.random.default_rng(0))
    >>> same.estimate == result.estimate, same.settings["distance"]
    (True, '<lambda>')
    """
    validate_level(level)
    units = PairableUnits.from_counts(counts)
    patterns, weights, marginals = units.patterns, units.weights, units.marginals
    distances, name = _disagreement(values, patterns.shape[1], level_of_measurement, distance)
    common: dict[str, Any] = {
        "analysis": "krippendorff_alpha",
        "estimand": f"Krippendorff's alpha ({name})",
        "unit": "item",
        "n": units.n_units,
        "n_rows": int(marginals.sum()),
        "settings": {
            "level_of_measurement": level_of_measurement,
            "distance": None if distance is None else name,
            "level": level,
            "resamples": resamples,
            **({} if clusters is None else {"resampled": cluster_name}),
        },
    }
    detail: dict[str, Any] = {"n_unpairable": units.n_unpairable, "marginals": marginals}
    if len(patterns) == 0:
        return units.undefined_estimate(detail, common)
    detail["percent_agreement"] = float(
        pairwise_agreement_and_prevalence(patterns, weights[None, :].astype(np.float64))[0][0]
    )
    estimate = _alphas(patterns, weights[None, :].astype(np.float64), distances)[0]
    if not np.isfinite(estimate):
        return Estimate(status="not_identified", reason="no two ratings differ", detail=detail, **common)

    def alphas(drawn: FloatArray) -> FloatArray:
        return _alphas(patterns, drawn, distances)

    together = None if clusters is None else count_pairable_patterns_by_cluster(counts, clusters, patterns)
    return estimate_with_unit_bootstrap(
        float(estimate), weights, alphas, rng=rng, pattern_counts_by_cluster=together, detail=detail, **common
    )


def _alphas(patterns: FloatArray, weights: FloatArray, distances: FloatArray | None) -> FloatArray:
    """Return alpha for each row of `weights` (n_resamples, n_patterns); NaN if no disagreement was possible.

    Without `distances` the values are ordinal: their distances depend on the marginals of each resample.
    """
    per_unit = patterns.sum(axis=1)
    marginals = weights @ patterns
    total = marginals.sum(axis=1)
    if distances is None:
        ranks = np.cumsum(marginals, axis=1) - marginals / 2
        # sum_ck n_c n_k (r_c - r_k)^2 = 2 (m sum_c n_c r_c^2 - (sum_c n_c r_c)^2): no table of pairs is needed.
        squares, linear = patterns @ (ranks**2).T, patterns @ ranks.T
        spread = 2 * (per_unit[:, None] * squares - linear**2) / (per_unit - 1)[:, None]
        observed = np.einsum("bp,pb->b", weights, spread)
        expected = 2 * (total * np.sum(marginals * ranks**2, axis=1) - np.sum(marginals * ranks, axis=1) ** 2)
    else:
        spread = np.sum((patterns @ distances) * patterns, axis=1) / (per_unit - 1)
        observed = weights @ spread
        expected = np.sum((marginals @ distances) * marginals, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas = 1 - (total - 1) * observed / expected
    return np.where(expected > MIN_SPREAD * np.maximum(1.0, total**2), alphas, np.nan)


def _disagreement(
    values: npt.ArrayLike | Sequence[Any],
    n_values: int,
    level_of_measurement: str | None,
    distance: npt.ArrayLike | Distance | None,
) -> tuple[FloatArray | None, str]:
    """Return the matrix of disagreements (None for ordinal) and its name."""
    if (level_of_measurement is None) == (distance is None):
        raise ValueError("distance: exactly one of level_of_measurement and distance must be given")
    if distance is not None:
        things = list(cast(Sequence[Any], values))
        if len(things) != n_values:
            raise ValueError(f"values: {len(things)} values where counts has {n_values} columns")
        if callable(distance):
            distances = np.array([[distance(a, b) for b in things] for a in things], dtype=np.float64)
            return _valid_distances(distances.reshape(n_values, n_values)), getattr(distance, "__name__", "function")
        return _valid_distances(matrix(distance, "distance"), n_values), "matrix"
    if level_of_measurement not in LEVELS:
        raise ValueError(f"level_of_measurement: {level_of_measurement!r} is not one of {', '.join(LEVELS)}")
    scale = vector(values, "values")
    if n_values != len(scale):
        raise ValueError(f"values: {len(scale)} values where counts has {n_values} columns")
    if np.any(np.diff(scale) <= 0):
        raise ValueError("values: must ascend")
    if level_of_measurement == "ratio" and len(scale) and scale[0] < 0:
        raise ValueError("values: a ratio scale has no negative value")
    return None if level_of_measurement == "ordinal" else _distances(scale, level_of_measurement), level_of_measurement


def _valid_distances(distances: FloatArray, n_values: int | None = None) -> FloatArray:
    if n_values is not None and distances.shape != (n_values, n_values):
        raise ValueError(f"distance: shape {distances.shape} where counts has {n_values} columns")
    if not np.isfinite(distances).all() or np.any(distances < 0):
        raise ValueError("distance: only finite, non-negative numbers are distances")
    if not np.allclose(distances, distances.T, rtol=1e-12, atol=0.0):
        raise ValueError("distance: not symmetric")
    if np.any(np.diag(distances) != 0):
        raise ValueError("distance: a value is not at distance 0 from itself")
    largest = float(distances.max()) if distances.size else 0.0
    # Alpha does not depend on the unit of the distance, and neither should the threshold for no disagreement.
    return distances / largest if largest > 0 else distances


def _distances(scale: FloatArray, level_of_measurement: str) -> FloatArray:
    if level_of_measurement == "nominal":
        return 1.0 - np.eye(len(scale))
    difference = scale[:, None] - scale[None, :]
    if level_of_measurement == "interval":
        # Divide by the range, so that the threshold for no disagreement does not depend on the unit of the scale.
        span = float(scale[-1] - scale[0]) if len(scale) > 1 else 1.0
        return np.asarray((difference / span) ** 2, dtype=np.float64)
    sums = scale[:, None] + scale[None, :]
    return np.asarray(np.where(sums > 0, difference / np.where(sums > 0, sums, 1.0), 0.0) ** 2, dtype=np.float64)


# Agreement corrected for chance: Fleiss' kappa and Gwet's AC1.


def fleiss_kappa(
    counts: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> Estimate:
    """Fleiss' kappa for any number of raters per item, with a bootstrap interval over items.

    Parameters
    ----------
    counts : array_like, shape (n_items, n_categories)
        Number of ratings in each category for each item (see `category_counts_by_unit`). Items with one rating are
        left out.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    Estimate
        Kappa. `n` counts the items used, `detail["n_unpairable"]` the others. `detail` has the share of agreement
        ("percent_agreement"), the agreement expected by chance, and the prevalences. All ratings in one category:
        `not_identified`.

    Notes
    -----
    With n_ij ratings j among n_i: P_i = (sum_j n_ij^2 - n_i) / (n_i (n_i - 1)), p_j = the mean over items of n_ij /
    n_i, kappa = (mean P_i - sum p_j^2) / (1 - sum p_j^2). With equal n_i this is Fleiss' own formula.

    References
    ----------
    Fleiss 1971, Measuring nominal scale agreement among many raters; used in Thorleiksdottir et al. 2021, section 4,
    with choices coded by place on the screen: see `agreement_by_position_and_by_system`.

    Examples
    --------
    >>> result = fleiss_kappa([[3, 0], [1, 3], [0, 3], [2, 0]], rng=np.random.default_rng(0))
    >>> round(result.estimate, 6), result.detail["percent_agreement"]
    (0.746032, 0.875)
    """
    return _chance_corrected(
        counts, _by_squares, "fleiss_kappa", "Fleiss' kappa", level=level, resamples=resamples, rng=rng
    )


def gwet_ac1(
    counts: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> Estimate:
    """Gwet's AC1: agreement corrected for chance, stable if one category prevails.

    Parameters
    ----------
    counts : array_like, shape (n_items, n_categories)
        As for `fleiss_kappa`, with a column for every category that was offered, chosen or not.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    Estimate
        AC1; 1 if all ratings are the same. Fewer than two categories: `not_identified`.

    Notes
    -----
    With P_i and p_j of `fleiss_kappa` and k categories: P_e = sum p_j (1 - p_j) / (k - 1), AC1 = (mean P_i - P_e) /
    (1 - P_e).

    References
    ----------
    Gwet 2008, Computing inter-rater reliability and its variance in the presence of high agreement.

    Examples
    --------
    >>> prevalent = [[10, 0]] * 9 + [[9, 1]]
    >>> round(gwet_ac1(prevalent, rng=np.random.default_rng(0)).estimate, 2)
    0.98
    >>> round(fleiss_kappa(prevalent, rng=np.random.default_rng(0)).estimate, 2)
    -0.01
    """
    return _chance_corrected(counts, _by_spread, "gwet_ac1", "Gwet's AC1", level=level, resamples=resamples, rng=rng)


def _by_squares(shares: FloatArray) -> FloatArray:
    return np.asarray(np.sum(shares**2, axis=1), dtype=np.float64)


def _by_spread(shares: FloatArray) -> FloatArray:
    return np.asarray(np.sum(shares * (1 - shares), axis=1) / (shares.shape[1] - 1), dtype=np.float64)


def _chance_corrected(
    counts: npt.ArrayLike,
    expected_by_chance: Callable[[FloatArray], FloatArray],
    analysis: str,
    estimand: str,
    *,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> Estimate:
    validate_level(level)
    units = PairableUnits.from_counts(counts)
    patterns, weights = units.patterns, units.weights
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": "item",
        "n": units.n_units,
        "n_rows": int(units.marginals.sum()),
        "settings": {"level": level, "resamples": resamples},
    }
    detail: dict[str, Any] = {"n_unpairable": units.n_unpairable, "n_categories": patterns.shape[1]}
    if len(patterns) == 0:
        return units.undefined_estimate(detail, common)
    agreed, shares = pairwise_agreement_and_prevalence(patterns, weights[None, :].astype(np.float64))
    detail |= {"percent_agreement": float(agreed[0]), "prevalence": shares[0]}
    if patterns.shape[1] < 2:
        return Estimate(status="not_identified", reason="there is one category only", detail=detail, **common)
    chance = float(expected_by_chance(shares)[0])
    raters = patterns.sum(axis=1)
    detail |= {"expected_agreement": chance, "raters_per_item": [int(raters.min()), int(raters.max())]}
    if 1 - chance < MIN_SPREAD:
        return Estimate(status="not_identified", reason="all ratings are in one category", detail=detail, **common)

    def coefficients(drawn: FloatArray) -> FloatArray:
        agreeing, prevalence = pairwise_agreement_and_prevalence(patterns, drawn)
        by_chance = expected_by_chance(prevalence)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(1 - by_chance < MIN_SPREAD, np.nan, (agreeing - by_chance) / (1 - by_chance))

    estimate = (float(agreed[0]) - chance) / (1 - chance)
    return estimate_with_unit_bootstrap(estimate, weights, coefficients, rng=rng, detail=detail, **common)


# Agreement on choices, coded by the place on the screen and by the system.


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionSystemAgreement(Record):
    """The same choices coded twice: by the chosen place on the screen, and by the system in that place.

    The two kappas differ at the same agreement. If places are randomised, the prevalence of a place is one half. The
    prevalence of a system depends on the preferences, and so does its chance agreement. `percent_agreement` (P-bar)
    is the same in both if a place holds the same system for all annotators. The prevalences map each place and system
    to its share (the mean over items).
    """

    n_items: int
    n_annotators: int
    n_rows: int
    n_unpairable: int
    percent_agreement_position: float | None
    percent_agreement_system: float | None
    kappa_position: Estimate
    kappa_system: Estimate
    ac1_position: Estimate
    ac1_system: Estimate
    prevalence_position: dict[str, float]
    prevalence_system: dict[str, float]


def agreement_by_position_and_by_system(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    chosen_positions: Sequence[Any] | npt.NDArray[Any],
    chosen_systems: Sequence[Any] | npt.NDArray[Any],
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> PositionSystemAgreement:
    """Estimate kappa, AC1 and agreement of choices between two systems, coded by place on the screen and by system.

    Each row is one annotator's choice about an item, the pair of outputs shown: the chosen place (A, B, or a tie) and
    the system in that place, both None without a choice. It is an error if an annotator judged an item twice, or if a
    choice is coded in one way only. Use the function for one pair of systems at a time, because chance agreement over
    systems that were not compared has no meaning. Thorleiksdottir et al. 2021 print the kappa by place, .69; by system
    it is .28 at the same agreement of .84, so both are needed to interpret either.

    >>> record = agreement_by_position_and_by_system([1, 1, 2, 2], list("abab"), list("AABB"), list("xxxx"),
    ...                              rng=np.random.default_rng(0))
    >>> record.kappa_position.estimate, record.kappa_system.status, record.ac1_system.detail["percent_agreement"]
    (1.0, 'not_identified', 1.0)
    """
    places, chosen = as_label_list(chosen_positions), as_label_list(chosen_systems)
    if len(places) != len(chosen):
        raise ValueError(f"systems: {len(chosen)} choices where positions has {len(places)}")
    item_codes, n_items = label_codes(np.asarray(items), "items", len(places))
    annotator_codes, n_annotators = label_codes(np.asarray(annotators), "annotators", len(places))
    has_place, coded = (np.array([label is not None and label == label for label in side]) for side in (places, chosen))
    has_place, coded = has_place.astype(np.bool_), coded.astype(np.bool_)
    halved = np.flatnonzero(has_place != coded)
    if len(halved):
        raise ValueError(f"systems: row {int(halved[0])} has a place without a system, or a system without a place")
    keys = (annotator_codes * n_items + item_codes)[has_place]
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        twice = int(np.flatnonzero(has_place)[np.setdiff1d(np.arange(len(keys)), first)[0]])
        raise ValueError(f"annotators: row {twice} judges an item that this annotator judged before")
    by_place, place_names = category_counts_by_unit(item_codes, places)
    by_system, system_names = category_counts_by_unit(item_codes, chosen)
    options: dict[str, Any] = {"level": level, "resamples": resamples, "rng": rng}
    kappa_position = fleiss_kappa(by_place, **options).labelled(analysis="fleiss_kappa.by_position")
    kappa_system = fleiss_kappa(by_system, **options).labelled(analysis="fleiss_kappa.by_system")
    return PositionSystemAgreement(
        n_items=kappa_position.n,
        n_annotators=len(np.unique(annotator_codes[has_place])) if has_place.any() else 0,
        n_rows=kappa_position.n_rows or 0,
        n_unpairable=n_items - kappa_position.n,
        percent_agreement_position=kappa_position.detail.get("percent_agreement"),
        percent_agreement_system=kappa_system.detail.get("percent_agreement"),
        kappa_position=kappa_position,
        kappa_system=kappa_system,
        ac1_position=gwet_ac1(by_place, **options).labelled(analysis="gwet_ac1.by_position"),
        ac1_system=gwet_ac1(by_system, **options).labelled(analysis="gwet_ac1.by_system"),
        prevalence_position=_named_shares(place_names, kappa_position),
        prevalence_system=_named_shares(system_names, kappa_system),
    )


def _named_shares(names: tuple[Any, ...], kappa: Estimate) -> dict[str, float]:
    shares = kappa.detail.get("prevalence")
    return {} if shares is None else {str(name): float(share) for name, share in zip(names, shares, strict=True)}
