"""The page of metrics takes files, starts jobs, shows stored results, and hides agreement while outcomes are hidden."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from analysis.metrics import comparison
from analysis.metrics.pages.views import scatter_figure
from analysis.models import Metric, MetricsComparison
from studies.models import Job, StudyMember
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.boards.builders import rating_template
from tests.builders import user

from .scores import rows_of, table

pytestmark = pytest.mark.django_db
SENT = {"kind": "judge", "version": "v1", "prompt": "Rate it.", "scale_low": "1", "scale_high": "5"}


@pytest.fixture
def study():
    return rating_template(user("ada"), prompts=3, systems=("human", "good"), keys=("clear",))


def page(study, name="", who=None, data=None, **path):
    client = logged_in(who or study.owner)
    address = reverse(f"study_metric{name}", kwargs={"pk": study.pk} | path)
    return client.get(address) if data is None else client.post(address, data)


def upload(study, rows, **changed):
    file = SimpleUploadedFile("scores.csv", table(rows))
    return page(study, "s_upload", data=SENT | {"file": file} | changed)


def test_a_file_is_stored_and_listed_and_can_be_discarded(study):
    assert "no metric and no judge yet" in page(study, "s").content.decode()
    assert upload(study, rows_of(study, strict=1)).status_code == 302
    metric = Metric.objects.get()
    assert (metric.name, metric.kind, metric.parameters, metric.scale_high) == (
        "strict",
        "judge",
        {"prompt": "Rate it."},
        5,
    )
    shown = page(study, "s").content.decode()
    assert "strict" in shown and "model as judge" in shown and "uploaded file" in shown
    assert page(study, "_discard", data={}, metric=metric.pk).status_code == 302
    assert "1 is discarded" in page(study, "s").content.decode()


def test_every_problem_of_a_file_and_of_the_form_is_shown(study):
    rows = rows_of(study, strict=1)
    rows[0]["strict"], rows[1]["system"] = "good", "unknown"
    shown = upload(study, rows)
    text = shown.content.decode()
    assert shown.status_code == 400 and not Metric.objects.exists()
    assert "row 2, column “strict”" in text and "row 3, column “system”" in text and 'value="v1"' in text
    refused = upload(study, rows_of(study, strict=1), version="", scale_low="6")
    assert refused.status_code == 400 and "The version is missing" in refused.content.decode()
    assert "both ends of the scale" in upload(study, rows_of(study, strict=1), scale_high="").content.decode()


def test_the_template_is_accepted_when_it_is_filled_in(study):
    lines = page(study, "s_template").content.decode().split()
    assert lines[0] == "system,prompt,sample,my_metric" and len(lines) == 7
    filled = "\n".join([lines[0], *(f"{line}{number % 5 + 1}" for number, line in enumerate(lines[1:]))])
    sent = SENT | {"file": SimpleUploadedFile("scores.csv", filled.encode())}
    assert page(study, "s_upload", data=sent).status_code == 302
    assert Metric.objects.get().n_scores == 6


def test_a_form_that_is_sent_twice_starts_one_job(study):
    for _ in range(2):
        sent = {"names": ["exact_match", "token_f1"], "token": "a1"}
        assert page(study, "s_compute", data=sent).status_code == 302
    assert Job.objects.get().arguments == {"names": ["exact_match", "token_f1"]}
    assert 'Computing metrics: <span class="doing">It will start' in page(study, "s").content.decode()
    nothing = page(study, "s_compute", data={"token": "b1"})
    assert nothing.status_code == 409 and "Choose one or more" in nothing.content.decode()


def test_stored_numbers_are_shown_and_hidden_while_outcomes_are_hidden(study, monkeypatch):
    upload(study, rows_of(study, strict=1))
    comparison.compare_with_people(study, study.owner, resamples=99)
    assert "people have not answered this question yet" in page(study, "s").content.decode()
    measures = {"estimate": 0.5, "low": -0.1, "high": 0.9, "n": 3, "reason": ""}
    systems = [{"system": name, "people": 0.2 * n, "metric": 0.3 * n, "n": 3} for n, name in enumerate(("a<b", "c"))]
    row = {"metric": Metric.objects.get().pk, "name": "strict", "version": "v1", "kind": "judge", "n_outputs": 6}
    row |= {"systems": systems, "measures": dict.fromkeys(comparison.SYSTEM_MEASURES, measures)}
    row["measures"] |= {name: measures | {"estimate": None, "reason": "few"} for name in comparison.OUTPUT_MEASURES}
    stored = MetricsComparison.objects.get()
    result = stored.result | {"status": "ok", "reason": "", "n_systems": 2, "n_prompts": 3, "metrics": [row]}
    MetricsComparison.objects.create(
        study=study, question=stored.question, n_answers=6, result=result, metrics=[], answers_state={}
    )
    shown = page(study, "s").content.decode()
    assert "0.50" in shown and "−0.10 to 0.90" in shown and "a&lt;b" in shown and "strict v1: few" in shown
    assert "have changed since" in shown
    monkeypatch.setattr("analysis.metrics.pages.views.are_outcomes_hidden", lambda study, origins: True)
    hidden = page(study, "s").content.decode()
    assert "0.50" not in hidden and "Upload scores" in hidden and "answers by system are hidden" in hidden


def test_a_viewer_sees_the_page_without_forms_and_a_stranger_nothing(study):
    viewer = user("vera")
    StudyMember.objects.create(study=study, user=viewer, role="viewer")
    shown = page(study, "s", who=viewer)
    assert shown.status_code == 200 and "Upload scores" not in shown.content.decode()
    assert page(study, "s_upload", who=viewer, data=SENT).status_code == 403
    assert page(study, "s", who=user("sam")).status_code == 404


def test_a_figure_needs_two_systems():
    assert scatter_figure([{"system": "a", "people": 0.5, "metric": 1}]) == {}
    same = [{"system": name, "people": 0.5, "metric": 1} for name in "ab"]
    assert len(scatter_figure(same)["dots"]) == 2


def test_a_program_says_what_the_columns_of_scores_are(study):
    api = api_of(study.owner)
    rows = [{"Nr": row["prompt"], "Wer": row["system"], "BLEU": row["strict"]} for row in rows_of(study, strict=1)]

    def send(**settings):
        form = {"file": SimpleUploadedFile("s.csv", table(rows)), "settings": json.dumps({"version": "v1"} | settings)}
        return api.client.post(f"/api/v1/studies/{study.code}/metrics/", form, headers=api.headers)

    refused = send()
    assert refused.status_code == 400 and "--map prompt_key=Nr --map system=Wer" in refused.content.decode()
    for how in ({"columns": ["prompt_key=Nr", "system=Wer", "value=BLEU"]}, {"proposes_columns": True}):
        (stored,) = send(**how).json()["metrics"]
        assert (stored["name"], stored["n_scores"]) == ("BLEU", 6)


def test_a_program_uploads_a_file_and_reads_the_problems_of_each_row(study):
    api = api_of(study.owner)
    address = f"/api/v1/studies/{study.code}/metrics/"

    def send(rows, **settings):
        form = {"file": SimpleUploadedFile("s.csv", table(rows)), "settings": json.dumps({"version": "v1"} | settings)}
        return api.client.post(address, form, headers=api.headers)

    wrong = [row | {"prompt": "none"} for row in rows_of(study, strict=1)[:2]]
    refused = send(wrong, is_partial=True)
    assert refused.status_code == 400
    assert [(one["row"], one["field"]) for one in refused.json()["errors"]] == [(2, "system"), (3, "system")]
    stored = send(rows_of(study, strict=1), kind="judge", parameters={"model": "a"}, scale_low=1, scale_high=5)
    assert stored.status_code == 201 and stored.json()["metrics"][0]["parameters"] == {"model": "a"}
    (listed,) = api.get(f"studies/{study.code}/metrics/").json()["results"]
    assert (listed["name"], listed["kind"], listed["n_scores"], listed["question"]) == ("strict", "judge", 6, None)
    found = api.get(f"studies/{study.code}/metrics/comparison/").json()
    assert found == {"is_stale": False, "results": []}
