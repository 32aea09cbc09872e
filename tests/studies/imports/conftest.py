"""A draft with two systems, and a way to import bytes into it."""

import pytest

from studies.imports.tables import Options, import_stimuli_file
from studies.imports.tables.result import ImportReport
from studies.models import Arm, Study, System
from tests.builders import add_spa


@pytest.fixture
def study(db):
    study = Study.objects.create(title="A draft")
    Arm.objects.create(study=study, name="all")
    System.objects.bulk_create(System(study=study, name=name) for name in ("ada", "bo"))
    return study


@pytest.fixture
def put(tmp_path, study):
    """Import bytes under a name; gives the report."""

    def imported(data, name="table.csv", is_dry_run=False, agreed=None, into=None, **options) -> ImportReport:
        path = tmp_path / name
        path.write_bytes(data)
        return import_stimuli_file(
            into or study, path, options=Options(**options), is_dry_run=is_dry_run, expected_outcome=agreed, by=None
        )

    return imported


@pytest.fixture
def spa(study):
    add_spa(study, m=2)
    return study
