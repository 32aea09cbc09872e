"""Import a closed study from its archive. Its stored reports are not imported: they are computed again from its rows."""

from pathlib import Path
from typing import IO, Any
from uuid import UUID, uuid4
from zipfile import ZipFile

from django.db import transaction

from studies import access
from studies.access import Action, check_permission_or_404
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.imports.bundle import check_stored_image
from studies.imports.image_storage import storing_images
from studies.models import Output, Prompt, Study, audit
from studies.stimuli.images import ImageRefused

from .archive_rows import (
    IMPORTED,
    MAX_UNPACKED,
    ArchiveRefused,
    load_rows,
    open_member,
    opened_archive,
    read_manifest,
    study_row,
)
from .build import settings_of
from .rerun import stored_runs
from .runs import request_analysis

IMAGES = "stimuli/images/"
MAX_IMAGE = 32 * 1024 * 1024


def import_archive(
    file: Path | IO[bytes],
    owner: Any,
    *,
    is_copy: bool = False,
    max_bytes: int = MAX_UNPACKED,
    is_dry_run: bool = False,
) -> Study:
    """Store the closed study of an archive, owned by this user, and order its analyses again.

    ``is_copy``: also if this site has the study already; the copy has another code. Raises ArchiveRefused; then nothing is stored.
    """
    check_permission_or_404(owner, Action.CREATE)
    with opened_archive(file, max_bytes) as archive:
        row = study_row(archive)
        title = " ".join(str(row.get("title"))[:200].split())
        if row.get("state") != Study.State.CLOSED:
            raise ArchiveRefused(
                f"The study “{title}” was not closed when the archive was made. Close it on its site, and download the archive again."
            )
        code = None
        try:
            is_there = Study.objects.filter(code=UUID(str(row.get("code")))).exists()
        except ValueError:
            is_there = False
        if is_there and not is_copy:
            raise ArchiveRefused(
                f"This site has the study “{title}” already. Import it as a copy if you want it a second time."
            )
        if is_there:
            code = uuid4()
        # Before anything is stored: a damaged analysis refuses the archive.
        parameters = list(
            {
                canonical_json(one): one for one in (settings_of(run["parameters"]) for run in stored_runs(archive))
            }.values()
        )
        names = [name.removeprefix(IMAGES) for name in archive.namelist() if name.startswith(IMAGES)]
        with storing_images(names, lambda name: _image(archive, name)), transaction.atomic():
            study = load_rows(archive, owner, code)
            _refuse_missing_images(study, set(names))
            access.add_owner(study, owner)
            made_by = str(read_manifest(archive).get("heval"))[:100]
            sha256 = sha256_of(canonical_json(serialize_design(study)))
            audit.record(IMPORTED, study=study, by=owner, code=str(row["code"]), made_by=made_by, design_sha256=sha256)
            for one in parameters:
                request_analysis(study, owner, one)
            if is_dry_run:
                transaction.set_rollback(True)
    return study


def _image(archive: ZipFile, name: str) -> bytes:
    with open_member(archive, f"{IMAGES}{name}") as member:
        data = member.read(MAX_IMAGE)
    try:
        check_stored_image(name, data)
    except ImageRefused as refused:
        raise ArchiveRefused(f"{IMAGES}{name[:80]}: {refused}") from None
    return data


def _refuse_missing_images(study: Study, names: set[str]) -> None:
    rows = (Prompt.objects.filter(study=study), Output.objects.filter(system__study=study))
    for media in (name for found in rows for name in found.exclude(media="").values_list("media", flat=True)):
        if media not in names:
            raise ArchiveRefused(
                f"The archive lacks the image {media}. Restore it on the study's site, and download the archive again."
            )
