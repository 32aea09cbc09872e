"""Where prompts belong to groups, numbers of metrics and judges count groups in place of prompts, and say so."""

from dataclasses import replace

import numpy as np
import pytest
from django.urls import reverse

from analysis.data.frames import SECOND_SAMPLE
from analysis.metrics.beside_people import read_beside_people, scored_questions
from analysis.metrics.calibrated import compute
from analysis.metrics.calibrated.options import CalibrationOptions
from analysis.metrics.calibrated.rows import calibration_rows
from analysis.metrics.calibrated.run import calibrate
from analysis.metrics.comparison import compare_question, compare_with_people, people_table, system_table
from analysis.metrics.judge_check.measuring import compute_result, read_sampled_rows
from analysis.metrics.judge_check.views import context_sentences
from analysis.stats import judges
from studies.models import Output
from tests.boards.builders import rating_template
from tests.builders import user

from .collected_studies import STRENGTHS, closed, page_of
from .judge_check.builders import checked_study
from .judge_check.builders import closed as closed_check
from .judges import store_judge
from .scores import client_of

pytestmark = pytest.mark.django_db
SENTENCE = "The {} prompts belong to {} groups. Intervals and tests count groups in place of prompts."


def grouped_study(size=10):
    """Three systems and 60 prompts in groups of ten."""
    template = rating_template(user("ada"), prompts=60, m=5, systems=tuple(STRENGTHS))
    for place, key in enumerate(sorted(template.prompts.values_list("key", flat=True))):
        template.prompts.filter(key=key).update(group=f"report {place // size}")
    return closed(template)


def intervals(result):
    found = {}
    for kind in ("systems", "pairs"):
        for row in result[kind]:
            for name in ("human", "combined"):
                place = (row.get("system") or (row["first"], row["second"]), name)
                one = row["result"][name]
                found[place] = (one["interval"]["low"], one["interval"]["high"]) if one["interval"] else None
    return found


def mean_width(found):
    return np.mean([high - low for low, high in filter(None, found.values())])


@pytest.mark.slow
def test_people_and_judges_together_count_groups(monkeypatch):
    study = grouped_study()
    store_judge(study)
    (row,) = calibrate(study, CalibrationOptions(), study.owner)
    assert (row.result["n_groups"], row.result["n_prompts"]) == (6, 60)
    assert SENTENCE.format(60, 6) in page_of(study)
    (beside,) = read_beside_people(study, scored_questions(study))
    rows = calibration_rows(beside)
    assert rows.items[SECOND_SAMPLE].nunique() == 6
    # The outputs of one group are equally good.
    draw = np.random.default_rng(5)
    effects = dict(
        zip(sorted(rows.items[SECOND_SAMPLE].unique()), draw.permutation(np.linspace(0.2, 0.8, 6)), strict=True)
    )
    of_item = rows.items[SECOND_SAMPLE].map(effects).to_numpy()
    rows = replace(
        rows,
        values=np.clip(of_item[rows.positions] + draw.normal(0, 0.05, len(rows.positions)), 0, 1),
        scores=draw.normal(0, 1, rows.scores.shape),
    )

    def intervals_with(second_sample):
        own = replace(rows, items=rows.items.assign(**{SECOND_SAMPLE: second_sample}))
        monkeypatch.setattr(compute, "calibration_rows", lambda beside: own)
        return intervals(compute.calibrated_result(beside, CalibrationOptions(), 1.0))

    groups = rows.items[SECOND_SAMPLE]
    by_group = intervals_with(groups)
    assert by_group == intervals_with(groups.str.removeprefix("\x1f")), "groups as the prompts"
    assert mean_width(by_group) > 1.3 * mean_width(intervals_with(rows.items["prompt"]))


@pytest.mark.slow
def test_the_score_of_a_system_by_people_counts_groups():
    """Four groups are too few for an interval, although there are sixty prompts."""
    study = grouped_study(15)
    (beside,) = read_beside_people(study, scored_questions(study))
    assert all(one["people"]["low"] is None for one in system_table(beside, people_table(beside.people, "scores"), {}))


@pytest.mark.slow
def test_the_check_of_a_judge_counts_groups():
    bad = set()

    def says(output, person, is_yes):
        if not bad:
            bad.update(Output.objects.filter(prompt__group__in=["report 1", "report 3"]).values_list("pk", flat=True))
        return is_yes != (output in bad and person != 0)

    study, check = checked_study(says=says, n_test=40, group_size=2, needs_alternative_test=True)
    stored = compute_result(closed_check(study), study.owner)
    assert (stored.result["n_groups"], stored.result["n_prompts"]) == (10, 20)
    said = context_sentences(check, stored.result)
    assert SENTENCE.format(20, 10) in said and any("too eager" in one for one in said)
    rows = read_sampled_rows(check, check.judge)
    assert rows.labels[SECOND_SAMPLE].nunique() == 10
    test = rows.labels[rows.labels["part"] == "test"]

    def agreement_with(column):
        found = judges.judge_agreement(
            test["judge"], test["people"], categories=["no", "yes"], annotators=test["annotator"].to_numpy(),
            prompts=test[column].to_numpy(), weights=test["weight"].to_numpy(),
        ).as_dict()["agreement"]["interval"]  # fmt: skip
        return found["low"], found["high"]

    own = stored.result["test"]["agreement"]["agreement"]["interval"]
    assert (own["low"], own["high"]) == pytest.approx(agreement_with(SECOND_SAMPLE))
    (low, high), (of_prompts_low, of_prompts_high) = agreement_with(SECOND_SAMPLE), agreement_with("prompt")
    assert high - low > 1.1 * (of_prompts_high - of_prompts_low)


def ranges_of(result):
    return {
        (metric["name"], name): (measure["low"], measure["high"])
        for metric in result["metrics"]
        for name, measure in metric["measures"].items()
        if measure["low"] is not None
    }


@pytest.mark.slow
def test_agreement_of_metrics_draws_groups_again():
    study = grouped_study()
    store_judge(study, name="one")
    store_judge(study, name="two", knows=False)
    compare_with_people(study, study.owner, resamples=99)
    (beside,) = read_beside_people(study, scored_questions(study))
    by_group = compare_question(beside, 99)
    by_prompt = compare_question(
        replace(beside, people=beside.people.assign(second_sample=beside.people["prompt"])), 99
    )
    assert by_group["n_groups"] == 6 and "n_groups" not in by_prompt
    groups, prompts = ranges_of(by_group), ranges_of(by_prompt)
    assert groups.keys() == prompts.keys() and len(groups) > 4
    for name in ("segment_tau", "tie_calibrated_accuracy"):
        assert groups["two", name] != prompts["two", name]
    page = client_of(study, "viewer").get(reverse("study_metrics", args=[study.pk])).content.decode()
    assert "The prompts belong to 6 groups, which are drawn again" in page
