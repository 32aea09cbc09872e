"""What the columns of files mean: one vocabulary for every file that heval reads, and what each reader takes of it.

A column is found by heval's own name first, then by a name that people or tools give it, then by its contents.
"""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from .texts import SettingsRefused, name_key

KEY, TEXT, SYSTEM, OUTPUT, IMAGE, PERSON = "prompt_key", "prompt_text", "system", "text", "image", "annotator"
QUESTION, VALUE, WINNER, TIME, EMPTY = "question", "value", "chosen", "time", "is_empty"
# Names that people and programs give to columns, by meaning; an earlier name comes before a later one. A name may have several
# meanings, because “question” is a prompt in one kind of file and a criterion in another.
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    KEY: (
        "id", "prompt id", "question id", "item id", "example id", "instance id", "sample id", "pair id", "doc id", "idx", "index", "uid", "uuid",
        "key", "item",
    ),
    TEXT: ("prompt", "question", "instruction", "input", "query", "context", "problem", "task", "request", "post", "article", "premise"),
    SYSTEM: ("model", "model name", "system name", "model id", "system id", "generator", "llm", "engine", "method", "sys"),
    OUTPUT: (
        "output", "response", "answer", "completion", "generation", "generated", "generated text", "prediction", "predicted", "hypothesis", "summary",
        "continuation", "reply", "translation", "target text", "mt", "hyp",
    ),
    IMAGE: ("image path", "image file", "file name", "filename", "file", "path", "picture"),
    EMPTY: ("is empty", "empty output"),
    "source": ("source", "src", "source text", "document", "passage", "background"),
    "domain": ("domain", "category", "topic", "dataset", "subset", "task type", "genre"),
    "language": ("language", "lang", "locale"),
    "group": ("group",),
    "reference": ("reference", "ref", "references", "target", "gold", "human", "ground truth", "reference answer", "expected", "ideal", "label text"),
    PERSON: (
        "worker", "worker id", "workerid", "annotator id", "annotator name", "rater", "rater id", "prolific pid", "prolific id", "participant label",
        "participant code", "participant id", "participant", "user id", "user", "judge id", "judge", "evaluator", "coder", "responseid", "response id",
        "respondent id", "respondent", "email address", "subject id",
    ),
    QUESTION: ("criterion", "aspect", "dimension", "metric name", "question key"),
    VALUE: ("rating", "score", "likert", "points", "answer", "response", "grade"),
    WINNER: ("winner", "preferred", "preference", "chosen model", "choice", "better", "vote"),
    TIME: (
        "submittime", "submit time", "timestamp", "submitted at", "received at", "created at", "recordeddate", "recorded date", "end date", "enddate",
        "completed at", "date", "participant time started utc", "tstamp",
    ),
    "first": ("model a", "system a", "option a", "model 1", "system 1", "left", "left model", "model left"),
    "second": ("model b", "system b", "option b", "model 2", "system 2", "right", "right model", "model right"),
}  # fmt: skip
# A prompt's key in files about prompts that a study or board has: heval's own files name it in several ways.
PROMPT_ALIASES = {"prompt_key": "prompt", "key": "prompt"}
# Rows at which the recognition of a column by its contents looks, and the share of them that must be known.
SEEN_ROWS = 300
KNOWN_SHARE = 0.9


@lru_cache(maxsize=4096)
def column_words(column: str) -> str:
    """Return a column's name as words, so that prompt_id, Prompt-ID and “prompt id” are equal."""
    return " ".join(re.sub(r"[_.\-]+", " ", name_key(column)).split())


def first_named(meaning: str, columns: Iterable[str]) -> str:
    """Return the column that people call by the first name of this meaning, or ''."""
    by_words = {column_words(column): column for column in columns}
    return next((by_words[name] for name in OTHER_NAMES[meaning] if name in by_words), "")


class Columns:
    """The columns that a reader takes, by the names that it gives them.

    ``aliases``: other names of heval, each with the name that it means; two names of one column in a file are a fault. ``meanings``: the
    meaning of a column, by whose ``OTHER_NAMES`` it is found if the file has none of heval's names. ``contents``: functions that
    say whether a value of the file belongs into a column, which find it if no name does. ``mapping``: what a person said, as texts such
    as ``prompt_key=id``; raises SettingsRefused. ``proposes``: what only contents show is read, and otherwise refused with its mapping.
    """

    def __init__(
        self,
        required: Iterable[str] = (),
        optional: Iterable[str] = (),
        *,
        aliases: Mapping[str, str] | None = None,
        meanings: Mapping[str, str] | None = None,
        contents: Mapping[str, Callable[[str], bool]] | None = None,
        mapping: Iterable[str] = (),
        proposes: bool = True,
    ) -> None:
        self.required = tuple(required)
        self.meanings, self.contents = meanings or {}, contents or {}
        self._names = {name_key(name): name for name in (*optional, *self.required)}
        self._names |= {name_key(alias): name for alias, name in (aliases or {}).items()}
        self.proposes = proposes
        self.said = self._read_mapping(mapping)
        self._resolved: dict[tuple[str, ...], tuple[str, ...]] = {}

    def _read_mapping(self, mapping: Iterable[str]) -> dict[str, str]:
        """Return the reader's name of each column that a mapping names."""
        roles = self._names | {name_key(meaning): name for name, meaning in self.meanings.items()}
        said: dict[str, str] = {}
        for text in mapping:
            role, _, column = (part.strip() for part in text.partition("="))
            name = roles.get(name_key(role))
            if not column or name is None:
                known = ", ".join(self._role_of(name) for name in dict.fromkeys(self._names.values()))
                raise SettingsRefused(f"“{text[:80]}” maps no column. Write ROLE=COLUMN with one of the roles {known}.")
            if name_key(column) in said or name in said.values():
                raise SettingsRefused(f"“{text[:80]}” maps a role or a column again. Keep one of the two.")
            said[name_key(column)] = name
        return said

    def _role_of(self, name: str) -> str:
        return self.meanings.get(name, name)

    def problem_of(self, columns: Iterable[str], renamed: Mapping[str, str]) -> str:
        """Return what is wrong with the mapping of a file with these columns of the reader, or ''."""
        found = set(columns) - set(renamed.values())
        if missing := [column for column, name in self.said.items() if name not in found]:
            return f"The file has no column “{missing[0][:80]}”, which is mapped. Correct its name."
        if renamed and not self.proposes:
            options = " ".join(
                shlex.join(["--map", f"{self._role_of(name)}={column}"]) for column, name in renamed.items()
            )
            return f"Only contents show what some columns are. Check these roles, and add: {options}"
        return ""

    def own_name(self, column: str) -> str:
        """Return the reader's name of a column that has one of heval's names, or the column's name without blanks around it."""
        return self._names.get(name_key(column), column.strip())

    def knows(self, column: str) -> bool:
        return name_key(column) in self._names

    def resolve(self, header: tuple[str, ...]) -> tuple[str, ...]:
        """Return the reader's name of each column of a header, and its own name if it means nothing to the reader."""
        if header not in self._resolved:
            if len(self._resolved) > 1000:  # rows of JSON may differ in their keys
                self._resolved.clear()
            self._resolved[header] = self._resolve(header)
        return self._resolved[header]

    def _resolve(self, header: tuple[str, ...]) -> tuple[str, ...]:
        said = [self.said.get(name_key(column), "") for column in header]
        names = [role or self.own_name(column) for role, column in zip(said, header, strict=True)]
        # What has the name of a mapped column, and is not meant.
        names = [
            f"{column.strip()} (not mapped)" if not role and name in self.said.values() else name
            for role, name, column in zip(said, names, header, strict=True)
        ]
        for name, meaning in self.meanings.items():
            free = [column for column in names if not self.knows(column)]
            if name not in names and (found := first_named(meaning, free)):
                names[names.index(found)] = name
        return tuple(names)

    def recognise(self, columns: Collection[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Return the columns that only their contents show, by the file's names: no other column's contents belong there."""
        found: dict[str, str] = {}
        for name, belongs in self.contents.items():
            if name in columns:
                continue
            free = [column for column in columns if column and not self.knows(column) and column not in found]
            fitting = [column for column in free if _fits(belongs, [row.get(column) for row in rows])]
            if len(fitting) == 1:
                found[fitting[0]] = name
        return found


def _fits(belongs: Callable[[str], bool], values: Sequence[Any]) -> bool:
    texts = [str(value).strip() for value in values if value not in (None, "")]
    return bool(texts) and sum(map(belongs, texts)) >= KNOWN_SHARE * len(texts)


def renamed_note(renamed: Mapping[str, str]) -> str:
    """Return the note about columns that were read under another name."""
    return (
        f"Columns were read under other names: {', '.join(f'{name} = {column}' for column, name in renamed.items())}."
    )
