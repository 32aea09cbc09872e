"""Check and start exports: select the rows, check permissions and blinding, and submit the job of a file."""

from collections.abc import Sequence

from studies.access import Action, check_draw_is_readable, check_permission_or_404
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from . import parquet
from .blinding import check_outcomes_visible
from .exports import OUTCOME_TABLES
from .flat_rows.selection import COUNTED_ORIGINS, Selection
from .frames import ORIGINS


class BadOrigins(ValueError):
    """An origin is unknown. The message names it."""


def build_permitted_selection(
    table: str, study: Study, origins: Sequence[str] = COUNTED_ORIGINS, include_withdrawn: bool = False, *, by
) -> Selection:
    """Return the selection of rows for a table. Raises PermissionDenied if the table has hidden outcomes."""
    check_permission_or_404(by, Action.EXPORT, study)
    if table in OUTCOME_TABLES:
        check_outcomes_visible(study, origins)
    if table == "items":  # their numbers follow the order in which batches were drawn
        check_draw_is_readable(by, study)
    return Selection(study, tuple(origins), include_withdrawn)


def request_export(
    study: Study,
    *,
    by,
    table: str,
    format: str,
    origins: Sequence[str] = (),
    withdrawn: bool = False,
    request_token: str | None = None,
) -> Job:
    """Submit the job that writes a table to a file. Idempotent per ``request_token``.

    Raises BadOrigins, PermissionDenied and ActionRefused.
    """
    check_permission_or_404(by, Action.ANALYSE, study)
    if unknown := sorted(set(origins) - set(ORIGINS)):
        raise BadOrigins(f"{unknown[0][:20]!r} is not an origin. Use {', '.join(ORIGINS)}.")
    chosen = build_permitted_selection(table, study, origins or COUNTED_ORIGINS, withdrawn, by=by)
    if not parquet.is_pyarrow_installed():
        raise ActionRefused(parquet.NOT_INSTALLED)
    return jobs.submit(
        "export",
        study=study,
        by=by,
        request_token=request_token,
        table=table,
        format=format,
        origins=list(chosen.origins),
        withdrawn=chosen.withdrawn,
    )
