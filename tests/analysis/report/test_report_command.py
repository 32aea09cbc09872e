"""``heval study report`` prints each claim, the warnings below it, and the hash of what was stored."""

import pytest

from analysis.models import AnalysisRun
from analysis.protocols.blocks.warning_sentences import SEVERITY_LABELS
from tests import study_command
from tests.analysis.report.reported import finished
from tests.builders import user

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_the_command_prints_the_warnings_below_their_claim():
    study = finished(user(), n=5)
    lines = study_command.run("report", study.code, "--resamples", "199")[1].splitlines()
    first = AnalysisRun.objects.get(study=study).result["conclusions"][0]
    assert first["warnings"]
    assert lines[: 1 + len(first["warnings"])] == [
        f"{first['claim']} {first['text']}",
        *(f"  {SEVERITY_LABELS[one['severity']]}: {one['text']}" for one in first["warnings"]),
    ]
    assert lines[1].startswith("  No claim: Only 5 annotators are behind this number")
    assert lines[-1].startswith("Analysis 1, result SHA-256")


@pytest.mark.slow
def test_the_command_prints_no_warning_below_a_claim_without_one(monkeypatch):
    study = finished(user())
    monkeypatch.setattr("analysis.protocols.blocks.sentences.gravest_warnings_with_sentences", lambda warnings: [])
    said = study_command.run("report", study.code, "--resamples", "199")[1]
    assert not any(line.startswith("  ") for line in said.splitlines())
