"""HANNA: 1,056 stories by 11 systems, labels of three people in no known order, judges and metrics beside them."""

import csv
import gzip
from collections import defaultdict

import numpy as np
import pytest

from analysis.stats import judge_probes, judge_standards, judges, metric_comparison, metrics
from tests.analysis.stats.draws import rng

PLACES = ("human1", "human2", "human3")


@pytest.fixture(scope="module")
def coherence(shared):
    """Columns of the rows about coherence as tables of 96 prompts by 11 systems."""
    cells = defaultdict(dict)
    with gzip.open(shared / "hanna_judges.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["criterion"] == "coherence":
                for name in (*PLACES, "beluga_13b_p1", "chatgpt_p1", "bleu", "length"):
                    cells[name][int(row["prompt"]), row["system"]] = float(row[name])
    systems = sorted({system for _, system in cells["bleu"]})
    return {
        name: np.array([[values[prompt, system] for system in systems] for prompt in range(96)])
        for name, values in cells.items()
    }


@pytest.mark.parametrize(
    "name,of_systems,of_stories", [("beluga_13b_p1", 0.82, 0.36), ("chatgpt_p1", 0.78, 0.38), ("bleu", 0.45, 0.25)]
)
def test_kendalls_tau_of_the_files_own_check(coherence, name, of_systems, of_stories):
    human = np.mean([coherence[place] for place in PLACES], axis=0)
    found = metrics.system_level_correlations(human, coherence[name], rng=rng(), resamples=9)
    over_stories = metrics.segment_level_kendall_tau(human, coherence[name], rng=rng(), grouping="none", resamples=9)
    assert abs(found["kendall"].estimate - of_systems) < 0.006
    assert abs(over_stories.estimate - of_stories) < 0.006
    assert found["kendall"].n == 96 and over_stories.n_rows == 1056


def test_the_correlation_without_noise_is_higher_and_has_an_interval(coherence):
    human = np.mean([coherence[place] for place in PLACES], axis=0)
    for name in ("beluga_13b_p1", "chatgpt_p1"):
        found = metric_comparison.noise_corrected_correlation(human, coherence[name])
        assert found.detail["observed"] < found.detail["uncut"] and found.interval.low > 0.8
        assert found.detail["human_reliability"] > 0.9


def test_places_are_no_people(coherence):
    """Prompts are the only sample. No judge can agree with all people: two of them agree on less than a fifth of the labels."""
    labels = np.stack([coherence[place].ravel() for place in PLACES], axis=1)
    prompts = np.repeat(np.arange(96), 11)
    judge = np.rint(coherence["beluga_13b_p1"]).ravel()
    found = judge_standards.possible_agreement(labels, judge=judge, prompts=prompts, are_people_known=False)
    assert (found.pair_agreement.unit, found.pair_agreement.n, found.pair_agreement.n_rows) == ("prompt", 96, 3168)
    assert found.pair_agreement.has_warning("people_left_out") and found.pair_agreement.estimate < 0.2
    assert found.with_majority_of_others.estimate < found.best_possible.estimate < 0.5
    assert found.judge_minus_pair.interval.low > 0
    people = {"annotators": None, "prompts": np.repeat(prompts, 3)}
    alone = judges.judge_agreement(np.repeat(judge, 3), labels.ravel(), **people)
    assert alone.agreement.estimate == pytest.approx(found.judge_agreement.estimate)
    slope = judge_probes.length_probe(np.repeat(judge, 3), labels.ravel(), np.repeat(coherence["length"], 3), **people)
    assert slope.settings["population"] == "prompts" and slope.interval is not None
