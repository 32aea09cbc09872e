"""Variance components of answers by people about prompts, in any layout, and draws of what they may be."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, label_codes, vector
from analysis.stats.results import Record

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

        Parameters
        ----------
        count : int
            Number of draws.
        rng : numpy.random.Generator
            Source of the random draws.

        Returns
        -------
        tuple of ndarray of float, each of shape (count,)
            Means, and variances over people, over prompts, and the rest.

        Notes
        -----
        Each draw inverts exact pivots (Wald 1947; Seely and El-Bassiouni 1983): SSE / rest has a chi-square distribution
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

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        The answers.
    people, prompts : array_like, shape (n_rows,)
        Labels of each row's person and prompt.

    Returns
    -------
    tuple
        The answers, each row's person as a number, how many people there are, and the same for prompts.

    Raises
    ------
    ValueError
        If an answer is missing, or there are too few or too many people or prompts.

    Examples
    --------
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
