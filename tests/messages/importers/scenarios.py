"""A scenario of the importers reads a file into a draft, and gives what is said of it."""

import tempfile
from pathlib import Path

from django.test import override_settings

from studies.imports.tables import Options, import_stimuli_file
from studies.models import Arm, Study, System
from studies.services import lifecycle
from studies.stimuli.texts import SettingsRefused
from tests import builders
from tests.messages.lines import Shown, of_file
from tests.studies.imports.files import BAD_FILES, lines, long, table, zipped
from tests.studies.stimuli.png import png_with_size

BAD = {name: (data, file) for name, data, file, _, _ in BAD_FILES}
REFUSALS = (lifecycle.ActionRefused, SettingsRefused)


def small() -> Study:
    study = Study.objects.create(title="A draft")
    Arm.objects.create(study=study, name="all")
    System.objects.bulk_create(System(study=study, name=name) for name in ("ada", "bo"))
    return study


def shown_by(read) -> list[Shown]:
    """What a report says, or the refusal in its place."""
    try:
        report = read()
    except REFUSALS as refused:
        return [Shown(str(refused))]
    findings = [Shown(f"{finding.text} {' '.join(finding.examples)}") for finding in report.findings]
    return of_file(report.problems) + findings


def bad(name):
    """One of the files that the importers' own tests hold to be bad."""
    return file(*BAD[name])


def file(data, name="t.csv", *before, make=small, is_written=False, **options):
    """A scenario: a file read into a draft, after those in ``before`` were written into it."""

    def scenario():
        study = make()
        for change in before:
            change(study)
        with tempfile.TemporaryDirectory() as folder, override_settings(MEDIA_ROOT=Path(folder) / "media"):
            return shown_by(lambda: imported(study, folder, data, name, is_dry_run=not is_written, **options))

    return scenario


def imported(study, folder, data, name, is_dry_run=False, agreed=None, **options):
    path = Path(folder) / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return import_stimuli_file(
        study, path, options=Options(**options), is_dry_run=is_dry_run, expected_outcome=agreed, by=None
    )


def brings(data, name="t.csv", **options):
    """A file that is in the study already."""

    def change(study):
        with tempfile.TemporaryDirectory() as folder:
            report = imported(study, folder, data, name, **options)
            assert report.is_written, list(map(str, report.problems))

    return change


def batches(rows, *before, **options):
    return file(lines(rows), "t.jsonl", *before, make=with_section, makes_batches=True, **options)


def with_section() -> Study:
    study = small()
    builders.add_spa(study, m=2)
    return study


def second_arm(study):
    Arm.objects.create(study=study, name="second")


def pairs(text, **options):
    return file(text, "t.csv", make=small, makes_pairs=True, **{"max_length_difference": 1, **options})


GOOD = table([long("p1", "ada", "One.")])
IMAGE = [{"prompt_key": "p1", "prompt_text": "P", "system": "ada", "image": "img/a.png"}]


def image_file(name="img/a.png", rows=IMAGE, **more):
    return zipped({"t.csv": table(rows), name: png_with_size(8, 8), **more})
