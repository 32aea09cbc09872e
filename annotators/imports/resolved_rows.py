"""A row of a file of answers together with the question, item and outputs that it is about."""

import math
from dataclasses import dataclass, field

from studies.design.wording import QuestionWording, SectionWording

from .columns import AnswerRow
from .study_index import ItemKey

SORTS_LAST = math.inf


@dataclass(slots=True)
class ImportedItem:
    """An item as this annotator saw it: its outputs by letter. The file may give the letters and the position, or not."""

    key: ItemKey
    letters: dict[str, int]
    is_layout_known: bool
    rows: list["ResolvedRow"] = field(default_factory=list)
    is_position_known: bool = False

    @property
    def sort_key(self) -> tuple[float, float]:
        places = [resolved.answer_row.position for resolved in self.rows if resolved.answer_row.position is not None]
        times = [resolved.answer_row.time.timestamp() for resolved in self.rows if resolved.answer_row.time]
        return (min(places, default=SORTS_LAST), min(times, default=SORTS_LAST))


@dataclass(slots=True)
class ResolvedRow:
    """A row with the question, item and outputs that it is about."""

    answer_row: AnswerRow
    section: SectionWording
    question: QuestionWording
    item: ImportedItem | None = None
    output: int | None = None
    chosen: int | None = None
