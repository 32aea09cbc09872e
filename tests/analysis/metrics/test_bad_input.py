"""Bad scores, by the page and by a program: the message names the row or the output, and nothing is half stored."""

import json
import re
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from analysis.metrics import computed
from analysis.metrics.files import ScoresFileSettings, ScoresRefused, read_scores_file
from analysis.models import Metric, MetricScore, PairScore
from studies.services import jobs
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.boards.builders import rating_template
from tests.builders import add_rating, draft_study, user

from .scores import rows_of, table

pytestmark = pytest.mark.django_db


def with_cell(row, **values):
    return lambda rows: rows[row - 2].update(values)


def versions_mixed(rows):
    for number, row in enumerate(rows):
        row["version"] = "v1" if number < 4 else "v2"


# What is done to good rows, where the fault is, and what its message says. The first row of the table is row 2.
FAULTS = {
    "half of the outputs": (
        lambda rows: rows.__delitem__(slice(3, None)),
        (None, "strict"),
        "3 of 6 outputs have no score: “",
    ),
    "unknown output": (with_cell(4, prompt="p999"), (4, "system"), "has no output for the prompt “p999”"),
    "another scale": (with_cell(3, strict="70"), (3, "strict"), "70 is outside of the scale from 1 to 5"),
    "constant": (
        lambda rows: [row.update(strict=2) for row in rows],
        (None, "strict"),
        "All scores (rows 2 to 7) are 2",
    ),
    "infinite": (with_cell(5, strict="inf"), (5, "strict"), "“inf” is not a number"),
    "two versions": (versions_mixed, (6, "version"), "The version is “v2”, and in row 2 “v1”"),
}  # fmt: skip - one line for each fault


@pytest.fixture
def study():
    return rating_template(user("ada"), prompts=3, systems=("human", "good"), keys=("clear",))


def nothing_stored():
    return not (Metric.objects.exists() or MetricScore.objects.exists() or PairScore.objects.exists())


def test_the_page_and_rest_name_the_row_of_each_fault_and_store_nothing(study):
    client, api = logged_in(study.owner), api_of(study.owner)
    described = {"kind": "judge", "version": "v1", "scale_low": 1, "scale_high": 5}
    for name, (spoil, place, words) in FAULTS.items():
        rows = rows_of(study, strict=1, kind=2)
        spoil(rows)
        file = table(rows)
        shown = client.post(
            reverse("study_metrics_upload", args=[study.pk]), described | {"file": SimpleUploadedFile("s.csv", file)}
        )
        text = re.sub(r"\s+", " ", unescape(shown.content.decode()))
        assert shown.status_code == 400 and "Nothing was stored" in text and words in text, name
        assert f"row {place[0]}, column “{place[1]}”" in text or place[0] is None, name
        sent = {"file": SimpleUploadedFile("s.csv", file), "settings": json.dumps(described)}
        refused = api.client.post(f"/api/v1/studies/{study.code}/metrics/", sent, headers=api.headers)
        errors = [((one["row"], one["field"]), one["message"]) for one in refused.json()["errors"]]
        assert refused.status_code == 400 and any(one == place and words in said for one, said in errors), (
            name,
            errors,
        )
        assert nothing_stored(), name


def test_two_versions_under_one_name_are_refused_by_the_page_and_by_rest(study):
    client, api = logged_in(study.owner), api_of(study.owner)
    address, described = reverse("study_metrics_upload", args=[study.pk]), {"kind": "judge", "version": "v1"}

    def file(start):
        return SimpleUploadedFile("s.csv", table(rows_of(study, strict=start)))

    assert client.post(address, described | {"file": file(1)}).status_code == 302
    refused = client.post(address, described | {"file": file(2)})
    assert refused.status_code == 409 and "already has scores of version “v1”" in refused.content.decode()
    sent = {"file": file(2), "settings": json.dumps(described)}
    by_rest = api.client.post(f"/api/v1/studies/{study.code}/metrics/", sent, headers=api.headers)
    assert by_rest.status_code == 409 and "already has scores of version “v1”" in by_rest.content.decode()
    assert (Metric.objects.count(), MetricScore.objects.count()) == (1, 6)


@pytest.mark.parametrize("score", [float("inf"), None])
def test_the_page_and_rest_name_the_output_on_which_a_metric_fails(study, monkeypatch, score):
    def broken(text, references):
        if text == "the third tale":
            return score or 1 / 0
        return 0.5

    plug_in = computed.PlugIn("broken", "broken", lambda: "1", lambda: broken)
    monkeypatch.setattr(computed, "available_metrics", lambda: {"broken": plug_in})
    study.systems.get(name="good").outputs.filter(prompt__key="p002").update(text="the third tale")
    client, api = logged_in(study.owner), api_of(study.owner)
    words = "“broken” failed on the output of “good” for “p002”: " + (
        "its score is not a finite number" if score else "ZeroDivisionError"
    )
    assert client.post(reverse("study_metrics_compute", args=[study.pk]), {"names": "broken"}).status_code == 302
    jobs.run_waiting_jobs()
    assert words in client.get(reverse("study_metrics", args=[study.pk])).content.decode()
    started = api.post(f"studies/{study.code}/metrics/compute/", {"names": ["broken"]})
    jobs.run_waiting_jobs()
    ended = api.get(f"studies/{study.code}/jobs/{started.json()['code']}/").json()
    assert ended["state"] == "failed" and words in ended["error"]
    assert nothing_stored()


def scores_in(study, text, name="t.csv"):
    return read_scores_file(study, name, text.encode(), ScoresFileSettings(is_partial=True)).columns


def test_names_are_compared_without_case_blanks_and_composition():
    study = rating_template(user("names"))
    system, key = study.systems.first().name, study.prompts.first().key
    study.prompts.filter(key=key).update(key="Café 1")
    for prompt in ("Café 1", "Cafe\u0301 1", " café 1 "):
        for column in ("prompt", "prompt_key", "key", "Prompt_Key"):
            (found,) = scores_in(study, f"{column},system,metric\n{prompt},{system.upper()},0.5\n")
            assert list(found.by_output.values()) == [0.5]
    with pytest.raises(ScoresRefused, match="no column prompt"):
        scores_in(study, f"name,system,metric\nCafé 2,{system},0.5\n")
    with pytest.raises(ScoresRefused, match="mean the same"):
        scores_in(study, f"prompt,key,system,metric\nCafé 1,x,{system},0.5\n")


def test_verdicts_that_all_say_first_are_kept():
    """Files of judges list the winner first, and a judge who always says it is what the page wants to show."""
    study = draft_study(systems=("alpha", "beta"), prompts=3, owner=user("verdicts"))
    add_rating(study)
    (first, second), keys = (
        study.systems.values_list("name", flat=True)[:2],
        study.prompts.values_list("key", flat=True)[:3],
    )
    rows = "".join(f"{key},{first},{second},first\n" for key in keys)
    (found,) = scores_in(study, "prompt,first,second,judge\n" + rows)
    assert list(found.by_pair.values()) == [1.0, 1.0, 1.0]
    same = "".join(f"{key},{first},2\n" for key in keys)
    with pytest.raises(ScoresRefused, match="they distinguish nothing"):
        scores_in(study, "prompt,system,metric\n" + same)


def test_truth_values_of_json_are_scores():
    study = rating_template(user("truth"))
    system, keys = study.systems.first().name, study.prompts.values_list("key", flat=True)[:2]
    rows = [{"prompt": key, "system": system, "judge": bool(n)} for n, key in enumerate(keys)]
    (found,) = scores_in(study, json.dumps(rows), "t.json")
    assert list(found.by_output.values()) == [0.0, 1.0]


@pytest.mark.parametrize("cell", ["1_5", "５", "0,5", "nan", "1e999"])
def test_what_only_a_program_reads_is_no_score(cell):
    study = rating_template(user("numbers"))
    row = f'{study.prompts.first().key},{study.systems.first().name},"{cell}"\n'
    with pytest.raises(ScoresRefused, match="is not a number"):
        scores_in(study, "prompt,system,metric\n" + row)
