"""What each column of somebody's file means: proposed from names and contents, chosen by a person, applied before rows are read.

A mapping is a list of texts such as ``prompt_text=question`` or ``output:gpt=model_a``: a role, which is one of heval's own names of
columns, and the file's name of the column. Without a column for the key of a prompt, keys are made from the prompts' texts, so that
a second import of the file finds the same prompts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from studies.stimuli.columns import KEY, OTHER_NAMES, OUTPUT, SEEN_ROWS, SYSTEM, TEXT, column_words, first_named
from studies.stimuli.numbers import is_number
from studies.stimuli.rows import Row, Rows
from studies.stimuli.texts import SettingsRefused, is_blank, key_from_text, name_key

from .columns import ALIASES, ATTRIBUTE, COLUMNS, PARTS, StimulusLayout, group_noun, parse_stimulus_columns

EXAMPLES = 3
_WORD_OF_OUTPUT = re.compile(
    r"^(?:(?:model|system)[ _.:-]+)?(?:output|response|answer|completion|generation|text|prediction)s?[ _.:-]+(?=.)"
    r"|[ _.:-]+(?:output|response|answer|completion|generation|text|prediction)s?$",
    re.IGNORECASE,
)


def parse_mapping(columns: Iterable[str]) -> dict[str, str]:
    """Return the role of each column that a mapping names. Raise SettingsRefused, which names the wrong part."""
    roles: dict[str, str] = {}
    for text in columns:
        role, equals, column = (part.strip() for part in text.partition("="))
        before, colon, after = role.partition(":")
        is_role = role in COLUMNS or (colon and after and (before in PARTS or before == ATTRIBUTE))
        if not (equals and column and is_role):
            raise SettingsRefused(
                f"“{text[:80]}” maps no column. Write ROLE=COLUMN with one of the roles {', '.join(COLUMNS[:8])}, system, text, "
                "or output:NAME for a column with the outputs of a system."
            )
        if name_key(column) in roles:
            raise SettingsRefused(f"The column “{column[:80]}” has two roles. Keep one of them.")
        if role in roles.values():
            raise SettingsRefused(f"Two columns have the role “{role[:80]}”. Keep one of them.")
        roles[name_key(column)] = role
    return roles


def apply_mapping(rows: Rows, columns: Sequence[str]) -> Rows:
    """Return the rows under heval's names of columns, with keys for prompts that have none."""
    roles = parse_mapping(columns)
    present = {name_key(column): column for column in rows.columns}
    if missing := [column for column in roles if column not in present]:
        found = ", ".join(rows.columns)[:500]
        rows.problems.add(
            None, None, f"no column {', '.join(missing)}, which is mapped; the columns found are: {found}."
        )
        return Rows((), iter(()), rows.problems, rows.is_json, rows.notes)
    names = [name for column in rows.columns if (name := _name_of(column, roles))]
    # Rows of JSON may have columns that the first ones do not have.
    mapped: Iterator[Row] = (
        Row(row.number, {name: value for column, value in row.values.items() if (name := _name_of(column, roles))})
        for row in rows
    )
    if KEY not in names:
        names.append(KEY)
        mapped = _with_keys(mapped)
    return Rows(tuple(names), mapped, rows.problems, rows.is_json, rows.notes)


def _name_of(column: str, roles: Mapping[str, str]) -> str:
    """Return heval's name of a column; its own name if it has no role and means nothing, and '' if it is left out."""
    if role := roles.get(name_key(column)):
        return f"group:{column}" if role == "group" and group_noun(column) else role
    own = ALIASES.get(column, column)
    return "" if own in COLUMNS or ":" in column else column


def _with_keys(rows: Iterable[Row]) -> Iterator[Row]:
    """Give each prompt a key that is made from its text. Equal texts of one system are different prompts: -2, -3."""
    seen: Counter[tuple[str, str]] = Counter()
    for row in rows:
        text = row.values.get(TEXT) or row.values.get("source")
        if not isinstance(text, str) or is_blank(text):
            yield Row(row.number, {**row.values, KEY: ""})
            continue
        base = key_from_text(text)
        system = str(row.values.get(SYSTEM) or "")
        seen[base, system] += 1
        n = seen[base, system]
        yield Row(row.number, {**row.values, KEY: base if n == 1 else f"{base}-{n}"})


@dataclass(frozen=True, slots=True)
class Look:
    """What the first rows show of a column."""

    column: str
    words: str
    is_text: bool
    n: int
    distinct: int
    examples: tuple[str, ...]
    values: tuple[str, ...] = ()  # of each row, '' if it has none

    @property
    def seen(self) -> list[str]:
        """Each value once."""
        return [value for value in dict.fromkeys(self.values) if value]


def look_at(rows: Rows) -> tuple[list[Look], Rows]:
    """Return what the first rows show of each column, and all rows again."""
    first = list(islice(rows.rows, SEEN_ROWS))
    looks = []
    # Rows of JSON may write a name in several ways.
    spelled = {name_key(column): column for column in chain(rows.columns, *(row.values for row in first))}
    columns = tuple(spelled.values())
    for column in columns:
        cells = [row.values.get(column) for row in first]
        values = tuple(str(cell).strip() if isinstance(cell, str | int | float) else "" for cell in cells)
        texts = [value for value in values if value]
        long = [text for text in texts if len(text) >= 25 or len(text.split()) >= 4]
        is_text = bool(texts) and 2 * len(long) >= len(texts) and not all(map(is_number, texts))
        n_distinct, examples = len(set(texts)), tuple(texts[:EXAMPLES])
        looks.append(Look(column, column_words(column), is_text, len(texts), n_distinct, examples, values))
    return looks, replace(rows, columns=columns, rows=chain(first, rows.rows))


def propose_mapping(looks: Sequence[Look]) -> list[str]:
    """Return a mapping for a file whose columns have other names than heval's. Empty if heval's own names are enough.

    Names come before contents. With a column that names systems, each row is about one output; otherwise each column of texts has the
    outputs of one system, named like the column.
    """
    layout = parse_stimulus_columns(tuple(look.column for look in looks))
    unknown = [look for look in looks if look.column in layout.ignored]
    named = (*OTHER_NAMES[OUTPUT], *OTHER_NAMES["reference"])
    if not layout.problem and not any(look.is_text or look.words in named for look in unknown):
        return []
    own = [ALIASES.get(look.column, look.column) for look in looks]
    if any(own.count(name) > 1 for name in COLUMNS):
        return []  # two columns mean the same, and only a person knows which one is meant
    roles = _own_roles(layout)
    free = {look.column: look for look in looks if look.column not in roles.values()}

    def take(role: str, found: Look | None) -> None:
        if found is not None and role not in roles:
            roles[role] = found.column
            free.pop(found.column)

    if not layout.wide:
        take(SYSTEM, _named(SYSTEM, (look for look in free.values() if look.n and not look.is_text)))
    take(TEXT, _named(TEXT, (look for look in free.values() if look.n)))
    take("source", _named("source", (look for look in free.values() if look.is_text)))
    if SYSTEM in roles:
        take(OUTPUT, _named(OUTPUT, free.values()) or _only(look for look in free.values() if look.is_text))
        n_systems = next((look.distinct for look in looks if look.column == roles[SYSTEM]), 1)
        ids = (look for look in free.values() if not look.is_text and look.distinct * n_systems == look.n)
    else:
        texts = [look for look in free.values() if look.is_text]
        if TEXT not in roles and "source" not in roles and len(texts) > 1:
            take(TEXT, texts[0])
        for look in [look for look in free.values() if look.is_text or (look.n and look.words in named)]:
            name = "reference" if look.words in OTHER_NAMES["reference"] else system_name(look.column)
            # Two columns of one system, such as “gpt output” and “gpt response”, keep their whole names.
            take(f"output:{name}" if f"output:{name}" not in roles else f"output:{_without_equals(look.column)}", look)
        ids = (look for look in free.values() if not look.is_text and look.n and look.distinct == look.n)
    take(KEY, _named(KEY, ids))
    for role in ("domain", "language", "group"):
        take(role, _named(role, (look for look in free.values() if look.n and not look.is_text)))
    if KEY not in roles and TEXT not in roles and "source" not in roles:
        return []
    return [f"{role}={column}" for role, column in roles.items()]


def _own_roles(layout: StimulusLayout) -> dict[str, str]:
    """Return the columns with heval's own names by their roles."""
    roles = dict(layout.cells)
    roles |= {f"{ATTRIBUTE}:{name}": column for name, column in layout.attributes.items()}
    for system, parts in layout.wide.items():
        roles |= {f"{_part_name(part)}:{system}": column for part, column in parts.items()}
    return roles


def _part_name(part: str) -> str:
    return "output" if part == "text" else next(name for name, meaning in PARTS.items() if meaning == part)


def _named(role: str, looks: Iterable[Look]) -> Look | None:
    by_column = {look.column: look for look in looks}
    return by_column.get(first_named(role, by_column))


def _only(looks: Iterable[Look]) -> Look | None:
    found = list(looks)
    return found[0] if len(found) == 1 else None


def system_name(column: str) -> str:
    """Return the name of the system whose outputs a column has.

    >>> system_name("output_gpt-4"), system_name("Alpaca response"), system_name("model_a"), system_name("output")
    ('gpt-4', 'Alpaca', 'model_a', 'output')
    """
    whole = _without_equals(column)
    return _WORD_OF_OUTPUT.sub("", whole).strip() or whole


def _without_equals(column: str) -> str:
    """Return a column's name as a name of a system. In a mapping, “=” separates the role from the column."""
    return column.replace("=", " ").strip()[:100].strip() or "system"


def describe_columns(looks: Sequence[Look], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return each column with its role and examples, for a page that lets a person change the roles."""
    roles = parse_mapping(columns)
    if not columns:
        own = _own_roles(parse_stimulus_columns(tuple(look.column for look in looks)))
        roles = {name_key(column): role for role, column in own.items()}
    return [
        {
            "column": look.column,
            "role": roles.get(name_key(look.column), ""),
            "system": system_name(look.column)[:100],
            "examples": [example[:160] for example in look.examples],
        }
        for look in looks
    ]
