"""Each index of these tables is written with every page or answer: there are no more than are needed, and those are used."""

import pytest
from django.db import connection

from annotators.models import Assignment, PageVisit, Response

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
WRITTEN_BY_PAGES = (Assignment, PageVisit, Response)


def _indexes(model) -> dict[str, dict]:
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, model._meta.db_table)
    return {name: one for name, one in found.items() if one["columns"] and (one["index"] or one["unique"])}


def _is_partial(name: str) -> bool:
    asked = (
        "SELECT indexdef FROM pg_indexes WHERE indexname = %s"
        if connection.vendor == "postgresql"
        else "SELECT sql FROM sqlite_master WHERE name = %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(asked, [name])
        row = cursor.fetchone()
    return bool(row and row[0]) and " WHERE " in row[0]


@pytest.mark.parametrize("model", WRITTEN_BY_PAGES)
def test_no_index_is_the_beginning_of_another(model):
    indexes = _indexes(model)
    whole = {name: one["columns"] for name, one in indexes.items() if not _is_partial(name)}
    assert whole
    superfluous = [
        (name, other)
        for name, columns in whole.items()
        for other, longer in whole.items()
        # PostgreSQL has one more of each unique text, in another order of letters.
        if name != other
        and not indexes[name]["unique"]
        and longer[: len(columns)] == columns
        and not name.endswith("_like")
    ]
    assert not superfluous


def test_what_each_page_changes_of_an_assignment_is_in_no_index_and_finds_room_beside_it():
    assert "reserved_until" not in {column for one in _indexes(Assignment).values() for column in one["columns"]}
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname, reloptions FROM pg_class WHERE relname IN (%s, %s)",
                [model._meta.db_table for model in (Assignment, PageVisit)],
            )
            found = dict(cursor.fetchall())
        assert found == {"annotators_assignment": ["fillfactor=80"], "annotators_pagevisit": ["fillfactor=80"]}


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("annotators_response", "item_id = 7"),
        ("annotators_response", "exposure_id = 7"),
        ("annotators_response", "chosen_id = 7"),
        ("annotators_response", "question_id = 7"),
        ("annotators_response", "assignment_id = 7"),
        ("annotators_pagevisit", "assignment_id = 7"),
        ("annotators_assignment", "batch_id = 7"),
        ("annotators_assignment", "study_id = 7"),
        ("annotators_assignment", "released_at IS NULL AND submitted_at IS NULL"),
    ],
)
def test_what_is_looked_for_is_found_by_an_index(table, condition):
    """Also by the database itself, which looks before it lets a prompt's item or a question be deleted."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN SELECT 1 FROM {table} WHERE {condition}")
        else:
            cursor.execute(f"EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE {condition}")
        plan = " ".join(str(part) for row in cursor.fetchall() for part in row)
    assert "Seq Scan" not in plan and "INDEX" in plan.upper(), plan
