"""Write a plan into its draft in short transactions, so that others write in between. What stops before its last one is removed."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Model, ProtectedError, QuerySet

from studies import signals
from studies.design.draw import item_content_hash
from studies.design.unfinished import CHUNK, chunks_of, delete_in_turns, publish_rows, unfinished_rows
from studies.imports.preparation import ORIGINAL_KEY
from studies.models import (
    FIRST_TEST_NUMBER,
    Arm,
    Batch,
    Exposure,
    Item,
    Job,
    Output,
    Placement,
    Prompt,
    Section,
    Study,
    System,
    audit,
)
from studies.models.fields import FIRST_IMPORT_NUMBER
from studies.services.copying import delete_draft
from studies.services.databases import insert_rows, let_others_write, prepare_rows, update_rows
from studies.services.lifecycle import UNFINISHED, ActionRefused, refuse_other_import

from .batches import GatheredBatch, GatheredPlacement
from .existing import last_ids
from .plan import ImportPlan, Journal


class StudyChanged(ActionRefused):
    """The study was changed after the file was checked."""


def refuse_changed(is_changed: bool) -> None:
    if is_changed:
        raise StudyChanged("The study was changed while the file was being read. Check the file again.")


# Short transactions, for every importer.


class Turns:
    """The short transactions of an import. Each begins only if the job is still ours and nobody has changed the study."""

    def __init__(self, study: Study, job: Job, total: int, progress: Callable[..., None]):
        self.study, self.job, self.total, self._progress = study, job, total, progress
        self.n_written = 0

    @contextmanager
    def turn(self, doing: str) -> Iterator[Study]:
        began = time.monotonic()
        with transaction.atomic():
            self._progress(self.n_written, self.total, doing)
            study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=self.study.pk)
            refuse_changed((study.version, study.state) != (self.study.version, self.study.state))
            yield study
        let_others_write(time.monotonic() - began)

    def insert(self, model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[Any]], doing: str) -> None:
        """Insert rows in as many turns as they need."""
        for chunk in chunks_of(rows, CHUNK):
            prepared = prepare_rows(model, columns, chunk)
            with self.turn(doing):
                insert_rows(model, columns, prepared)


class NewItem(NamedTuple):
    """An item that a file describes: ids of its section, prompt and outputs."""

    section: int
    prompt: int
    outputs: tuple[int, ...]
    kind: str = Item.Kind.LIVE

    @property
    def key(self) -> tuple[int, str]:
        return self.section, item_content_hash(self.prompt, self.outputs, str(self.kind))


class ItemWriter:
    """Items by content. An item with the same content is reused. New ones have high numbers until the import is published."""

    def __init__(self, study: Study):
        self.study = study
        self.ids: dict[tuple[int, str], int] = {}
        self._last: Counter[int] = Counter()
        rows = study.items.filter(number__lt=FIRST_TEST_NUMBER).values_list("section_id", "content", "pk", "number")
        for section, content, pk, number in rows.iterator(2000):
            self.ids[section, content] = pk
            self._last[section] = max(self._last[section], number)

    def add_missing(self, wanted: Iterable[NewItem], first_number: int = FIRST_IMPORT_NUMBER) -> None:
        """Insert the missing ones of these items with their exposures, in the caller's transaction."""
        new = {item.key: item for item in wanted if item.key not in self.ids}
        rows = []
        for (section, content), item in new.items():
            self._last[section] += 1
            number = first_number + self._last[section]
            rows.append(
                Item(
                    study=self.study,
                    section_id=section,
                    number=number,
                    prompt_id=item.prompt,
                    kind=item.kind,
                    content=content,
                )
            )
        Item.objects.bulk_create(rows)
        self.ids |= {key: row.pk for key, row in zip(new, rows, strict=True)}
        exposures = [
            (self.ids[key], output, number) for key, item in new.items() for number, output in enumerate(item.outputs)
        ]
        insert_rows(Exposure, ("item_id", "output_id", "number"), exposures)


def remove_in_turns(study: Study, job: Job | None, rows_in_order: Iterable[QuerySet]) -> None:
    """Delete rows of an import that did not end, in short transactions. Raise ActionRefused if another one is writing.

    ``job``: the import that removes its own rows, or None.
    """

    @contextmanager
    def turn() -> Iterator[None]:
        began = time.monotonic()
        with transaction.atomic():
            Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
            refuse_other_import(study, job)
            yield
        let_others_write(time.monotonic() - began)

    delete_in_turns(rows_in_order, turn)


# Stimuli
#
# Their rows are in the draft from the first transaction on. The job remembers the last ids from before, and which systems are new, so
# that they can be found and removed. Nobody else adds stimuli to the draft meanwhile (lifecycle.refuse_during_import).


def remove_unfinished_stimuli(study: Study, job: Job | None) -> None:
    """Remove what imports of stimuli have stored without coming to their end. ``job``: see ``remove_in_turns``."""
    for unfinished in Job.objects.filter(study=study, arguments__has_key=UNFINISHED):
        marks = unfinished.arguments[UNFINISHED]
        rows = [
            *unfinished_rows(study),
            Output.objects.filter(system__study=study, pk__gt=marks.get("output", 0)),
            Prompt.objects.filter(study=study, pk__gt=marks.get("prompt", 0)),
        ]
        remove_in_turns(study, job, rows)
        with suppress(ProtectedError):  # somebody has chosen a new system for an arm or a question meanwhile
            remove_in_turns(study, job, [System.objects.filter(study=study, pk__in=marks.get("new_systems", []))])
        with transaction.atomic():
            Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
            refuse_other_import(study, job)
            # A draft that the import has made is deleted, unless somebody has changed it.
            is_unwanted = "is_new_study" in marks and not audit.events_of(study).exclude(verb="create").exists()
            _end_unfinished(unfinished, **({"study": None} if is_unwanted else {}))
            if is_unwanted:
                title = study.title
                delete_draft(study)
                audit.record("delete draft", by=unfinished.by, title=title)


def _end_unfinished(job: Job, **columns: Any) -> None:
    job.arguments = {name: value for name, value in job.arguments.items() if name != UNFINISHED}
    Job.objects.filter(pk=job.pk).update(arguments=job.arguments, **columns)


PROMPT_COLUMNS = ("study_id", "key", "text", "source", "domain", "language", "media", "attributes", "group")
OUTPUT_COLUMNS = (
    "system_id", "prompt_id", "sample", "text", "media", "is_empty", "format", "alt", "language", "warning", "original"
)  # fmt: skip
WRITING = "Writing prompts and outputs"


class StimuliWriter:
    """Write a plan. ``store`` takes any number of short transactions, and ``publishing`` is the last one."""

    def __init__(self, plan: ImportPlan, turns: Turns):
        self.plan, self.turns, self.study = plan, turns, turns.study
        self._changes = Journal()
        collector, stored = plan.batch_collector, plan.stored.batches
        changed = list(collector.changed_batches(stored)) if collector else []
        self._new_batches = [batch for batch in changed if batch.key not in stored]
        self._replaced_batches = [batch for batch in changed if batch.key in stored]

    def store(self) -> None:
        """Store everything that is new, and prepare what replaces something. Raise StudyChanged if the study has changed."""
        self._begin()
        try:
            for chunk in chunks_of(self.plan.additions or (), CHUNK):
                self._store(chunk)
                self.turns.n_written += len(chunk)
            self._prepare_changes()
            if self._new_batches or self._replaced_batches:
                self._store_batches()
        except IntegrityError:
            # Somebody added the same rows by hand.
            raise StudyChanged(
                "The study was changed while the file was being written. Check the file again."
            ) from None

    def _begin(self) -> None:
        """Note in the job which rows will be those of the import, and create the new systems."""
        job, humans = self.turns.job, self.plan.options.human_systems
        with self.turns.turn(WRITING) as study:
            marks: dict[str, Any] = last_ids(study)
            refuse_changed(marks != self.plan.last_ids)
            if self._new_batches or self._replaced_batches:
                signals.deleting_test_runs.send(Study, study=study, job=job)
            systems = System.objects.bulk_create(
                System(study=study, name=name, is_human=name in humans) for name in self.plan.new_systems
            )
            marks["new_systems"] = [system.pk for system in systems]
            job.arguments[UNFINISHED] = job.arguments.get(UNFINISHED, {}) | marks
            Job.objects.filter(pk=job.pk).update(arguments=job.arguments)
        self._systems = dict(self.study.systems.values_list("name", "pk"))

    def _store(self, chunk: list[list[Any]]) -> None:
        new_prompts = [self._new_prompt(*columns) for kind, *columns in chunk if kind == "p"]
        prepared = prepare_rows(Prompt, PROMPT_COLUMNS, new_prompts)
        outputs = [columns for kind, *columns in chunk if kind == "o"]
        with self.turns.turn(WRITING):
            insert_rows(Prompt, PROMPT_COLUMNS, prepared)
            keys = {key for _, key, *_ in outputs}
            prompts = dict(self.study.prompts.filter(key__in=keys).values_list("key", "pk")) if keys else {}
            rows = [(self._systems[system], prompts[key], *rest, "") for system, key, *rest in outputs]
            insert_rows(Output, OUTPUT_COLUMNS, rows)

    def _new_prompt(self, *columns: Any) -> tuple[Any, ...]:
        *texts, attributes, group = columns
        return (self.study.pk, *texts, json.loads(attributes) if attributes else {}, group)

    def _prepare_changes(self) -> None:
        """Look up the rows that change, so that the last transaction only has to write them."""
        for chunk in chunks_of(self.plan.changes or (), CHUNK):
            prompts = {columns[0]: columns[1:] for kind, *columns in chunk if kind == "p"}
            for prompt in self.study.prompts.filter(key__in=list(prompts)) if prompts else ():
                self._changes.add(("p", *_changed_prompt(prompt, *prompts[prompt.key]), prompt.pk))
            outputs = {tuple(columns[:3]): columns[3:] for kind, *columns in chunk if kind == "o"}
            found = Output.objects.filter(system__study=self.study, prompt__key__in={key for _, key, _ in outputs})
            names = ("system__name", "prompt__key", "sample", "pk")
            for *place, pk in found.values_list(*names) if outputs else ():
                if tuple(place) in outputs:
                    self._changes.add(("o", *outputs[tuple(place)], "", pk))

    @contextmanager
    def publishing(self, outcome: dict[str, Any]) -> Iterator[Study]:
        """Open the last transaction, which replaces what has changed and ends the import. Yield the study."""
        with self.turns.turn("Finishing") as study:
            for chunk in chunks_of(self._changes, CHUNK):
                for kind, model, columns in (("p", Prompt, PROMPT_COLUMNS[2:]), ("o", Output, OUTPUT_COLUMNS[3:])):
                    rows = [columns for one, *columns in chunk if one == kind]
                    update_rows(model, columns, prepare_rows(model, columns, rows))
            publish_rows(study, Batch.Origin.IMPORTED)
            if self._replaced_batches:
                self._replace_batches()
            Study.objects.filter(pk=study.pk).update(version=F("version") + 1, group_noun=self.plan.groups.noun)
            _end_unfinished(self.turns.job, result=outcome)
            yield study

    # Ready-made batches

    def _store_batches(self) -> None:
        """Store new batches and their items under high numbers, which ``publish_rows`` corrects."""
        study, doing = self.study, "Writing batches"
        self._outputs = {
            (name, key, sample): pk
            for pk, name, key, sample in Output.objects.filter(system__study=study)
            .values_list("pk", "system__name", "prompt__key", "sample")
            .iterator(2000)
        }
        self._prompts = dict(study.prompts.values_list("key", "pk"))
        self._sections = {section.position: section for section in study.sections.all()}
        self._arms = dict(Arm.objects.filter(study=study).values_list("name", "pk"))
        self._items = ItemWriter(study)
        places = (place for batch in self._new_batches for place in batch.ordered_placements())
        for chunk in chunks_of(map(self._item, places), CHUNK // 4):
            with self.turns.turn(doing):
                self._items.add_missing(chunk)
        last = study.batches.filter(number__lt=FIRST_TEST_NUMBER).aggregate(last=Max("number"))["last"]
        first_number = FIRST_IMPORT_NUMBER + (0 if last is None else last + 1)
        batches: dict[str, int] = {}
        for chunk in chunks_of(enumerate(self._new_batches, first_number), CHUNK):
            with self.turns.turn(doing):
                rows = Batch.objects.bulk_create(
                    Batch(
                        study=study,
                        arm_id=self._arms[batch.arm],
                        number=number,
                        wanted=study.annotators_per_batch,
                        origin=Batch.Origin.TEST,
                        key=batch.key,
                    )
                    for number, batch in chunk
                )
            batches |= {row.key: row.pk for row in rows}
        placements = (row for batch in self._new_batches for row in self._placements(batch, batches[batch.key]))
        self.turns.insert(Placement, ("batch_id", "item_id", "number"), placements, doing)

    def _item(self, place: GatheredPlacement) -> NewItem:
        section = self._sections[place.section]
        kind = Item.Kind.PRACTICE if section.purpose == Section.Purpose.TRAINING else Item.Kind.LIVE
        outputs = (self._outputs[system, place.prompt, sample] for system, sample in sorted(place.outputs.items()))
        return NewItem(section.pk, self._prompts[place.prompt], tuple(outputs), kind)

    def _placements(self, batch: GatheredBatch, pk: int) -> Iterator[tuple[int, int, int]]:
        for number, place in enumerate(batch.ordered_placements()):
            yield pk, self._items.ids[self._item(place).key], number

    def _replace_batches(self) -> None:
        study, keys = self.study, [batch.key for batch in self._replaced_batches]
        _empty_batches(study, keys)
        self._items = ItemWriter(study)
        rows = {row.key: row for row in study.batches.filter(key__in=keys)}
        for batch in self._replaced_batches:
            rows[batch.key].arm_id = self._arms[batch.arm]
        Batch.objects.bulk_update(rows.values(), ["arm"], batch_size=200)
        places = (place for batch in self._replaced_batches for place in batch.ordered_placements())
        self._items.add_missing(map(self._item, places), first_number=0)
        placements = [row for batch in self._replaced_batches for row in self._placements(batch, rows[batch.key].pk)]
        insert_rows(Placement, ("batch_id", "item_id", "number"), placements)


def _changed_prompt(
    prompt: Prompt, text: str, source: str, domain: str, language: str, media: str, attributes: str, group: str
) -> tuple[Any, ...]:
    """Return the columns of a prompt after its change. What the file leaves blank stays."""
    original = prompt.attributes.get(ORIGINAL_KEY, prompt.text)
    kept = {name: value for name, value in prompt.attributes.items() if name != ORIGINAL_KEY}
    return (
        text or original,
        source or prompt.source,
        domain or prompt.domain,
        language or prompt.language,
        media or prompt.media,
        json.loads(attributes) if attributes else kept,
        group or prompt.group,
    )


def _empty_batches(study: Study, keys: list[str]) -> None:
    """Empty the batches that are replaced, and delete items that are no longer in any batch."""
    for chunk_keys in chunks_of(keys, 500):
        placements = Placement.objects.filter(batch__study=study, batch__key__in=chunk_keys)
        items = set(placements.values_list("item_id", flat=True))
        placements.delete()
        unused = Item.objects.filter(pk__in=items, placements=None, expected=None, kind=Item.Kind.LIVE)
        unused_ids = list(unused.values_list("pk", flat=True))
        Exposure.objects.filter(item__in=unused_ids).delete()
        Item.objects.filter(pk__in=unused_ids).delete()
    for section in study.sections.all():
        _close_gaps(section)


def _close_gaps(section: Section) -> None:
    """Renumber items from 1 without gaps: the numbers of later items are found by counting."""
    items = {item.number: item for item in section.items.filter(number__lt=FIRST_TEST_NUMBER)}
    free = sorted(set(range(1, len(items) + 1)) - set(items))
    renumbered = [items[number] for number in sorted(items) if number > len(items)]
    for item, number in zip(renumbered, free, strict=True):
        item.number = number
    Item.objects.bulk_update(renumbered, ["number"])
