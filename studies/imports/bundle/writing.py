"""Write a study as a bundle."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from studies.design.serialization import serialize_design
from studies.models import FIRST_TEST_NUMBER, Batch, Expected, Exposure, Item, Output, Placement, Study
from studies.stimuli.images import ImageRefused, image_path

from .schema import BATCH_FIELDS, EXPECTED_FIELDS, ITEM_FIELDS, OUTPUT_FIELDS, PROMPT_FIELDS, SCHEMA, BundleIncomplete


def serialize_bundle(study: Study) -> dict[str, Any]:
    """Return a study's whole design as plain values, keyed by names, with texts inline and images as base64."""
    design = serialize_design(study)
    # These concern only this study: a new draft has no retired items, the newest drawing and counting, and no plan that was computed for it.
    # Items hold the test questions.
    for name in ("retired", "drawing_version", "counting_version", "size_plan", "test_questions"):
        design.pop(name, None)
    prompts = [_columns(prompt, PROMPT_FIELDS) for prompt in study.prompts.order_by("key").iterator(1000)]
    for prompt in prompts:
        if not prompt["group"]:  # as in bundles that were written before there were groups
            del prompt["group"]
    rows = Output.objects.filter(system__study=study).select_related("system", "prompt")
    outputs = [
        {"system": output.system.name, "prompt": output.prompt.key, **_columns(output, OUTPUT_FIELDS)}
        for output in rows.order_by("prompt__key", "system__name", "sample").iterator(1000)
    ]
    names = {row["media"] for row in (*prompts, *outputs)} - {""}
    return design | {
        "schema": SCHEMA,
        "prompts": prompts,
        "outputs": outputs,
        "items": _serialized_items(study),
        "batches": _serialized_batches(study),
        "images": {name: _image(name) for name in sorted(names)},
    }


def bundle_text(study: Study) -> str:
    """Return the bundle as the text of a file."""
    return json.dumps(serialize_bundle(study), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _columns(row: models.Model, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _image(name: str) -> str:
    try:
        return b64encode(image_path(Path(settings.MEDIA_ROOT), name).read_bytes()).decode("ascii")
    except (OSError, ImageRefused) as error:
        raise BundleIncomplete(
            f"The stored image {name} is missing, so the study cannot be exported. Restore the file from a backup, or import it again."
        ) from error


def _serialized_items(study: Study) -> list[dict[str, Any]]:
    """Return the items that are part of the design: ready-made, practice and test items. Seed and design determine drawn items."""
    in_batches = Q(placements__batch__origin=Batch.Origin.IMPORTED)
    by_hand = (
        Q(expected__isnull=False) | Q(kind__in=[Item.Kind.TEST, Item.Kind.PRACTICE]) | Q(section__purpose="training")
    )
    chosen = study.items.filter(by_hand | in_batches, number__lt=FIRST_TEST_NUMBER).values("pk").distinct()
    exposures: dict[int, list[list[Any]]] = {}
    rows = Exposure.objects.filter(item__in=chosen).order_by("item", "number")
    for item, system, prompt, sample in rows.values_list(
        "item_id", "output__system__name", "output__prompt__key", "output__sample"
    ).iterator(2000):
        exposures.setdefault(item, []).append([system, prompt, sample])
    expected: dict[int, list[dict[str, Any]]] = {}
    for answer in (
        Expected.objects.filter(item__in=chosen)
        .select_related("question", "exposure", "about")
        .order_by("item", "question__key")
    ):
        expected.setdefault(answer.item_id, []).append(
            {
                "question": answer.question.key,
                "exposure": answer.exposure and answer.exposure.number,
                "about": answer.about and answer.about.number,
                **_columns(answer, EXPECTED_FIELDS),
            }
        )
    return [
        {
            "section": item.section.position,
            "prompt": item.prompt.key,
            **_columns(item, ITEM_FIELDS),
            "outputs": exposures.get(item.pk, []),
            "expected": expected.get(item.pk, []),
        }
        for item in study.items.filter(pk__in=chosen)
        .select_related("section", "prompt")
        .order_by("section__position", "number")
    ]


def _serialized_batches(study: Study) -> list[dict[str, Any]]:
    own_batches = study.batches.filter(origin=Batch.Origin.IMPORTED)
    places: dict[int, list[list[int]]] = {}
    for batch, section, number in (
        Placement.objects.filter(batch__in=own_batches.values("pk"))
        .order_by("batch", "number")
        .values_list("batch_id", "item__section__position", "item__number")
        .iterator(2000)
    ):
        places.setdefault(batch, []).append([section, number])
    return [
        {"arm": batch.arm.name, **_columns(batch, BATCH_FIELDS), "items": places.get(batch.pk, [])}
        for batch in own_batches.select_related("arm").order_by("number")
    ]
