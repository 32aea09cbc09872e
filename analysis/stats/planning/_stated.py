"""Variance components of stated chances: one answer of each person, about all prompts that the person read."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import FloatArray
from analysis.stats.planning._crossed import FEWEST, Factor, checked_pilot_answers, variances_at
from analysis.stats.quick_moments import NODES, WEIGHTS
from analysis.stats.quick_power import ORDER_SD
from analysis.stats.results import Record

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

        Parameters
        ----------
        count : int
            Number of draws.
        rng : numpy.random.Generator
            Source of the random draws.

        Returns
        -------
        tuple of ndarray of float, each of shape (count,)
            Means, and variances over people and over prompts.

        Notes
        -----
        Each draw inverts exact pivots, as `CrossedComponents.draws` does.
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
