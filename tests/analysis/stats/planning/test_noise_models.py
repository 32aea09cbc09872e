"""How well the models of test questions find careless annotators, in simulated rounds."""

import numpy as np
import pytest
from scipy import stats

from analysis.stats import mixture
from analysis.stats.planning.noise_models import (
    CARELESS_CONCENTRATION,
    SimulatedCrowd,
    compute_posteriors,
    draw_round,
    simulate_flag_rates,
)
from tests.analysis.stats.draws import rng

CROWD = SimulatedCrowd(
    annotators=400, questions=10, activity=0, careless=(0.5, 0.5), careless_right=(0.6, 0.6), careful_right=(0.8, 0.8)
)


def test_precision_and_recall_are_those_of_the_distributions():
    """Everybody answers ten questions, so who is flagged is known for each number of right answers."""
    rows = simulate_flag_rates(CROWD, rounds=10, rng=rng(2))
    assert {(row.questions, row.annotators) for row in rows} == {("1-4", 0), ("5-14", 4000), ("15+", 0), ("all", 4000)}
    flag_at_most = mixture.flag_boundaries(mixture.PRIORS["fixed2"], [10], criterion="rate").at_most[0]

    def flagged(mean, sizes):
        return np.mean([stats.betabinom.cdf(flag_at_most, 10, mean * size, (1 - mean) * size) for size in sizes])

    careless = flagged(0.6, np.linspace(*CARELESS_CONCENTRATION, 200))
    careful = flagged(0.8, np.linspace(100, 1000, 200))
    row = next(one for one in rows if (one.model, one.questions) == ("rate_fixed2", "5-14"))
    assert 0.1 < careless < 0.9 and careful > 0.005
    assert row.recall == pytest.approx(careless, abs=4 * row.recall_error)
    assert row.precision == pytest.approx(careless / (careless + careful), abs=4 * row.precision_error)
    assert row.rightly_flagged == round(row.recall * row.careless) == round(row.precision * row.flagged)


def test_what_cannot_be_computed_is_undefined():
    nobody = SimulatedCrowd(
        annotators=5, questions=1, activity=0, careless=(0, 0), careless_right=(0, 0), careful_right=(1, 1)
    )
    for row in simulate_flag_rates(nobody, rounds=2, rng=rng()):
        assert (row.flagged, row.careless) == (0, 0)
        assert (row.precision, row.precision_error, row.recall, row.recall_error) == (None,) * 4
    everybody = SimulatedCrowd(annotators=5, questions=100, activity=0, careless=(1, 1), careless_right=(0, 0))
    row = simulate_flag_rates(everybody, rounds=2, rng=rng())[-1]
    assert (row.precision, row.precision_error, row.recall, row.recall_error) == (1, None, 1, None)


def test_each_model_judges_everybody_and_modes_are_checked():
    right, asked, _ = draw_round(SimulatedCrowd(), rng(1))
    found = compute_posteriors(right, asked, rng=rng(1))
    assert list(found) == list(mixture.MODELS) and all(len(one) == 88 for one in found.values())
    assert all(np.all((one >= 0) & (one <= 1)) for one in found.values())
    with pytest.raises(ValueError, match="mode: 'published' is not one of"):
        simulate_flag_rates(SimulatedCrowd(), rounds=1, rng=rng(), mode="published")


def test_activity_is_lognormal():
    _, asked, is_careless = draw_round(
        SimulatedCrowd(annotators=5000, questions=50, activity=0.5, careless=(0.2, 0.2)), rng(4)
    )
    logs = np.log(asked)
    assert np.median(asked) == pytest.approx(50, rel=0.05) and logs.std() == pytest.approx(0.5, rel=0.05)
    assert is_careless.mean() == pytest.approx(0.2, abs=0.025)
