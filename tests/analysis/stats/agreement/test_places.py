"""Agreement about places and agreement about systems are both reported."""

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import agreement
from analysis.stats.results import json_safe
from tests.analysis.stats.draws import rng


def choices(name, shared):
    with (shared / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [np.array([row[key] for row in rows]) for key in ("pair_id", "worker", "choice", "chosen_model")]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "kappas", "alphas", "agreed", "share", "n_workers"),
    [
        # The paper prints .69 and .27, coded by place.
        ("dhe_v1_vs_cga.csv", (0.6858, 0.2798), (0.6858, 0.2799), 0.843, 0.8754, 69),
        ("dhe_v2_vs_cga_r1.csv", (0.2734, 0.2458), (0.2736, 0.2459), 0.637, 0.5974, 73),
    ],
)
def test_real_choices_have_two_kappas_at_one_agreement(shared, name, kappas, alphas, agreed, share, n_workers):
    rows = choices(name, shared)
    record = agreement.agreement_by_position_and_by_system(*rows, rng=rng())
    assert_allclose([record.kappa_position.estimate, record.kappa_system.estimate], kappas, atol=5e-5)
    assert_allclose(record.percent_agreement_position, record.percent_agreement_system, atol=1e-12)
    assert_allclose(record.percent_agreement_position, agreed, atol=5e-4)
    assert_allclose(record.prevalence_system["CGA"], share, atol=1e-9)
    assert record.ac1_system.estimate > record.kappa_system.estimate
    assert (record.n_items, record.n_annotators, record.n_rows, record.n_unpairable) == (500, n_workers, 5000, 0)
    for labels, alpha in zip(rows[2:], alphas, strict=True):
        counts, _ = agreement.category_counts_by_unit(rows[0], labels)
        found = agreement.krippendorff_alpha(counts, [0, 1], level_of_measurement="nominal", rng=rng())
        assert_allclose(found.estimate, alpha, atol=5e-5)
    order = rng(1).permutation(5000)
    again = agreement.agreement_by_position_and_by_system(*(column[order] for column in rows), rng=rng())
    assert json_safe(again) == json_safe(record)


def test_position_and_system_are_one_record_of_plain_json():
    draw = rng(2)
    items, people = np.repeat(np.arange(40), 4), np.tile(np.arange(4), 40)
    systems = np.where(draw.random(160) < 0.9, "x", "y").astype(object)
    side = np.repeat(draw.integers(0, 2, 40), 4)
    places = np.where((systems == "x") == (side == 0), "A", "B").astype(object)
    systems[7] = places[7] = None
    record = agreement.agreement_by_position_and_by_system(items, people, places, systems, rng=rng(), resamples=99)
    assert_allclose(record.percent_agreement_position, record.percent_agreement_system, atol=1e-12)
    assert record.kappa_position.estimate > record.kappa_system.estimate + 0.3
    assert record.kappa_position.n_rows == 159
    assert '"fleiss_kappa.by_system"' in json.dumps(json_safe(record), allow_nan=False)
    assert set(record.prevalence_position) == {"A", "B"} and sum(record.prevalence_system.values()) == pytest.approx(1)


def test_position_and_system_refuse_what_cannot_be():
    call = agreement.agreement_by_position_and_by_system
    with pytest.raises(ValueError, match="annotators: row 2 judges an item"):
        call([1, 1, 1], ["a", "b", "a"], list("ABA"), list("xyx"), rng=rng())
    with pytest.raises(ValueError, match="systems: row 1 has a place without a system"):
        call([1, 1], ["a", "b"], ["A", "B"], ["x", None], rng=rng())
    with pytest.raises(ValueError, match="systems: 1 choices where positions has 2"):
        call([1, 1], ["a", "b"], ["A", "B"], ["x"], rng=rng())
    nothing = call([], [], [], [], rng=rng())
    assert (nothing.n_items, nothing.kappa_system.status) == (0, "no_data")
    assert (nothing.percent_agreement_position, nothing.prevalence_system) == (None, {})
