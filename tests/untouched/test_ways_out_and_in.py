"""A study stays the same when it is exported, cloned, or written back over REST."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from analysis.api import urls as api_urls
from analysis.api.serializers import StudySerializer
from studies.acts import ACTS
from studies.design.serialization import STUDY_FIELDS, canonical_json, serialize_design
from studies.imports.bundle_files import bundle_text
from studies.models import Study
from tests import builders
from tests.analysis.api.rest import api_of
from tests.untouched.drafts import drafts, hard_study
from tests.untouched.rows import differences, pressed, rows

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_a_bundle_that_is_exported_and_imported(client, owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    made = drafts(owner, tmp_path)
    assert len(made) > 2
    for study in made:
        before = rows()
        text = client.get(reverse("bundle", args=[study.pk])).content
        assert not differences(before, rows())
        file = SimpleUploadedFile("study.bundle.json", text)
        response = client.post(reverse("bundle_upload"), {"file": file})
        assert response.status_code == 302, response.content.decode()[-3000:]
        again = Study.objects.latest("pk")
        assert again.pk != study.pk and not differences(
            {"": canonical_json(serialize_design(study))}, {"": canonical_json(serialize_design(again))}
        )
        assert bundle_text(again).encode() == text


# What a clone has of its own: who it is, and its draw.
OF_A_CLONE = {"title", "seed", "keeps_origin_out"}


@pytest.mark.slow
def test_a_clone(client, owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    for study in drafts(owner, tmp_path):
        before = {name: row for name, row in rows().items() if not name.startswith("studies.AuditEvent")}
        response = pressed(client, reverse("admin:studies_act", args=[study.pk, "clone"]), {"title"})
        assert response.status_code == 302
        copy = study.clones.get()
        after = rows()
        assert not differences(before, {name: row for name, row in after.items() if name in before})
        own = [serialize_design(one) for one in (study, copy)]
        assert {name for name in own[0]["study"] if own[0]["study"][name] != own[1]["study"][name]} <= OF_A_CLONE
        for design in own:
            design["study"] = {name: value for name, value in design["study"].items() if name not in OF_A_CLONE}
        assert canonical_json(own[0]) == canonical_json(own[1])


# Addresses that take a POST and are no resource that could be read and written back.
ASKED_FOR = {
    "api-studies": "makes a study (written back below)", "api-exclusions": "excludes people", "api-exclusion-reverse": "takes an exclusion back",
    "api-payments": "writes down a payment", "api-analyses": "starts an analysis", "api-exports": "starts an export", "api-job": "cancels a job",
    "api-archive": "starts an archive", "api-annotator-bar": "bars somebody", "api-annotator-lift": "lifts a barring",
    "api-metrics": "stores scores", "api-metrics-compute": "computes scores", "api-metrics-comparison": "compares with people",
    "api-metric-discard": "discards a metric", "api-judge-check": "compares with people", "api-judge-sample": "draws a sample",
    "api-calibrated": "combines judges with people", "api-plans": "simulates a plan", "api-plan-choose": "chooses a plan",
    "api-attention-checks": "stores attention checks", "api-translation": "stores a file", "api-imports": "imports a file", "api-test-questions": "makes test questions", "api-practice-items": "adds a practice item",
    "api-plan-pilots": "reads a pilot", "api-preparation": "prepares texts", "api-preview": "makes a report of invented answers", "api-bundle": "replaces all rows of a draft (written back below)", "api-plan-strategies": "simulates strategies",
    "api-plan-test-questions": "simulates test questions",
    "api-tokens": "makes a token", "api-token-revoke": "ends a token", "api-launch": "launches", "api-amend": "amends",
    "api-question": "writes a section", "api-texts": "writes texts", "api-links": "makes a link", "api-link": "changes a link",
    "api-link-stop": "stops a link", "api-link-open": "opens a link again", "api-answer-imports": "imports a file",
    "api-report-links": "makes a link", "api-report-link-revoke": "ends a link", "api-analysis-pdf": "makes a file",
    **dict.fromkeys(("api-webhooks", "api-webhook-test", "api-delivery-send"), "makes or tries a webhook"),
    **dict.fromkeys((f"api-link-{name}" for name in ("settle", "order", "paid", "cancel", "compensate", "bonuses")), "pays people of a link"),
    **dict.fromkeys((f"api-panel-{name}" for name in ("ask", "publish", "rounds", "repeat", "task", "cancel", "resolve", "file")), "asks or orders at a panel"),
    "api-panel": "stores secrets, which nobody can read", "api-rehearse": "plays a rehearsal", "api-test-runs": "makes or deletes a test run",
    "api-inquiry": "marks a message", "api-inquiry-answer": "answers a message", "api-both-directions": "adds questions",
    "api-annotators-screen": "screens annotators", "api-assignment-release": "releases a place",
    "api-coding-samples": "draws a sample", "api-coding-item": "codes an item",
    "api-report-forms": "answers questions", "api-comparisons": "compares studies", "api-job-cancel": "cancels a job",
    **{f"api-{act.name}": act.label for act in ACTS.values() if act.name != "delete"},
}  # fmt: skip


@pytest.mark.slow
def test_what_is_read_over_rest_and_written_back(owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    api = api_of(owner)
    study, images = hard_study(owner), builders.exposures_draft(tmp_path, owner=owner)
    written = set()
    for pattern in api_urls.urlpatterns:
        view = getattr(pattern.callback, "view_class", None)
        # A draft is deleted by DELETE, and that is asked for.
        methods = [method for method in ("put", "patch", "post") if hasattr(view, method)]
        if not methods or pattern.name in ASKED_FOR:
            continue
        written.add(pattern.name)
        for each in (study, images):
            url = reverse(pattern.name, args=[each.code])
            found = json.loads(api.get(url).body)
            before = rows()
            sent = found["results"] if isinstance(found, dict) and "results" in found else found
            for method in methods * 2:
                answer = api.send(method.upper(), url, sent)
                assert answer.status_code == 200, (url, method, answer.body[:2000])
                assert not differences(before, rows()), (url, method)
    assert written >= {"api-study", "api-systems", "api-prompts", "api-outputs"}
    assert set(ASKED_FOR) <= {pattern.name for pattern in api_urls.urlpatterns}
    # Other rows, and the same design.
    for each in (study, images):
        url, before = reverse("api-bundle", args=[each.code]), canonical_json(serialize_design(each))
        answer = api.send("PUT", url, json.loads(api.get(url).body))
        assert answer.status_code == 200, answer.body[:2000]
        again = Study.objects.get(pk=each.pk)
        assert not differences({"": before}, {"": canonical_json(serialize_design(again))})
    # The same once more, as a new study.
    read = json.loads(api.get(reverse("api-study", args=[study.code])).body)
    fields = StudySerializer().fields
    writable = {name: read[name] for name in STUDY_FIELDS if not fields[name].read_only}
    assert len(writable) > 20
    made = json.loads(api.post(reverse("api-studies"), writable).body)
    assert {name: made[name] for name in writable} == writable
    again = Study.objects.get(code=made["code"])
    assert {name: serialize_design(again)["study"][name] for name in writable} == {
        name: serialize_design(study)["study"][name] for name in writable
    }


def test_an_image_is_sent_back_over_rest_and_never_made(owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    study = builders.exposures_draft(tmp_path, owner=owner)
    url, api = reverse("api-outputs", args=[study.code]), api_of(owner)
    row = json.loads(api.get(url).body)["results"][0]
    before = rows()
    for changes, status, said in (
        ({"sample": 7}, 400, "Send a zip with the images to imports/"),
        ({"media": "0" * 64 + ".webp"}, 409, "a different media"),
        ({"text": "words"}, 400, "An image has no text"),
        ({"is_empty": True}, 400, "An image has no text"),
        ({"media": ""}, 400, "An output has either a text"),
        ({"media": 3}, 400, "An output has either a text"),
    ):
        answer = api.post(url, [row | changes])
        assert (answer.status_code, said in answer.body.decode()) == (status, True), (changes, answer.body)
    assert not differences(before, rows())
