"""Metrics beside the choices of people in the report of two choices, and in its archive."""

import json
from statistics import mean, stdev

import pytest
from scipy import stats

from analysis.metrics import store
from analysis.metrics.files import ScoresFileSettings
from analysis.metrics.store import MetricDescription, upload_scores
from analysis.models import Metric, MetricScore
from analysis.report.build import build_report
from analysis.report.rerun import NO_METRICS, rerun_archive
from analysis.report.runs import run_analysis
from heval_site.management.commands.rerun import result_lines
from studies.models import Output, Study
from studies.services import lifecycle
from tests.analysis.metrics.scores import table
from tests.analysis.report.archived import archive_file, hide, rewritten
from tests.builders import add_choice, choice_study, draft_study, launched, user
from tests.players import many, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]
FAST = {"resamples": 99}
# Whether the classifier finds the attribute in the text of each prompt.
MATCHES = {"alpha": [1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0], "beta": [1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1]}


def scored(study, rows, version="1", **description):
    described = MetricDescription("metric", version, **description)
    return upload_scores(study, study.owner, "scores.csv", table(rows), ScoresFileSettings(is_partial=True), described)


def match_rows(study, **matches):
    keys = study.prompts.order_by("key").values_list("key", flat=True)
    return [
        {"system": system, "prompt": key, "tense match": value}
        for system, values in matches.items()
        for key, value in zip(keys, values, strict=False)
    ]


@pytest.fixture
def study():
    found = choice_study(prompts=12, target_n=4, m=3, by=user("owner"), settings={"stopping": "none"})
    many(found, 4, 0.8)
    lifecycle.start_closing(found, by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=found.pk), by=None)
    return Study.objects.get(pk=found.pk)


def metrics_table(study):
    result = build_report(study, FAST)
    assert not result["problems"], result["problems"]
    tables = {one["name"]: one for one in result["tables"]}
    return tables.get("choice_metrics", {"rows": []})["rows"], tables


def test_the_share_of_matches_of_each_system_is_beside_peoples_choices(study):
    """The first half of the outputs of alpha has no score, so two means and a difference are about different prompts."""
    scored(study, match_rows(study, **MATCHES | {"alpha": MATCHES["alpha"][:8]}))
    (row,), tables = metrics_table(study)
    assert (row["metric"], row["better"]) == ("tense match 1", "higher")
    x, y = row["x_mean"], row["y_mean"]
    names = [row["x"], row["y"]]
    means = {"alpha": 3 / 8, "beta": 10 / 12}
    assert sorted(names) == ["alpha", "beta"] and (x, y) == tuple(pytest.approx(means[name]) for name in names)
    assert [row["x_n"], row["y_n"]] == [{"alpha": 8, "beta": 12}[name] for name in names]
    differences = [MATCHES[names[0]][n] - MATCHES[names[1]][n] for n in range(8)]
    assert row["difference"] == pytest.approx(mean(differences)) and row["n"] == 8
    half = stats.t.ppf(0.975, 7) * stdev(differences) / 8**0.5
    assert row["interval"] == pytest.approx([mean(differences) - half, mean(differences) + half])
    (people,) = tables["choices"]["rows"]
    assert (row["people"], row["people_interval"]) == (people["share"], people["interval"]) and not row["reason"]


def test_what_a_metric_cannot_say_is_null_with_the_reason(study):
    scored(study, match_rows(study, beta=MATCHES["beta"]))
    (row,), _ = metrics_table(study)
    assert row["difference"] is None and row["interval"] is None and row["n"] == 0
    assert row["reason"] == "the metric has scores of both systems for no prompt"
    found = {row[side]: (row[f"{side}_mean"], row[f"{side}_n"]) for side in ("x", "y")}
    assert found == {"alpha": (None, 0), "beta": (pytest.approx(10 / 12), 12)}


def test_too_few_prompts_give_no_interval(study):
    scored(study, match_rows(study, alpha=[1, 0, 1, 0], beta=[1, 1, 0, 1]))
    (row,), _ = metrics_table(study)
    assert row["difference"] is not None and row["interval"] is None and "4 prompts" in row["reason"]


def test_each_run_and_metric_counts_once_and_a_discarded_one_not_at_all(study):
    rows = [
        {"system": name, "prompt": key, "run": run, "judge": value + run}
        for name, key in Output.objects.filter(system__study=study).values_list("system__name", "prompt__key")
        for run, value in ((1, 1), (2, 5))
    ]
    (judge,) = scored(study, rows, is_lower_better=True)
    scored(study, match_rows(study, **MATCHES))
    rows, _ = metrics_table(study)
    assert [(row["metric"], row["better"]) for row in rows] == [("judge 1", "lower"), ("tense match 1", "higher")]
    assert (rows[0]["x_mean"], rows[0]["x_n"], rows[0]["difference"]) == (4.5, 12, 0)
    assert rows[0]["interval"] is None and "coincide" in rows[0]["reason"]
    store.discard(judge, study.owner)
    assert [row["metric"] for row in metrics_table(study)[0]] == ["tense match 1"]


def test_scores_about_a_question_are_beside_the_answers_to_it():
    study = draft_study(systems=("alpha", "beta"), prompts=12, target_n=3, owner=user("owner"), instructions="")
    question = add_choice(study, m=4, stopping="none").questions.get()
    question.pk, question.key, question.position, question.criterion = None, "second", question.position + 1, "truth"
    question.save()
    study = launched(study, study.owner)
    for number in range(3):
        submitted(study, f"p{number}")
    scored(study, [row | {"question": "second"} for row in match_rows(study, **MATCHES)])
    scored(study, match_rows(study, **MATCHES), version="2")
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    rows, _ = metrics_table(Study.objects.get(pk=study.pk))
    metrics_of = {
        about: sorted(row["metric"] for row in rows if row["about"] == about) for about in {r["about"] for r in rows}
    }
    assert sorted(metrics_of.values()) == [["tense match 1", "tense match 2"], ["tense match 2"]]
    assert len(metrics_of[next(about for about in metrics_of if "truth" in about)]) == 2


def test_a_report_without_metrics_has_no_such_table(study):
    rows, tables = metrics_table(study)
    assert rows == [] and "choice_metrics" not in tables


def archived(study, tmp_path):
    scored(study, match_rows(study, **MATCHES))
    run_analysis(study, FAST, by=None)
    scored(study, match_rows(study, **MATCHES), version="2")
    run_analysis(study, FAST, by=None)
    path = archive_file(study, tmp_path / "archive.zip")
    hide(study)
    return path


def test_an_archive_has_the_scores_that_its_reports_read(study, tmp_path):
    result = rerun_archive(archived(study, tmp_path), user("elsewhere"))
    old, new = result["analyses"]
    assert new["is_equal"] and new["later"]["metrics"] == 0 and result["metrics"] == {"is_there": True, "reason": ""}
    # The first report could not know the second version.
    assert not old["is_equal"] and old["later"]["metrics"] == 1
    assert "  1 metrics were stored or discarded later." in result_lines(result)
    again = Study.objects.latest("pk")
    assert MetricScore.objects.filter(metric__study=again).count() == 48
    assert not Metric.objects.filter(study=again).exclude(by=None).exists()


def test_an_archive_of_before_says_that_it_has_no_scores(study, tmp_path):
    def older(name, data):
        if "metric" in name and name.startswith("rows/"):
            return None
        if name == "rows/manifest.json":
            manifest = json.loads(data)
            del manifest["tables"]["analysis.metric"], manifest["tables"]["analysis.metricscore"]
            return json.dumps(manifest).encode()
        return data

    result = rerun_archive(rewritten(archived(study, tmp_path), older), user("elsewhere"))
    assert result["metrics"] == {"is_there": False, "reason": NO_METRICS} and NO_METRICS in result_lines(result)
    assert not result["is_equal"] and "choice.metrics" in json.dumps(result["analyses"][0]["differences"])
