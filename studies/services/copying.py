"""Clone studies, delete drafts, and restore archived studies."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db import models, transaction
from django.db.models import ProtectedError, QuerySet

from studies import access, signals
from studies.access import Action, check_permission_or_404
from studies.design.draw import item_content_hash
from studies.design.translations import brought_translation
from studies.models import (
    FIRST_TEST_NUMBER,
    Arm,
    ArmSystem,
    Batch,
    ComparisonFamily,
    Contrast,
    ExclusionRule,
    Expected,
    Exposure,
    Item,
    Output,
    Placement,
    Prompt,
    Question,
    Section,
    SectionArm,
    Study,
    System,
    audit,
    new_seed,
)

from . import drafts, lifecycle, questions
from .lifecycle import is_lifecycle_step_allowed

_NOT_COPIED = {
    "id", "code", "seed", "owner", "clone_of", "keeps_origin_out", "state", "open_to", "version", "created_at",
    "launched_at", "closing_at", "closed_at", "archived_at", "unblinded_at", "title", "drawing_version", "counting_version",
    "size_plan", "translation",
}  # fmt: skip

_MADE_BY_HAND = models.Q(expected__isnull=False) | models.Q(kind__in=[Item.Kind.TEST, Item.Kind.PRACTICE])

Ids = dict[int, int]
CHUNK = 1000


def _columns(row: models.Model, without: Iterable[str]) -> dict[str, Any]:
    return {
        field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields if field.name not in without
    }


def _copy_rows(rows: Iterable[models.Model], **links: Mapping[int, int | None] | int) -> Ids:
    """Copy rows in bulk. Each link's ids are mapped, or replaced by one id. Return the new ids by the old ones."""
    rows = list(rows)
    if not rows:
        return {}
    model = type(rows[0])
    copies = []
    for row in rows:
        columns = _columns(row, {"id", *links})
        for name, ids in links.items():
            old = getattr(row, f"{name}_id")
            columns[f"{name}_id"] = ids if isinstance(ids, int) else (ids[old] if old is not None else None)
        copies.append(model(**columns))
    model._default_manager.bulk_create(copies, batch_size=500)
    return {old.pk: new.pk for old, new in zip(rows, copies, strict=True)}


@transaction.atomic
def clone_study(
    study: Study, by, title: str = "", *, prompt_keys: Collection[str] | None = None, has_texts: bool = True
) -> Study:
    """Make a new draft with the same design, a new seed and no people. It excludes the annotators of its origin.

    Ready-made batches are copied, with manually made items and their expected answers. Drawn batches are not copied.
    ``prompt_keys``: copy only these prompts, and those of manually made items and their texts, with their outputs. None: copy all.
    ``has_texts``: False copies no prompt, no output, and nothing that is made from them.
    """
    check_permission_or_404(by, Action.CLONE, study)
    lifecycle.refuse_during_import(study)
    copy = Study.objects.create(
        **_columns(study, _NOT_COPIED),
        # Words that a researcher brought. Those that came with the program are those of its present release again.
        translation=brought_translation(study),
        title=(title or f"Copy of {study.title}")[:200],
        seed=new_seed(),
        owner=by,
        clone_of=study,
        keeps_origin_out=True,
    )
    access.add_owner(copy, by)
    systems = _copy_rows(study.systems.all(), study=copy.pk)
    arms = _copy_rows(study.arms.all(), study=copy.pk)
    _copy_rows(ArmSystem.objects.filter(arm__study=study), arm=arms, system=systems)
    sections = _copied_sections(study, copy)
    _copy_rows(SectionArm.objects.filter(section__study=study), section=sections, arm=arms)
    asked = _copy_rows(Question.objects.filter(section__study=study), section=sections, x=systems, y=systems)
    _copy_rows(study.contrasts.all(), study=copy.pk, section=sections, x=systems, y=systems)
    _copy_rows(study.comparison_families.all(), study=copy.pk)
    _copy_rows(study.exclusion_rules.all(), study=copy.pk)
    audit.record("clone", study=study, by=by, clone=str(copy.code))
    copy.refresh_from_db()
    if not has_texts:
        return copy
    copied_prompts = study.prompts.all()
    if prompt_keys is not None:
        by_hand = study.items.filter(_MADE_BY_HAND, number__lt=FIRST_TEST_NUMBER)
        copied_prompts = copied_prompts.filter(
            models.Q(key__in=prompt_keys)
            | models.Q(pk__in=by_hand.values("prompt"))
            # A negative test question shows a text of another prompt.
            | models.Q(pk__in=by_hand.values("exposures__output__prompt"))
        )
    prompts = _copy_rows(copied_prompts, study=copy.pk)
    outputs = _copy_rows(
        Output.objects.filter(system__study=study, prompt__in=copied_prompts).order_by("pk"),
        system=systems,
        prompt=prompts,
    )
    _copy_ready_made(study, copy, arms, sections, asked, prompts, outputs)
    return copy


def _copied_sections(study: Study, copy: Study) -> Ids:
    rows = list(study.sections.order_by("position"))
    sections = _copy_rows([_without_reuse(row) for row in rows], study=copy.pk)
    reusing = [row for row in rows if row.reuses_id]
    copied = {row.pk: row for row in copy.sections.filter(pk__in=[sections[row.pk] for row in reusing])}
    for row in reusing:
        copied[sections[row.pk]].reuses_id = row.reuses_id and sections[row.reuses_id]
    Section.objects.bulk_update(copied.values(), ["reuses"])
    return sections


def _without_reuse(row: Section) -> Section:
    return Section(id=row.pk, **_columns(row, {"id", "reuses"}))


def _copy_ready_made(study, copy, arms, sections, asked, prompts, outputs) -> None:
    batches = study.batches.filter(origin=Batch.Origin.IMPORTED)
    chosen = study.items.filter(_MADE_BY_HAND | models.Q(placements__batch__in=batches), number__lt=FIRST_TEST_NUMBER)
    rows = list(chosen.distinct())
    for row in rows:
        row.settled_at = None
    items = _renewed_items(rows, copy, sections, prompts, outputs)
    exposures = _copy_rows(Exposure.objects.filter(item__in=list(items)), item=items, output=outputs)
    _copy_rows(
        Expected.objects.filter(item__in=list(items)),
        item=items,
        question=asked,
        exposure=exposures,
        about=exposures,
    )
    imported_batches = list(batches)
    for batch in imported_batches:
        batch.claimed = 0
    numbers = _copy_rows(
        imported_batches, study=copy.pk, arm=arms, copy_of={batch.copy_of_id: None for batch in imported_batches}
    )
    _copy_rows(Placement.objects.filter(batch__in=list(numbers)), batch=numbers, item=items)


def _renewed_items(rows, copy, sections, prompts, outputs) -> Ids:
    """Copy items with a new content hash, because it contains the ids of prompts and outputs."""
    outputs_by_item: dict[int, list[int]] = {row.pk: [] for row in rows}
    for item, output in Exposure.objects.filter(item__in=list(outputs_by_item)).values_list("item_id", "output_id"):
        outputs_by_item[item].append(outputs[output])
    for row in rows:
        row.content = item_content_hash(prompts[row.prompt_id], outputs_by_item[row.pk], row.kind)
    retired = {row.retired_in_id: None for row in rows}
    return _copy_rows(rows, study=copy.pk, section=sections, prompt=prompts, retired_in=retired)


def texts_to_remove(study: Study, chosen: QuerySet | None = None) -> dict[str, set[int]]:
    """Return the ids of what leaves a draft with the chosen prompts or outputs. None: with all prompts.

    Ready-made batches that show one of these texts leave as a whole, with the items that no other batch shows.
    """
    all_outputs = Output.objects.filter(system__study=study)
    if chosen is not None and chosen.model is Output:
        prompts: set[int] = set()
        outputs = set(chosen.filter(system__study=study).values_list("pk", flat=True))
    else:
        chosen_prompts = study.prompts.all() if chosen is None else chosen.filter(study=study)
        prompts = set(chosen_prompts.values_list("pk", flat=True))
        outputs = {pk for pk, prompt in all_outputs.values_list("pk", "prompt_id") if prompt in prompts}
    all_items = study.items.filter(number__lt=FIRST_TEST_NUMBER)
    shown = all_items.values_list("pk", "prompt_id", "exposures__output_id")
    items = {pk for pk, prompt, output in shown if prompt in prompts or output in outputs}
    imported = Placement.objects.filter(batch__study=study, batch__origin=Batch.Origin.IMPORTED)
    placed = list(imported.values_list("batch_id", "item_id"))
    batches = {batch for batch, item in placed if item in items}
    stay = {item for batch, item in placed if batch not in batches}
    stay |= set(all_items.filter(_MADE_BY_HAND).values_list("pk", flat=True))
    items |= {item for batch, item in placed if batch in batches} - stay
    return {"batches": batches, "items": items, "outputs": outputs, "prompts": prompts}


def remove_texts(study: Study, by, chosen: QuerySet | None = None) -> dict[str, int]:
    """Remove prompts or outputs from a draft, with what shows them. Return how many rows of each kind were removed."""
    with drafts.locked_draft(study.pk, by, deletes_test_runs=True) as study:
        counts = _delete_texts(study, chosen)
        drafts.record_edit_and_raise_version(study, by, removed=counts)
    return counts


def _delete_texts(study: Study, chosen: QuerySet | None) -> dict[str, int]:
    ids = {name: sorted(found) for name, found in texts_to_remove(study, chosen).items()}
    for model, name, path in (
        (Placement, "batches", "batch"),
        (Batch, "batches", "pk"),
        (Expected, "items", "item"),
        (Exposure, "items", "item"),
        (Item, "items", "pk"),
        (Output, "outputs", "pk"),
        (Prompt, "prompts", "pk"),
    ):
        for start in range(0, len(ids[name]), CHUNK):
            try:
                model._default_manager.filter(**{f"{path}__in": ids[name][start : start + CHUNK]}).delete()
            except ProtectedError:
                raise lifecycle.ActionRefused(
                    "Something else refers to these texts, such as the scores of a judge. Clone the study without its texts."
                ) from None
    return {name: len(found) for name, found in ids.items()}


def rows_about_system(study: Study, system: System) -> dict[str, QuerySet]:
    """Return what names a system beside its outputs: planned comparisons, questions, and arms that show it among others."""
    names_it = models.Q(x=system) | models.Q(y=system)
    return {
        "comparisons": study.contrasts.filter(names_it).select_related("x", "y"),
        "questions": Question.objects.filter(names_it, section__study=study),
        "arms": ArmSystem.objects.filter(arm__study=study, system=system).select_related("arm"),
    }


def remove_system(study: Study, by, system: System) -> dict[str, int]:
    """Remove a system from a draft, with its outputs and all that names it. Return how many rows of each kind were removed."""
    with drafts.locked_draft(study.pk, by, deletes_test_runs=True) as study:
        rows = rows_about_system(study, system)
        others = ArmSystem.objects.filter(arm__study=study).exclude(system=system)
        # An arm without systems would show all of them.
        if alone := rows["arms"].exclude(arm__in=others.values("arm")).first():
            raise lifecycle.ActionRefused(
                f"The arm “{alone.arm}” shows only “{system.name}”. Delete the arm or change its systems under All settings. Then remove the system."
            )
        with questions.keeping_guide(study, system):
            counts = _delete_texts(study, system.outputs.all())
            Expected.objects.filter(question__in=rows["questions"]).delete()
            counts |= {name: found.delete()[0] for name, found in rows.items()}
            name = system.name
            system.delete()
        drafts.record_edit_and_raise_version(study, by, removed=counts, system=name)
    return counts


def delete_or_archive_draft(study: Study, by) -> str:
    """Delete a draft without records, or archive it if it has records. Return "deleted" or "archived"."""
    check_permission_or_404(by, Action.ARCHIVE, study)
    with transaction.atomic():
        study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        if not is_lifecycle_step_allowed("delete draft", study):
            raise lifecycle.ActionRefused("Only a draft can be deleted. Close this study and archive it instead.")
        if study.audit_events.exists() or study.clones.exists():
            if not study.archived_at:
                lifecycle.archive(study, by)
            return "archived"
        title = study.title
        delete_draft(study)
        audit.record("delete draft", by=by, title=title)
    return "deleted"


def delete_draft(study: Study) -> None:
    """Delete a draft with its rows, in the caller's transaction. No record may name it."""
    signals.deleting_test_runs.send(Study, study=study)
    signals.deleting_draft.send(Study, study=study)
    delete_design(study)
    for queryset in (study.jobs.exclude(state="running"), study.size_plans.all(), study.pilot_files.all()):
        queryset.delete()
    study.delete()


def delete_design(study: Study) -> None:
    """Delete the design and the texts of a draft, in the caller's transaction."""
    study.sections.update(reuses=None)
    Study.objects.filter(pk=study.pk).update(size_plan=None)
    rows: list[models.QuerySet] = [
        Placement.objects.filter(batch__study=study),
        Batch.objects.filter(study=study).exclude(copy_of=None),
        Batch.objects.filter(study=study),
        Expected.objects.filter(item__study=study),
        Exposure.objects.filter(item__study=study),
        Item.objects.filter(study=study),
        Output.objects.filter(system__study=study),
        Prompt.objects.filter(study=study),
        Contrast.objects.filter(study=study),
        ComparisonFamily.objects.filter(study=study),
        Question.objects.filter(section__study=study),
        SectionArm.objects.filter(section__study=study),
        Section.objects.filter(study=study),
        ArmSystem.objects.filter(arm__study=study),
        Arm.objects.filter(study=study),
        ExclusionRule.objects.filter(study=study),
        System.objects.filter(study=study),
    ]
    for queryset in rows:
        queryset.delete()


def restore_archived(study: Study, by) -> None:
    """Bring an archived study back into the lists."""
    check_permission_or_404(by, Action.ARCHIVE, study)
    with transaction.atomic():
        if not Study.objects.filter(pk=study.pk, archived_at__isnull=False).update(archived_at=None):
            raise lifecycle.ActionRefused("The study is not archived: it is in the list already.")
        audit.record("restore", study=study, by=by)
