"""Rows of metrics and scores that the database must refuse, by constraint."""

from analysis.models import Metric, MetricScore, PairScore
from studies.models import Output


def metric(w, **columns):
    return Metric(**{"study": w["study"], "kind": "judge", "name": "j", "version": "1", "source": "upload"} | columns)


def stored(w, **columns):
    row = metric(w, **columns)
    row.save()
    return row


def outputs(w):
    return Output.objects.filter(system__study=w["study"]).order_by("pk")[:2]


def score(w, one=None, **columns):
    return MetricScore(**{"metric": one or stored(w), "output": outputs(w)[0], "value": 1.0} | columns)


def pair(w, one=None, **columns):
    first, second = outputs(w)
    return PairScore(**{"metric": one or stored(w), "first": first, "second": second, "value": 1.0} | columns)


def twice(w, row):
    """A second row that says the same."""
    one = stored(w)
    row(w, one).save()
    return row(w, one)


METRIC_CASES = {
    "metric_version_once_per_question": lambda w: (
        stored(w, question=w["spa"].questions.first()) and metric(w, question=w["spa"].questions.first())
    ),
    "metric_version_once_for_whole_outputs": lambda w: stored(w) and metric(w),
    "metric_has_a_name_and_a_version": lambda w: metric(w, version=""),
    "metric_is_of_a_known_kind": lambda w: metric(w, kind="other"),
    "metric_comes_from_a_known_source": lambda w: metric(w, source="other"),
    "metric_scale_has_two_ends_or_none": lambda w: metric(w, scale_low=1),
    "metric_scores_an_output_once_per_run": lambda w: twice(w, score),
    "metric_score_is_finite": lambda w: score(w, value=1e13),
    "metric_run_is_numbered_from_1": lambda w: score(w, run=0),
    "judge_scores_a_pair_once_per_order_and_run": lambda w: twice(w, pair),
    "pair_score_is_a_share": lambda w: pair(w, value=2),
    "pair_score_is_about_two_outputs": lambda w: pair(w, second=outputs(w)[0]),
    "pair_run_is_numbered_from_1": lambda w: pair(w, run=0),
}
