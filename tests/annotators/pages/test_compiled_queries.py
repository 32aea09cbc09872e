"""Compiled statements do what the ORM would do, and are compiled once.

`annotators.fast_path` uses parts of Django that are not documented: compilers, update queries, the conversion of values and
the state of instances. Each statement of the product is compared with the ORM here, so an upgrade that changes them fails.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import DEFAULT_DB_ALIAS, DataError, IntegrityError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from annotators.fast_path import (
    CompiledSelect,
    CompiledUpdate,
    columns_in_model_order,
    insert_missing,
    insert_missing_without_fsync,
    instance_from_row,
    update_then_insert_if_all_matched,
)
from annotators.models import Annotator, Assignment, PageVisit, Response
from annotators.pages import record
from annotators.pages.form_data import NewResponse
from annotators.pages.presentation import _texts_query
from annotators.pages.record import NEW_VISIT_COLUMNS, RESPONSE_COLUMNS, VISIT_COLUMNS, record_page_answers
from annotators.places import assign, places
from annotators.views import entry
from annotators.views.lookup import _select_page_row
from studies.models import Batch, Exposure
from tests import ROOT
from tests.builders import humanlike_draft, launched, panel, spa_study
from tests.players import claimed, form, open_page, plausible, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
OF_NEW_VISIT = ("assignment", "key", "shown", "layout", "active_seconds")


def visits_of(assignment: int, key: str):
    return PageVisit.objects.filter(assignment=assignment, key=key).values_list(*VISIT_COLUMNS)


# Each statement of the product, compared with the ORM

UPDATES = {
    record.extension: lambda one, _: (7200, one.pk),
    record.submission: lambda one, _: (one.pk,),
    record.late_page: lambda one, _: (one.pk,),
    record.late_end: lambda one, _: ("screened_out", one.pk),
    record.late_submission: lambda one, _: (one.pk,),
    record.recording: lambda _, visit: (41, "1.A", visit.pk),
}
SELECTS = {
    assign._lock_annotator: lambda one: (one.annotator_id,),
    assign._select_study_and_newest_design: lambda one: (one.study_id,),
    assign._has_past: lambda one: (one.study_id, one.annotator_id),
    assign._select_annotator: lambda one: (one.annotator.pool, one.annotator.external_id),
    entry._select_link: lambda one: (one.recruitment.key,),
}
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
RELEASED = {"released_at": LONG_AGO, "released_reason": "expired"}
STATES = {
    "at work": {},
    "not started": {"started_at": None},
    "released": RELEASED,
    "screened out": RELEASED | {"released_reason": "screened_out"},
    "submitted": {"started_at": LONG_AGO, "submitted_at": LONG_AGO},
    "withdrawn": RELEASED | {"withdrawn_at": LONG_AGO},
}


def changed_by(change) -> tuple[int, list[dict]]:
    """What a change returns, and the rows after it; it is undone."""
    with transaction.atomic():
        found = change()
        rows = [row for model in (Assignment, PageVisit, Response) for row in model.objects.order_by("pk").values()]
        transaction.set_rollback(True)
    return found, rows


def assert_same_changes(compiled, plain) -> None:
    """The same rows, where a time that the database gave may be some seconds later, and the number of a new row another."""
    assert compiled[0] == plain[0] and len(compiled[1]) == len(plain[1])
    for row, expected in zip(compiled[1], plain[1], strict=True):
        assert {name: type(value) for name, value in row.items()} == {
            name: type(value) for name, value in expected.items()
        }
        times = [name for name, value in row.items() if isinstance(value, datetime)]
        assert all(abs(row[name] - expected[name]) < timedelta(seconds=30) for name in times)
        given = [*times, "id"]
        assert {**row, **dict.fromkeys(given)} == {**expected, **dict.fromkeys(given)}


def test_every_statement_of_the_product_is_compared_here():
    sources = [path.read_text() for app in ("annotators", "analysis", "boards") for path in (ROOT / app).rglob("*.py")]
    made = [text for source in sources for text in re.findall(r"= (Compiled\w+\()|return (Compiled\w+\()", source)]
    assert len(made) == len([*UPDATES, *SELECTS, _select_page_row, _texts_query, assign._take_open_batch_of_arms])


@pytest.mark.parametrize("state", STATES)
def test_each_update_changes_the_rows_that_the_orm_changes(state):
    one, _ = (submitted(spa_study(target_n=2), person, until="s2.ask") for person in "ab")
    open_page(one)
    Assignment.objects.filter(pk=one.pk).update(**STATES[state])
    changes = []
    for visit in PageVisit.objects.filter(assignment=one):
        for update, values_of in UPDATES.items():
            values = values_of(one, visit)

            def by_orm(update=update, values=values):
                rows, columns = update.build(*values)
                return rows.update(**columns)

            compiled = changed_by(lambda update=update, values=values: update(*values))
            assert_same_changes(compiled, changed_by(by_orm))
            changes.append(compiled[0])
    assert set(changes) == {0, 1}


@pytest.mark.parametrize("select", SELECTS)
def test_each_select_of_an_arrival_reads_what_the_orm_reads(select):
    study = launched(humanlike_draft(domains=("news",), target_n=6))
    door = panel(study, reward="2.50", opens_at=LONG_AGO)
    door.arms.set(study.arms.all())
    annotator = assign.find_annotator("panel", "a")
    one = assign.claim_batch(study, annotator, door, external_ids={"person": "a"}).assignment
    values = SELECTS[select](one)
    assert select(*values) == list(select.build(*values)) != []
    assert select(*("nobody" if isinstance(value, str) else 0 for value in values)) == []


@pytest.mark.parametrize("n_arms", [0, 2])
def test_a_place_is_taken_from_the_batch_that_the_orm_would_lock(n_arms):
    study = launched(humanlike_draft(conditions=("none", "instructions", "examples"), domains=("news",), target_n=6))
    arms = list(study.arms.values_list("pk", flat=True))[:n_arms]
    take = assign._take_open_batch_of_arms(n_arms).key_of_changed_row
    for _ in range(Batch.objects.filter(study=study, **({"arm__in": arms} if arms else {})).count()):
        expected = places.open_batches(study, arms).first()
        assert take(study.pk, *arms) == expected.pk
        assert Batch.objects.get(pk=expected.pk).claimed == expected.claimed + 1
    Batch.objects.filter(study=study).update(claimed=F("wanted"))
    assert take(study.pk, *arms) is None


def test_a_row_is_inserted_once_and_its_key_returned():
    columns = ("code", "pool", "external_id")
    one, again = (Annotator(pool="panel", external_id="x") for _ in range(2))
    assert insert_missing(Annotator, columns, one) == Annotator.objects.get().pk
    assert insert_missing(Annotator, columns, again) is None
    assert Annotator.objects.get().code == one.code


def test_an_inserted_row_has_what_the_database_set():
    given = claimed(spa_study(target_n=1), "a")
    kept = Assignment.objects.get(pk=given.pk)
    columns = [field.attname for field in Assignment._meta.concrete_fields]
    assert [getattr(given, name) for name in columns] == [getattr(kept, name) for name in columns]


def test_each_select_reads_what_the_orm_reads():
    one = submitted(spa_study(target_n=1), "a", until="s2.ask")
    for keys in (("", ""), ("", "s1"), ("s2.read", "s2.ask"), ("s1", "nowhere")):
        (row,) = _select_page_row(one.code, *keys)
        assert [row] == list(_select_page_row.build(one.code, *keys)) and row[0] == one.pk
    assert _select_page_row("no such code", "", "") == []
    items = tuple(Exposure.objects.values_list("item", flat=True).distinct()[:3])
    found = sorted(_texts_query(3)(*items))
    assert found and found == sorted(_texts_query(3).build(*items))


def test_each_insert_writes_what_the_orm_writes():
    one = submitted(spa_study(target_n=1), "a", until="s2.ask")
    exposure = Exposure.objects.select_related("item").filter(output__isnull=False).first()
    question = one.design.study.sections.get(position=2).questions.first()
    values = {
        "slot": "x1", "value": Decimal("7.25"), "choice": "tie", "part": "why", "text": "100 % ü\n{}", "skip_reason": "odd",
        "label": "A", "position": 3,
    }  # fmt: skip
    for references in (
        {"item_id": None, "exposure_id": None, "chosen_id": None},
        {"item_id": exposure.item_id, "exposure_id": exposure.pk, "chosen_id": exposure.pk},
    ):
        made = Response(assignment=one, question=question, **values, **references)
        assert_same_changes(
            changed_by(
                lambda made=made: update_then_insert_if_all_matched(
                    [(FIRST, (5, one.pk))], Response, RESPONSE_COLUMNS, [made]
                )
            ),
            changed_by(lambda made=made: FIRST(5, one.pk) and len(Response.objects.bulk_create([made]))),
        )
    visit = PageVisit(assignment=one, key="x", shown={"items": ["é"], "n": 2}, layout="one")
    assert_same_changes(
        changed_by(lambda: insert_missing_without_fsync(PageVisit, NEW_VISIT_COLUMNS, visit)),
        changed_by(lambda: PageVisit.objects.bulk_create([visit]) and None),
    )


# The kinds of statements


def test_a_select_gives_the_rows_and_the_values_of_the_orm():
    one, two = (submitted(spa_study(target_n=2), person) for person in "ab")
    select = CompiledSelect(visits_of, int, str)
    for assignment in (one, two):
        for key in ("s1", "s2.read", "nowhere"):
            assert select(assignment.pk, key) == list(visits_of(assignment.pk, key))


def test_an_instance_has_the_columns_that_were_read_and_reads_any_other_when_it_is_asked_for():
    one = submitted(spa_study(target_n=1), "a")
    stored = PageVisit.objects.get(assignment=one, key="s2.ask")
    (row,) = PageVisit.objects.filter(pk=stored.pk).values_list(*VISIT_COLUMNS)
    visit = instance_from_row(PageVisit, VISIT_COLUMNS, row)
    assert visit == stored and vars(visit._state) == vars(
        PageVisit.from_db(DEFAULT_DB_ALIAS, VISIT_COLUMNS, row)._state
    )
    assert visit.get_deferred_fields() == {"assignment_id", "shown_at", "active_seconds"} and visit.shown["questions"]
    assert all(getattr(visit, field.attname) == getattr(stored, field.attname) for field in PageVisit._meta.fields)
    with pytest.raises(ValueError, match="shorter"):
        instance_from_row(PageVisit, VISIT_COLUMNS, row[:-1])


def test_it_is_compiled_once():
    built = []

    def build(assignment, key):
        built.append(key)
        return visits_of(assignment, key)

    select = CompiledSelect(build, int, str)
    assert [select(n, "x") for n in range(5)] == [[]] * 5 and len(built) == 1


def test_a_value_that_would_not_reach_the_statement_is_refused():
    with pytest.raises(ValueError, match="cannot be compiled once"):
        CompiledSelect(lambda assignment: PageVisit.objects.filter(assignment=1).values_list("pk"), int)(7)


def test_an_update_changes_the_rows_that_it_names_and_counts_them():
    one = submitted(spa_study(target_n=1), "a")
    update = CompiledUpdate(
        lambda seconds, pk: (PageVisit.objects.filter(pk=pk), {"active_seconds": seconds}), int, int
    )
    first, second = PageVisit.objects.filter(assignment=one).order_by("pk")[:2]
    assert update(41, first.pk) == 1 and update(5, 0) == 0
    assert [PageVisit.objects.get(pk=visit.pk).active_seconds for visit in (first, second)] == [
        41,
        second.active_seconds,
    ]


def test_an_insert_leaves_the_rest_to_the_database():
    assignment = claimed(spa_study(target_n=1), "a")
    for layout in ("side", "one"):
        made = PageVisit(assignment=assignment, key="s1", shown={"items": ["é"]}, layout=layout)
        insert_missing_without_fsync(PageVisit, OF_NEW_VISIT, made)
    visit = PageVisit.objects.get(assignment=assignment)
    assert (visit.layout, visit.shown, visit.recorded_at) == ("side", {"items": ["é"]}, None) and visit.shown_at


def test_every_column_of_a_response_that_the_database_does_not_fill_is_written():
    left_out = {field.name for field in Response._meta.concrete_fields} - set(RESPONSE_COLUMNS)
    assert left_out == {"id", "received_at", "erased_at"}


def _seconds(key: str) -> CompiledUpdate:
    """Set the active seconds of an assignment's visit."""
    return CompiledUpdate(
        lambda seconds, assignment: (
            PageVisit.objects.filter(assignment=assignment, key=key),
            {"active_seconds": seconds},
        ),
        int,
        int,
    )


FIRST, SECOND, NOWHERE = map(_seconds, ("s1", "s2.read", "nowhere"))


def _answers(assignment) -> list[NewResponse]:
    """An answer in words and one in a number, to the first question."""
    question = Response.objects.filter(assignment=assignment).first().question_id
    about = {"question_id": question, "item_id": None, "exposure_id": None, "label": "", "position": None}
    return [
        NewResponse(assignment.pk, slot="x1", **about, text="100 % ü\n{}"),
        NewResponse(assignment.pk, slot="x2", **about, value=Decimal("7.25")),
    ]


def _found(assignment):
    visits = dict(PageVisit.objects.filter(assignment=assignment).values_list("key", "active_seconds"))
    rows = Response.objects.filter(assignment=assignment, slot__startswith="x").order_by("slot")
    assert all(rows.values_list("received_at", flat=True))
    return visits["s1"], visits["s2.read"], list(rows.values_list("slot", "value", "text", "item"))


WRITTEN = [("x1", None, "100 % ü\n{}", None), ("x2", Decimal("7.25"), "", None)]


@pytest.mark.parametrize(
    ("updates", "done", "found"),
    [
        ([FIRST, SECOND], 2, (41, 42, WRITTEN)),
        ([FIRST], 1, (41, 0, WRITTEN)),
        ([NOWHERE, SECOND], 0, (0, 0, [])),
        ([FIRST, NOWHERE], 1, (41, 0, [])),
        ([FIRST, NOWHERE, SECOND], 1, (41, 0, [])),
    ],
)
def test_what_is_done_in_turn_ends_where_a_row_is_not_found(updates, done, found):
    one, other = (submitted(spa_study(target_n=2), person) for person in "ab")
    steps = [(update, (41 + number, one.pk)) for number, update in enumerate(updates)]
    assert update_then_insert_if_all_matched(steps, Response, RESPONSE_COLUMNS, _answers(one)) == done
    assert _found(one) == found and _found(other) == (0, 0, [])


def test_in_turn_there_may_be_nothing_to_insert():
    one = submitted(spa_study(target_n=1), "a")
    assert (
        update_then_insert_if_all_matched([(FIRST, (5, one.pk)), (SECOND, (6, one.pk))], Response, RESPONSE_COLUMNS, [])
        == 2
    )
    assert _found(one) == (5, 6, [])


@pytest.mark.django_db(transaction=True)
def test_a_row_that_is_refused_undoes_what_came_before_it_and_no_word_is_cut_short():
    one = submitted(spa_study(target_n=1), "a")
    rows = _answers(one)
    rows[1].slot = "x1"
    with pytest.raises(IntegrityError):
        update_then_insert_if_all_matched(
            [(FIRST, (5, one.pk)), (SECOND, (6, one.pk))], Response, RESPONSE_COLUMNS, rows
        )
    assert _found(one) == (0, 0, [])
    rows[1].slot = "x" * 61
    if connection.vendor == "postgresql":  # SQLite holds no text to its length
        with pytest.raises(DataError):
            update_then_insert_if_all_matched([(FIRST, (5, one.pk))], Response, RESPONSE_COLUMNS, rows)
        assert _found(one) == (0, 0, [])


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_on("postgresql")
def test_on_postgres_a_page_is_stored_by_one_statement():
    study = spa_study(target_n=1)
    assignment = submitted(study, "a", until="s2.ask")
    answers = form(**plausible(assignment))
    with CaptureQueriesContext(connection) as seen:
        assert record_page_answers(assignment, "s2.ask", answers).next_key
    writing = [one["sql"] for one in seen.captured_queries if not one["sql"].startswith("SELECT")]
    assert len(writing) == 1 and writing[0].startswith("WITH done0 AS (UPDATE"), writing


def test_columns_are_in_the_order_of_the_model_and_a_wrong_name_is_refused():
    assert columns_in_model_order(PageVisit, "shown", "id", "key") == ("id", "key", "shown")
    with pytest.raises(ValueError, match="nothing"):
        columns_in_model_order(PageVisit, "nothing")


def visit_of(person: str) -> PageVisit:
    return PageVisit(assignment=claimed(spa_study(target_n=1), person), key="s1", shown={})


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_on("sqlite")
def test_on_sqlite_a_light_insert_alone_does_not_wait_for_the_disk():
    made, said = visit_of("a"), []
    database = connection.connection
    database.execute("PRAGMA synchronous=FULL")
    database.set_trace_callback(said.append)
    insert_missing_without_fsync(PageVisit, OF_NEW_VISIT, made)
    update_then_insert_if_all_matched([], PageVisit, OF_NEW_VISIT, [visit_of("b")])
    database.set_trace_callback(None)
    assert database.execute("PRAGMA synchronous").fetchone()[0] == 2
    said = [sql for sql in said if "PRAGMA" in sql or 'INTO "annotators_pagevisit"' in sql]
    assert [sql[:20] for sql in said] == [
        "PRAGMA synchronous",
        "PRAGMA synchronous=1",
        'INSERT INTO "annotat',
        "PRAGMA synchronous=2",
        'INSERT INTO "annotat',
    ]
    with transaction.atomic():
        insert_missing_without_fsync(PageVisit, OF_NEW_VISIT, visit_of("c"))
    assert database.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert PageVisit.objects.count() == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_on("postgresql")
def test_on_postgres_a_light_insert_alone_does_not_wait_for_the_disk():
    made = visit_of("a")
    with CaptureQueriesContext(connection) as seen:
        insert_missing_without_fsync(PageVisit, OF_NEW_VISIT, made)
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone()[0] == "on"
    assert "set_config('synchronous_commit', 'off', true)" in seen.captured_queries[0]["sql"]
    stored = PageVisit.objects.get()
    assert (stored.assignment_id, stored.key, stored.shown) == (made.assignment_id, "s1", {})
