"""Every word of the vocabulary is reached by some analysis, and whatever is reached is JSON."""

import json

import numpy as np

from analysis.stats import agreement, basic, davidson, ratings, results, sequential, spa


def reached():
    rng = np.random.default_rng(0)
    systems, who = ["x"] * 4 + ["y"] * 4, np.arange(8)
    yield basic.one_sample_t_test([0.4, 0.6, 0.7], null=0.5, bounds=(0, 1))
    yield basic.one_sample_t_test([], null=0.5)
    yield basic.one_sample_t_test([0.7], null=0.5)
    yield basic.one_sample_t_test([0.7, 0.7], null=0.5, bounds=(0, 1))
    yield ratings.cumulative_logit([4, 5, 5, 4, 1, 2, 3, 1], systems, who, system="x", reference="y")
    yield davidson.fit_davidson([0], [1], [0.6], ["a"], n_systems=3, ties="half").strengths[0]
    yield agreement.krippendorff_alpha([[2, 0]], [1, 2], level_of_measurement="nominal", rng=rng)
    yield spa.naming_order_effect([70], [30], is_after_tau=True)
    # Units that first all choose A and then all B share no mean.
    yield sequential.sequential_test([1] * 60 + [0] * 200, process="beta_binomial", stops=()).estimate


def test_every_status_is_reached_and_every_result_is_json():
    assert {estimate.status for estimate in reached()} == set(results.STATUSES)
    for estimate in reached():
        body = estimate.as_dict()
        json.dumps(body, allow_nan=False)
        if body["status"] != "ok":
            assert body["test"] is None and body["reason"]
