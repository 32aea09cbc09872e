"""Files with attention checks or with questions whose answer is known."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db.models import Max
from django.utils.text import slugify

from studies.design.subjects import read_words_of_sections
from studies.models import Output, Question, Section, Study
from studies.protocols import REGISTRY
from studies.protocols.base.known_answers import parse_range, practice_questions
from studies.services import drafts
from studies.services.known_answers import GivenPracticeItem, GivenTestQuestion, scale_ends
from studies.services.lifecycle import ActionRefused, FileRefused
from studies.stimuli.columns import KEY, OUTPUT, PROMPT_ALIASES, TEXT, Columns
from studies.stimuli.rows import Row, TableLimits, TableProblem, TableProblems, read_rows
from studies.stimuli.texts import TextRefused, clean_name, clean_text, name_key

from .tables.columns import CellRefused

# Read a file of attention checks into the section of a draft that declares them: all rows, or none.
#
# A row is one question that says which answer to give. A key that the section has already is refused, unless the
# caller says that the file replaces it.


REQUIRED_COLUMNS = ("key", "text", "answers", "right")
COLUMNS = (*REQUIRED_COLUMNS, "help")
KNOWN_COLUMNS = Columns(REQUIRED_COLUMNS, COLUMNS, meanings={"key": KEY, "text": TEXT})
CHECK_LIMITS = TableLimits(bytes=1024 * 1024, rows=200, columns=50, cell_characters=10_000)
MAX_KEY_LENGTH, MAX_ANSWERS, MAX_ANSWER_LENGTH = 50, 20, 200
_BAR = re.compile(r"(?<!\\)\|")


class ChecksFileRefused(FileRefused):
    """A file of attention checks that cannot be stored."""


@dataclass(frozen=True, slots=True)
class GivenCheck:
    """One row: a question with its answers, of which exactly one is right."""

    row: int
    key: str
    text: str
    help: str
    scale: dict[str, Any]

    @property
    def columns(self) -> dict[str, Any]:
        return {"text": self.text, "help": self.help, "scale": self.scale, "required": True, "skip_reasons": []}


@dataclass(frozen=True, slots=True)
class StoredChecks:
    """The keys of a stored file by what became of them, and the position of their section."""

    section: int
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()


def store_attention_checks_and_delete_test_runs(
    study: Study, filename: str, content: bytes, *, by, position: int | None = None, replaces: bool = False
) -> StoredChecks:
    """Store the checks of a CSV or JSON-lines file in a draft.

    ``position``: the section that gets them. None: the only section of attention checks, or a new one. ``replaces``:
    whether a row may replace a check with the same key. Raise ActionRefused, and ChecksFileRefused with all faults.
    """
    with drafts.locked_draft(study.pk, by, deletes_test_runs=True) as study:
        section = _section(study, position)
        existing = {question.key: question for question in section.questions.all()} if section else {}
        checks, problems = _read_checks(filename, content)
        for check in checks:
            question = existing.get(check.key)
            if question is not None and not replaces and not _is_same(question, check):
                problems.add(check.row, "key", f"“{check.key}” exists with other words. Allow replacing, or change it.")
        if problems:
            problems.sort_by_row()
            raise ChecksFileRefused(problems)
        stored = _store(section or _add_section(study), checks, existing)
        if stored.added or stored.replaced:
            drafts.record_edit_and_raise_version(
                study,
                by,
                wrote=f"attention checks of section {stored.section}",
                added=list(stored.added),
                replaced=list(stored.replaced),
            )
    return stored


def attention_sections(study: Study) -> list[Section]:
    """Return the sections of attention checks with their questions, in order."""
    rows = study.sections.filter(purpose=Section.Purpose.ATTENTION).order_by("position")
    sections = list(rows.prefetch_related("questions", "arms"))
    read_words_of_sections(sections)
    return sections


def _section(study: Study, position: int | None) -> Section | None:
    """Return the section that gets the checks, or None if it must be made."""
    sections = {section.position: section for section in attention_sections(study)}
    if position is not None and position not in sections:
        raise ActionRefused(f"Section {position} holds no attention checks. Choose a section with this purpose.")
    if position is None and len(sections) > 1:
        positions = ", ".join(map(str, sections))
        raise ActionRefused(f"Several sections hold attention checks: {positions}. Choose one of them.")
    return sections[position] if position is not None else next(iter(sections.values()), None)


def _add_section(study: Study) -> Section:
    last = study.sections.aggregate(last=Max("position"))["last"] or 0
    return Section.objects.create(
        study=study, position=last + 1, protocol="survey", purpose=Section.Purpose.ATTENTION, m=0
    )


def _store(section: Section, checks: Sequence[GivenCheck], existing: dict[str, Question]) -> StoredChecks:
    last = max((question.position for question in existing.values()), default=0)
    added = [check for check in checks if check.key not in existing]
    replaced = [check for check in checks if check.key in existing and not _is_same(existing[check.key], check)]
    for check in replaced:
        for name, value in check.columns.items():
            setattr(existing[check.key], name, value)
    Question.objects.bulk_update(
        [existing[check.key] for check in replaced], ["text", "help", "scale", "required", "skip_reasons"]
    )
    Question.objects.bulk_create(
        Question(section=section, position=position, key=check.key, **check.columns)
        for position, check in enumerate(added, last + 1)
    )
    new_keys, replaced_keys = {check.key for check in added}, {check.key for check in replaced}
    return StoredChecks(
        section.position,
        added=tuple(check.key for check in added),
        replaced=tuple(check.key for check in replaced),
        unchanged=tuple(check.key for check in checks if check.key not in new_keys | replaced_keys),
    )


def _is_same(question: Question, check: GivenCheck) -> bool:
    return all(getattr(question, name) == value for name, value in check.columns.items())


def _read_checks(filename: str, content: bytes) -> tuple[list[GivenCheck], TableProblems]:
    rows = read_rows(filename, content, columns=KNOWN_COLUMNS, limits=CHECK_LIMITS)
    checks: dict[str, GivenCheck] = {}
    for row in rows:
        check = _parse_row(row, rows.problems)
        if check is None:
            continue
        if check.key in checks:
            rows.problems.add(row.number, "key", f"“{check.key}” is also in row {checks[check.key].row}. Change one.")
        checks.setdefault(check.key, check)
    return list(checks.values()), rows.problems


def _parse_row(row: Row, problems: TableProblems) -> GivenCheck | None:
    """Return the check of a row, or None after adding the faults of all its cells."""
    cells: dict[str, Any] = {}
    before = problems.count
    for name, parse in CELL_PARSERS.items():
        value = row.values.get(name)
        try:
            if name in REQUIRED_COLUMNS and value in (None, "", []):
                raise CellRefused(name, "is empty. Fill it in.")
            cells[name] = parse(value)
        except CellRefused as refused:
            problems.add(row.number, name, refused.text)
        except TextRefused as refused:
            problems.add(row.number, name, str(refused).removeprefix(f"{name}: "))
    answers, right = cells.get("answers"), cells.get("right")
    if answers and right and right not in answers:
        problems.add(row.number, "right", f"“{right[:80]}” is not among the answers. Copy one of them.")
    if problems.count > before:
        return None
    options = [
        {"key": option_key, "label": label} | ({"is_right": True} if label == right else {})
        for label, option_key in cells["answers"].items()
    ]
    scale = {"kind": "choice", "options": options}
    return GivenCheck(row.number, cells["key"], cells["text"], cells["help"], scale)


def _parse_key(value: Any) -> str:
    key = clean_name(value, max_length=MAX_KEY_LENGTH, field="key")
    try:
        validate_slug(key)
    except ValidationError:
        raise CellRefused("key", "may have only letters, digits, hyphens and underscores. Change it.") from None
    return key


def _parse_answers(value: Any) -> dict[str, str]:
    r"""Return the key of each answer by its text. Bars separate the answers of a CSV; a bar in an answer is ``\|``."""
    parts = value if isinstance(value, list) else [part.replace(r"\|", "|") for part in _BAR.split(str(value))]
    answers: dict[str, str] = {}
    for number, part in enumerate(parts, 1):
        if isinstance(part, str) and not part.strip():
            raise CellRefused("answers", f"answer {number} is empty. Write a text between the bars.")
        label = clean_name(part, max_length=MAX_ANSWER_LENGTH, field="answers")
        if label in answers:
            raise CellRefused("answers", f"“{label[:80]}” occurs twice. Remove one of them.")
        option_key = slugify(label, allow_unicode=True)[:MAX_KEY_LENGTH]
        # The key has no meaning for annotators. It must only differ from the others.
        answers[label] = option_key if option_key and option_key not in answers.values() else f"answer-{number}"
    if not 2 <= len(answers) <= MAX_ANSWERS:
        raise CellRefused("answers", f"has {len(answers)}. Write 2 to {MAX_ANSWERS}, separated by bars ( | ).")
    return answers


CELL_PARSERS: dict[str, Callable[[Any], Any]] = {
    "key": _parse_key,
    "text": lambda value: clean_text(value, is_required=True, field="text").strip(),
    "answers": _parse_answers,
    "right": lambda value: clean_name(value, max_length=MAX_ANSWER_LENGTH, field="right"),
    "help": lambda value: clean_text("" if value is None else value, field="help").strip(),
}


# Read a file of test questions: texts with their known answers, for one question of a section.


QUESTION_LIMITS = TableLimits(bytes=10 * 1024 * 1024, rows=1000, columns=50)


@dataclass(frozen=True, slots=True)
class KnownAnswerFile:
    """The test questions of a file, and the problems of its rows. With a problem, none is stored."""

    questions: tuple[GivenTestQuestion, ...]
    problems: tuple[TableProblem, ...]
    n_problems: int


def file_columns(section: Section) -> tuple[str, ...]:
    """Return the columns of a file for this section: pairs name the worse text, ratings the expected answer."""
    is_pair = REGISTRY[section.protocol].comparison_scope == "pair"
    return ("prompt", "text", "worse") if is_pair else ("prompt", "text", "expected")


def read_test_question_file(section: Section, question: Question, filename: str, content: bytes) -> KnownAnswerFile:
    """Read a CSV or JSON-lines file. Prompts are named by their keys.

    Raise ActionRefused if the question's scale has no middle.
    """
    columns = file_columns(section)
    ends = None if "worse" in columns else scale_ends(question)
    keys = {name_key(key): key for key in section.study.prompts.values_list("key", flat=True)}
    known = Columns(
        columns,
        aliases=PROMPT_ALIASES,
        meanings={"prompt": KEY, "text": OUTPUT},
        contents={"prompt": lambda text: name_key(text) in keys},
    )
    rows = read_rows(filename, content, columns=known, limits=QUESTION_LIMITS)
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
    return KnownAnswerFile(tuple(questions.values()), tuple(rows.problems), len(rows.problems))


def _test_question(
    number: int, values: Mapping[str, str], prompt_keys: Mapping[str, str], ends: tuple[float, float, float] | None
) -> GivenTestQuestion:
    """Return the test question of one row. ``prompt_keys``: by what names are compared by. ``ends``: those of the rating's scale with its middle, None for pairs."""
    for name, value in values.items():
        if not value:
            raise CellRefused(name, "is empty. Fill it in.")
    prompt = prompt_keys.get(name_key(values["prompt"]))
    if prompt is None:
        raise CellRefused("prompt", f"no prompt has the key “{values['prompt'][:80]}”. Import it first.")
    text = clean_text(values["text"])
    if ends is None:
        worse = clean_text(values["worse"])
        if text == worse:
            raise CellRefused("worse", "is the same text. Enter a worse one.")
        return GivenTestQuestion(number, prompt, text, worse=worse)
    expected = parse_expected(values["expected"], ends)
    if expected is None:
        low, _, high = ends
        raise CellRefused(
            "expected", f"must be high, low, or a range from {low:g} to {high:g} such as {high - 1:g}-{high:g}."
        )
    return GivenTestQuestion(number, prompt, text, *expected)


# Read a file of practice items: stored texts of one prompt with the right answers.


RIGHT = "right:"
MAX_PRACTICE_BYTES = 1024 * 1024
PRACTICE_LIMITS = TableLimits(bytes=MAX_PRACTICE_BYTES, rows=500, columns=50)


@dataclass(frozen=True, slots=True)
class PracticeFile:
    """The practice items of a file, and the problems of its rows. With a problem, none is stored."""

    items: tuple[GivenPracticeItem, ...]
    problems: tuple[TableProblem, ...]
    n_problems: int


def practice_columns(section: Section) -> tuple[str, ...]:
    """Return the columns of a file for this section. Right answers are left out where they follow from the authors."""
    answers = (f"{RIGHT}{question.key}" for question in practice_questions(REGISTRY[section.protocol], section))
    return ("prompt", "systems", *answers, "explanation")


def read_practice_file(section: Section, filename: str, content: bytes) -> PracticeFile:
    """Read a CSV or JSON-lines file. A row names a prompt by its key and systems by their names, in the order of the right answers."""
    columns = practice_columns(section)
    known = Columns(columns[:2], columns, aliases=PROMPT_ALIASES, meanings={"prompt": KEY})
    rows = read_rows(filename, content, columns=known, limits=PRACTICE_LIMITS)
    read = [(row.number, {name: str(row.values.get(name) or "").strip() for name in columns}) for row in rows]
    stored = Output.objects.filter(prompt__study=section.study_id, prompt__key__in={one["prompt"] for _, one in read})
    outputs = {
        (output.prompt.key, output.system.name): output
        for output in stored.select_related("prompt", "system").order_by("-sample")
    }
    items: dict[tuple[str, ...], GivenPracticeItem] = {}
    for number, values in read:
        prompt, systems = values["prompt"], [name.strip() for name in values["systems"].split("|")]
        if missing := [name for name in systems if (prompt, name) not in outputs]:
            text = f"no text of “{missing[0][:80]}” answers the prompt “{prompt[:80]}”. Correct the name or the prompt."
            rows.problems.add(number, "systems", text)
        elif (key := (prompt, *sorted(systems))) in items:
            rows.problems.add(number, "systems", "another row has the same texts. Remove one of the two.")
        else:
            given = {name.removeprefix(RIGHT): text for name, text in values.items() if name.startswith(RIGHT)}
            chosen = tuple(outputs[prompt, name] for name in systems)
            items[key] = GivenPracticeItem(number, chosen, given, values["explanation"])
    rows.problems.sort_by_row()
    return PracticeFile(tuple(items.values()), tuple(rows.problems), len(rows.problems))


def parse_expected(text: str, ends: tuple[float, float, float]) -> tuple[float, float] | None:
    """Return the range of right answers: "high", "low", one number or two. Return None for any other text, and outside the scale."""
    low, middle, high = ends
    if text.lower() in ("high", "low"):
        return (middle, high) if text.lower() == "high" else (low, middle)
    ends_of_range = parse_range(text)
    return ends_of_range if ends_of_range and low <= ends_of_range[0] <= ends_of_range[1] <= high else None
