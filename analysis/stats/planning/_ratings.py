"""Plans for ratings on Likert and continuous scales."""

from collections.abc import Callable
from typing import Any

import numpy as np

from analysis.stats import clusters, generators, ratings
from analysis.stats.planning._clustered import clustered_mean_outcomes, two_way_clustered_mean_outcomes
from analysis.stats.planning._plan import Plan, PlanOptions
from analysis.stats.planning._search import plan_by_simulation
from analysis.stats.planning._simulation import Outcomes, one_sample_t_test_outcomes


def simulate_rating_power(
    n_annotators: int,
    n_each: int,
    latent_difference: float,
    *,
    estimator: str = "superiority",
    rng: np.random.Generator,
    options: PlanOptions | None = None,
    **generator_options: Any,
) -> Plan:
    """Plan two systems rated on a Likert scale by the same annotators, by simulation.

    Parameters
    ----------
    n_annotators, n_each : int
        Number of annotators, and of prompts per annotator.
    latent_difference : float
        Difference of the latent means in units of the latent noise.
    estimator : {"superiority", "mean_difference"}, default 'superiority'
        "superiority": `ratings.probability_of_superiority`. "mean_difference": `ratings.paired_mean_difference`. Prompts
        are a sample, too, if five or more (`n_prompts`) are shared.
    rng : numpy.random.Generator
        Source of the random draws.
    options : PlanOptions, optional
        Options of the planner.
    **generator_options : Any
        Arguments of `generators.simulate_likert_ratings`.

    Returns
    -------
    Plan
        The plan.

    Raises
    ------
    ValueError
        If `estimator` is not allowed.

    Examples
    --------
    >>> plan = simulate_rating_power(60, 5, 0.4, rng=np.random.default_rng(0), options=PlanOptions(runs=200))
    >>> plan.power > 0.9, 0.55 < plan.detail["estimate"] < 0.65, plan.labels
    (True, True, 600.0)
    """
    chosen = options or PlanOptions()
    if estimator not in ("superiority", "mean_difference"):
        raise ValueError(f"estimator: {estimator!r} is neither superiority nor mean_difference")
    is_superiority = estimator == "superiority"
    n_prompts = generator_options.get("n_prompts")
    points = len(generator_options.get("thresholds", generators.FIVE_POINTS))

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.LikertRatings]:
        return lambda runs, generator: generators.simulate_likert_ratings(
            n_annotators, n_each, [effect, 0.0], runs=runs, rng=generator, **generator_options
        )

    def analyse(simulated: generators.LikertRatings) -> Outcomes:
        differences = simulated.ratings[..., 0] - simulated.ratings[..., 1]
        scores = (np.sign(differences) + 1) / 2 if is_superiority else differences
        common: dict[str, Any] = {
            "null": 0.5 if is_superiority else 0.0,
            "level": 1 - chosen.significance,
            "bounds": (0.0, 1.0) if is_superiority else (-float(points), float(points)),
        }
        if n_prompts is None or len(np.unique(simulated.prompts)) < clusters.TOO_FEW_ITEMS:
            return clustered_mean_outcomes(scores.mean(axis=2), **common)
        annotators = np.repeat(np.arange(n_annotators), n_each)
        return two_way_clustered_mean_outcomes(
            scores.reshape(len(scores), -1), annotators, simulated.prompts.ravel(), **common
        )

    return plan_by_simulation(
        generate,
        analyse,
        latent_difference,
        largest=6.0,
        n_answers=n_annotators * n_each * 2,
        options=chosen,
        rng=rng,
        protocol="rating",
        estimand="P(x rated above y), ties half" if is_superiority else "mean difference of ratings, points",
        n=n_annotators,
        settings={"n_each": n_each, "estimator": estimator, "n_points": points + 1, **generator_options},
    )


def simulate_expected_utility_power(
    n_annotators: int,
    n_each: int,
    difference: float,
    *,
    mean_utility: float = 0.5,
    rng: np.random.Generator,
    options: PlanOptions | None = None,
    **generator_options: Any,
) -> Plan:
    """Plan two systems rated on a continuous scale with planted references, by simulation.

    Parameters
    ----------
    n_annotators, n_each : int
        Number of annotators, and of outputs per annotator and system.
    difference : float
        Difference of the systems' mean utilities.
    mean_utility : float, default 0.5
        Mean of both systems' utilities; `mean_utility` -/+ half the `difference` must be in 0..1.
    rng : numpy.random.Generator
        Source of the random draws.
    options : PlanOptions, optional
        Options of the planner.
    **generator_options : Any
        Arguments of `generators.simulate_continuous_ratings`.

    Returns
    -------
    Plan
        The plan. Annotators who violate the references are excluded after pay. Labels count the two reference ratings
        too.

    Raises
    ------
    ValueError
        If a utility is outside 0..1.

    Notes
    -----
    Ratings are rescaled by `ratings.rescale_to_references`, averaged per annotator and system, and compared by a
    paired t test.

    Examples
    --------
    >>> plan = simulate_expected_utility_power(60, 4, 0.1, rng=np.random.default_rng(0), options=PlanOptions(runs=100))
    >>> plan.power > 0.9, plan.labels
    (True, 600.0)
    """
    chosen = options or PlanOptions()
    if not abs(difference) / 2 <= min(mean_utility, 1 - mean_utility):
        raise ValueError(f"difference: {difference!r} around {mean_utility!r} leaves 0..1")

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.ContinuousRatings]:
        means = [mean_utility + effect / 2, mean_utility - effect / 2]
        return lambda runs, generator: generators.simulate_continuous_ratings(
            n_annotators, n_each, means, runs=runs, rng=generator, **generator_options
        )

    def analyse(simulated: generators.ContinuousRatings) -> Outcomes:
        runs = len(simulated.ratings)
        # Annotators of different runs are different annotators, so one call rescales all runs.
        per = n_each * 2 + 2
        ends = [simulated.reference_minimum[..., None], simulated.reference_maximum[..., None]]
        rows = np.concatenate([simulated.ratings.reshape(runs, n_annotators, -1), *ends], axis=2).reshape(-1)
        positions = np.tile(np.arange(per), runs * n_annotators)
        rescaled = ratings.rescale_to_references(
            rows,
            np.repeat(np.arange(runs * n_annotators), per),
            is_minimum=positions == per - 2,
            is_maximum=positions == per - 1,
        ).values.reshape(runs, n_annotators, per)[..., : per - 2]
        means = rescaled.reshape(runs, n_annotators, n_each, 2).mean(axis=2)
        return one_sample_t_test_outcomes(means[..., 0] - means[..., 1], null=0.0, level=1 - chosen.significance)

    return plan_by_simulation(
        generate,
        analyse,
        difference,
        largest=2 * min(mean_utility, 1 - mean_utility),
        n_answers=n_annotators * (2 * n_each + 2),
        options=chosen,
        rng=rng,
        protocol="rating",
        estimand="difference of expected expected utilities",
        n=n_annotators,
        settings={"n_each": n_each, "utility": mean_utility, **generator_options},
    )
