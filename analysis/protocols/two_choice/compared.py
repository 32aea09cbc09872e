"""The labels of one comparison: what was given in time, what rules keep, the final answers, and what the stopping rule says."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.data.claims import Claims
from analysis.data.context import Context
from analysis.protocols.blocks.comparisons import Comparison

from .. import Look
from .labels import Answers, about, comparisons, final_answers, has_third
from .stopping import looks

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison's labels: all that were given in time, those of people whom the rules keep, and the final answers.

    ``is_third`` marks third labels in each of them. ``n_submitted``: who finished a batch of the section, whatever pairs it held.
    """

    section: Any
    comparison: Comparison
    given: "DataFrame"
    kept: "DataFrame"
    paper: "DataFrame"
    answers: Answers
    look: Look | None
    n_submitted: int

    @property
    def title(self) -> str:
        criterion = f", {self.comparison.criterion}" if self.comparison.criterion else ""
        return f"section {self.section.position}, {self.comparison.x} and {self.comparison.y}{criterion}"

    @property
    def shares(self) -> "DataFrame":
        """The labels that say something of the systems by themselves."""
        return self.kept[~self.kept["is_third"].to_numpy(bool)]


def compared_in(context: Context, claims: Claims, section: Any) -> list[Compared]:
    rows = context.rows
    kept, paper = (set(rows.loc[rows[column].astype(bool), "assignment"]) for column in ("is_kept", "is_kept_paper"))
    said = {look.name: look for look in looks(claims, section, context.seed)}
    mine = claims.rows[claims.rows["section"] == section.position]
    n_submitted = mine.loc[mine["is_submitted"] & ~mine["is_top_up"], "assignment"].nunique()
    pairs = [frozenset(pair.split("\x1f")) for pair in sorted(set(mine["pair"])) if pair.count("\x1f") == 1]
    found = []
    for compared in comparisons(section, pairs=pairs):
        rows = about(mine, compared)
        given = rows[rows["is_given"] & rows["is_submitted"]]
        given = given.assign(is_third=has_third(given, section))
        in_paper = given[given["assignment"].isin(paper)]
        found.append(
            Compared(
                section,
                compared,
                given,
                given[given["assignment"].isin(kept)],
                in_paper,
                final_answers(in_paper, section),
                said.get(compared.key),
                n_submitted,
            )
        )
    return found


def logged(one: Compared) -> dict[str, Any] | None:
    """What the log says of this comparison, where the study closed itself."""
    event = one.section.study.audit_events.filter(verb="decide").order_by("pk").last()
    outcomes = event.data.get("outcomes", []) if event else []
    return next((outcome for outcome in outcomes if outcome.get("comparison") == one.comparison.key), None)
