"""Why a report estimates no planned comparison: the cause in words, and what can be done about it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

NO_ESTIMATE_PREFIX = "No planned comparison could be estimated: "


def explain_no_conclusion(
    contrasts: Sequence[Any], n_submitted: int, n_kept: int, rows: "DataFrame", problems: Iterable[Mapping[str, Any]]
) -> str:
    """The cause, as the sentence that takes the place of the conclusions. '' where no comparison is planned.

    ``rows``: the live answers of those who submitted, with ``is_kept``.
    """
    if not contrasts:
        return ""
    if not n_submitted:
        return f"{NO_ESTIMATE_PREFIX}nobody has submitted answers. Run the analysis again when some have."
    if not n_kept:
        return (
            f"{NO_ESTIMATE_PREFIX}the exclusion rules left out all {n_submitted} submitted assignments. “Who is in it” below says how many each rule "
            "found; check whether a rule is meant to find so many."
        )
    failed = [problem["row"] for problem in problems if str(problem["row"]).startswith("protocol ")]
    if failed:
        return f"{NO_ESTIMATE_PREFIX}the analysis of the {failed[0]} did not run. The list of problems below names the reason."
    mine = rows[rows["is_kept"]]
    if mine.empty:
        return (
            f"{NO_ESTIMATE_PREFIX}{_assignment_count(n_kept)}, but no answer to a question of a live section is among them. Check in the list of "
            "assignments what these annotators were asked."
        )
    apart = [
        contrast for contrast in contrasts if contrast.x_id and not _judged_both(mine, contrast.x.name, contrast.y.name)
    ]
    if apart:
        named = "; ".join(f"{contrast.x.name} and {contrast.y.name}" for contrast in apart[:5])
        return (
            f"{NO_ESTIMATE_PREFIX}{_assignment_count(n_kept)}, but nobody among them judged both systems of a planned pair ({named}). The means of each "
            "system are among the tables below; to compare these systems, show both to the same annotators in a clone of the study."
        )
    return (
        f"{NO_ESTIMATE_PREFIX}{_assignment_count(n_kept)} with answers about these systems, but the protocols of the live sections do not estimate what the "
        "comparisons name. What was measured is below; plan comparisons of those quantities in a clone of the study."
    )


def _assignment_count(n: int) -> str:
    return f"{n} submitted assignment{' is' if n == 1 else 's are'} in it"


def _judged_both(rows: "DataFrame", x: str, y: str) -> bool:
    """Whether one annotator's answers are about both systems, by whatever column names them."""
    for _, theirs in rows.groupby("annotator", sort=False):
        named = {name for column in ("system", "chosen_system", "x", "y") for name in theirs[column].dropna()}
        if {x, y} <= named:
            return True
    return False
