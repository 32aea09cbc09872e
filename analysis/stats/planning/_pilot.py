"""What a pilot says about how much people and prompts vary, with what it leaves open."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.sparse import coo_array, csgraph

from analysis.stats import clusters
from analysis.stats.arrays import FloatArray, IntArray, label_codes
from analysis.stats.plan_inputs import StudySize, Variation
from analysis.stats.planning._crossed import CrossedComponents, crossed_components
from analysis.stats.planning._stated import StatedComponents, latent_of_stated, stated_components
from analysis.stats.quick_moments import NODES, WEIGHTS, answer_moments
from analysis.stats.results import Record

# Draws of the variation: each serves a block of a simulated part.
DRAWS = 100
# Standard deviations above this are as good as infinite, and `Variation` refuses those above 10.
MOST_SD = 8.0
# Most steps of the search for the latent variation. The draws that need more lie near `MOST_SD`.
STEPS = 40
_BINARY = ("two_choice", "ranking", "humanlike")
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
    `quick_power.components` has the same standardised mean and the same shares of the variance. The same for each draw
    of the components. In ratings, the standard deviations of quality stay at the defaults of `Variation`. Stated chances
    have `stated_components` and `latent_of_stated` instead: the answers of one person are about all prompts together.

    Examples
    --------
    >>> from analysis.stats.plan_inputs import Target
    >>> from analysis.stats.planning import assign_prompts, simulate_answers
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
    """Return the differences and the standard deviations over people and prompts at which `quick_power.components` fits.

    It has the same standardised mean, and the same variances over people and prompts relative to the rest. Solved by
    multiplying each variance by what is missing, which is exact where an answer is linear in what is perceived.
    """
    components = _components_of_many(size)
    wanted_people, wanted_prompts = people / rest, prompts / rest
    distance = (means - size.null) / np.sqrt(people + prompts + rest)
    squared = [np.minimum(wanted_people, MOST_SD**2), np.minimum(wanted_prompts, MOST_SD**2)]
    t = special.ndtri(means) if size.protocol in _BINARY else distance.copy()
    left = np.arange(len(means))
    for _ in range(STEPS):
        value, *parts = components(t[left], squared[0][left], squared[1][left])
        change = np.zeros(len(left))
        for index, wanted in enumerate((wanted_people[left], wanted_prompts[left])):
            ratio = np.where(wanted > 0, wanted / np.maximum(parts[index] / parts[2], 1e-12), 0.0)
            after = np.minimum(squared[index][left] * ratio, MOST_SD**2)
            change = np.maximum(change, np.abs(after - squared[index][left]) / (1e-3 + after))
            squared[index][left] = after
        if size.protocol not in _BINARY:
            missing = distance[left] - (value - size.null) / np.sqrt(sum(parts))
            change = np.maximum(change, np.abs(missing))
            t[left] = np.clip(t[left] + missing, -5.0, 5.0)
        left = left[change > 1e-3]
        if not len(left):
            break
    return special.ndtr(t), np.sqrt(squared[0]), np.sqrt(squared[1])


def _components_of_many(size: StudySize) -> Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, ...]]:
    """Return `quick_power.components` for arrays of differences (as normal quantiles) and squared standard deviations."""
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
