"""A row of a file of answers together with the question, item and outputs that it is about."""

import math
from dataclasses import dataclass, field

from studies.design.wording import QuestionWording, SectionWording

from .columns import AnswerRow
from .study_index import ItemKey

SORTS_LAST = math.inf


@dataclass(slots=True)
class ImportedItem:
    """An item as this annotator saw it: its outputs by letter. ``is_layout_known``: the file gives the letters."""

    key: ItemKey
    letters: dict[str, int]
    is_layout_known: bool
    rows: list["ResolvedRow"] = field(default_factory=list)

    @property
    def order(self) -> tuple[float, float, int]:
        places = [resolved.answer_row.position for resolved in self.rows if resolved.answer_row.position is not None]
        times = [resolved.answer_row.time.timestamp() for resolved in self.rows if resolved.answer_row.time]
        return (min(places, default=SORTS_LAST), min(times, default=SORTS_LAST), self.rows[0].answer_row.row)

    @property
    def has_position(self) -> bool:
        return any(resolved.answer_row.position is not None or resolved.answer_row.time for resolved in self.rows)


@dataclass(slots=True)
class ResolvedRow:
    """A row with the question, item and outputs that it is about."""

    answer_row: AnswerRow
    section: SectionWording
    question: QuestionWording
    item: ImportedItem | None = None
    output: int | None = None
    chosen: int | None = None
