"""Read a file of test questions: texts with their known answers, for one question of a section."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from studies.models import Question, Section
from studies.protocols import REGISTRY
from studies.protocols.base.test_questions import parse_range
from studies.services.test_questions import GivenTestQuestion, scale_ends
from studies.stimuli.rows import TableLimits, TableProblem, read_rows
from studies.stimuli.texts import TextRefused, clean_text

from .tables.cells import CellRefused

LIMITS = TableLimits(bytes=10 * 1024 * 1024, rows=1000, columns=50)


@dataclass(frozen=True, slots=True)
class TestQuestionFile:
    """The test questions of a file, and the problems of its rows. With a problem, none is stored."""

    questions: tuple[GivenTestQuestion, ...]
    problems: tuple[TableProblem, ...]
    n_problems: int


def file_columns(section: Section) -> tuple[str, ...]:
    """Return the columns of a file for this section: pairs name the worse text, ratings the expected answer."""
    is_pair = REGISTRY[section.protocol].comparison_scope == "pair"
    return ("prompt", "text", "worse") if is_pair else ("prompt", "text", "expected")


def read_test_question_file(section: Section, question: Question, filename: str, content: bytes) -> TestQuestionFile:
    """Read a CSV or JSON-lines file. Prompts are named by their keys.

    Raise ActionRefused if the question's scale has no middle.
    """
    columns = file_columns(section)
    ends = None if "worse" in columns else scale_ends(question)
    rows = read_rows(filename, content, known_columns=columns, required_columns=columns, limits=LIMITS)
    keys: Collection[str] = set(section.study.prompts.values_list("key", flat=True))
    questions: dict[tuple[str, str], GivenTestQuestion] = {}
    for row in rows:
        values = {name: str(row.values.get(name) or "").strip() for name in columns}
        try:
            question_of_row = _test_question(row.number, values, keys, ends)
            if (key := (question_of_row.prompt, question_of_row.text)) in questions:
                raise CellRefused("text", "occurs twice with this prompt. Remove one of the rows.")
            questions[key] = question_of_row
        except CellRefused as refused:
            rows.problems.add(row.number, refused.column, refused.text)
        except TextRefused as refused:
            rows.problems.add(row.number, None, str(refused))
    rows.problems.sort_by_row()
    return TestQuestionFile(tuple(questions.values()), tuple(rows.problems), len(rows.problems))


def _test_question(
    number: int, values: Mapping[str, str], prompt_keys: Collection[str], ends: tuple[float, float, float] | None
) -> GivenTestQuestion:
    """Return the test question of one row. ``ends``: those of the rating's scale with its middle, None for pairs."""
    for name, value in values.items():
        if not value:
            raise CellRefused(name, "is empty. Fill it in.")
    if values["prompt"] not in prompt_keys:
        raise CellRefused("prompt", f"no prompt has the key “{values['prompt'][:80]}”. Import it first.")
    text = clean_text(values["text"])
    if ends is None:
        worse = clean_text(values["worse"])
        if text == worse:
            raise CellRefused("worse", "is the same text. Enter a worse one.")
        return GivenTestQuestion(number, values["prompt"], text, worse=worse)
    expected = parse_expected(values["expected"], ends)
    if expected is None:
        low, _, high = ends
        raise CellRefused(
            "expected", f"must be high, low, or a range from {low:g} to {high:g} such as {high - 1:g}-{high:g}."
        )
    return GivenTestQuestion(number, values["prompt"], text, *expected)


def parse_expected(text: str, ends: tuple[float, float, float]) -> tuple[float, float] | None:
    """Return the range of right answers: "high", "low", one number or two. Return None for any other text, and outside the scale."""
    low, middle, high = ends
    if text.lower() in ("high", "low"):
        return (middle, high) if text.lower() == "high" else (low, middle)
    ends_of_range = parse_range(text)
    return ends_of_range if ends_of_range and low <= ends_of_range[0] <= ends_of_range[1] <= high else None
