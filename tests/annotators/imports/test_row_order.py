"""The order of the rows in a file of answers changes no number of the report."""

import csv
import random
from pathlib import Path

import pytest
from django.db import transaction

from analysis.report.build import build_report
from annotators.imports import import_answers_and_close_draft
from annotators.models import Response
from studies.models import Study
from studies.services import lifecycle
from tests.builders import add_rating, draft_study, launched
from tests.golden_site.drafts import without_marks
from tests.golden_site.imported import as_file
from tests.players import play

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]


def written(path: Path, rows: list[dict]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def report_after_import(study: Study, path: Path) -> dict:
    """The report of the study after an import, which is then undone."""
    with transaction.atomic():
        study = Study.objects.get(pk=study.pk)
        done = import_answers_and_close_draft(study, path, by=None)
        assert done.is_written, [str(one) for one in done.problems][:20]
        report = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
        transaction.set_rollback(True)
    return report


@pytest.mark.parametrize(
    "left_out",
    [
        pytest.param((), id="with times", marks=pytest.mark.slow),
        pytest.param(("time", "position"), id="without times or positions"),
    ],
)
def test_shuffled_rows_give_the_same_report(tmp_path, left_out):
    study = launched(without_marks(target_n=10))
    for n in range(10):
        play(study, n)
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    with as_file(study, tmp_path / "given.csv").open(newline="") as file:
        rows = [{key: value for key, value in row.items() if key not in left_out} for row in csv.DictReader(file)]
    shuffled = random.Random(3).sample(rows, len(rows))
    there = without_marks(consent="", contact="")
    first, second = (
        report_after_import(there, written(tmp_path / name, order))
        for name, order in (("first.csv", rows), ("second.csv", shuffled))
    )
    assert first["blocks"] and first["seed"] == second["seed"] and first["data"]["sha256"] == second["data"]["sha256"]
    assert first["blocks"] == second["blocks"]
    assert first["conclusions"] == second["conclusions"] and first["tables"] == second["tables"]


def test_items_with_one_time_have_no_position(tmp_path):
    """A form of several items has one time for all of them. Rows are not an order of showing."""
    study = draft_study(systems=("alpha",), prompts=3, consent="", contact="")
    add_rating(study, position=1, m=3)
    times = {"p001": "2026-01-01T10:00:00Z", "p002": "2026-01-01T10:05:00Z", "p000": "2026-01-01T10:05:00Z"}
    rows = [
        {"annotator": "w1", "prompt_key": prompt, "system": "alpha", "value": 3, "time": time}
        for prompt, time in times.items()
    ]
    assert import_answers_and_close_draft(study, written(tmp_path / "answers.csv", rows), by=None).is_written
    given = Response.objects.filter(assignment__study=study).values_list("item__prompt__key", "position")
    assert dict(given) == {"p000": None, "p001": 1, "p002": None}
