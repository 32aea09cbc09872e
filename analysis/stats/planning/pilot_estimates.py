"""What a pilot says about how much people and prompts vary."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.sparse import coo_array, csgraph

from analysis.stats import clusters
from analysis.stats.arrays import FloatArray, IntArray, label_codes, vector
from analysis.stats.planning.closed_forms import NODES, ORDER_SD, WEIGHTS, answer_moments
from analysis.stats.planning.inputs import StudySize, Variation
from analysis.stats.results import Record

# Variance components of answers by people about prompts, in any layout, and draws of what they may be.


# Fewest people and prompts of a pilot: a variance over two of them says nothing.
FEWEST = 3
# Most people and prompts: the eigenvalues of a matrix of this size take seconds.
MOST_CLUSTERS = 2000
_MOST_RATIO = 1e4


@dataclass(frozen=True, slots=True)
class Factor:
    """The squares of a factor after the other one: `squares[k]` has the mean rest + eigenvalues[k] * variance."""

    squares: FloatArray
    eigenvalues: FloatArray


@dataclass(frozen=True, slots=True)
class CrossedComponents(Record):
    """The mean of the answers, and the variances of one answer over people, over prompts, and the rest.

    `df_people`, `df_prompts`, `df_rest`: the degrees of freedom behind each. `n_answers`, `n_people`, `n_prompts`: how many.
    """

    mean: float
    people: float
    prompts: float
    rest: float
    df_people: int
    df_prompts: int
    df_rest: int
    n_answers: int
    n_people: int
    n_prompts: int
    _of_people: Factor
    _of_prompts: Factor
    # Sums of the squared shares of answers over people and over prompts.
    _people_share: float
    _prompts_share: float

    def draws(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Draw means and variances that are compatible with the answers.

        The four arrays of shape (count,) are the means, and the variances over people, over prompts, and the rest. Each
        draw inverts exact pivots (Wald 1947; Seely and El-Bassiouni 1983): SSE / rest has a chi-square distribution
        with df_rest degrees of freedom, and so has the sum of squares[k] / (rest + eigenvalues[k] * variance), with
        df_people or df_prompts. If no variance fits a draw, it is 0. The quantiles of the draws are the ends of Wald's
        intervals for normal answers.
        """
        rest = self.rest * self.df_rest / rng.chisquare(self.df_rest, count)
        people = variances_at(self._of_people, rest, rng.chisquare(self.df_people, count))
        prompts = variances_at(self._of_prompts, rest, rng.chisquare(self.df_prompts, count))
        variance = people * self._people_share + prompts * self._prompts_share + rest / self.n_answers
        return self.mean + np.sqrt(variance) * rng.standard_normal(count), people, prompts, rest


def checked_pilot_answers(
    values: npt.ArrayLike, people: npt.ArrayLike, prompts: npt.ArrayLike
) -> tuple[FloatArray, IntArray, int, IntArray, int]:
    """Return the answers of a pilot, and the codes and numbers of its people and of its prompts.

    `people` and `prompts` label each row. The result has the answers, each row's person as a code, how many people
    there are, and the same for prompts. The function raises ValueError if an answer is missing, or if there are fewer
    than `FEWEST` or more than `MOST_CLUSTERS` people or prompts.

    >>> answers, person, n_people, prompt, n_prompts = checked_pilot_answers([1, 2, 3], ["a", "b", "c"], ["p", "q", "r"])
    >>> person.tolist(), n_people, n_prompts
    ([0, 1, 2], 3, 3)
    """
    answers = vector(values, "values")
    person, n_people = label_codes(people, "people", len(answers))
    prompt, n_prompts = label_codes(prompts, "prompts", len(answers))
    if np.isnan(answers).any():
        raise ValueError(f"values: row {int(np.flatnonzero(np.isnan(answers))[0])} is missing. Leave it out.")
    for number, name in ((n_people, "people"), (n_prompts, "prompts")):
        if number < FEWEST:
            raise ValueError(
                f"{name}: a pilot with {number} {name} does not say how much {name} vary. Use at least {FEWEST}, better 10."
            )
        if number > MOST_CLUSTERS:
            raise ValueError(f"{name}: {number} are more than {MOST_CLUSTERS}. Use a part of the answers.")
    return answers, person, n_people, prompt, n_prompts


def crossed_components(values: npt.ArrayLike, people: npt.ArrayLike, prompts: npt.ArrayLike) -> CrossedComponents:
    """Estimate the variance components of answers by people about prompts.

    Each row is one answer, and none is missing. The rest is the mean square after people and prompts. The variance over
    people is the one at which the sum of squares[k] / (rest + eigenvalues[k] * variance), the pivot of the draws, has
    its mean, df_people; likewise over prompts. It is a method of moments that weights people by what their answers say
    (as Paule and Mandel 1982 do), so that one busy person does not decide; with all combinations equally often it is
    the usual analysis of variance. A component is 0 where people, or prompts, vary less than the rest explains. If the
    answers cannot tell the components apart, the message of the error says what to change.

    >>> people, prompts = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
    >>> found = crossed_components([4, 5, 6, 2, 4, 4, 1, 2, 4], people, prompts)
    >>> round(found.people, 2), round(found.prompts, 2), round(found.rest, 2)
    (1.72, 1.28, 0.28)
    """
    answers, person, n_people, prompt, n_prompts = checked_pilot_answers(values, people, prompts)
    if len(answers) == n_people:
        raise ValueError("people: each person gave one answer. Use a pilot in which each person answers about several.")
    if len(answers) == n_prompts:
        raise ValueError("prompts: each prompt has one answer. Use a pilot in which several people answer about each.")
    counts = np.zeros((n_people, n_prompts))
    np.add.at(counts, (person, prompt), 1.0)
    centred = answers - answers.mean()
    of_people = _after_other(counts, _sums(centred, person, n_people), _sums(centred, prompt, n_prompts))
    of_prompts = _after_other(counts.T, _sums(centred, prompt, n_prompts), _sums(centred, person, n_people))
    within_prompts = float(centred @ centred - np.sum(_sums(centred, prompt, n_prompts) ** 2 / counts.sum(axis=0)))
    df_rest = len(answers) - n_prompts - len(of_people.squares)
    if df_rest < FEWEST or len(of_people.squares) < FEWEST - 1 or len(of_prompts.squares) < FEWEST - 1:
        raise ValueError(
            f"values: {len(answers)} answers of {n_people} people about {n_prompts} prompts do not tell people from prompts. "
            "Use a pilot with more answers per prompt."
        )
    rest = (within_prompts - float(of_people.squares.sum())) / df_rest
    if rest <= 1e-9 * max(1e-9, float(np.mean(centred**2))):
        raise ValueError(
            "values: beyond people and prompts, the answers do not vary. Use a pilot with more answers, or enter the variation by hand."
        )
    return CrossedComponents(
        mean=float(answers.mean()),
        people=_moment(of_people, rest),
        prompts=_moment(of_prompts, rest),
        rest=rest,
        df_people=len(of_people.squares),
        df_prompts=len(of_prompts.squares),
        df_rest=df_rest,
        n_answers=len(answers),
        n_people=n_people,
        n_prompts=n_prompts,
        _of_people=of_people,
        _of_prompts=of_prompts,
        _people_share=float(np.sum(counts.sum(axis=1) ** 2)) / len(answers) ** 2,
        _prompts_share=float(np.sum(counts.sum(axis=0) ** 2)) / len(answers) ** 2,
    )


def _sums(values: FloatArray, codes: IntArray, count: int) -> FloatArray:
    return np.asarray(np.bincount(codes, weights=values, minlength=count), dtype=np.float64)


def _after_other(counts: FloatArray, own: FloatArray, other: FloatArray) -> Factor:
    """Return the independent squares of a factor (the rows of `counts`) after the means of the other one are removed."""
    of_other = counts.sum(axis=0)
    information = np.diag(counts.sum(axis=1)) - (counts / of_other) @ counts.T
    eigenvalues, vectors = np.linalg.eigh(information)
    is_used = eigenvalues > 1e-8 * max(1.0, float(eigenvalues[-1]))
    projected = vectors[:, is_used].T @ (own - counts @ (other / of_other))
    return Factor(np.asarray(projected**2 / eigenvalues[is_used]), np.asarray(eigenvalues[is_used]))


def _moment(factor: Factor, rest: float) -> float:
    return float(variances_at(factor, np.array([rest]), np.array([float(len(factor.squares))]))[0])


def variances_at(factor: Factor, rest: FloatArray, pivots: FloatArray) -> FloatArray:
    """Return the variance at which the sum of squares / (rest + eigenvalue * variance) is the pivot, by bisection of its logarithm."""

    def is_above(ratio: FloatArray) -> npt.NDArray[np.bool_]:
        sums = np.sum(factor.squares / (1 + factor.eigenvalues * ratio[:, None]), axis=1)
        return np.asarray(sums / rest > pivots)

    low, high = np.full(len(rest), np.log(1e-8)), np.full(len(rest), np.log(_MOST_RATIO))
    is_zero = ~is_above(np.zeros(len(rest)))
    for _ in range(45):
        middle = (low + high) / 2
        above = is_above(np.exp(middle))
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(is_zero, 0.0, np.exp((low + high) / 2) * rest)


@dataclass(frozen=True, slots=True)
class ShareAndSpread(Record):
    """What answers of two choices say about the share for x, and how much items vary.

    `share` : float
        Share of the answers for x, with the 90 % interval `low` to `high` over people and items.
    `spread` : float
        Standard deviation over items of the share for x.
    `n_answers`, `n_people`, `n_items` : int
        How many of each.
    """

    share: float
    low: float
    high: float
    spread: float
    n_answers: int
    n_people: int
    n_items: int


def share_and_spread(
    choices: npt.ArrayLike, people: npt.ArrayLike, items: npt.ArrayLike, *, rng: np.random.Generator
) -> ShareAndSpread:
    """Estimate the share for x and its spread over items from choices: 1 for x, 0 for y, 1/2 for a tie.

    The spread is the component of `crossed_components` over items, so it is free of the chance of single answers.
    If the share is below one half, x and y change places: the result is about the one that was chosen more often.
    """
    values = vector(choices, "choices")
    found = crossed_components(values if values.mean() >= 0.5 else 1 - values, people, items)
    low, high = np.clip(np.quantile(found.draws(1000, rng)[0], (0.05, 0.95)), 0.0, 1.0).tolist()
    return ShareAndSpread(
        share=found.mean,
        low=low,
        high=high,
        spread=float(np.sqrt(found.prompts)),
        n_answers=found.n_answers,
        n_people=found.n_people,
        n_items=found.n_prompts,
    )


# Variance components of stated chances: one answer of each person, about all prompts that the person read.


# Eigenvalues of the shared prompts below this share of the largest are 0 but for rounding.
_ZERO = 1e-9
_STEPS = 60


@dataclass(frozen=True, slots=True)
class StatedComponents(Record):
    """The mean of the stated chances, and the variances of one person's answer.

    `people` : float
        Variance between people who read the same prompts.
    `prompts` : float
        Variance that one prompt would add if a person read only this one. A person who reads m prompts has 1 / m of it.
    `df_people`, `df_prompts`: the degrees of freedom behind each. `n_people`, `n_prompts`: how many. `prompts_each`: m.
    """

    mean: float
    people: float
    prompts: float
    df_people: int
    df_prompts: int
    n_people: int
    n_prompts: int
    prompts_each: float
    _of_prompts: Factor
    # Mean of all entries of the matrix of shared prompts, diagonal included.
    _shared: float

    def draws(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draw means and variances that are compatible with the answers.

        The three arrays of shape (count,) are the means, and the variances over people and over prompts. Each draw
        inverts exact pivots, as `CrossedComponents.draws` does.
        """
        people = self.people * self.df_people / rng.chisquare(self.df_people, count)
        prompts = variances_at(self._of_prompts, people, rng.chisquare(self.df_prompts, count))
        variance = people / self.n_people + prompts * self._shared
        return self.mean + np.sqrt(variance) * rng.standard_normal(count), people, prompts


def stated_components(values: npt.ArrayLike, people: npt.ArrayLike, prompts: npt.ArrayLike) -> StatedComponents:
    """Estimate the variance components of stated chances.

    `values` has the chance that the person of the row stated, from 0 to 1 and the same in all rows of a person;
    `people` and `prompts` say who read which prompt. The answer of person i is mu + a_i + the mean of b_j over the m_i
    prompts that the person read, so two people have the covariance `prompts` sum_j w_ij w_kj, with w_ij = 1 / m_i.
    After the mean is removed, the squares along the eigenvectors of this matrix are independent, with the means people
    + eigenvalue * prompts (Seely and El-Bassiouni 1983). Where an eigenvalue is 0, people read the same prompts, and
    the squares depend on people alone. If groups of people read the same prompts and no others, it is the one-way
    analysis of variance. The estimate over prompts is 0 where people who read other prompts differ no more than those
    who read the same. If the answers cannot separate people from prompts, a ValueError says what to change.

    >>> people, prompts = np.repeat(np.arange(8), 2), np.array([0, 1] * 2 + [2, 3] * 2 + [4, 5] * 2 + [6, 7] * 2)
    >>> found = stated_components(np.repeat([0.5, 0.7, 0.6, 0.7, 0.4, 0.5, 0.8, 0.7], 2), people, prompts)
    >>> round(found.people, 4), round(found.prompts, 4), found.df_people, found.df_prompts
    (0.0087, 0.0225, 4, 3)
    """
    stated, person, n_people, prompt, n_prompts = checked_pilot_answers(values, people, prompts)
    answers = np.zeros(n_people)
    answers[person] = stated
    if not np.allclose(answers[person], stated, rtol=0, atol=1e-9):
        row = int(np.flatnonzero(np.abs(answers[person] - stated) > 1e-9)[0])
        raise ValueError(
            f"values: row {row} has another chance than other rows of the person. State one for all prompts."
        )
    read = np.zeros((n_people, n_prompts))
    read[person, prompt] = 1.0
    each = read.sum(axis=1, keepdims=True)
    weights = read / each
    centred = weights - weights.mean(axis=0)
    eigenvalues, vectors = np.linalg.eigh(centred @ centred.T)
    # One direction is that of the mean, which has no part in the centred answers.
    squares = (vectors.T @ (answers - answers.mean())) ** 2
    is_of_prompts = eigenvalues > _ZERO * max(1.0, float(eigenvalues[-1]))
    df_prompts = int(is_of_prompts.sum())
    df_people = n_people - 1 - df_prompts
    if df_prompts < FEWEST - 1:
        raise ValueError("prompts: nearly all people read the same prompts. Use a pilot with at least three batches.")
    if df_people < FEWEST:
        raise ValueError(
            "people: too few people read the same prompts. Use a pilot with several people for each batch."
        )
    within = float(squares[~is_of_prompts].sum()) / df_people
    if within <= 1e-9:
        raise ValueError(
            "values: people who read the same prompts state the same chances. Use a pilot with more people, or enter the variation by hand."
        )
    factor = Factor(squares[is_of_prompts], eigenvalues[is_of_prompts])
    return StatedComponents(
        mean=float(answers.mean()),
        people=within,
        prompts=float(variances_at(factor, np.array([within]), np.array([float(df_prompts)]))[0]),
        df_people=df_people,
        df_prompts=df_prompts,
        n_people=n_people,
        n_prompts=n_prompts,
        prompts_each=float(1 / np.mean(1 / each)),
        _of_prompts=factor,
        _shared=float(np.sum(weights.mean(axis=0) ** 2)),
    )


def latent_of_stated(
    means: FloatArray, people: FloatArray, prompts: FloatArray, each: float, most_sd: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the differences and the standard deviations over people and prompts at which simulated people state these chances.

    A person who read m prompts states the share of prompts like these for which they expect x to be better
    (`simulate_answers`). What one person perceives at one prompt has the standard deviation 1 beside these two; what people
    vary more than that is of people. Solved by multiplying each variance by what is missing.
    """
    nodes, weights = np.array(NODES), np.array(WEIGHTS)
    wanted_prompts = prompts / each
    wanted_people = np.maximum(people - ORDER_SD**2 / 2, 1e-9)
    quantile = special.ndtri(np.clip(means, 0.01, 0.99))
    most = most_sd**2
    squared_prompts = np.minimum(np.full(len(means), 0.5), most)
    # The variance of what people with the same prompts perceive on average.
    own = np.full(len(means), 0.1 + 1 / each)
    squared_prompts[wanted_prompts <= 0] = 0.0
    for _ in range(_STEPS):
        spread = np.sqrt(1 + squared_prompts)
        sd = np.sqrt(own + squared_prompts / each)
        shift = quantile * np.sqrt(spread**2 + sd**2)

        def variance(at: FloatArray, scale: FloatArray) -> FloatArray:
            share = special.ndtr(at / scale[:, None])
            mean = share @ weights
            return np.asarray(np.maximum(1e-12, (share - mean[:, None]) ** 2 @ weights))

        total = variance(shift[:, None] + sd[:, None] * nodes, spread)
        of_prompts = variance(
            shift[:, None] + np.sqrt(squared_prompts / each)[:, None] * nodes, np.sqrt(spread**2 + own)
        )
        squared_prompts = np.where(
            wanted_prompts > 0, np.minimum(squared_prompts * wanted_prompts / of_prompts, most), 0.0
        )
        of_people = np.maximum(1e-12, total - np.where(wanted_prompts > 0, of_prompts, 0.0))
        own = np.clip(own * wanted_people / of_people, 1 / each, most + 1 / each)
    squared_people = own - 1 / each
    shift = quantile * np.sqrt(1 + squared_prompts + own + squared_prompts / each)
    difference = special.ndtr(shift / np.sqrt(1 + squared_people + squared_prompts))
    return difference, np.sqrt(squared_people), np.sqrt(squared_prompts)


# What a pilot says about how much people and prompts vary, with what it leaves open.


# Draws of the variation: each serves a block of a simulated part.
DRAWS = 100
# Standard deviations above this are as good as infinite, and `Variation` refuses those above 10.
MOST_SD = 8.0
# Most steps of the search for the latent variation. The draws that need more lie near `MOST_SD`.
STEPS = 40
_STEP, _END = 0.05, 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotEstimate(Record):
    """What a pilot says.

    Attributes
    ----------
    protocol : str
        The protocol of its answers.
    components : CrossedComponents or StatedComponents
        The mean and the variances of one answer, on the scale of the headline.
    low, high : float or None
        The .95 interval of the mean, as the report computes it. None if it has none.
    difference, difference_low, difference_high : float, float or None
        The mean and its interval as the probability that a random person prefers x for a random prompt. It is not the
        smallest difference that matters.
    variation : Variation
        The variation that reproduces the components.
    draws : tuple[Variation, ...]
        What the variation may be, given so few people and prompts: 90 % of them span a .9 interval of each.
    """

    protocol: str
    components: CrossedComponents | StatedComponents
    low: float | None
    high: float | None
    difference: float
    difference_low: float | None
    difference_high: float | None
    variation: Variation
    draws: tuple[Variation, ...]


def estimate_pilot(
    values: npt.ArrayLike,
    people: npt.ArrayLike,
    prompts: npt.ArrayLike,
    *,
    protocol: str,
    points: int = 5,
    draws: int = DRAWS,
    rng: np.random.Generator,
    source: str = "",
) -> PilotEstimate:
    """Estimate how much people and prompts vary, from the answers of a pilot.

    Parameters
    ----------
    values : array_like, shape (n,)
        Answers about one pair of systems on the scale of the headline (`StudySize.bounds`), none missing. In spa each row is
        one person with one prompt that the person read, and all rows of a person have the chance that the person stated.
    people, prompts : array_like, shape (n,)
        Who answered about what, or in spa who read what.
    protocol : str
        One of `PROTOCOLS`.
    points : int, default 5
        Points of the scale in rating and relative.
    draws : int, default 100
        Number of draws.
    rng : numpy.random.Generator
        Source of the random draws.
    source : str, optional
        Where the answers come from, kept in the variation.

    Returns
    -------
    PilotEstimate
        The estimate with its uncertainty.

    Raises
    ------
    ValueError
        If the answers do not say how much people and prompts vary. The message says what to change.

    Notes
    -----
    `crossed_components` on the scale of the headline; then the latent variation is the one at which
    `closed_forms.components` has the same standardised mean and the same shares of the variance. The same for each draw
    of the components. In ratings, the standard deviations of quality stay at the defaults of `Variation`. Stated chances
    have `stated_components` and `latent_of_stated` instead: the answers of one person are about all prompts together.

    Examples
    --------
    >>> from analysis.stats.planning.inputs import Target
    >>> from analysis.stats.planning.simulated_studies import assign_prompts, simulate_answers
    >>> size, rng = StudySize(protocol="two_choice", people=40, prompts=60, prompts_each=30), np.random.default_rng(2)
    >>> people, prompts = assign_prompts(size, rng)
    >>> values = simulate_answers(size, Target(), Variation(), people, prompts, runs=1, rng=rng)[0]
    >>> found = estimate_pilot(values, people, prompts, protocol="two_choice", rng=rng)
    >>> round(found.variation.sd_people, 2), round(found.variation.sd_prompts, 2)
    (0.33, 0.75)
    """
    size = StudySize(protocol=protocol, people=6, prompts=6, prompts_each=6, points=points)
    is_stated = size.kind == "chance"
    found = (stated_components if is_stated else crossed_components)(values, people, prompts)
    low_end, high_end = size.scale_ends
    if not all(low_end <= value <= high_end for value in np.asarray(values, dtype=np.float64)):
        raise ValueError(f"values: an answer is not between {low_end:g} and {high_end:g}, the scale of {protocol}.")
    rows = _one_row_per_person(values, people, prompts) if is_stated else (values, people, prompts)
    interval = clusters.annotator_prompt_clustered_mean(
        *rows, null=size.null, bounds=size.scale_ends, analysis="plan.pilot"
    ).interval
    ends = (None, None) if interval is None else (interval.low, interval.high)
    means = np.array([found.mean, *(end for end in ends if end is not None)])
    differences, sd_people, sd_prompts = _latent_of(found, size, means)
    drawn = _latent_of(found, size, *_inside(found.draws(draws, rng), size))
    has_ends = interval is not None
    return PilotEstimate(
        protocol=protocol,
        components=found,
        low=ends[0],
        high=ends[1],
        difference=float(differences[0]),
        difference_low=float(differences[1]) if has_ends else None,
        difference_high=float(differences[2]) if has_ends else None,
        variation=Variation(sd_people=float(sd_people[0]), sd_prompts=float(sd_prompts[0]), source=source),
        draws=tuple(
            Variation(sd_people=float(a), sd_prompts=float(p), source=source)
            for a, p in zip(drawn[1], drawn[2], strict=True)
        ),
    )


def _one_row_per_person(
    values: npt.ArrayLike, people: npt.ArrayLike, prompts: npt.ArrayLike
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return each person's stated chance, the person, and the group of people who share prompts, as the report has them."""
    stated = np.asarray(values, dtype=np.float64)
    person, n_people = label_codes(people, "people", len(stated))
    prompt, n_prompts = label_codes(prompts, "prompts", len(stated))
    read = coo_array((np.ones(len(stated)), (person, n_people + prompt)), shape=(n_people + n_prompts,) * 2)
    _, groups = csgraph.connected_components(read, directed=False)
    _, first = np.unique(person, return_index=True)
    return stated[first], np.arange(n_people), np.asarray(groups[:n_people], dtype=np.int64)


def _latent_of(
    found: CrossedComponents | StatedComponents, size: StudySize, means: FloatArray, *variances: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the differences and standard deviations for these means, with drawn variances or else the estimated ones."""
    if isinstance(found, StatedComponents):
        people, prompts = variances or (np.full(len(means), value) for value in (found.people, found.prompts))
        return latent_of_stated(means, people, prompts, found.prompts_each, MOST_SD)
    estimated = (found.people, found.prompts, found.rest)
    people, prompts, rest = variances or (np.full(len(means), value) for value in estimated)
    return _latent(size, means, people, prompts, rest)


def _inside(drawn: tuple[FloatArray, ...], size: StudySize) -> tuple[FloatArray, ...]:
    """Return draws with each mean inside the scale."""
    low, high = size.scale_ends
    edge = 0.01 * (high - low)
    return (np.clip(drawn[0], low + edge, high - edge), *drawn[1:])


def _latent(
    size: StudySize, means: FloatArray, people: FloatArray, prompts: FloatArray, rest: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the differences and the standard deviations over people and prompts at which `closed_forms.components` fits.

    It has the same standardised mean, and the same variances over people and prompts relative to the rest. Solved by
    multiplying each variance by what is missing, which is exact where an answer is linear in what is perceived.
    """
    components = _components_of_many(size)
    wanted_people, wanted_prompts = people / rest, prompts / rest
    distance = (means - size.null) / np.sqrt(people + prompts + rest)
    squared = [np.minimum(wanted_people, MOST_SD**2), np.minimum(wanted_prompts, MOST_SD**2)]
    t = special.ndtri(means) if size.headline.is_binary else distance.copy()
    left = np.arange(len(means))
    for _ in range(STEPS):
        value, *parts = components(t[left], squared[0][left], squared[1][left])
        change = np.zeros(len(left))
        for index, wanted in enumerate((wanted_people[left], wanted_prompts[left])):
            ratio = np.where(wanted > 0, wanted / np.maximum(parts[index] / parts[2], 1e-12), 0.0)
            after = np.minimum(squared[index][left] * ratio, MOST_SD**2)
            change = np.maximum(change, np.abs(after - squared[index][left]) / (1e-3 + after))
            squared[index][left] = after
        if not size.headline.is_binary:
            missing = distance[left] - (value - size.null) / np.sqrt(sum(parts))
            change = np.maximum(change, np.abs(missing))
            t[left] = np.clip(t[left] + missing, -5.0, 5.0)
        left = left[change > 1e-3]
        if not len(left):
            break
    return special.ndtr(t), np.sqrt(squared[0]), np.sqrt(squared[1])


def _components_of_many(size: StudySize) -> Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, ...]]:
    """Return `closed_forms.components` for arrays of differences (as normal quantiles) and squared standard deviations."""
    nodes, weights = np.array(NODES), np.array(WEIGHTS)
    grid = np.arange(-_END, _END + _STEP / 2, _STEP)
    first, second = (
        np.array([moment(x, 0.0) for x in grid.tolist()])
        for moment in answer_moments(size.protocol, size.points, Variation())
    )

    def mean_over(table: FloatArray, centre: FloatArray, sd: FloatArray) -> FloatArray:
        """Return the mean of a tabulated function of a normal variable, for centres of any shape."""
        at = centre[..., None] + sd.reshape(-1, *[1] * centre.ndim) * nodes
        return np.asarray(np.interp(at, grid, table) @ weights)

    def components(t: FloatArray, people: FloatArray, prompts: FloatArray) -> tuple[FloatArray, ...]:
        shift = t * np.sqrt(1 + people + prompts)
        mean = mean_over(first, shift, np.sqrt(people + prompts))
        total = mean_over(second, shift, np.sqrt(people + prompts)) - mean**2
        parts = []
        for own, other in ((people, prompts), (prompts, people)):
            values = mean_over(first, shift[:, None] + np.sqrt(own)[:, None] * nodes, np.sqrt(other))
            parts.append(np.maximum(0.0, (values - mean[:, None]) ** 2 @ weights))
        return mean, parts[0], parts[1], np.maximum(1e-12, total - parts[0] - parts[1])

    return components
