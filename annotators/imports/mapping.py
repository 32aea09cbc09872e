"""The role of each column of a file of answers: said by a person, or proposed from names and from what the study knows."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from studies.imports.tables.mapping import Look, look_at
from studies.imports.tables.result import ImportReport
from studies.models import Study
from studies.stimuli.numbers import is_number
from studies.stimuli.rows import Rows, TableProblems
from studies.stimuli.texts import SettingsRefused, name_key

from .columns import (
    ANSWER_COLUMNS,
    ANSWER_TO,
    LETTER_WORDS,
    OWN_NAMES,
    ROLES,
    SHOWN_COLUMN,
    SHOWN_NAMES,
    TIE_WORDS,
    Options,
    StudyNames,
    is_role,
    time_of,
    words_of,
)

# Programs put what was shown and what was answered under these prefixes.
_PREFIX = re.compile(r"(?P<prefix>Input|Answer|player|(?:[\w-]+\.)?[0-9]+\.player)\.(?P<base>.+)", re.IGNORECASE)


@dataclass
class Proposal:
    """The column of each role. ``renamed``: read under another name than heval's. ``guessed``: proposed by contents alone."""

    roles: dict[str, str]
    renamed: list[str] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)


def mapped(rows: Rows, study: StudyNames | None, options: Options, report: ImportReport) -> tuple[Rows, Proposal]:
    """Return the rows and the role of each column, and put the columns with examples into the report."""
    looks, rows = look_at(rows)
    before = rows.problems.count
    proposal = propose_roles(looks, study, options, rows.labels, rows.problems)
    roles = {column: role for role, column in proposal.roles.items()}
    report.columns = [
        {
            "column": look.column,
            "role": roles.get(look.column, ""),
            "examples": [example[:160] for example in look.examples],
        }
        for look in looks
    ]
    report.is_mapped = bool(proposal.guessed)
    if rows.problems.count > before:
        rows = Rows((), iter(()), rows.problems, rows.is_json, rows.notes)
    return rows, proposal


def propose_roles(
    looks: Sequence[Look],
    study: StudyNames | None,
    options: Options,
    labels: Mapping[str, str],
    problems: TableProblems,
) -> Proposal:
    """Return the roles of columns: those that were said, then heval's own names, known names, and what the study recognises."""
    written = {name_key(look.column): look.column for look in looks}
    roles = {role: written.get(name_key(column), column) for role, column in options.columns.items()}
    found = Proposal(roles)
    for role, column in roles.items():
        if column not in written.values():
            problems.add(None, None, f"the file has no column “{column}”, which is declared as {role}.")
    said = {*roles.values(), *(written.get(name_key(column), column) for column in options.left_out)}
    free = {look.column: look for look in looks if look.column not in said}
    for column in list(free):
        name = OWN_NAMES.get(column, column)
        if not is_role(name) or (name == "prompt_key" and column == "prompt" and _holds_texts(free[column], study)):
            continue
        if name not in roles:
            roles[name] = column
        elif name not in options.columns:
            problems.add(None, None, f"the columns “{roles[name]}” and “{column}” mean the same.")
        del free[column]
    proposer = _Proposer(found, free, looks, study)
    proposer.name_answers()
    proposer.name_others()
    if study:
        proposer.name_cells({})
    if study and options.proposes_columns:
        proposer.guess(study, labels)
    return found


def _holds_texts(look: Look, study: StudyNames | None) -> bool:
    """Return whether a column named “prompt” has the texts of prompts in place of their keys."""
    return bool(
        study
        and look.n
        and not any(map(study.prompts.find, look.seen))
        and any(map(study.prompt_texts.find, look.seen))
    )


class _Proposer:
    """The steps of a proposal. Each takes columns that are still free."""

    def __init__(self, found: Proposal, free: dict[str, Look], looks: Sequence[Look], study: StudyNames | None):
        self.found, self.roles, self.free, self.study = found, found.roles, free, study
        self.values = {look.column: look.values for look in looks}

    def take(self, role: str, look: Look | None, *, is_guessed: bool = False) -> None:
        if look is None or role in self.roles:
            return
        self.roles[role] = look.column
        (self.found.guessed if is_guessed else self.found.renamed).append(role)
        del self.free[look.column]

    @property
    def is_wide(self) -> bool:
        return any(ANSWER_TO.fullmatch(role) for role in self.roles)

    def has_any(self, *names: str) -> bool:
        return any(name in self.roles for name in names)

    def name_answers(self) -> None:
        """Columns that are named like questions, their criteria or their wordings hold the answers to them."""
        if self.study is None or self.has_any("question", "value", "chosen", "choice"):
            return
        if any(look.words in ROLES["question"].known for look in self.free.values()):
            return
        for look in list(self.free.values()):
            prefix, base = _prefix_and_base(look.column)
            if prefix != "input" and (key := self.study.questions.find(look.column) or self.study.questions.find(base)):
                self.take(f"value:{key}", look)

    def name_others(self) -> None:
        """Columns with names that people and tools use. If several have such a name, one whose contents fit comes first."""
        for role, known in [*((role.name, role.known) for role in ROLES.values()), *SHOWN_NAMES.items()]:
            is_answer = role in ROLES and ROLES[role].is_answer
            if role in self.roles or (is_answer and (self.is_wide or self.has_any("value", "chosen", "choice"))):
                continue
            candidates = [
                look for name in (role, *known) for look in self.free.values() if self._is_named(look, name, role)
            ]
            fitting = [look for look in candidates if self._fits(role, look)]
            # A wrong name of a prompt or a system is better refused with its row than ignored.
            must_fit = role in ("value", "chosen", "time", "prompt_text", "status", "text", "question")
            self.take(role, next(iter(fitting or ([] if must_fit else candidates)), None))

    def _is_named(self, look: Look, name: str, role: str) -> bool:
        if look.words == words_of(name):
            return True
        prefix, base = _prefix_and_base(look.column)
        is_answer = role in ROLES and ROLES[role].is_answer
        return (
            bool(prefix)
            and words_of(base) == words_of(name)
            and (is_answer if prefix == "answer" else not is_answer or prefix != "input")
        )

    def _fits(self, role: str, look: Look) -> bool:
        study, values = self.study, look.seen
        if role == "annotator":
            return look.n == len(look.values)
        if not values or study is None:
            return role not in ("prompt_text", "text", "status")
        match role:
            case "prompt_key":
                return any(map(study.prompts.find, values))
            case "prompt_text":
                return not self.has_any("prompt_key") and any(map(study.prompt_texts.find, values))
            case "system" | "shown:A" | "shown:B":
                return any(map(study.systems.find, values))
            case "question":
                return any(map(study.questions.find, values))
            case "value":
                return any(map(study.fits_a_scale, values)) or any(map(is_number, values))
            case "chosen":
                return study.has_choices_of_outputs and any(map(self._is_choice, values))
            case "time":
                return any(map(time_of, values))
            case "text":
                return (
                    any(question.scale.answer_column == "text" for question, _ in study.wordings)
                    and len(study.wordings) == 1
                )
        return True

    def _is_choice(self, text: str) -> bool:
        word = name_key(text)
        columns = {name_key(column) for role, column in self.roles.items() if SHOWN_COLUMN.fullmatch(role)}
        columns |= {words.replace(" ", "_") for names in SHOWN_NAMES.values() for words in names}
        return bool(
            self.study
            and self.study.systems.find(text)
            or word in columns
            or word in TIE_WORDS
            or word in LETTER_WORDS
            or word in "ab"
        )

    def name_cells(self, labels: Mapping[str, str]) -> None:
        """Columns whose names (or labels) have the key of a prompt, and the names of a system and a question, hold one answer each."""
        study = self.study
        if study is None or self.has_any("prompt_key", "prompt_text"):
            return
        for look in list(self.free.values()):
            name = labels.get(look.column, "") if labels else look.column
            prompt = study.prompts.find_inside(name) or (_text_inside(study, name) if labels else "")
            keys = {question.key for question, _ in study.wordings}
            question = study.questions.find_inside(name) or (keys.pop() if len(keys) == 1 else "")
            system = study.systems.find_inside(name)
            if not prompt or not question or bool(system) != study.is_about_outputs(question):
                continue
            self.take("@".join(filter(None, (f"value:{question}", prompt, system))), look, is_guessed=bool(labels))

    # Contents alone

    def guess(self, study: StudyNames, labels: Mapping[str, str]) -> None:
        if labels:
            self.name_cells(labels)
        is_each = any(ANSWER_TO.fullmatch(role) and "@" in role for role in self.roles)
        if not is_each:
            self._guess_what_was_judged(study)
        self._guess_answers()
        self._guess_time()
        self._guess_annotator(is_each)

    def _all(self, test: Callable[[str], Any]) -> list[Look]:
        return [look for look in self.free.values() if look.seen and all(map(test, look.seen))]

    def _guess_what_was_judged(self, study: StudyNames) -> None:
        if not self.has_any("prompt_key", "prompt_text"):
            keys = self._all(study.prompts.find)
            most = max((look.distinct for look in keys), default=0)
            best = [look for look in keys if look.distinct == most]
            if len(best) == 1:
                self.take("prompt_key", best[0], is_guessed=True)
            elif not keys:
                self.take("prompt_text", next(iter(self._all(study.prompt_texts.find)), None), is_guessed=True)
        if not self.is_wide:
            self.take("question", next(iter(self._all(study.questions.find)), None), is_guessed=True)
        named = self._all(study.systems.find)
        if len(named) == 3 and not self.has_any("chosen", "shown:A", "shown:B"):
            chosen = [one for one in named if _is_among(one, [other for other in named if other is not one])]
            if len(chosen) == 1:
                self.take("chosen", chosen[0], is_guessed=True)
                named.remove(chosen[0])
        if len(named) == 2 and study.has_choices_of_outputs:
            for role, look in zip(("shown:A", "shown:B"), named, strict=True):
                self.take(role, look, is_guessed=True)
        elif len(named) == 1:
            is_chosen = study.has_choices_of_outputs and not any(is_each for _, is_each in study.wordings)
            self.take(
                "chosen" if is_chosen and not self.has_any("value", "choice", "label") else "system",
                named[0],
                is_guessed=True,
            )

    def _guess_answers(self) -> None:
        if self.study is None or self.is_wide or self.has_any("value", "chosen", "choice", "label"):
            return
        if self.study.has_choices_of_outputs and self.has_any("shown:A"):
            self.take("chosen", next(iter(self._all(self._is_choice)), None), is_guessed=True)
        fitting = [look for look in self._all(self.study.fits_a_scale) if not _is_numbering(look.seen)]
        if len(fitting) == 1:
            self.take("value", fitting[0], is_guessed=True)

    def _guess_time(self) -> None:
        times = self._all(lambda text: not is_number(text) and time_of(text))
        if len(times) == 1:
            self.take("time", times[0], is_guessed=True)

    def _guess_annotator(self, is_each: bool) -> None:
        """Propose the only column of ids in which nobody answers the same thing twice, and somebody answers more than one thing."""
        if "annotator" in self.roles:
            return
        about = [column for role, column in self.roles.items() if role not in ANSWER_COLUMNS and role != "time"]
        keys = [self.values[column] for column in about if column in self.values]
        candidates = []
        for look in self.free.values():
            if look.is_text or look.n < len(look.values) or time_of(look.seen[0]):
                continue
            is_id = look.distinct == look.n if is_each else 1 < look.distinct < look.n
            if is_id and len(set(zip(look.values, *keys, strict=True))) == look.n:
                candidates.append(look)
        if len(candidates) == 1:
            self.take("annotator", candidates[0], is_guessed=True)


def _prefix_and_base(column: str) -> tuple[str, str]:
    named = _PREFIX.fullmatch(column)
    return (named["prefix"].rpartition(".")[2].casefold(), named["base"]) if named else ("", column)


def _is_numbering(values: Sequence[str]) -> bool:
    """Return whether the values are the numbers of the rows."""
    return len(values) > 2 and any(list(values) == [str(n + start) for n in range(len(values))] for start in (0, 1))


def _is_among(one: Look, others: Sequence[Look]) -> bool:
    return all(value in row for value, *row in zip(one.values, *(other.values for other in others), strict=True))


def _text_inside(study: StudyNames, label: str) -> str:
    """Return the key of the only prompt whose text is inside of a label of a survey, or ''."""
    words = f" {words_of(label)} "
    found = {key for text, key in study.prompt_texts.by_words.items() if text and f" {text} " in words}
    return found.pop() if len(found) == 1 else ""


# The page


def role_labels(study: Study, proposed: Iterable[str]) -> dict[str, str]:
    """Return the roles that a person may give a column, with their labels."""
    labels = {"": "leave out"} | {name: role.label for name, role in ROLES.items()}
    labels |= {f"shown:{letter}": f"system under the letter {letter}" for letter in "ABCDEF"}
    for key in study.sections.order_by("position").values_list("questions__key", flat=True):
        labels |= {f"value:{key}": f"answers to the question “{key}”"} if key else {}
    for role in proposed:
        if role not in labels and (to := ANSWER_TO.fullmatch(role)):
            about = filter(None, (f"answers to “{to[1]}” about “{to[2]}”", to[3] and f"of “{to[3]}”"))
            labels[role] = " ".join(about)
    return labels


def checked_options(options: dict[str, Any]) -> dict[str, Any]:
    return Options.from_json(options).as_json()


def options_with_roles(options: dict[str, Any], roles: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the options with the roles that a person gave all columns. Raises SettingsRefused."""
    texts = [role for role, _ in roles if role]
    if repeated := next((role for role in texts if texts.count(role) > 1), None):
        raise SettingsRefused(f"The role “{repeated[:80]}” is chosen twice. Keep one of them.")
    columns = {role: column for role, column in roles if role}
    left_out = [column for role, column in roles if not role]
    changed = {"columns": columns, "left_out": left_out, "proposes_columns": True}
    return Options.from_json(options | changed).as_json()
