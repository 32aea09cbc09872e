"""Exports are asked for here: whose rows of a table, whether they may be shown now, and the job that makes a file."""

from collections.abc import Sequence

from studies.access import Action, check_permission
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from . import parquet
from .blinding import check_outcomes_visible
from .exports import OUTCOME_TABLES
from .flat_rows.selection import COUNTED_ORIGINS, Selection
from .frames import ORIGINS


class BadOrigins(ValueError):
    """An origin that is none; the message names it."""


def selection_for(
    table: str, study: Study, origins: Sequence[str] = COUNTED_ORIGINS, include_withdrawn: bool = False, *, by
) -> Selection:
    """The rows of a table. Raises PermissionDenied where they would tell of outcomes that are hidden."""
    check_permission(by, Action.EXPORT, study)
    if table in OUTCOME_TABLES:
        check_outcomes_visible(study, origins)
    return Selection(study, tuple(origins), include_withdrawn)


def request_export(
    study: Study,
    *,
    by,
    table: str,
    format: str,
    origins: Sequence[str] = (),
    withdrawn: bool = False,
    token: str | None = None,
) -> Job:
    """The job that makes a file of a table. The same ``token`` asks once. Raises BadOrigins, PermissionDenied and NotNow."""
    check_permission(by, Action.ANALYSE, study)
    if unknown := sorted(set(origins) - set(ORIGINS)):
        raise BadOrigins(f"{unknown[0][:20]!r} is none of {', '.join(ORIGINS)}.")
    chosen = selection_for(table, study, origins or COUNTED_ORIGINS, withdrawn, by=by)
    if not parquet.is_installed():
        raise ActionRefused(parquet.NOT_INSTALLED)
    return jobs.submit(
        "export",
        study=study,
        by=by,
        request_token=token,
        table=table,
        format=format,
        origins=list(chosen.origins),
        withdrawn=chosen.withdrawn,
    )
