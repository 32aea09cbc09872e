"""Write a plan into its draft: all of it in one transaction, or nothing."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max

from studies import signals
from studies.design.draw import item_content_hash
from studies.imports.preparation import ORIGINAL_KEY
from studies.models import (
    FIRST_TEST_NUMBER,
    Arm,
    Batch,
    Exposure,
    Item,
    Output,
    Placement,
    Prompt,
    Section,
    Study,
    System,
)
from studies.services.databases import insert_rows, prepare_rows
from studies.services.lifecycle import ActionRefused

from .batches import GatheredBatch
from .existing import load_existing_stimuli
from .plan import ImportPlan

CHUNK = 1000
STUDY_CHANGED = "The study was changed while the file was being read. Check the file again."


class StudyChanged(ActionRefused):
    """The study was changed after the file was checked."""


def reason_not_importable(study: Study) -> str:
    """Return why stimuli cannot be imported into the study now, or '' if they can."""
    return "" if study.is_draft else "Stimuli can only be imported into a draft. Clone the study."


def write_import_plan(plan: ImportPlan) -> None:
    """Replay the plan's journal in the caller's transaction. Raise StudyChanged if the study has changed since it was read."""
    study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=plan.study.pk)
    if reason := reason_not_importable(study):
        raise ActionRefused(reason)
    if load_existing_stimuli(study, with_profiles=False).fingerprint != plan.stored.fingerprint:
        raise StudyChanged(STUDY_CHANGED)
    try:
        with transaction.atomic():
            System.objects.bulk_create(
                System(study=study, name=name, is_human=name in plan.options.human_systems) for name in plan.new_systems
            )
            _replay(study, plan.journal)
            if plan.batch_collector:
                _write_batches(
                    study, list(plan.batch_collector.changed_batches(plan.stored.batches)), plan.stored.batches
                )
            Study.objects.filter(pk=study.pk).update(version=F("version") + 1)
    except IntegrityError:
        # Somebody added the same rows by hand after the comparison above.
        raise StudyChanged("The study was changed while the file was being written. Check the file again.") from None


def _chunks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rows = iter(rows)
    while chunk := list(islice(rows, size)):
        yield chunk


def _replay(study: Study, journal) -> None:
    systems = dict(study.systems.values_list("name", "pk"))
    prompts = dict(study.prompts.values_list("key", "pk"))
    journal.seek(0)
    for chunk in _chunks(map(json.loads, journal), CHUNK):
        # Prompts come first in each chunk, because outputs refer to them.
        new_prompts = [_new_prompt(study, *rest) for kind, *rest in chunk if kind == "p"]
        insert_rows(Prompt, PROMPT_COLUMNS, prepare_rows(Prompt, PROMPT_COLUMNS, new_prompts))
        written = study.prompts.filter(key__in=[key for _, key, *_ in new_prompts])
        prompts.update(written.values_list("key", "pk") if new_prompts else ())
        insert_rows(
            Output, OUTPUT_COLUMNS, [_new_output(systems, prompts, *rest) for kind, *rest in chunk if kind == "o"]
        )
        _change_prompts(study, {rest[0]: rest[1:] for kind, *rest in chunk if kind == "P"})
        _change_outputs(systems, prompts, {tuple(rest[:3]): rest[3:] for kind, *rest in chunk if kind == "O"})


PROMPT_COLUMNS = ("study_id", "key", "text", "source", "domain", "language", "media", "attributes", "group")


def _new_prompt(study: Study, *columns: Any) -> tuple[Any, ...]:
    *texts, attributes, group = columns
    return (study.pk, *texts, json.loads(attributes) if attributes else {}, group)


OUTPUT_COLUMNS = (
    "system_id", "prompt_id", "sample", "text", "media", "is_empty", "format", "alt", "language", "original"
)  # fmt: skip


def _new_output(systems, prompts, system, prompt, *rest: Any) -> tuple[Any, ...]:
    return (systems[system], prompts[prompt], *rest, "")


def _change_prompts(study: Study, changes: dict[str, list]) -> None:
    if not changes:
        return
    rows = list(study.prompts.filter(key__in=list(changes)))
    for row in rows:
        text, source, domain, language, media, attributes, group = changes[row.key]
        attributes_without_original = {name: value for name, value in row.attributes.items() if name != ORIGINAL_KEY}
        row.text = text or row.attributes.get(ORIGINAL_KEY, row.text)
        row.source, row.domain, row.language = source or row.source, domain or row.domain, language or row.language
        row.media, row.group = media or row.media, group or row.group
        row.attributes = json.loads(attributes) if attributes else attributes_without_original
    columns = ["text", "source", "domain", "language", "media", "attributes", "group"]
    Prompt.objects.bulk_update(rows, columns, batch_size=200)


def _change_outputs(systems, prompts, changes: dict[tuple, list]) -> None:
    if not changes:
        return
    changes_by_key = {
        (systems[system], prompts[prompt], sample): row for (system, prompt, sample), row in changes.items()
    }
    rows = [
        row
        for row in Output.objects.filter(prompt__in={prompt for _, prompt, _ in changes_by_key})
        if (row.system_id, row.prompt_id, row.sample) in changes_by_key
    ]
    for row in rows:
        row.text, row.media, row.is_empty, row.format, row.alt, row.language = changes_by_key[
            row.system_id, row.prompt_id, row.sample
        ]
        row.original = ""
    columns = ["text", "media", "is_empty", "format", "alt", "language", "original"]
    Output.objects.bulk_update(rows, columns, batch_size=200)


# Ready-made batches


def _write_batches(study: Study, gathered: list[GatheredBatch], stored_digests: dict[str, bytes]) -> None:
    if not gathered:
        return
    replaced = [batch.key for batch in gathered if batch.key in stored_digests]
    if replaced:
        _empty_batches(study, replaced)
    sections = {section.position: section for section in study.sections.all()}
    arms = dict(Arm.objects.filter(study=study).values_list("name", "pk"))
    outputs = {
        (name, key, sample): pk
        for pk, name, key, sample in Output.objects.filter(system__study=study)
        .values_list("pk", "system__name", "prompt__key", "sample")
        .iterator(2000)
    }
    prompts = dict(study.prompts.values_list("key", "pk"))
    items = _Items(study)
    drawn_batches = study.batches.exclude(origin=Batch.Origin.TEST)
    following = (drawn_batches.aggregate(last=Max("number"))["last"] or 0) + 1 if drawn_batches.exists() else 0
    stored_batches = {batch.key: batch for batch in study.batches.filter(key__in=replaced)}
    for chunk in _chunks(gathered, 200):
        content = [
            [
                items.get_or_create(
                    sections[placement.section],
                    prompts[placement.prompt],
                    [outputs[system, placement.prompt, sample] for system, sample in sorted(placement.outputs.items())],
                )
                for placement in batch.ordered_placements()
            ]
            for batch in chunk
        ]
        items.write()
        new_batches = []
        for batch in chunk:
            if batch.key in stored_batches:
                continue
            new_batches.append(
                Batch(
                    study=study,
                    arm_id=arms[batch.arm],
                    number=following,
                    wanted=study.annotators_per_batch,
                    origin=Batch.Origin.IMPORTED,
                    key=batch.key,
                )
            )
            following += 1
        replaced_batches = [stored_batches[batch.key] for batch in chunk if batch.key in stored_batches]
        for row in replaced_batches:
            row.arm_id = arms[next(batch.arm for batch in chunk if batch.key == row.key)]
        Batch.objects.bulk_update(replaced_batches, ["arm"])
        rows = {row.key: row for row in [*Batch.objects.bulk_create(new_batches), *replaced_batches]}
        Placement.objects.bulk_create(
            Placement(batch=rows[batch.key], item=item, number=number)
            for batch, batch_items in zip(chunk, content, strict=True)
            for number, item in enumerate(batch_items)
        )


class _Items:
    """Items by content. An existing item with the same content is reused."""

    def __init__(self, study: Study):
        self.study = study
        self.ids: dict[tuple[int, str], int | Item] = {}
        self.last: dict[int, int] = {}
        for pk, section, content, number in study.items.values_list("pk", "section_id", "content", "number").iterator(
            2000
        ):
            self.ids[section, content] = pk
            if number < FIRST_TEST_NUMBER:
                self.last[section] = max(self.last.get(section, 0), number)
        self.unsaved: list[tuple[Item, list[int]]] = []

    def get_or_create(self, section: Section, prompt: int, outputs: list[int]) -> Item:
        kind = Item.Kind.PRACTICE if section.purpose == Section.Purpose.TRAINING else Item.Kind.LIVE
        content = item_content_hash(prompt, outputs, str(kind))
        stored = self.ids.get((section.pk, content))
        if isinstance(stored, int):
            return Item(pk=stored)
        if stored is None:
            self.last[section.pk] = number = self.last.get(section.pk, 0) + 1
            stored = Item(
                study=self.study, section=section, number=number, prompt_id=prompt, kind=kind, content=content
            )
            self.ids[section.pk, content] = stored
            self.unsaved.append((stored, outputs))
        return stored

    def write(self) -> None:
        """Insert the new items with their exposures."""
        Item.objects.bulk_create([item for item, _ in self.unsaved])
        Exposure.objects.bulk_create(
            Exposure(item=item, output_id=output, number=number)
            for item, outputs in self.unsaved
            for number, output in enumerate(outputs)
        )
        for item, _ in self.unsaved:
            self.ids[item.section_id, item.content] = item.pk
        self.unsaved = []


def _empty_batches(study: Study, keys: list[str]) -> None:
    """Empty the batches that are replaced, and delete items that are no longer in any batch."""
    # Test runs refer to the items.
    signals.deleting_test_runs.send(Study, study=study)
    for chunk_keys in _chunks(keys, 500):
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
