"""The files of a study's bundle: written, read and stored."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Model, ProtectedError, Q

from studies import access, models
from studies.access import Action, check_permission_or_404
from studies.design.draw import item_content_hash
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.design.translations import brought_translation
from studies.imports.image_storage import storing_images
from studies.models import FIRST_TEST_NUMBER, Batch, Expected, Exposure, Item, Output, Placement, Study, audit
from studies.services import translations
from studies.services.copying import delete_design
from studies.services.drafts import locked_draft, record_edit_and_raise_version
from studies.services.lifecycle import ActionRefused
from studies.stimuli import texts
from studies.stimuli.images import ImageRefused, image_path

from .bundle import (
    BATCH_FIELDS,
    EXPECTED_FIELDS,
    ITEM_FIELDS,
    MAX_BUNDLE_BYTES,
    OUTPUT_FIELDS,
    PROMPT_FIELDS,
    SCHEMA,
    TRANSLATION_FIELDS,
    BundleIncomplete,
    BundleRefused,
    BundleValidator,
)

# Write a checked bundle to the database.


def store_bundle_as_draft(bundle: BundleValidator, owner: Any, draft: models.Study | None = None) -> models.Study:
    """Make a new draft from a checked bundle, in the caller's transaction. Its images must be stored already.

    ``draft``: an emptied one that gets the design instead.
    """
    study = draft or models.Study(owner=owner)
    for name, value in bundle.study.items():
        setattr(study, name, value)
    study.translation = translations.stored(*bundle.translation, owner) if bundle.translation else None
    study.save()
    if draft is None:
        access.add_owner(study, owner)
    systems = _by(
        models.System.objects.bulk_create(models.System(study=study, **columns) for columns in bundle.systems.values()),
        "name",
    )
    arms = _by(
        models.Arm.objects.bulk_create(models.Arm(study=study, **columns) for columns, _ in bundle.arms.values()),
        "name",
    )
    models.ArmSystem.objects.bulk_create(
        models.ArmSystem(arm=arms[name], system=systems[system])
        for name, (_, system_names) in bundle.arms.items()
        for system in system_names
    )
    sections = _write_sections(bundle, study, arms)
    questions = _write_questions(bundle, sections, systems)
    models.Contrast.objects.bulk_create(
        models.Contrast(
            study=study,
            **row
            | {
                "x": systems.get(row["x"]),
                "y": systems.get(row["y"]),
                "section": sections.get(row["section"]),
            },
        )
        for row in bundle.contrasts
    )
    models.ComparisonFamily.objects.bulk_create(
        models.ComparisonFamily(study=study, **columns) for columns in bundle.families
    )
    models.ExclusionRule.objects.bulk_create(models.ExclusionRule(study=study, **columns) for columns in bundle.rules)
    prompts = _by(
        models.Prompt.objects.bulk_create(
            (models.Prompt(study=study, **columns) for columns in bundle.prompts.values()), 500
        ),
        "key",
    )
    output_rows = models.Output.objects.bulk_create(
        (
            models.Output(system=systems[system], prompt=prompts[prompt], **columns)
            for (system, prompt, _), columns in bundle.outputs.items()
        ),
        500,
    )
    outputs = dict(zip(bundle.outputs, output_rows, strict=True))
    _write_items(bundle, study, arms, sections, questions, prompts, outputs)
    study.refresh_from_db()
    return study


def _write_sections(
    bundle: BundleValidator, study: models.Study, arms: dict[str, models.Arm]
) -> dict[int, models.Section]:
    rows = models.Section.objects.bulk_create(
        models.Section(study=study, **row["columns"], **_own_qualification(row["test"], study.owner))
        for row in bundle.sections.values()
    )
    sections = {row.position: row for row in rows}
    for position, row in bundle.sections.items():
        if row["reuses"] is not None:
            sections[position].reuses = sections[row["reuses"]]
    models.Section.objects.bulk_update(rows, ["reuses"])
    models.SectionArm.objects.bulk_create(
        models.SectionArm(section=sections[position], arm=arms[name])
        for position, row in bundle.sections.items()
        for name in row["arms"]
    )
    return sections


def _own_qualification(test: dict[str, Any], owner: Any) -> dict[str, Any]:
    """Return the columns of a test. Its qualification is the importing person's own of this name and validity."""
    if not test.get("qualification") or owner is None:
        return test | {"qualification": None} if test else {}
    return test | {"qualification": models.Qualification.objects.get_or_create(owner=owner, **test["qualification"])[0]}


def _write_questions(bundle: BundleValidator, sections, systems) -> dict[tuple[int, str], models.Question]:
    keys = [(position, key) for position, row in bundle.sections.items() for key in row["questions"]]
    question_rows = models.Question.objects.bulk_create(
        models.Question(
            section=sections[position], **columns | {"x": systems.get(columns["x"]), "y": systems.get(columns["y"])}
        )
        for position, row in bundle.sections.items()
        for columns in row["questions"].values()
    )
    return dict(zip(keys, question_rows, strict=True))


def _write_items(bundle: BundleValidator, study, arms, sections, questions, prompts, outputs) -> None:
    rows = models.Item.objects.bulk_create(
        (
            models.Item(
                study=study,
                section=sections[position],
                number=number,
                prompt=prompts[row["prompt"]],
                kind=row["kind"],
                test_type=row["test_type"],
                content=item_content_hash(
                    prompts[row["prompt"]].pk, [outputs[key].pk for key in row["outputs"]], row["kind"]
                ),
            )
            for (position, number), row in bundle.items.items()
        ),
        500,
    )
    items = dict(zip(bundle.items, rows, strict=True))
    exposures = {
        (item_key, number): models.Exposure(item=items[item_key], output=outputs[output_key], number=number)
        for item_key, row in bundle.items.items()
        for number, output_key in enumerate(row["outputs"])
    }
    models.Exposure.objects.bulk_create(exposures.values(), 500)
    models.Expected.objects.bulk_create(
        models.Expected(
            item=items[item_key],
            question=questions[answer["question"]],
            exposure=exposures.get((item_key, answer["exposure"])),
            about=exposures.get((item_key, answer["about"])),
            **{name: answer[name] for name in EXPECTED_FIELDS},
        )
        for item_key, row in bundle.items.items()
        for answer in row["expected"]
    )
    batches = models.Batch.objects.bulk_create(
        models.Batch(
            study=study,
            arm=arms[row["arm"]],
            origin=models.Batch.Origin.IMPORTED,
            **{name: row[name] for name in BATCH_FIELDS},
        )
        for row in bundle.batches
    )
    models.Placement.objects.bulk_create(
        (
            models.Placement(batch=batch, item=items[item_key], number=number)
            for batch, row in zip(batches, bundle.batches, strict=True)
            for number, item_key in enumerate(row["items"])
        ),
        500,
    )


def _by(rows: list[Any], name: str) -> dict[str, Any]:
    return {getattr(row, name): row for row in rows}


# Make a new draft from a bundle.


def create_draft_from_bundle(data: bytes | str | dict[str, Any], owner: Any) -> Study:
    """Make a new draft from a bundle, owned by this user. Raise BundleRefused; then nothing was written."""
    check_permission_or_404(owner, Action.CREATE)
    value = parse_bundle_json(data) if isinstance(data, bytes | str) else data
    bundle = BundleValidator(value)
    bundle.check()
    with storing_images(bundle.images, bundle.images.__getitem__), transaction.atomic():
        study = store_bundle_as_draft(bundle, owner)
        digest = sha256_of(canonical_json(serialize_design(study)))
        audit.record_study_event("import bundle", study, by=owner, design_sha256=digest)
    return study


def replace_draft_by_bundle(study: Study, data: dict[str, Any], by: Any) -> Study:
    """Replace the design and the texts of a draft by those of a bundle. Raise BundleRefused or ActionRefused; then nothing was changed."""
    bundle = BundleValidator(data)
    bundle.check()
    try:
        with (
            storing_images(bundle.images, bundle.images.__getitem__),
            locked_draft(study.pk, by, deletes_test_runs=True) as draft,
        ):
            delete_design(draft)
            draft = store_bundle_as_draft(bundle, draft.owner, draft)
            record_edit_and_raise_version(draft, by, replaced="the whole draft")
    except ProtectedError as refused:
        kind = next(iter(refused.protected_objects))._meta.verbose_name_plural
        raise ActionRefused(
            f"The draft has {kind} that name its rows. Delete them first, or make another draft."
        ) from None
    return draft


def parse_bundle_json(data: bytes | str) -> dict[str, Any]:
    """Parse the JSON of a bundle strictly: no duplicate keys, no NaN, no characters that a database cannot store."""
    if len(data) > MAX_BUNDLE_BYTES:
        raise BundleRefused([f"The file has {len(data):,} bytes. At most {MAX_BUNDLE_BYTES:,} are allowed."])
    try:
        value = texts.loads(data)
    except texts.BadJson as error:
        raise BundleRefused([f"{error.position}: {error.text}." if error.position else f"The file {error}"]) from error
    if not isinstance(value, dict):
        raise BundleRefused(["The file must contain one JSON object."])
    return value


# Write a study as a bundle.


def serialize_bundle(study: Study) -> dict[str, Any]:
    """Return a study's whole design as plain values, keyed by names, with texts inline and images as base64."""
    design = serialize_design(study)
    # These concern only this study: a new draft has no retired items, the newest drawing and counting, and no plan that was computed for it.
    # Items hold the test questions.
    for name in ("retired", "drawing_version", "counting_version", "size_plan", "test_questions", "translation"):
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
    for row in outputs:
        if not row["warning"]:  # as in bundles that were written before there were warnings
            del row["warning"]
    if words := brought_translation(study):  # other words come with heval
        design["translation"] = _columns(words, TRANSLATION_FIELDS)
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


def _columns(row: Model, names: tuple[str, ...]) -> dict[str, Any]:
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
