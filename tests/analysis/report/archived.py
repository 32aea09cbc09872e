"""Archives of studies that were analysed, as files, and another site's view of them."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from django.db import models

from analysis.report.archive import archive_blocks
from analysis.report.runs import run_analysis
from studies.models import Study
from tests.analysis.report.reported import QUICK, finished


def analysed(owner, **options) -> Study:
    study = finished(owner, **options)
    run_analysis(study, QUICK, by=None)
    return study


def archive_file(study: Study, path: Path) -> Path:
    path.write_bytes(b"".join(archive_blocks(study)))
    return path


def hide(study: Study) -> None:
    """Give the study another code, as if this were a site that does not have it."""
    models.QuerySet(Study).filter(pk=study.pk).update(code=uuid4())


def rewritten(path: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """Write the archive again with other members. None leaves one out."""
    target = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if (data := change(name, old.read(name))) is not None:
                new.writestr(name, data)
    path.write_bytes(target.getvalue())
    return path
