"""Count the planned answers of the kept annotators that are missing, in total and by section."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Prefetch

from annotators.models import Assignment
from studies.models import Batch, Item, Placement, Question, Section, Study
from studies.protocols import REGISTRY as PROTOCOLS

if TYPE_CHECKING:
    from pandas import DataFrame

ANSWER_KEY = ["assignment", "section", "question", "item", "system", "sample"]
COUNTS = ("planned", "given", "skipped", "not_given")


def count_missing_answers(study: Study, kept: list[int], live_answers: "DataFrame") -> dict[str, Any]:
    """Return planned, given, skipped and not given answers of the kept assignments, in total and by live section.

    Free texts are not counted, because many of them are optional. The parts of one answer (marks of an output, boxes of a list) count
    once. Batches of imported answers have only the items that were answered.
    """
    sections = _live_sections(study)
    planned = _planned_by_section(study, sections, set(kept))
    counted_questions = {
        (section.position, question.key) for section in sections for question in section.questions.all()
    }
    given, skipped = _given_and_skipped(live_answers[live_answers["is_kept"]], counted_questions)
    rows = []
    for section in sections:
        counts = {
            "planned": planned.get(section.position, 0),
            "given": given.get(section.position, 0),
            "skipped": skipped.get(section.position, 0),
        }
        counts["not_given"] = max(0, counts["planned"] - counts["given"] - counts["skipped"])
        if counts["planned"]:
            rows.append({"position": section.position, **counts})
    return {name: sum(row[name] for row in rows) for name in COUNTS} | {"sections": rows}


def _live_sections(study: Study) -> list[Section]:
    """Return the live sections with their arms and with all questions but free texts."""
    texts = [
        pk
        for pk, scale in Question.objects.filter(section__study=study).values_list("pk", "scale")
        if isinstance(scale, dict) and scale.get("kind") == "text"
    ]
    questions = Prefetch("questions", Question.objects.exclude(pk__in=texts))
    sections = study.sections.filter(purpose=Section.Purpose.LIVE, protocol__in=list(PROTOCOLS)).order_by("position")
    return list(sections.prefetch_related(questions, "section_arms"))


def _planned_by_section(study: Study, sections: list[Section], kept: set[int]) -> dict[int, int]:
    placed: dict[int, dict[int, list[tuple[int, int | None]]]] = {}
    rows = (
        Placement.objects.filter(batch__study=study, item__kind=Item.Kind.LIVE)
        .order_by("batch", "number")
        .values_list("batch_id", "item__section_id", "item__retired_in__version")
        .annotate(outputs=Count("item__exposures"))
    )
    for batch, section_id, retired, outputs in rows:
        placed.setdefault(batch, {}).setdefault(section_id, []).append((outputs, retired))
    for section in sections:
        section.asked = len(section.questions.all())  # type: ignore[attr-defined]  # an annotation that count_answers reads
    arms_by_section = {section.pk: {row.arm_id for row in section.section_arms.all()} for section in sections}
    planned: dict[int, int] = {}
    people = Assignment.objects.filter(study=study, batch__isnull=False)
    for pk, batch, arm, origin, version in people.values_list(
        "pk", "batch_id", "batch__arm_id", "batch__origin", "design__version"
    ):
        if pk not in kept:
            continue
        for section in sections:
            protocol = PROTOCOLS[section.protocol]
            arms = arms_by_section[section.pk]
            # A batch of third labels has the items of one section and nothing else.
            if (arms and arm not in arms) or (origin == Batch.Origin.TOP_UP and not protocol.has_items):
                continue
            items = placed.get(batch, {}).get(section.reuses_id or section.pk, [])
            outputs_per_item = [outputs for outputs, retired in items if retired is None or retired > (version or 0)]
            n = protocol.count_answers(
                section, outputs_per_item[: section.m] if section.reuses_id else outputs_per_item
            )
            planned[section.position] = planned.get(section.position, 0) + n
    return planned


def _given_and_skipped(
    rows: "DataFrame", counted_questions: set[tuple[int, str]]
) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Return the numbers of answers given and skipped, by section."""
    import numpy as np

    is_counted = [key in counted_questions for key in zip(rows["section"], rows["question"], strict=True)]
    rows = rows[np.asarray(is_counted, dtype=bool)]
    is_given = rows["value"].notna() | (rows["choice"] != "") | rows["chosen_system"].notna()
    is_skipped = ~is_given & (rows["skip_reason"] != "")
    given, skipped = (
        Counter(rows.loc[mask, ANSWER_KEY].drop_duplicates()["section"].tolist()) for mask in (is_given, is_skipped)
    )
    return given, skipped
