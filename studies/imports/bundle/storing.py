"""Write a checked bundle to the database."""

from typing import Any

from studies import access, models
from studies.design.draw import item_content_hash

from .checking import BundleValidator
from .schema import BATCH_FIELDS, EXPECTED_FIELDS


def store_bundle_as_draft(bundle: BundleValidator, owner: Any) -> models.Study:
    """Make a new draft from a checked bundle, in the caller's transaction. Its images must be stored already."""
    study = models.Study.objects.create(**bundle.study, owner=owner)
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
            question=questions[item_key[0], answer["question"]],
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
