"""Each number of metrics and judges with an interval or a p-value names its population."""

from collections import Counter

import pytest

from analysis.metrics import comparison
from analysis.metrics.calibrated.options import CalibrationOptions
from analysis.metrics.calibrated.run import calibrate
from analysis.metrics.judge_check.measuring import compute_result
from tests.analysis.report.populations import numbers_with_intervals, population_named

from .collected_studies import closed
from .judge_check.builders import checked_study
from .judge_check.test_check import closed as closed_check
from .test_calibrated import store_judge
from .test_comparison import judged
from .test_comparison import study as rated_study  # noqa: F401 - a fixture

pytestmark = pytest.mark.django_db


def populations(result):
    # The heading of the tests of single people says that each is about that person.
    found = [(path, one) for path, one in numbers_with_intervals(result) if ".alternative.people." not in path]
    assert [path for path, one in found if not population_named(one)] == []
    return Counter(population_named(one) for _, one in found)


def test_metrics_are_about_outputs_for_exactly_these_people(rated_study):  # noqa: F811
    judged(rated_study), judged(rated_study, "wrong")
    (stored,) = comparison.compare_with_people(rated_study, rated_study.owner, resamples=99)
    found = populations(stored.result)
    assert found["items, for exactly these people"] > 8
    assert found["people and prompts"] == 4, "the score of each system by people"


def test_numbers_of_people_and_judges_together():
    study = closed()
    store_judge(study)
    (row,) = calibrate(study, CalibrationOptions(), study.owner)
    assert populations(row.result)["people and prompts"] > 5


def test_the_check_of_a_judge():
    study, _ = checked_study(
        says=lambda output, person, is_yes: is_yes != ((output + person) % 11 == 0), n_test=35, n_development=5
    )
    found = populations(compute_result(closed_check(study), study.owner).result)
    assert found["people and prompts"] > 8
