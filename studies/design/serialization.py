"""Serialize a design as canonical JSON of plain values. The sha256 of the JSON is the design's hash."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from studies.models import (
    FIRST_TEST_NUMBER,
    ArmSystem,
    Batch,
    Contrast,
    Expected,
    Exposure,
    Item,
    Output,
    Placement,
    Question,
    Section,
    SectionArm,
    Study,
)

SCHEMA = "heval.design/1"
STUDY_FIELDS = (
    "title", "public_title", "language", "seed", "keeps_origin_out", "exclusion_group", "purpose", "instructions", "consent",
    "debriefing", "institution", "approval_number", "contact", "retention", "content_warning",
    "preparation", "batches_per_annotator",
    "annotators_per_batch", "coverage", "section_order", "target_kind", "target_n", "target_cap", "replaces_excluded",
    "currency", "reward", "minutes", "wage_per_hour", "words_per_minute", "withdrawal_blanks_ratings",
    "withdrawal_until", "erase_after_days", "start_window_seconds", "idle_seconds", "grace_seconds",
)  # fmt: skip
# Fields of a study that a design has only if they differ from this, for the same reason as those of comparisons below.
LATER_STUDY_FIELDS: dict[str, Any] = {
    "bars_flagged_annotators": False,
    "asks_to_share_preferences": False,
    "shows_link_addresses": False,
    "joins_rounds": False,
    "required_qualification": "",
    "minimum_width": 0,
    "needs_mouse": False,
    "warning_limit": None,
    "licence": "",
    "stimuli_source": "",
    "template": "",
    "group_noun": "",
    "compared_groups": "",
}
ARM_FIELDS = ("name", "condition", "instructions", "domain", "wanted", "reward", "minutes")
QUESTION_FIELDS = ("position", "key", "text", "help", "criterion", "scale", "required", "skip_reasons")
CONTRAST_FIELDS = (
    "estimand",
    "x_condition",
    "y_condition",
    "criterion",
    "role",
    "family",
    "expected",
    "margin",
    "level",
)


# Fields that a comparison's line has only if they differ from this: designs that were frozen before they existed keep their hash.
LATER_CONTRAST_FIELDS = {"population": "", "hypothesis": str(Contrast.Hypothesis.DIFFERENCE)}
FAMILY_FIELDS = ("name", "adjustment", "after")
# What a plan of the size promises, from the simulation of the planned size (analysis.stats.planning.study_plans.SimulatedSize).
PROMISED = ("power", "power_error", "half_width", "half_width_error", "value", "population", "runs")

# What an output is, in a design and in an archive.
OUTPUT_FIELDS = (
    "system__name", "prompt__key", "sample", "format", "text", "media", "alt", "is_empty", "original", "language",
    "warning",
)  # fmt: skip


def _json_value(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


def _row_dict(instance, names) -> dict[str, Any]:
    return {name: _json_value(getattr(instance, name)) for name in names}


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def _sorted_by_name(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["name"])


def _ids_by_owner(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    ids: dict[int, list[int]] = {}
    for owner, pk in pairs:
        ids.setdefault(owner, []).append(pk)
    return ids


def _pair_of_names(row: Question | Contrast, names: dict[int, str]) -> dict[str, Any]:
    # A system of another study has no name here, so a design into which it is put differs from the frozen one.
    return {"x": row.x_id and names.get(row.x_id), "y": row.y_id and names.get(row.y_id)}


def _serialize_test(section: Section) -> dict[str, Any]:
    """Return the pass mark and the qualification. Sections without a test have no such line, so older designs keep their hash."""
    if section.pass_mark is None:
        return {}
    named = section.qualification
    return {
        "pass_mark": section.pass_mark,
        "qualification": named and {"name": named.name, "valid_days": named.valid_days},
    }


def serialize_size_plan(study: Study) -> dict[str, Any]:
    """Return the chosen plan of the study's size: what was asked, the seed, and what the plan promises.

    Studies without a chosen plan have no such line, so older designs keep their hash.
    """
    chosen = study.size_plan
    if chosen is None:
        return {}
    plan = chosen.result["plan"]
    promised = {name: plan["planned"][name] for name in PROMISED if name in plan["planned"]}
    detectable = {name: plan[name] for name in ("detectable", "detectable_error") if name in plan}
    return {
        "size_plan": {
            "method_version": plan["settings"].get("method_version"),
            "fingerprint": chosen.fingerprint,
            "inputs": chosen.inputs,
            "seed": chosen.seed,
            "promised": promised | detectable,
        }
    }


def serialize_translation(study: Study) -> dict[str, Any]:
    """Return the language and the version of the words of annotators' pages. Designs from before there were any have no such line."""
    kept = study.translation
    return {} if kept is None else {"translation": {"language": kept.language, "version": kept.version}}


def serialize_design(study: Study) -> dict[str, Any]:
    """Return the design as plain JSON values, keyed by names and never by database ids. Each stimulus is given as its sha256.

    Lists are sorted here by code point. A database sorts by its collation, and the hash must not depend on that.
    """
    systems = list(study.systems.order_by())
    names = {system.pk: system.name for system in systems}
    arms = list(study.arms.order_by())
    arm_names = {arm.pk: arm.name for arm in arms}
    arm_systems = _ids_by_owner(ArmSystem.objects.filter(arm__study=study).values_list("arm_id", "system_id"))
    sections = list(study.sections.select_related("qualification").order_by("position"))
    positions = {section.pk: section.position for section in sections}
    section_arms = _ids_by_owner(SectionArm.objects.filter(section__study=study).values_list("section_id", "arm_id"))
    questions: dict[int, list[Question]] = {}
    for question in Question.objects.filter(section__study=study).order_by("position"):
        questions.setdefault(question.section_id, []).append(question)
    outputs = Output.objects.filter(system__study=study)
    # Designs that were frozen before there were versions or declared families have no such line, and keep their hash.
    drawing = {"drawing_version": study.drawing_version} if study.drawing_version > 1 else {}
    counting = {"counting_version": study.counting_version} if study.counting_version > 1 else {}
    families = _sorted_by_name(_row_dict(family, FAMILY_FIELDS) for family in study.comparison_families.order_by())
    declared = {"comparison_families": families} if families else {}
    test_questions = _serialize_test_questions(study)
    return (
        drawing
        | counting
        | declared
        | ({"test_questions": test_questions} if test_questions else {})
        | serialize_size_plan(study)
        | serialize_translation(study)
        | {
            "schema": SCHEMA,
            "study": _row_dict(study, STUDY_FIELDS)
            | _row_dict(
                study, [name for name, default in LATER_STUDY_FIELDS.items() if getattr(study, name) != default]
            ),
            "systems": _sorted_by_name(_row_dict(system, ("name", "is_human", "reference")) for system in systems),
            "arms": _sorted_by_name(
                _row_dict(arm, ARM_FIELDS)
                | {"systems": sorted(names.get(system, "") for system in arm_systems.get(arm.pk, ()))}
                for arm in arms
            ),
            "sections": [
                {
                    "position": section.position,
                    "protocol": section.protocol,
                    "purpose": section.purpose,
                    "m": section.m,
                    "settings": section.settings,
                    "reuses": section.reuses_id and positions.get(section.reuses_id),
                    "arms": sorted(arm_names.get(arm, "") for arm in section_arms.get(section.pk, ())),
                    "questions": [
                        _row_dict(question, QUESTION_FIELDS) | _pair_of_names(question, names)
                        for question in questions.get(section.pk, ())
                    ],
                }
                | _serialize_test(section)
                for section in sections
            ],
            "contrasts": sorted(
                (
                    _row_dict(contrast, CONTRAST_FIELDS)
                    | _row_dict(
                        contrast,
                        [name for name, default in LATER_CONTRAST_FIELDS.items() if getattr(contrast, name) != default],
                    )
                    | {"section": contrast.section_id and positions.get(contrast.section_id)}
                    | _pair_of_names(contrast, names)
                    for contrast in study.contrasts.order_by()
                ),
                key=canonical_json,
            ),
            "exclusion_rules": sorted(
                (
                    _row_dict(rule, ("position", "rule", "settings", "role"))
                    for rule in study.exclusion_rules.order_by()
                ),
                key=lambda row: (row["position"], row["rule"]),
            ),
            "prompts": sorted(
                # A prompt that is alone has no part for its group: designs that were frozen before there were groups keep their hash.
                [key, _sha256(*texts, json.dumps(attributes, sort_keys=True), *([group] if group else []))]
                for key, *texts, attributes, group in study.prompts.order_by().values_list(
                    "key", "text", "source", "media", "domain", "language", "attributes", "group"
                )
            ),
            "outputs": sorted(
                # An output without a warning has no part for it: designs that were frozen before there were warnings keep their hash.
                [
                    system,
                    prompt,
                    sample,
                    _sha256(*texts, str(is_empty), original, language, *([warning] if warning else [])),
                ]
                for system, prompt, sample, *texts, is_empty, original, language, warning in outputs.order_by().values_list(
                    *OUTPUT_FIELDS
                )
            ),
            "batches": _serialize_imported_batches(study),
            "retired": sorted(study.items.filter(retired_in__isnull=False).values_list("section__position", "number")),
        }
    )


def _serialize_test_questions(study: Study) -> list:
    """Return the test questions: section, number and type, with the sha256 of the outputs and of the known answers."""
    items = study.items.filter(kind=Item.Kind.TEST, number__lt=FIRST_TEST_NUMBER)
    rows = list(
        items.order_by("section__position", "number").values_list(
            "pk", "section__position", "number", "test_type", "prompt__key"
        )
    )
    if not rows:
        return []
    shown: dict[int, list] = {}
    for item, *keys in (
        Exposure.objects.filter(item__in=items.values("pk"))
        .order_by("item", "number")
        .values_list("item_id", "output__system__name", "output__prompt__key", "output__sample")
    ):
        shown.setdefault(item, []).append(keys)
    known: dict[int, list] = {}
    for item, *answer in (
        Expected.objects.filter(item__in=items.values("pk"))
        .order_by("item", "question__key")
        .values_list("item_id", "question__key", "low", "high", "exposure__number", "about__number")
    ):
        known.setdefault(item, []).append(answer)
    return [
        [section, number, test_type, _sha256(json.dumps([prompt, shown.get(pk, []), known.get(pk, [])]))]
        for pk, section, number, test_type, prompt in rows
    ]


def _serialize_imported_batches(study: Study) -> list:
    """Return the imported batches: each key with the sha256 of the batch's content, in order."""
    rows = (
        Placement.objects.filter(batch__study=study, batch__origin=Batch.Origin.IMPORTED)
        .order_by("batch__number", "number", "item__exposures__number")
        .values_list(
            "batch__number",
            "batch__key",
            "batch__arm__name",
            "item__section__position",
            "item__prompt__key",
            "item__exposures__output__system__name",
            "item__exposures__output__sample",
        )
    )
    batches: dict[tuple, list] = {}
    for number, key, arm, *rest in rows:
        batches.setdefault((number, key, arm), []).append(rest)
    return [[number, key, arm, _sha256(json.dumps(lines))] for (number, key, arm), lines in batches.items()]


def canonical_json(design: dict[str, Any]) -> str:
    """Return the only JSON text of a design: sorted keys, no spaces, finite numbers."""
    return json.dumps(design, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def frozen_design_mismatch_text(study: Study) -> str:
    """Return '' if the rows match the newest Design version, else a sentence. This is the last check, behind the guards."""
    latest = study.designs.order_by("version").last()
    if latest is None:
        return ""
    now = sha256_of(canonical_json(serialize_design(Study.objects.get(pk=study.pk))))
    return (
        ""
        if now == latest.sha256
        else f"The design in the database ({now[:12]}) differs from the frozen version {latest.version} ({latest.sha256[:12]})."
    )
