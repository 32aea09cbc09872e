"""What an upgrade must keep: every row, and the schema of a new site."""

import sqlite3
import subprocess
from pathlib import Path

from django.db.migrations.loader import MigrationLoader

from .stored import Rows

OURS = ("studies", "annotators", "analysis", "boards")

NAMES_OF_MODELS = ("auth_permission", "django_content_type")


def is_kept(before: Rows, after: Rows) -> None:
    """Every row of every table, with its columns; later migrations add others. The list of migrations has become longer."""
    (columns, old), (_, new) = before.pop("django_migrations"), after.pop("django_migrations")
    assert {row[columns.index("name")] for row in new if row not in old} == {
        name for (app, name) in MigrationLoader(None).disk_migrations if app in OURS
    }
    assert set(old) <= set(new)
    # Tables of later migrations are empty.
    assert before.keys() <= after.keys()
    assert not any(rows for name, (_, rows) in after.items() if name not in before)
    for table in before:
        (columns, rows), (known, there) = before[table], after[table]
        places = [known.index(column) for column in columns]
        kept = [tuple(row[place] for place in places) for row in there]
        stored, found = sorted(repr(tuple(row)) for row in rows), sorted(map(repr, kept))
        # Django describes a later model in rows of its own tables.
        assert set(stored) <= set(found) if table in NAMES_OF_MODELS else stored == found, table


def made_in_sqlite(database: Path) -> dict[str, tuple]:
    """How tables and indexes are made. A column that was altered is moved to the end, so order says nothing."""
    with sqlite3.connect(database) as connection:
        made = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    found = {}
    for name, sql in made:
        head, _, body = sql.partition("(")
        parts, depth, part = [], 0, ""
        for sign in body:
            depth += {"(": 1, ")": -1}.get(sign, 0)
            if depth < 0 or (sign == "," and not depth):
                parts.append(part.strip())
                part = ""
            else:
                part += sign
        found[name] = (head, sorted([*parts, part]))
    return found


def made_in_postgres(url: str) -> str:
    command = ["pg_dump", "--schema-only", "--no-owner", "--no-privileges", url]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return "\n".join(line for line in said.splitlines() if not line.startswith(("\\", "--")))
