"""The lines of a reading and a writing: what changed meanwhile, and what is kept."""

import tempfile

from django.test import override_settings

from studies.imports.preparation import Preparation
from studies.imports.tables import Options, run, writing
from studies.models import Job
from tests import builders
from tests.messages.importers.answers import moved_answers
from tests.messages.importers.scenarios import GOOD, brings, file, imported, pairs, shown_by, small
from tests.messages.lines import only_informs
from tests.studies.imports.files import HEAD, long, table


def moved_before(step, data):
    """Somebody adds a prompt before a step of the writing."""

    def scenario():
        study = small()
        whole = getattr(writing.StimuliWriter, step)

        def moved(*given):
            study.prompts.create(key="p1", text="By hand.")
            return whole(*given)

        setattr(writing.StimuliWriter, step, moved)
        try:
            with tempfile.TemporaryDirectory() as folder:
                return shown_by(lambda: imported(study, folder, data, "t.csv"))
        finally:
            setattr(writing.StimuliWriter, step, whole)

    return scenario


def moved_since_looked():
    study = small()
    with tempfile.TemporaryDirectory() as folder:
        agreed = imported(study, folder, table([long("p1", "ada", "One.")]), "t.csv", is_dry_run=True).outcome()
        study.prompts.create(key="p1", text="By hand.")
        return shown_by(lambda: imported(study, folder, table([long("p1", "ada", "One.")]), "t.csv", agreed=agreed))


def kept(*chunks):
    def scenario():
        most, run.MAX_BYTES = run.MAX_BYTES, 10
        try:
            with tempfile.TemporaryDirectory() as folder, override_settings(UPLOADS_ROOT=folder):
                return shown_by(lambda: run.store_upload(chunks, "t.csv", study_id=1, user_id=1, options={}))
        finally:
            run.MAX_BYTES = most

    return scenario


def gone(by_job):
    """The bytes of an upload are not there any more."""

    def scenario():
        study = small()
        with tempfile.TemporaryDirectory() as folder, override_settings(UPLOADS_ROOT=folder):
            upload = run.store_upload(
                [b"prompt_key\n"], "t.csv", study_id=study.pk, user_id=1, options=Options().as_json()
            )
            upload.delete_file()
            if by_job:
                job = Job(kind="import", study=study, arguments={"upload": "0" * 32, "is_confirmed": False})
                return shown_by(lambda: run.dry_run_or_import_upload_job(job, lambda *told: None))
            return shown_by(lambda: run.dry_run_upload(study, upload, None))

    return scenario


OWN = "question,mine,theirs\nWhy is the sky blue?,It mirrors the wide sea.,It scatters the blue light.\n"
OWN_COLUMNS = ("prompt_text=question", "output:ada=mine", "output:bo=theirs")

IMPORTERS = {
    "pairs of texts": only_informs(pairs("system,text\nada,One.\nbo,Two.\n")),
    "The study's preparation will": only_informs(file(GOOD, "t.csv", lambda s: _prepared(s))),
    "The study's preparation changed": only_informs(
        file(table([long("p1", "ada", "  One.  ")]), "t.csv", lambda s: _prepared(s), is_written=True)
    ),
    "The study was changed after": (moved_since_looked, moved_answers),
    "Columns that are not imported": only_informs(file(HEAD.replace("text\n", "text,extra\n") + "p1,P,ada,a,b\n")),
    "The columns are read": only_informs(
        file(OWN, "t.csv", brings(OWN, columns=OWN_COLUMNS), proposes_columns=True, creates_systems=True)
    ),
    "The same file": only_informs(file(GOOD, "t.csv", brings(GOOD))),
    "The file has more than … bytes": kept(b"01234567890"),
    "store_file: The file is empty": only_informs(kept(b"")),
    "_check: The uploaded file": gone(False),
    "dry_run_or_import_upload_job: The uploaded file": gone(True),
    "Stimuli can only be imported": lambda: _into_a_launched_study(),
    "The study was changed while the file was being read": moved_before("store", GOOD),
    "The study was changed while the file was being written": moved_before("_store", GOOD),
}


def _into_a_launched_study():
    study = builders.spa_study(with_surveys=False, with_rating=False)
    with tempfile.TemporaryDirectory() as folder:
        return shown_by(lambda: imported(study, folder, GOOD, "t.csv"))


def _prepared(study):
    study.preparation = Preparation().as_json()
    study.save()
