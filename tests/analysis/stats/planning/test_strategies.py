"""Labelling strategies are planned with the effort of their stopping rule."""

import json

import pytest

from analysis.stats import stopping_boundaries
from analysis.stats.planning import stopping
from tests.analysis.stats.draws import rng


def test_a_strategy_is_planned_with_the_effort_of_its_rule():
    rule = stopping_boundaries.hoeffding_boundaries(1500, delta=0.001)
    plans = stopping.plan_labelling_strategies(0.25, 1500, rule=rule, rng=rng(9), runs=150)
    by_name = {plan.strategy: plan for plan in plans}
    one, three, seven = (by_name[name] for name in ("one", "max_three", "majority_7"))
    # The paper's order, Table 3: 338, 461 and 866 labels.
    assert 230 < one.labels < 400 and one.labels < three.labels < seven.labels
    assert one.right > 0.97 and one.wrong == 0 and one.labels_median <= one.labels_90
    json.dumps(one.as_dict(), allow_nan=False)


def test_without_a_difference_every_decision_is_wrong():
    rule = stopping_boundaries.beta_binomial_boundaries(300)
    (null,) = stopping.plan_labelling_strategies(0.0, 300, rule=rule, rng=rng(9), strategies=("one",), runs=400)
    assert null.right == 0 and null.wrong == null.decided < 0.06 and null.labels > 280


def test_progress_and_unknown_strategies():
    seen = []
    options = {"rule": stopping_boundaries.beta_binomial_boundaries(50), "runs": 20}
    stopping.plan_labelling_strategies(0.2, 50, rng=rng(), progress=lambda *two: seen.append(two), **options)
    assert seen == [(done, 5) for done in range(1, 6)]
    with pytest.raises(ValueError, match="strategies: 'all' is not one of"):
        stopping.plan_labelling_strategies(0.2, 50, rng=rng(), strategies=("all",), **options)
