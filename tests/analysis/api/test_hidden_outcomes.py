"""Outcomes stay hidden over REST while a study collects."""

import pytest
from django.utils import timezone

from studies.models import Job, StudyMember
from studies.services import lifecycle
from tests.builders import draft_study, spa_study, user
from tests.players import submitted

from .rest import analysis_of, api_of, body_of

pytestmark = pytest.mark.django_db
# Hidden while it collects

OUTCOMES = (
    "responses/",
    "exports/responses.csv",
    "exports/responses.jsonl",
    "exports/responses.csv.sha256",
    "exports/archive.zip",
    "analyses/1/",
)


def test_outcomes_are_hidden_while_a_study_collects_and_shown_when_it_is_unblinded_or_closed(owner):
    study = spa_study(owner)
    submitted(study, "a")
    analysis_of(study)
    api = api_of(owner)

    def seen():
        return [api.get(f"studies/{study.code}/{path}").status_code for path in OUTCOMES]

    assert seen() == [403] * len(OUTCOMES)
    assert "still collecting" in api.get(f"studies/{study.code}/responses/").json()["detail"]
    assert api.post(f"studies/{study.code}/exports/", {}).status_code == 403
    assert "result" not in api.get(f"studies/{study.code}/analyses/").json()["results"][0]
    for path in ("assignments/", "progress/", "exports/assignments.csv", "responses/?origins=test,robot"):
        assert api.get(f"studies/{study.code}/{path}").status_code == 200, path
    assert api.get(f"studies/{study.code}/responses/?origins=robot,live").status_code == 403
    lifecycle.pause(study, by=None)
    assert seen() == [403] * len(OUTCOMES)
    lifecycle.unblind(study, None, "a look")
    assert seen() == [200] * len(OUTCOMES)


def test_a_file_that_was_made_before_is_hidden_too(owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    study = spa_study(owner)
    arguments = {"table": "responses", "origins": ["live"]}
    made = Job.objects.create(kind="export", study=study, state="done", ended_at=timezone.now(), arguments=arguments)
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / f"{made.code}.parquet").write_bytes(b"PAR1")
    address = f"studies/{study.code}/jobs/{made.code}/file/"
    assert api_of(owner).get(address).status_code == 403
    lifecycle.unblind(study, None, "a look")
    assert body_of(api_of(owner).get(address)) == b"PAR1"


def test_a_pdf_that_was_made_before_is_hidden_too(owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    study = spa_study(owner)
    analysis_of(study)
    arguments = {"number": 1, "format": "pdf"}
    made = Job.objects.create(
        kind="report_pdf", study=study, state="done", ended_at=timezone.now(), arguments=arguments
    )
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / f"{made.code}.pdf").write_bytes(b"%PDF")
    address, api = f"studies/{study.code}/analyses/1/report.pdf", api_of(owner)
    assert api.get(address).status_code == api.post(address, {}).status_code == 403
    lifecycle.unblind(study, None, "a look")
    assert body_of(api.get(address)) == b"%PDF"


def test_a_coder_reads_of_a_study_what_annotators_read(owner):
    study = draft_study(owner=owner, exclusion_group="replications", preparation={"steps": ["cut alpha"]})
    secrets = ("secret hypothesis", "replications", "cut alpha")
    for role, tells in (("viewer", True), ("coder", False)):
        StudyMember.objects.create(study=study, user=user(role), role=role)
        for path in ("studies/", f"studies/{study.code}/"):
            text = body_of(api_of(user(role)).get(path)).decode()
            assert "Reading short stories" in text
            assert [word in text for word in secrets] == [tells] * len(secrets), (role, path)


def test_a_closing_study_hides_its_outcomes_and_a_closed_one_shows_them(owner):
    study = spa_study(owner)
    lifecycle.start_closing(study, by=None)
    api = api_of(owner)
    assert api.get(f"studies/{study.code}/responses/").status_code == 403
    lifecycle.end_grace_period(study, by=None)
    assert api.get(f"studies/{study.code}/responses/").status_code == 200
