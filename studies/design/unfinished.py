"""Batches and items that are stored in short transactions, so that others write in between, and count only from the last one on.

Until then they are those of a test run, with numbers from FIRST_IMPORT_NUMBER: nothing counts or shows them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

from django.db.models import F, QuerySet

from studies.models import FIRST_TEST_NUMBER, Batch, Exposure, Item, Placement, Study
from studies.models.fields import FIRST_IMPORT_NUMBER
from studies.models.guards import allowing_amendment, allowing_erasure

from .draw import DrawnBatch, item_key

CHUNK = 1000  # rows in one transaction
Turn = Callable[[], AbstractContextManager[Any]]


def chunks_of(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rows = iter(rows)
    while chunk := list(islice(rows, size)):
        yield chunk


def unfinished_rows(study: Study) -> list[QuerySet]:
    """Return the batches and items that are not published, in the order in which they can be deleted."""
    batches = Batch.objects.filter(study=study, number__gte=FIRST_IMPORT_NUMBER)
    items = Item.objects.filter(study=study, number__gte=FIRST_IMPORT_NUMBER)
    return [
        Placement.objects.filter(batch__in=batches.values("pk")),
        batches,
        Exposure.objects.filter(item__in=items.values("pk")),
        items,
    ]


def publish_rows(study: Study, origin: str) -> None:
    """Give the batches and items their final numbers, and the batches their origin."""
    number = F("number") - FIRST_IMPORT_NUMBER
    _, batches, _, items = unfinished_rows(study)
    _unguarded(batches).update(origin=origin, number=number)
    _unguarded(items).update(number=number)


def _unguarded(rows: QuerySet) -> QuerySet:
    """Return the same rows without the guard of frozen designs. These are no part of the design until they are published."""
    unguarded: QuerySet = QuerySet(rows.model, rows.query.chain())
    return unguarded


def delete_in_turns(rows_in_order: Iterable[QuerySet], turn: Turn) -> None:
    """Delete rows in short transactions, each of which ``turn`` opens."""
    for rows in rows_in_order:
        # Most often there is nothing, and a turn has several queries.
        while rows.exists():
            with turn(), allowing_erasure(), allowing_amendment():
                # Deleting costs more than inserting: Django reads the rows and looks for others that refer to them.
                keys = list(rows.order_by().values_list("pk", flat=True)[: CHUNK // 4])
                QuerySet(rows.model).filter(pk__in=keys).delete()


class UnfinishedBatches:
    """Drawn batches of a draft. ``store`` takes any number of short transactions, and ``publish`` belongs to the last one."""

    def __init__(self, study: Study, drawn_batches: Sequence[DrawnBatch], places_per_batch: int):
        self.study, self.drawn, self.places_per_batch = study, drawn_batches, places_per_batch
        self._items: dict[tuple[int, str], int] = {}
        # The same items of test runs exist until these are deleted, in the last transaction.
        self._late_items: list[tuple[Item, tuple[int, ...]]] = []
        self._late_placements: list[tuple[int, tuple[int, str], int]] = []

    def store(self, turn: Turn) -> None:
        new, of_test_runs = self._missing_items()
        self._late_items = [one for one in new if (one[0].section_id, one[0].content) in of_test_runs]
        now = (one for one in new if (one[0].section_id, one[0].content) not in of_test_runs)
        for chunk in chunks_of(now, CHUNK // 4):
            with turn():
                self._store_items(chunk)
        for batches in chunks_of(self.drawn, CHUNK):
            with turn():
                rows = Batch.objects.bulk_create(
                    Batch(
                        study=self.study,
                        arm_id=batch.arm_id,
                        wanted=self.places_per_batch,
                        origin=Batch.Origin.TEST,
                        number=FIRST_IMPORT_NUMBER + batch.number,
                    )
                    for batch in batches
                )
            for placements in chunks_of(self._placements(rows, batches), CHUNK):
                with turn():
                    Placement.objects.bulk_create(placements)

    def publish(self) -> None:
        """Let the batches count. Test runs must be deleted before."""
        self._store_items(self._late_items)
        Placement.objects.bulk_create(
            (
                Placement(batch_id=batch, item_id=self._items[key], number=number)
                for batch, key, number in self._late_placements
            ),
            batch_size=CHUNK,
        )
        publish_rows(self.study, Batch.Origin.DRAWN)

    def _missing_items(self) -> tuple[list[tuple[Item, tuple[int, ...]]], set[tuple[int, str]]]:
        """Return new items with their outputs, numbered in the order of the batches, and the keys of items of test runs."""
        last: dict[int, int] = defaultdict(int)
        of_test_runs = set()
        for section, content, pk, number in self.study.items.values_list("section_id", "content", "pk", "number"):
            if number < FIRST_TEST_NUMBER:
                self._items[section, content] = pk
                last[section] = max(last[section], number)
            else:
                of_test_runs.add((section, content))
        new: dict[tuple[int, str], tuple[Item, tuple[int, ...]]] = {}
        for section, record in (pair for batch in self.drawn for pair in batch.items):
            if record.item is not None or (key := item_key(section, record)) in self._items or key in new:
                continue
            last[section] += 1
            item = Item(
                study=self.study,
                section_id=section,
                number=FIRST_IMPORT_NUMBER + last[section],
                prompt_id=record.prompt,  # type: ignore[misc]  # only a stored item may lack a prompt
                kind=record.kind,
                content=key[1],
            )
            new[key] = (item, tuple(record.outputs))
        return list(new.values()), of_test_runs

    def _store_items(self, new: list[tuple[Item, tuple[int, ...]]]) -> None:
        Item.objects.bulk_create([item for item, _ in new])
        self._items |= {(item.section_id, item.content): item.pk for item, _ in new}
        Exposure.objects.bulk_create(
            Exposure(item=item, output_id=output, number=number)
            for item, outputs in new
            for number, output in enumerate(outputs)
        )

    def _placements(self, rows: Sequence[Batch], drawn: Sequence[DrawnBatch]) -> Iterator[Placement]:
        for row, batch in zip(rows, drawn, strict=True):
            for number, (section, record) in enumerate(batch.items):
                if record.item is not None:
                    yield Placement(batch=row, item_id=record.item, number=number)
                elif (pk := self._items.get(key := item_key(section, record))) is not None:
                    yield Placement(batch=row, item_id=pk, number=number)
                else:
                    self._late_placements.append((row.pk, key, number))
