"""Read the answers to test questions: one row per answer with a known answer, right, wrong or not counted."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from annotators.counting import Use, select
from annotators.models import Response
from studies.models import Expected, Item, Study
from studies.protocols import REGISTRY
from studies.protocols.base.test_questions import known_answer

from .flat_rows.selection import annotator_pseudonym

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = (
    "assignment", "annotator", "section", "item", "question", "type", "is_positive", "is_right", "is_pilot", "is_counted",
    "is_submitted", "received_at",
)  # fmt: skip
# Share of a pilot that must agree with the known answer of a damaged or given test question.
PILOT_AGREEMENT = 0.9
_PILOTED_TYPES = (Item.TestType.DAMAGED, Item.TestType.GIVEN)


def read_test_answers(study: Study, origins: Iterable[str] = ("live",)) -> "DataFrame":
    """Return one row per answer to a test question, in the order in which the answers came.

    ``is_right``: True, False, or None if the answer does not count (skipped, or neutral where neutral answers do not count).
    ``is_pilot``: one of the first answers to a damaged or given test question, which only check the question.
    ``is_counted``: whether the answer says something about the annotator. Answers of people who withdrew are not read.
    """
    import pandas as pd

    known = {}
    expected = Expected.objects.filter(item__study=study, item__kind=Item.Kind.TEST)
    for row in expected.select_related("item__section", "question"):
        settings = REGISTRY[row.item.section.protocol].cleaned_settings(row.item.section)
        known[row.item_id, row.question_id] = known_answer(row, settings), row, settings
    answers = (
        select(Use.ROWS, Response.objects.filter(assignment__study=study, item__kind=Item.Kind.TEST), origins)
        .order_by("received_at", "pk")
        .values_list(
            "assignment_id",
            "assignment__annotator__code",
            "assignment__submitted_at",
            "item_id",
            "question_id",
            "exposure_id",
            "chosen_id",
            "choice",
            "value",
            "received_at",
        )
    )
    rows = []
    pilots: dict[tuple[int, int], list[bool]] = {}
    n_asked: Counter[tuple[int, int]] = Counter()
    names: dict[str, str] = {}
    for assignment, annotator, submitted_at, item, question, exposure, chosen, choice, value, received_at in answers:
        found = known.get((item, question))
        if found is None:
            continue
        answer, row, settings = found
        if answer.about is not None and exposure != answer.about:
            continue
        is_right = answer.is_right(
            value=None if value is None else float(value), exposure=exposure, chosen=chosen, choice=choice
        )
        key = (item, question)
        test_type = row.item.test_type or Item.TestType.GIVEN
        n_pilot = settings["pilot_answers"] if test_type in _PILOTED_TYPES else 0
        n_asked[key] += 1
        is_pilot = n_asked[key] <= n_pilot
        if is_pilot and is_right is not None:
            pilots.setdefault(key, []).append(is_right)
        passed = n_pilot == 0 or pilot_agrees(pilots.get(key, []))
        rows.append(
            (
                assignment,
                names.setdefault(str(annotator), annotator_pseudonym(study, annotator)),
                row.item.section.position,
                f"s{row.item.section.position}.{row.item.number}",
                row.question.key,
                str(test_type),
                test_type == Item.TestType.POSITIVE,
                is_right,
                is_pilot,
                not is_pilot and passed and is_right is not None,
                submitted_at is not None,
                received_at,
            )
        )
    frame = pd.DataFrame.from_records(rows, columns=list(COLUMNS))
    frame["is_right"] = frame["is_right"].astype("object")
    return frame


def pilot_agrees(pilot: list[bool]) -> bool:
    """Return whether 90 % or more of the counted pilot answers agree with the known answer. Without any, they do not."""
    return bool(pilot) and sum(pilot) >= PILOT_AGREEMENT * len(pilot)
