"""The judgements of one section with the true authors, in cells: a machine system in a domain under a training condition."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.data.frames import with_plain_texts
from analysis.protocols.blocks.populations import SECOND_SAMPLE
from analysis.protocols.kinds.answers import kept_and_paper_rows, readable_scale
from studies.design.subjects import in_parentheses, join_words, words_of_section
from studies.models import Arm
from studies.protocols.base.fields import ScaleSpec
from studies.protocols.humanlike import SOURCE

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate

CONDITIONS = tuple(Arm.Condition.values)
# Conditions in words, of an arm with that condition.
TRAINING = {
    "none": "no training",
    "instructions": "training by instructions",
    "examples": "training by examples",
    "comparison": "training by comparison",
}
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

    @property
    def label(self) -> str:
        """The cell in words, for sentences and figures."""
        return join_words(self.model, TRAINING[self.condition], "" if self.domain == ALL_DOMAINS else self.domain)

    def as_dict(self) -> dict[str, str]:
        return {"model": self.model, "condition": self.condition, "domain": self.domain}


@dataclass(frozen=True, slots=True)
class PlannedCells:
    """The cells over all domains that the arms of a section make, answered or not."""

    cells: tuple[Cell, ...]

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.model for cell in self.cells))

    def conditions(self, model: str) -> tuple[str, ...]:
        return tuple(cell.condition for cell in self.cells if cell.model == model)

    def reference_condition(self, model: str) -> str:
        """Return the condition that others are compared with: no training, or else the first."""
        return self.conditions(model)[0]


@dataclass(frozen=True, slots=True)
class Judgements:
    """The judgements of one section that outcome-blind rules keep and, for the paper, that all primary rules keep.

    Columns: annotator, model, condition, domain, text, rating, is_machine, says, correct, position. ``suffix`` distinguishes the
    blocks and families of this section from those of others.
    """

    section: Any
    low: float
    high: float
    kept: "DataFrame"
    paper: "DataFrame"
    cells: tuple[Cell, ...]
    design: PlannedCells
    suffix: str = ""

    @property
    def where(self) -> str:
        """The end of the titles of this section."""
        return in_parentheses(words_of_section(self.section).circumstance)

    @property
    def cells_over_domains(self) -> tuple[Cell, ...]:
        return self.design.cells

    @property
    def threshold(self) -> float:
        return (self.low + self.high) / 2

    @property
    def models(self) -> tuple[str, ...]:
        return self.design.models

    def conditions(self, model: str) -> tuple[str, ...]:
        return self.design.conditions(model)

    def reference_condition(self, model: str) -> str:
        return self.design.reference_condition(model)

    def domains_of(self, cell: Cell) -> list[Cell]:
        """Return the cells of single domains of a cell over all domains. With one domain, they would repeat it."""
        own = [one for one in self.cells if replace(one, domain=ALL_DOMAINS) == cell and one != cell]
        return own if len(own) > 1 else []

    def cell_rows(self, cell: Cell, is_paper: bool = False) -> "DataFrame":
        rows = self.paper if is_paper else self.kept
        rows = rows[(rows["model"] == cell.model) & (rows["condition"] == cell.condition)]
        return rows if cell.domain == ALL_DOMAINS else rows[rows["domain"] == cell.domain]

    def model_rows(self, model: str, is_paper: bool = False) -> "DataFrame":
        rows = self.paper if is_paper else self.kept
        return rows[rows["model"] == model]


def read_judgements(frame: "DataFrame", section: Any, suffix: str = "") -> Judgements | None:
    """Return the section's judgements with the true authors, or None if its question cannot be read."""
    from analysis.stats import signal_detection

    scale = _source_scale(section)
    if scale is None:
        return None
    low, high = float(scale.minimum), float(scale.maximum)
    arms, model_by_arm, human = _arms_with_machine_systems(section)
    is_own = (frame["section"] == section.position) & (frame["question"] == SOURCE) & frame["system"].notna()
    rows = with_plain_texts(frame[is_own & frame["value"].notna()])
    rows["rating"] = (low + rows["value"] * (high - low)).round(6)
    rows["is_machine"] = (~rows["system"].isin(human)).astype(float)
    rows["model"] = rows["arm"].map(model_by_arm).fillna("")
    rows["domain"] = rows["domain"].fillna("").replace("", ALL_DOMAINS)
    rows["text"] = (
        rows["prompt"].astype(str) + "\x1f" + rows["system"].astype(str) + "\x1f" + rows["sample"].astype(str)
    )
    # A text is the second sample, unless its prompt belongs to a group.
    rows[SECOND_SAMPLE] = rows["text"].where(rows[SECOND_SAMPLE] == rows["prompt"], rows[SECOND_SAMPLE])
    rows["says"] = signal_detection.ratings_to_machine_answers(
        rows["rating"].to_numpy(float), threshold=(low + high) / 2
    )
    rows["correct"] = (rows["says"] == rows["is_machine"]).astype(float)
    cells = _planned_cells(arms, model_by_arm, sorted(set(rows["domain"])))
    return Judgements(section, low, high, *kept_and_paper_rows(rows), cells, _over_domains(cells), suffix)


def read_planned_cells(section: Any) -> PlannedCells | None:
    """Return the cells over all domains that the section's arms make, or None if its question cannot be read."""
    if _source_scale(section) is None:
        return None
    arms, model_by_arm, _ = _arms_with_machine_systems(section)
    return _over_domains(_planned_cells(arms, model_by_arm, ()))


def _over_domains(cells: Iterable[Cell]) -> PlannedCells:
    return PlannedCells(tuple(dict.fromkeys(Cell(cell.model, cell.condition) for cell in cells)))


def _source_scale(section: Any) -> ScaleSpec | None:
    """Return the scale of the section's question, or None if it cannot be read."""
    question = next((question for question in section.questions.all() if question.key == SOURCE), None)
    return None if question is None else readable_scale(question)


def _arms_with_machine_systems(section: Any) -> tuple[list[Any], dict[str, str], set[str]]:
    """Return the section's arms, the machine systems of every arm of the study by its name, and the human systems."""
    systems = list(section.study.systems.judged())
    human = {system.name for system in systems if system.is_human}
    arms = list(section.study.arms.prefetch_related("systems"))
    everybody = [system.name for system in systems]
    model_by_arm = {arm.name: _machine_systems_label(arm, everybody, human) for arm in arms}
    shown_arm_ids = {row.arm_id for row in section.section_arms.all()}
    return [arm for arm in arms if not shown_arm_ids or arm.pk in shown_arm_ids], model_by_arm, human


def _machine_systems_label(arm: Any, everybody: Sequence[str], human: set[str]) -> str:
    """Return the names of an arm's machine systems."""
    systems = [system.name for system in arm.systems.all()] or everybody
    return ", ".join(sorted(name for name in systems if name not in human))


def _planned_cells(
    arms: Iterable[Any], model_by_arm: Mapping[str, str], answered_domains: Sequence[str]
) -> tuple[Cell, ...]:
    """Return every planned cell, answered or not, so that a family of tests does not shrink if a cell has no answers."""
    domains = answered_domains or [ALL_DOMAINS]
    planned = {
        Cell(model_by_arm[arm.name], arm.condition, domain)
        for arm in arms
        for domain in ([arm.domain] if arm.domain else domains)
    }
    return tuple(sorted(planned, key=lambda cell: (cell.model, CONDITIONS.index(cell.condition), cell.domain)))


def tag_with_cell(estimate: "Estimate", cell: Cell) -> "Estimate":
    return replace(estimate, settings={**estimate.settings, **cell.as_dict()})
