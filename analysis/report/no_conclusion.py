"""Explain why a report estimates no planned comparison, and what the researcher can do."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

NO_ESTIMATE_PREFIX = "No planned comparison could be estimated: "


def explain_no_conclusion(
    contrasts: Sequence[Any],
    n_submitted: int,
    n_kept: int,
    live_answers: "DataFrame",
    problems: Iterable[Mapping[str, Any]],
) -> str:
    """Return the sentence that a report shows instead of conclusions, or '' if no comparison is planned.

    ``live_answers``: the live answers of submitted assignments, with the column ``is_kept``.
    """
    if not contrasts:
        return ""
    if not n_submitted:
        return f"{NO_ESTIMATE_PREFIX}no annotator has submitted answers yet. Run the analysis again when answers are there."
    if not n_kept:
        return (
            f"{NO_ESTIMATE_PREFIX}the exclusion rules exclude all {n_submitted} submitted assignments. Check the "
            "rules' settings and the table “Exclusions by rule”."
        )
    failed = [problem["row"] for problem in problems if str(problem["row"]).startswith("protocol ")]
    if failed:
        return (
            f"{NO_ESTIMATE_PREFIX}the analysis of the {failed[0]} failed. The list of problems below gives the reason."
        )
    kept_rows = live_answers[live_answers["is_kept"]]
    if kept_rows.empty:
        return (
            f"{NO_ESTIMATE_PREFIX}no submitted assignment has answers of a live section. Check in the list of assignments "
            "which questions they saw."
        )
    unshared = [
        contrast
        for contrast in contrasts
        if contrast.x_id and not _judged_both(kept_rows, contrast.x.name, contrast.y.name)
    ]
    if unshared:
        pair_names = "; ".join(f"{contrast.x.name} and {contrast.y.name}" for contrast in unshared[:5])
        return (
            f"{NO_ESTIMATE_PREFIX}no annotator judged both systems of a planned pair ({pair_names}). Show both to the same "
            "annotators in a clone."
        )
    return (
        f"{NO_ESTIMATE_PREFIX}the live sections do not estimate the planned quantities. Plan the quantities of the tables "
        "below in a clone."
    )


def _judged_both(rows: "DataFrame", x: str, y: str) -> bool:
    """Return whether at least one annotator has answers about both systems, in any column that names systems."""
    for _, answers in rows.groupby("annotator", sort=False):
        system_names = {name for column in ("system", "chosen_system", "x", "y") for name in answers[column].dropna()}
        if {x, y} <= system_names:
            return True
    return False
