"""Write imported answers: a batch and an assignment for each annotator, and their responses.

The caller opens the transaction.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Max
from django.utils import timezone

from annotators.models import Annotator, Assignment, Response
from annotators.models.crypto import keyed_hash
from studies.design.draw import DrawnBatch, create_missing_and_get_all_items, item_key, store_drawn_batches
from studies.models import Batch, Exposure, Item, Job, Output, Prompt, Study
from studies.protocols import DrawnItem

from .imported_assignments import ImportedAssignment
from .study_index import EarlierImports, ItemKey, StudyIndex, import_pool_name, imported_person_hash, natural_sort_key


def write_imported_answers(
    study: Study,
    study_index: StudyIndex,
    earlier_imports: EarlierImports,
    imported_assignments: Sequence[ImportedAssignment],
    job: Job,
) -> None:
    """Write the answers of a frozen and locked study.

    Items are numbered in the natural order of their prompts' keys, and batches in the order of ``imported_assignments``.
    """
    items = _get_or_create_items(study, {key for sitting in imported_assignments for key in sitting.items})
    # An item without new answers is not placed again.
    drawn_batches = [
        DrawnBatch(0, sitting.arm, tuple(_answered_items(sitting, items))) for sitting in imported_assignments
    ]
    last = Batch.objects.filter(study=study).exclude(origin=Batch.Origin.TEST).aggregate(n=Max("number"))["n"]
    batches = store_drawn_batches(
        study,
        drawn_batches,
        places_per_batch=1,
        origin=Batch.Origin.ANSWERED,
        first_number=0 if last is None else last + 1,
    )
    Batch.objects.filter(pk__in=[batch.pk for batch in batches]).update(claimed=1)
    people = _get_or_create_annotators(study, imported_assignments)
    now = timezone.now()
    design = study.designs.order_by("version").last()
    assignments = []
    for sitting, batch in zip(imported_assignments, batches, strict=True):
        person = people[imported_person_hash(study, sitting.name)]
        started_at, submitted_at = min(sitting.times, default=now), max(sitting.times, default=now)
        assignments.append(
            Assignment(
                study=study,
                batch=batch,
                annotator_id=person,
                origin=Assignment.Origin.IMPORTED,
                source=job,
                design=design,
                ordinal=earlier_imports.ordinals.get(person, 0) + 1,
                claimed_at=started_at,
                started_at=started_at,
                submitted_at=submitted_at,
            )
        )
    Assignment.objects.bulk_create(assignments, batch_size=500)
    Response.objects.bulk_create(_responses(imported_assignments, assignments, items, now), batch_size=1000)


def _get_or_create_items(study: Study, item_keys: set[ItemKey]) -> dict[ItemKey, int]:
    """Return the ids of these items. Create missing items."""
    prompts = {prompt for _, prompt, _ in item_keys}
    keys = {pk: key for pk, key in Prompt.objects.filter(study=study).values_list("pk", "key") if pk in prompts}
    outputs = {
        pk: (system, sample)
        for pk, system, sample in Output.objects.filter(prompt__study=study).values_list("pk", "system__name", "sample")
    }
    ordered = sorted(
        item_keys,
        key=lambda item: (
            natural_sort_key(keys[item[1]]),
            keys[item[1]],
            item[0],
            sorted(outputs[pk] for pk in item[2]),
        ),
    )
    records = {key: (key[0], DrawnItem(key[1], key[2])) for key in ordered}
    written = create_missing_and_get_all_items(study, records.values())
    return {key: written[item_key(*record)].pk for key, record in records.items()}


def _answered_items(sitting: ImportedAssignment, items: dict[ItemKey, int]) -> Iterator[tuple[int, DrawnItem]]:
    item_ids = {answer.row.item_id for answer in sitting.answers}
    for number, key in enumerate(sitting.items, 1):
        if number in item_ids:
            yield key[0], DrawnItem(item=items[key])


def _get_or_create_annotators(study: Study, sittings: Sequence[ImportedAssignment]) -> dict[str, int]:
    """Return the ids of the annotators by keyed name. Create missing annotators.

    Their codes follow from the keyed names: reports sort annotators by pseudonyms of the codes, so the same file gives the same
    numbers whenever it is imported into this study.
    """
    pool = import_pool_name(study)
    keys = {imported_person_hash(study, sitting.name) for sitting in sittings}
    existing = set(Annotator.objects.filter(pool=pool).values_list("external_id", flat=True))
    Annotator.objects.bulk_create(
        (Annotator(code=_annotator_code(key), pool=pool, external_id=key) for key in sorted(keys - existing)),
        batch_size=500,
    )
    return dict(Annotator.objects.filter(pool=pool).values_list("external_id", "pk"))


def _annotator_code(external_id: str) -> UUID:
    return UUID(hex=keyed_hash("imported annotator", external_id)[:32])


def _responses(
    sittings: Sequence[ImportedAssignment], assignments: Sequence[Assignment], items: dict[ItemKey, int], now: datetime
) -> Iterator[Response]:
    exposures: dict[tuple[int | None, int], int] = {}
    if assignments:
        rows = Exposure.objects.filter(item__in=Item.objects.filter(study=assignments[0].study_id))
        exposures = {
            (item, output): pk for item, output, pk in rows.values_list("item_id", "output_id", "pk").iterator(2000)
        }
    for sitting, assignment in zip(sittings, assignments, strict=True):
        for answer in sitting.answers:
            row = answer.row
            item = items[sitting.items[row.item_id - 1]] if row.item_id else None
            yield Response(
                assignment=assignment,
                question_id=row.question_id,
                item_id=item,
                slot=row.slot,
                label=row.label,
                position=row.position,
                exposure_id=exposures[item, row.exposure_id] if row.exposure_id else None,
                chosen_id=exposures[item, row.chosen_id] if row.chosen_id else None,
                value=row.value,
                choice=row.choice,
                part=row.part,
                text=row.text,
                skip_reason=row.skip_reason,
                received_at=answer.resolved.answer_row.time or now,
            )
