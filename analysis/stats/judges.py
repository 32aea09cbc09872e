"""How good a judge (a model or a metric that gives labels) is beside people, and how good it could be.

Rows are labels of people, each beside the judge's label of the same output. People and prompts are samples: intervals
are about people and prompts like these. If nobody knows which person gave which label, prompts are the only sample and
each record says so. Weights are inverse probabilities with which the outputs were drawn.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import cluster_variances, clusters
from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    label_codes_where,
    validate_level,
    vector,
)
from analysis.stats.results import Estimate, Record, ResultWarning

# Labels of people beside those of a judge, with their annotators, prompts and weights.


# What an estimate is about if nobody knows which person gave which label, or for majorities of people.
PROMPTS = "prompts"
PEOPLE_LEFT_OUT = ResultWarning("people_left_out", "warn", {"interval": "does not contain variation between people"})


@dataclass(frozen=True, slots=True)
class ClusteredRows:
    """Codes of each row's annotator (None if nobody knows them) and prompt, from 0, and the weights of the rows.

    `weights` are inverse inclusion probabilities. `has_people` says whether people gave labels at all, known or not.
    """

    annotators: IntArray | None
    prompts: IntArray
    weights: FloatArray
    is_weighted: bool
    level: float
    has_people: bool = True

    @classmethod
    def from_arrays(
        cls,
        is_used: BoolArray,
        *,
        annotators: npt.ArrayLike | None,
        prompts: npt.ArrayLike,
        weights: npt.ArrayLike | None,
        level: float,
        has_people: bool = True,
    ) -> "ClusteredRows":
        validate_level(level)
        return cls(
            None if annotators is None else label_codes_where(annotators, "annotators", is_used)[0],
            label_codes_where(prompts, "prompts", is_used)[0],
            clusters.weights_of_rows(weights, is_used),
            weights is not None,
            level,
            has_people,
        )

    @property
    def population_warnings(self) -> tuple[ResultWarning, ...]:
        """Return the warning that the intervals do not contain the variation between people, if so."""
        return (PEOPLE_LEFT_OUT,) if self.annotators is None and self.has_people else ()

    def where(self, mask: BoolArray) -> "ClusteredRows":
        """Return the rows in a mask."""
        annotators = None if self.annotators is None else label_codes_where(self.annotators, "annotators", mask)[0]
        prompts = label_codes_where(self.prompts, "prompts", mask)[0]
        return replace(self, annotators=annotators, prompts=prompts, weights=self.weights[mask])

    def mean(
        self,
        values: FloatArray,
        *,
        null: float | None = None,
        bounds: tuple[float, float] | None = (0.0, 1.0),
        **labels: Any,
    ) -> Estimate:
        """Return the weighted mean over rows, for people and prompts, or for prompts if the people are not known."""
        options: dict[str, Any] = {
            "weights": self.weights,
            "level": self.level,
            "null": null,
            "bounds": bounds,
            **labels,
        }
        if self.annotators is None:
            found = clusters.clustered_mean(values, self.prompts, unit="prompt", **options)
            found = replace(
                found,
                settings={**found.settings, "population": PROMPTS},
                warnings=(*found.warnings, *self.population_warnings),
            )
        else:
            found = clusters.annotator_prompt_clustered_mean(
                values, self.annotators, self.prompts, unit="annotator", **options
            )
        n_prompts = int(self.prompts.max()) + 1 if len(self.prompts) else 0
        detail = {**found.detail, "n_prompts": n_prompts, **self.weight_detail()}
        return replace(found, detail=detail, settings={**found.settings, "is_weighted": self.is_weighted})

    def weight_detail(self) -> dict[str, float]:
        """Return the number of equally weighted rows with the same information (Kish), if the rows have weights."""
        if not self.is_weighted or len(self.weights) == 0:
            return {}
        return {"n_effective_rows": cluster_variances.effective_n_clusters(self.weights)}


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Codes of the judge's and the people's labels (positions in `names`), of rows that have both."""

    judge: IntArray
    people: IntArray
    names: tuple[Any, ...]
    rows: ClusteredRows
    is_used: BoolArray

    @property
    def n_missing(self) -> int:
        """Return the number of rows without one of the labels."""
        return int(np.sum(~self.is_used))

    @property
    def agrees(self) -> FloatArray:
        """Return 1 for each row with equal labels, else 0."""
        return np.asarray(self.judge == self.people, dtype=np.float64)

    @classmethod
    def from_arrays(
        cls,
        judge: npt.ArrayLike | Sequence[object],
        people: npt.ArrayLike | Sequence[object],
        *,
        annotators: npt.ArrayLike | None,
        prompts: npt.ArrayLike,
        weights: npt.ArrayLike | None,
        level: float,
        categories: Sequence[Any] | None = None,
    ) -> "JudgedRows":
        sides, names = label_positions({"judge": judge, "people": people}, categories)
        is_used = (sides["judge"] >= 0) & (sides["people"] >= 0)
        rows = ClusteredRows.from_arrays(is_used, annotators=annotators, prompts=prompts, weights=weights, level=level)
        return cls(sides["judge"][is_used], sides["people"][is_used], names, rows, is_used)


def label_positions(
    sides: dict[str, npt.ArrayLike | Sequence[object]], categories: Sequence[Any] | None
) -> tuple[dict[str, IntArray], tuple[Any, ...]]:
    """Return each side's labels as positions in the categories (-1 is missing), and the categories.

    Without categories, they are the labels that occur, sorted.
    """
    lists = {name: np.asarray(values, dtype=object) for name, values in sides.items()}
    length = len(next(iter(lists.values())))
    plain: dict[str, list[Any]] = {}
    for name, array in lists.items():
        if array.shape != (length,):
            raise ValueError(f"{name}: shape {array.shape} where the first argument has {length} rows")
        # NaN is the only label that differs from itself.
        plain[name] = [None if label is None or label != label else label for label in array.tolist()]
    if categories is None:
        found = {label for labels in plain.values() for label in labels if label is not None}
        try:
            names = tuple(sorted(found))
        except TypeError:
            raise ValueError("categories: numbers and texts are mixed; give the labels one kind") from None
    else:
        names = tuple(categories)
        if len(set(names)) < len(names):
            raise ValueError("categories: a label occurs twice")
    position: dict[Any, int] = {label: number for number, label in enumerate(names)}
    position[None] = -1
    codes = {}
    for name, labels in plain.items():
        unknown = [row for row, label in enumerate(labels) if label not in position]
        if unknown:
            raise ValueError(f"{name}: row {unknown[0]} is {labels[unknown[0]]!r}, which is no category")
        codes[name] = np.array([position[label] for label in labels], dtype=np.int64)
    return codes, names


def paired_scores(
    judge: npt.ArrayLike, people: npt.ArrayLike, **columns: npt.ArrayLike
) -> tuple[FloatArray, BoolArray, dict[str, FloatArray]]:
    """Return the judge's score minus the person's of each row, which rows have all numbers, and the other columns."""
    arrays = {name: vector(values, name) for name, values in {"judge": judge, "people": people, **columns}.items()}
    n_rows = len(arrays["judge"])
    for name, array in arrays.items():
        if len(array) != n_rows:
            raise ValueError(f"{name}: {len(array)} values where judge has {n_rows}")
    is_used = ~np.isnan(np.sum(list(arrays.values()), axis=0))
    return arrays["judge"] - arrays["people"], is_used, arrays


def pair_codes(first: IntArray, second: IntArray) -> IntArray:
    """Return codes of pairs of two codes, from 0."""
    return label_codes(first * (int(second.max(initial=0)) + 1) + second, "pairs", len(first))[0]


# Delete-one-cluster (CV3) variances of smooth functions of weighted sums: kappas, ratios, slopes, differences.


# Takes sums (..., m) and returns values (..., q); NaN is undefined.
OfSums = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class SumsJackknife:
    """Values of a function of the sums of all rows, and what they become without each cluster.

    `covariances` (q, q) are those over annotators and over prompts, or the one that the population has; `of_pairs` is that of
    independent pairs of annotator and prompt.
    """

    values: FloatArray
    covariances: tuple[FloatArray, ...]
    of_pairs: FloatArray | None
    dfs: tuple[float, ...]
    n_clusters: tuple[int, ...]
    names: tuple[str, ...]
    population: str
    warnings: tuple[ResultWarning, ...]
    n_rows: int
    level: float
    weight_detail: dict[str, float]

    @classmethod
    def from_rows(cls, rows: ClusteredRows, contributions: FloatArray, function: OfSums) -> "SumsJackknife":
        """Compute the jackknife; `contributions` (n_rows, m) are what each row adds to the sums, weights included."""
        ways: list[tuple[str, IntArray]] = []
        n_prompts = int(rows.prompts.max(initial=-1)) + 1
        if rows.annotators is not None:
            ways.append(("annotator", rows.annotators))
        if rows.annotators is None or n_prompts >= cluster_variances.TOO_FEW_ITEMS:
            ways.append(("prompt", rows.prompts))
        total = contributions.sum(axis=0)
        values = np.atleast_1d(function(total))
        covariances = tuple(_covariance(codes, contributions, total, values, function) for _, codes in ways)
        dfs = tuple(
            max(1.0, cluster_variances.effective_n_clusters(np.bincount(codes, rows.weights)) - 1)
            if len(codes)
            else 1.0
            for _, codes in ways
        )
        of_pairs, warnings = None, rows.population_warnings
        population = cluster_variances.PEOPLE if rows.annotators is not None else PROMPTS
        if len(ways) == 2 and len(rows.prompts):
            pairs = pair_codes(ways[0][1], ways[1][1])
            of_pairs = _covariance(pairs, contributions, total, values, function)
            population = cluster_variances.PEOPLE_AND_PROMPTS
            warnings = (*warnings, *cluster_variances.two_way_warnings(ways[0][1], ways[1][1]))
        elif len(rows.prompts):
            warnings = (*warnings, *cluster_variances.cluster_warnings(np.bincount(ways[0][1]), name=ways[0][0]))
        return cls(
            values,
            covariances,
            of_pairs,
            dfs,
            tuple(int(codes.max(initial=-1)) + 1 for _, codes in ways),
            tuple(name for name, _ in ways),
            population,
            warnings,
            len(rows.prompts),
            rows.level,
            rows.weight_detail(),
        )

    @property
    def has_enough_clusters(self) -> bool:
        """Return whether annotators and prompts are enough for a test."""
        fewest = {"annotator": cluster_variances.TOO_FEW_CLUSTERS, "prompt": cluster_variances.TOO_FEW_ITEMS}
        return all(n >= fewest[name] for n, name in zip(self.n_clusters, self.names, strict=True))

    def labels(self) -> dict[str, Any]:
        """Return the unit and the counts for an `Estimate`."""
        return {
            "unit": self.names[0],
            "n": self.n_clusters[0],
            "n_clusters": min(self.n_clusters),
            "n_rows": self.n_rows,
            "warnings": self.warnings,
        }

    def estimate(
        self,
        position: int = 0,
        *,
        undefined: str,
        null: float | None = None,
        bounds: tuple[float, float] | None = None,
        detail: dict[str, Any] | None = None,
        **labels: str,
    ) -> Estimate:
        """Return one of the values with its t interval and its test; `undefined` is the reason if it has no value."""
        found: dict[str, Any] = {
            **self.labels(),
            **labels,
            "detail": {**(detail or {}), "n_prompts": self.n_clusters[-1], **self.weight_detail},
            "settings": {"null": null, "level": self.level, "bounds": bounds, "population": self.population},
        }
        value = float(self.values[position])
        if self.n_rows == 0:
            return Estimate(status="no_data", reason="no label of a person beside one of the judge", **found)
        if not math.isfinite(value):
            return Estimate(status="not_identified", reason=undefined, **found)
        if min(self.n_clusters) < 2:
            return Estimate(status="n_lt_2", reason="one cluster has no spread", estimate=value, **found)
        parts = [float(covariance[position, position]) for covariance in self.covariances]
        if not np.isfinite(parts).all() or (
            self.of_pairs is not None and not np.isfinite(self.of_pairs[position, position])
        ):
            name = self.names[int(np.argmin(np.isfinite(parts)))]
            reason = f"without one {name} the number is undefined; collect more labels"
            return Estimate(status="not_identified", reason=reason, estimate=value, **found)
        if self.of_pairs is None:
            variance, df, method = parts[0], self.dfs[0], "cv3_t"
        else:
            spread, df = cluster_variances.combine_two_way_variances(
                (parts[0], parts[1]), float(self.of_pairs[position, position]), (self.dfs[0], self.dfs[1])
            )
            variance, method = spread.variance, "two_way_cv3_t"
            found["detail"] |= spread.detail()
        return clusters.t_estimate(
            value,
            math.sqrt(variance),
            df,
            fewest_clusters=None,
            level=self.level,
            method=method,
            null=null if self.has_enough_clusters else None,
            test_name="clustered_t" if self.of_pairs is None else "two_way_t",
            bounds=bounds,
            reason="the number is the same without any one cluster, so the standard error is 0",
            **found,
        )


def _covariance(
    codes: IntArray, contributions: FloatArray, total: FloatArray, values: FloatArray, function: OfSums
) -> FloatArray:
    n_clusters = int(codes.max(initial=-1)) + 1
    if n_clusters < 2:
        return np.full((len(values), len(values)), np.nan)
    own = np.stack([group_sums(codes, column, n_clusters) for column in contributions.T], axis=1)
    without = function(total - own).reshape(n_clusters, len(values))
    moves = without - values
    return np.asarray((n_clusters - 1) / n_clusters * (moves.T @ moves))


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return the ratio of two sums; NaN if the denominator is 0 up to rounding."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.abs(denominator) > 1e-9, numerator / denominator, np.nan)


# Agreement of a judge with people, beside that of the best constant answer.


@dataclass(frozen=True, slots=True)
class LabelShares(Record):
    """How often people and the judge give a label (weighted shares of the rows), and the number of people's rows."""

    label: Any
    people: float
    judge: float
    n_people: int


@dataclass(frozen=True, slots=True)
class JudgeAgreement(Record):
    """Agreement of a judge with people, and what an answer that never looks at the item gets.

    Attributes
    ----------
    agreement : Estimate
        Share of labels of people that the judge gave too.
    constant : Any
        The label that people give most often; None without labels.
    constant_agreement : Estimate
        Share of people's labels that are `constant`.
    advantage : Estimate
        `agreement` minus `constant_agreement`, with the test that it is 0.
    kappa : Estimate
        Cohen's kappa of the judge and people.
    shares : tuple[LabelShares, ...]
        How often each label is given.
    n_missing : int
        Rows left out because one of the labels is missing.
    """

    agreement: Estimate
    constant: Any
    constant_agreement: Estimate
    advantage: Estimate
    kappa: Estimate
    shares: tuple[LabelShares, ...]
    n_missing: int


def judge_agreement(
    judge: npt.ArrayLike | Sequence[object],
    people: npt.ArrayLike | Sequence[object],
    *,
    annotators: npt.ArrayLike | None,
    prompts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
) -> JudgeAgreement:
    """Share of people's labels that a judge gave too, beside the best constant answer and corrected for chance.

    Parameters
    ----------
    judge, people : array_like, shape (n_rows,)
        For each label of a person: the judge's label of the same output, and the person's. Numbers or texts; None and
        NaN are missing.
    annotators : array_like, shape (n_rows,), or None
        The person of each row. None: nobody knows them (warning `people_left_out`).
    prompts : array_like, shape (n_rows,)
        The prompt (or item) of each row. Outputs for one prompt are not independent.
    weights : array_like, shape (n_rows,), optional
        Inverse probabilities with which the outputs were drawn. Equal if None.
    categories : sequence, optional
        The labels that were offered. By default those that occur.
    level : float, default 0.95
        Confidence level of the intervals, between 0 and 1.

    Returns
    -------
    JudgeAgreement
        Each estimate counts people (`n`, `unit`) or, if nobody knows them, prompts. Labels of people: `n_rows`.

    Raises
    ------
    ValueError
        If the lengths differ, a label is no category, or a weight is not positive.

    Notes
    -----
    All shares are weighted means over rows (Hajek's estimate with weights). With p_o the agreement and p_e = sum_c
    share of c among the judge's labels x share of c among people's labels: kappa = (p_o - p_e) / (1 - p_e). Means have
    the intervals of `clusters.two_way_clustered_mean`; kappa has the two-way variance of leaving out each person and
    each prompt. The constant is the label that is most frequent in these data, which is a little too good for it: the
    advantage of the judge is, if anything, too small.

    References
    ----------
    Cohen 1960, A coefficient of agreement for nominal scales; Hajek 1971 (the weights).

    Examples
    --------
    >>> people, prompts = np.repeat(np.arange(10), 12), np.tile(np.arange(12), 10)
    >>> said = np.where((people * 5 + prompts * 7) % 4 > 0, "good", "bad")
    >>> judge = np.where(prompts % 3 > 0, "good", "bad")
    >>> found = judge_agreement(judge, said, annotators=people, prompts=prompts)
    >>> round(found.agreement.estimate, 3), found.constant, round(found.constant_agreement.estimate, 3)
    (0.583, 'good', 0.75)
    >>> round(found.kappa.estimate, 3), found.advantage.estimate < 0
    (0.0, True)
    """
    judged = JudgedRows.from_arrays(
        judge, people, annotators=annotators, prompts=prompts, weights=weights, level=level, categories=categories
    )
    n_labels, w = len(judged.names), judged.rows.weights
    by_people, by_judge = (group_sums(codes, w, n_labels) for codes in (judged.people, judged.judge))
    best = int(np.argmax(by_people)) if len(w) else -1
    of_constant = np.asarray(judged.people == best, dtype=np.float64)
    agreement = judged.rows.mean(
        judged.agrees,
        analysis="judges.agreement",
        estimand="share of people's labels that the judge gave too",
    )
    constant = judged.rows.mean(
        of_constant,
        analysis="judges.agreement.constant",
        estimand="share of people's labels that are the most frequent one",
    )
    advantage = judged.rows.mean(
        judged.agrees - of_constant,
        null=0.0,
        bounds=(-1.0, 1.0),
        analysis="judges.agreement.advantage",
        estimand="agreement of the judge - agreement of the most frequent label",
    )
    total = float(w.sum()) if len(w) else 1.0
    counts = np.bincount(judged.people, minlength=n_labels)
    shares = tuple(
        LabelShares(name, float(by_people[i]) / total, float(by_judge[i]) / total, int(counts[i]))
        for i, name in enumerate(judged.names)
    )
    return JudgeAgreement(
        agreement,
        judged.names[best] if len(w) else None,
        constant,
        advantage,
        _kappa(judged),
        shares,
        judged.n_missing,
    )


def _kappa(judged: JudgedRows) -> Estimate:
    n_labels = len(judged.names)
    columns = np.eye(n_labels)
    contributions = judged.rows.weights[:, None] * np.column_stack(
        [np.ones(len(judged.people)), judged.agrees, columns[judged.judge], columns[judged.people]]
    )

    def kappa(sums: FloatArray) -> FloatArray:
        total = sums[..., 0]
        observed = ratio(sums[..., 1], total)
        by_chance = ratio((sums[..., 2 : 2 + n_labels] * sums[..., 2 + n_labels :]).sum(axis=-1), total**2)
        return ratio(observed - by_chance, 1 - by_chance)

    jackknife = SumsJackknife.from_rows(judged.rows, contributions, kappa)
    return jackknife.estimate(
        undefined="the judge and all people gave one and the same label",
        null=0.0,
        bounds=(-1.0, 1.0),
        analysis="judges.agreement.kappa",
        estimand="Cohen's kappa of the judge and people",
    )


# True-positive and true-negative rates of a judge.


@dataclass(frozen=True, slots=True)
class JudgeRates(Record):
    """How often a judge finds what people call positive or negative, and how often it is right.

    Attributes
    ----------
    true_positive_rate, true_negative_rate : Estimate
        Share of positive (negative) labels of people that the judge gave too.
    precision, negative_precision : Estimate
        Share of the judge's positive (negative) labels that people gave too.
    prevalence, judge_prevalence : Estimate
        Share of positive labels of people and of the judge.
    positive : Any
        The label that counts as positive.
    target : str
        With whose labels the judge is compared: always "person".
    n_tied_items : int
        Always 0.
    n_missing : int
        Rows left out because a label is missing.
    """

    true_positive_rate: Estimate
    true_negative_rate: Estimate
    precision: Estimate
    negative_precision: Estimate
    prevalence: Estimate
    judge_prevalence: Estimate
    positive: Any
    target: str
    n_tied_items: int
    n_missing: int


def true_positive_and_negative_rates(
    judge: npt.ArrayLike | Sequence[object],
    people: npt.ArrayLike | Sequence[object],
    *,
    positive: Any,
    annotators: npt.ArrayLike | None,
    prompts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> JudgeRates:
    """Estimate true-positive and true-negative rates, precision and prevalence, against each label of a person.

    A row is a label of a person, beside the judge's label of the same output; None and NaN are missing, and all labels
    but `positive` are negative. `annotators` is None if nobody knows the person of each row. Each rate is a weighted
    mean over the rows that it is about: sum of w over rows that are positive on both sides / sum of w over rows that
    are positive for people, for example. With inverse inclusion probabilities w, which all rows of an output share,
    both sums are Horvitz-Thompson estimates of totals over all outputs (1952, A generalization of sampling without
    replacement from a finite universe), so the ratio estimates the rate among all outputs (Hajek 1971), also if
    uncertain or rare outputs were drawn more often. A rate without a label that it is about has the status `no_data`.

    >>> people, prompts = np.repeat(np.arange(8), 20), np.tile(np.arange(20), 8)
    >>> said, judge = (prompts + people // 6) % 4 == 0, prompts % 5 == 0
    >>> rates = true_positive_and_negative_rates(judge, said, positive=True, annotators=people, prompts=prompts)
    >>> round(rates.true_positive_rate.estimate, 3), round(rates.true_negative_rate.estimate, 3)
    (0.2, 0.8)
    """
    sides, names = label_positions({"judge": judge, "people": people}, None)
    is_used = (sides["judge"] >= 0) & (sides["people"] >= 0)
    code = names.index(positive) if positive in names else -1
    says, said = (np.asarray(sides[name] == code)[is_used] for name in ("judge", "people"))
    rows = ClusteredRows.from_arrays(is_used, annotators=annotators, prompts=prompts, weights=weights, level=level)

    def share(values: BoolArray, among: BoolArray, name: str, estimand: str) -> Estimate:
        return rows.where(among).mean(
            np.asarray(values[among], dtype=np.float64),
            analysis=f"judges.rates.{name}",
            estimand=estimand,
        )

    everything = np.ones(len(said), dtype=np.bool_)
    return JudgeRates(
        share(says, said, "true_positive_rate", "share of positive people's labels that the judge calls positive"),
        share(~says, ~said, "true_negative_rate", "share of negative people's labels that the judge calls negative"),
        share(said, says, "precision", "share of positive people's labels where the judge says positive"),
        share(~said, ~says, "negative_precision", "share of negative people's labels where the judge says negative"),
        share(said, everything, "prevalence", "share of positive people's labels"),
        share(says, everything, "judge_prevalence", "share of positive labels of the judge"),
        positive,
        "person",
        0,
        int(np.sum(~is_used)),
    )
