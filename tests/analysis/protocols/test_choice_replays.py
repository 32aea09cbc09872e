"""The labels that strategies need at several values of delta. ``tests.test_dialogues`` has the paper's Table 6."""

import pytest
from django.urls import reverse

from analysis.models import AnalysisRun
from analysis.report.build import build_report
from studies.models import Job, Study
from studies.services import lifecycle
from tests import study_command
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.builders import choice_study, spa_study, user
from tests.players import many


@pytest.fixture
def labelled(same_orders):
    settings = {"strategy": "majority", "workers": 3, "stopping": "none", "delta": 0.01}
    study = choice_study(prompts=30, m=10, target_n=9, annotators_per_batch=3, settings=settings, by=user())
    many(study, 9, 0.9)
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return Study.objects.get(pk=study.pk)


@pytest.mark.slow
@pytest.mark.django_db
def test_further_values_of_delta_add_rows_and_change_no_other_number(labelled):
    before, after = (build_report(labelled, {"resamples": 99} | more) for more in ({}, {"deltas": [0.0001, 0.001]}))
    rows = {}
    for name, report in (("before", before), ("after", after)):
        (table,) = [table for table in report["tables"] if table["name"] == "choice_replays"]
        rows[name] = table["rows"]
    assert "deltas" not in before["parameters"] and after["parameters"]["deltas"] == [0.001, 0.0001]
    assert before["seed"] == after["seed"] and before["conclusions"] == after["conclusions"]
    assert len(rows["before"]) == 3 and len(rows["after"]) == 15
    own = [{key: row[key] for key in rows["before"][0]} for row in rows["after"] if row["certainty"] == "0.99"]
    assert own[:3] == rows["before"]
    counted = [row["strategy"].rpartition(" ")[2] for row in own[3:]]
    assert counted == ["beta", "alpha"] and all(row["paper"] >= own[1]["paper"] for row in own[3:])
    costs = [row["paper"] for row in rows["after"] if row["strategy"] == "3 workers"]
    assert costs[0] < costs[1] < costs[2] or costs[2] is None


@pytest.mark.django_db
def test_the_form_the_command_and_rest_take_values_of_delta(labelled):
    client, start = logged_in(labelled.owner), reverse("analysis_start", args=[labelled.pk])
    form = {"origins": ["live"], "level": "0.95", "resamples": "99", "star_scheme": "10/5/1"}
    assert "Further values of delta" in client.get(reverse("analyses", args=[labelled.pk])).content.decode()
    for wrong in ("0.5", "nan", "one", "0.01;0.001", "0.1, 0.11, 0.12, 0.13, 0.14, 0.15"):
        refused = client.post(start, form | {"deltas": wrong})
        assert refused.status_code == 400 and "Further values of delta:" in refused.content.decode(), wrong
    assert client.post(start, form | {"deltas": "0.001, 0.0001"}).status_code == 302
    assert (
        api_of(labelled.owner).post(f"studies/{labelled.code}/analyses/", {"deltas": [1e-4, 1e-3]}).status_code == 202
    )
    for job in Job.objects.filter(kind="analyse"):
        assert job.arguments["parameters"]["deltas"] == [0.001, 0.0001]
    assert Job.objects.count() == 2
    study_command.run("report", labelled.code, "--resamples", "99", "--deltas", ".001")
    run = AnalysisRun.objects.latest("pk")
    assert run.parameters["deltas"] == [0.001]
    page = client.get(reverse("analysis", args=[labelled.pk, run.number])).content.decode()
    assert "delta also 0.001" in page and 'name="deltas" value="0.001"' in page


@pytest.mark.django_db
def test_a_study_without_two_choices_is_not_asked_about_delta():
    study = spa_study(user())
    page = logged_in(study.owner).get(reverse("analyses", args=[study.pk])).content.decode()
    assert "Resamples" in page and "delta" not in page
