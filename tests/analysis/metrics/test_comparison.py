"""Metrics are compared with people's answers, and the page knows when its numbers are old."""

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse
from django.utils import timezone

from analysis.metrics import comparison
from analysis.metrics.files import ScoresFileSettings
from analysis.metrics.store import MetricDescription, discard, upload_scores
from analysis.models import Metric, MetricsComparison
from annotators.models import Assignment
from studies.models import Study
from studies.models.guards import AppendOnlyViolation
from studies.services.lifecycle import ActionRefused
from tests.admin_pages import logged_in
from tests.analysis.report.populations import places_of_numbers
from tests.boards.builders import STRENGTHS, choice_template, finish, rating_template
from tests.builders import launched, user

from .scores import rows_of, table

pytestmark = pytest.mark.django_db
NOISE = (0.3, -0.2, 0.1, -0.4, 0.0)


def judged(study, name="true", **options):
    """Scores that follow the strengths of the systems with a little noise; ``wrong`` ones are turned around."""
    sign = -1 if name == "wrong" else 1
    rows = [
        row | {name: sign * STRENGTHS[row["system"]] + NOISE[number % 5]} for number, row in enumerate(rows_of(study))
    ]
    described = MetricDescription("metric", options.pop("version", "1"), **options)
    (metric,) = upload_scores(study, study.owner, "scores.csv", table(rows), ScoresFileSettings(), described)
    return metric


@pytest.fixture
def study():
    draft = rating_template(user("ada"), prompts=8, m=8, systems=tuple(STRENGTHS))
    study = launched(draft)
    finish(study, seed=2)
    return Study.objects.get(pk=study.pk)


@pytest.mark.slow
def test_a_good_metric_agrees_with_people_and_a_turned_one_does_not(study):
    judged(study), judged(study, "wrong")
    # Eight prompts have 256 patterns of swaps, so the p-value is 1/128: 99 draws would miss .05 after adjustment in one run of six.
    (stored,) = comparison.compare_with_people(study, study.owner, resamples=999)
    result = stored.result
    assert (result["status"], result["n_systems"], result["n_prompts"]) == ("ok", 4, 8)
    good, wrong = (one["measures"] for one in result["metrics"])
    assert good["pearson"]["estimate"] > 0.9 and wrong["pearson"]["estimate"] < -0.9
    assert good["pairwise_accuracy"]["estimate"] == 1 and wrong["pairwise_accuracy"]["estimate"] == 0
    assert good["segment_tau"]["low"] > 0 > wrong["segment_tau"]["high"] and good["segment_tau"]["is_interval"]
    assert not good["pearson"]["is_interval"] and good["pearson"]["unit"] == "prompt"
    assert [row["statistic"] for row in result["comparisons"]] == ["pearson", "segment_tau"]
    assert all(row["pvalue"] <= row["pvalue_adjusted"] < 0.05 for row in result["comparisons"])
    table = result["systems"]
    assert [row["system"] for row in table] == sorted(STRENGTHS, key=STRENGTHS.get, reverse=True)
    true = next(one["metric"] for one in result["metrics"] if one["name"] == "true")
    for row in table:
        assert row["people"]["low"] < row["people"]["estimate"] < row["people"]["high"]
        mean = next(one["mean"] for one in row["metrics"] if one["metric"] == true)
        assert mean == pytest.approx(STRENGTHS[row["system"]], abs=max(map(abs, NOISE)) + 1e-9)
    again = comparison.compare_with_people(study, study.owner, resamples=999)[0].result
    assert again == result


def test_three_systems_are_too_few_for_a_correlation(study):
    rows = [row | {"part": number} for number, row in enumerate(rows_of(study)) if row["system"] != "weak"]
    upload_scores(
        study,
        study.owner,
        "scores.csv",
        table(rows),
        ScoresFileSettings(is_partial=True),
        MetricDescription("metric", "1"),
    )
    (stored,) = comparison.compare_with_people(study, study.owner, resamples=99)
    (one,) = stored.result["metrics"]
    assert len(one["systems"]) == 3 and one["measures"]["pearson"]["estimate"] is None
    assert "3 systems are too few" in one["measures"]["pearson"]["reason"]
    assert one["measures"]["pairwise_accuracy"]["estimate"] is not None


def test_preferences_are_shares_of_won_comparisons():
    study = launched(choice_template(user("ada"), prompts=8, m=8, systems=tuple(STRENGTHS)))
    finish(study)
    judged(study)
    (stored,) = comparison.compare_with_people(study, study.owner, resamples=99)
    (one,) = stored.result["metrics"]
    assert stored.result["kind"] == "preferences"
    shares = {row["system"]: row["people"] for row in one["systems"]}
    assert shares["human"] > 0.5 > shares["weak"]
    assert sum(shares.values()) == pytest.approx(len(shares) / 2, abs=0.3)


def test_results_are_old_after_a_metric_or_an_answer_changed(study, django_assert_max_num_queries):
    metric = judged(study)
    comparison.compare_with_people(study, study.owner, resamples=99)
    with django_assert_max_num_queries(12):
        shown = comparison.latest_comparisons(study)
        assert len(shown) == 1 and not comparison.is_stale(study, shown)
    other = judged(study, version="2")
    assert comparison.is_stale(study, shown)
    discard(other, study.owner)
    assert not comparison.is_stale(study, shown)
    Assignment.objects.filter(pk=study.assignments.first().pk).update(withdrawn_at=timezone.now())
    assert comparison.is_stale(study, shown)
    discard(metric, study.owner)
    with pytest.raises(ActionRefused, match="no metric and no judge"):
        comparison.request_comparison(study, study.owner)


def test_nothing_is_compared_while_outcomes_are_hidden(study, monkeypatch):
    judged(study)
    monkeypatch.setattr("analysis.data.blinding.are_outcomes_hidden", lambda study, origins: True)
    for act in (comparison.request_comparison, comparison.compare_with_people):
        with pytest.raises(PermissionDenied, match="still collecting"):
            act(study, study.owner)
    assert not MetricsComparison.objects.exists() and Metric.objects.count() == 1


def test_a_stored_comparison_is_never_changed(study):
    judged(study)
    (stored,) = comparison.compare_with_people(study, study.owner, resamples=99)
    with pytest.raises(AppendOnlyViolation):
        MetricsComparison.objects.filter(pk=stored.pk).update(n_answers=1)


def test_the_table_of_systems_has_scores_as_they_were_uploaded(study):
    draft_scores = {name: 1 + 4 * value for name, value in STRENGTHS.items()}
    low, high = min(draft_scores.values()), max(draft_scores.values())
    rows = [row | {"errors": draft_scores[row["system"]]} for row in rows_of(study)]
    for version, scale in (("1", (None, None)), ("2", (low, high + 1))):
        described = MetricDescription("metric", version, {}, "", True, *scale)
        upload_scores(study, study.owner, "scores.csv", table(rows), ScoresFileSettings(), described)
    (stored,) = comparison.compare_with_people(study, study.owner, resamples=99)
    for row in stored.result["systems"]:
        assert [one["mean"] for one in row["metrics"]] == pytest.approx([draft_scores[row["system"]]] * 2)
    shown = logged_in(study.owner).get(reverse("study_metrics", args=[study.pk])).content.decode()
    assert "Systems by people and by metrics" in shown and f"<b>{low:.2f}</b>" in shown.replace("−", "-")


def test_metrics_are_about_outputs_for_exactly_these_people(study):
    judged(study), judged(study, "wrong")
    (stored,) = comparison.compare_with_people(study, study.owner, resamples=99)
    named = list(places_of_numbers(stored.result).values())
    assert set(named) == {"items, for exactly these people", "people and prompts"}
    assert named.count("people and prompts") == 4, "the score of each system by people"
