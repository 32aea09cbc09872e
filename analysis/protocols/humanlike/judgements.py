"""The judgements of one section with the true authors, in cells: a machine system in a domain under a training condition."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from studies.models import Arm
from studies.protocols.base.scales import parse_scale
from studies.protocols.humanlike import SOURCE

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate

CONDITIONS = tuple(Arm.Condition.values)
ALL_DOMAINS = "all"
PAPER_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Cell:
    """A machine system, a condition and a domain. ``ALL_DOMAINS`` means all domains together."""

    model: str
    condition: str
    domain: str = ALL_DOMAINS

    @property
    def key(self) -> str:
        return f"{self.model}, {self.condition}" + ("" if self.domain == ALL_DOMAINS else f", {self.domain}")

    def as_dict(self) -> dict[str, str]:
        return {"model": self.model, "condition": self.condition, "domain": self.domain}


@dataclass(frozen=True, slots=True)
class Judgements:
    """The judgements of one section that outcome-blind rules keep and, for the paper, that all primary rules keep.

    Columns: annotator, model, condition, domain, text, rating, is_machine, says, correct, position.
    """

    section: Any
    low: float
    high: float
    kept: "DataFrame"
    paper: "DataFrame"
    cells: tuple[Cell, ...]
    cells_over_domains: tuple[Cell, ...]

    @property
    def threshold(self) -> float:
        return (self.low + self.high) / 2

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.model for cell in self.cells_over_domains))

    def conditions(self, model: str) -> tuple[str, ...]:
        return tuple(cell.condition for cell in self.cells_over_domains if cell.model == model)

    def reference(self, model: str) -> str:
        """Return the condition that others are compared with: no training, or else the first."""
        return self.conditions(model)[0]

    def rows(self, cell: Cell, is_paper: bool = False) -> "DataFrame":
        rows = self.paper if is_paper else self.kept
        rows = rows[(rows["model"] == cell.model) & (rows["condition"] == cell.condition)]
        return rows if cell.domain == ALL_DOMAINS else rows[rows["domain"] == cell.domain]

    def model_rows(self, model: str, is_paper: bool = False) -> "DataFrame":
        rows = self.paper if is_paper else self.kept
        return rows[rows["model"] == model]


def read_judgements(frame: "DataFrame", section: Any) -> Judgements | None:
    """Return the section's judgements with the true authors, or None if its question cannot be read."""
    from analysis.stats import detection

    question = next((question for question in section.questions.all() if question.key == SOURCE), None)
    if question is None:
        return None
    try:
        scale = parse_scale(question.scale)
    except (AttributeError, ValueError, TypeError, KeyError):
        return None
    low, high = float(scale.minimum), float(scale.maximum)
    human = {system.name for system in section.study.systems.all() if system.is_human}
    arms = list(section.study.arms.prefetch_related("systems"))
    everybody = [system.name for system in section.study.systems.judged()]
    model_by_arm = {arm.name: _machine_systems_label(arm, everybody, human) for arm in arms}
    is_own = (frame["section"] == section.position) & (frame["question"] == SOURCE) & frame["system"].notna()
    rows = frame[is_own & frame["value"].notna()].copy()
    rows["rating"] = (low + rows["value"] * (high - low)).round(6)
    rows["is_machine"] = (~rows["system"].isin(human)).astype(float)
    rows["model"] = rows["arm"].map(model_by_arm).fillna("")
    rows["domain"] = rows["domain"].fillna("").replace("", ALL_DOMAINS)
    rows["text"] = (
        rows["prompt"].astype(str) + "\x1f" + rows["system"].astype(str) + "\x1f" + rows["sample"].astype(str)
    )
    rows["says"] = detection.ratings_to_machine_answers(rows["rating"].to_numpy(float), threshold=(low + high) / 2)
    rows["correct"] = (rows["says"] == rows["is_machine"]).astype(float)
    shown_arm_ids = {row.arm_id for row in section.section_arms.all()}
    cells = _planned_cells([arm for arm in arms if not shown_arm_ids or arm.pk in shown_arm_ids], model_by_arm, rows)
    pooled_cells = tuple(dict.fromkeys(Cell(cell.model, cell.condition) for cell in cells))
    kept_rows, paper_rows = rows[rows["is_kept"].astype(bool)], rows[rows["is_kept_paper"].astype(bool)]
    return Judgements(section, low, high, kept_rows, paper_rows, cells, pooled_cells)


def _machine_systems_label(arm: Any, everybody: Sequence[str], human: set[str]) -> str:
    """Return the names of an arm's machine systems."""
    systems = [system.name for system in arm.systems.all()] or everybody
    return ", ".join(sorted(name for name in systems if name not in human))


def _planned_cells(arms: Iterable[Any], model_by_arm: Mapping[str, str], rows: "DataFrame") -> tuple[Cell, ...]:
    """Return every planned cell, answered or not, so that a family of tests does not shrink if a cell has no answers."""
    domains = sorted(set(rows["domain"])) or [ALL_DOMAINS]
    planned = {
        Cell(model_by_arm[arm.name], arm.condition, domain)
        for arm in arms
        for domain in ([arm.domain] if arm.domain else domains)
    }
    return tuple(sorted(planned, key=lambda cell: (cell.model, CONDITIONS.index(cell.condition), cell.domain)))


def column_arrays(rows: "DataFrame", *names: str) -> list[Any]:
    numbers = {"rating", "is_machine", "says", "correct", "position", "accuracy"}
    return [rows[name].to_numpy(float if name in numbers else object) for name in names]


def tag_with_cell(estimate: "Estimate", cell: Cell) -> "Estimate":
    return replace(estimate, settings={**estimate.settings, **cell.as_dict()})
