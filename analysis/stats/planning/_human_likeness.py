"""Plans for human or machine."""

from collections.abc import Callable
from typing import Any

import numpy as np

from analysis.stats import generators, groups
from analysis.stats.planning._plan import Plan, PlanOptions
from analysis.stats.planning._search import simulated_plan
from analysis.stats.planning._simulation import Outcomes, outcomes_of, two_way_outcomes


def plan_human_likeness(
    n_annotators: int,
    n_each: int,
    d_prime: float,
    *,
    measure: str = "accuracy",
    rng: np.random.Generator,
    options: PlanOptions | None = None,
    **answers: Any,
) -> Plan:
    """Human or machine, by simulation; `answers` go to `generators.human_like_ratings`.

    "accuracy": the share correct against .5, annotators and texts as clusters (`detection.accuracy`). "sensitivity":
    marginal d' against 0 by the probit contrast (`detection.sensitivity`). Texts are shared if `n_texts` says how many.
    To compare conditions of training, each annotator in one: `plan_two_groups` on annotators' accuracies.

    >>> plan = plan_human_likeness(130, 5, 0.5, n_texts=100, rng=np.random.default_rng(0), options=PlanOptions(runs=200))
    >>> plan.power > 0.9, round(plan.detail["estimate"], 1), plan.labels
    (True, 0.6, 650.0)
    """
    chosen = options or PlanOptions()
    if measure not in ("accuracy", "sensitivity"):
        raise ValueError(f"measure: {measure!r} is neither accuracy nor sensitivity")
    who = np.repeat(np.arange(n_annotators), n_each)
    level = 1 - chosen.significance

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.HumanLikeRatings]:
        return lambda runs, generator: generators.human_like_ratings(
            n_annotators, n_each, d_prime=effect, runs=runs, rng=generator, **answers
        )

    def analyse(made: generators.HumanLikeRatings) -> Outcomes:
        says = (made.ratings > 2.5).reshape(len(made.ratings), -1)
        texts = made.texts.ravel()
        truth = made.is_machine[texts]
        if measure == "accuracy":
            return two_way_outcomes(says == truth, who, texts, level=level, bounds=(0.0, 1.0))
        return outcomes_of(
            groups.cell_contrast(
                said, truth, {True: 1.0, False: -1.0}, who, texts, link="probit", corrected=True, level=level
            )
            for said in says.astype(np.float64)
        )

    return simulated_plan(
        generate,
        analyse,
        d_prime,
        largest=4.0,
        size=n_annotators * n_each,
        options=chosen,
        rng=rng,
        protocol="humanlike",
        estimand="share of correct answers" if measure == "accuracy" else "marginal d'",
        n=n_annotators,
        settings={"n_each": n_each, "measure": measure, **answers},
    )
