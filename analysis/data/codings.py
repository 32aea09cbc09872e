"""Codings as flat rows, for exports, the archive, REST and the hash in a report. Coders are identified by seat, never by name."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet

from analysis.coding.models import Coding, CodingSample, CodingSeat
from annotators.counting import select
from studies.models import Arm, Study

from .flat_rows import Column, Selection, annotator_pseudonym, assignment_pseudonym, format_time

CODING_COLUMNS = (
    Column("sample", "integer", "The number of the sample in the study."),
    Column("kind", "text", "The kind of sample.", levels=tuple(CodingSample.Kind.values)),
    Column("rule", "text", "The declared rule that combines two codings.", levels=tuple(CodingSample.Rule.values)),
    Column("origin", "text", "The origin of the coded answers."),
    Column("item", "integer", "The number of the item in the sample."),
    Column("assignment", "text", "Pseudonym of the assignment, as in the other tables."),
    Column("annotator", "text", "Pseudonym of the annotator, as in the other tables."),
    Column("arm", "text", "The arm of the assignment."),
    Column("condition", "text", "The training condition of the arm.", levels=tuple(Arm.Condition.values)),
    Column("section", "integer", "The section of the explanation. Empty if all work of an annotator was reviewed."),
    Column("question", "text", "The key of the question of the explanation. Empty as for section."),
    Column(
        "slot",
        "text",
        "The form field of the explanation. Join by assignment and slot to the table responses. Empty as for section.",
    ),
    Column(
        "coder",
        "integer",
        "The coder's seat. Coders 1 and 2 code independently. Coder 3 decides disagreements if the rule needs a third coder.",
    ),
    Column("revision", "integer", "Number of this coding among the coder's codings of the item, from 1."),
    Column("is_current", "boolean", "The coder's latest coding of the item. Only this one counts."),
    Column("labels", "text", "Keys of the codebook's labels, separated by semicolons. Empty if no label applies."),
    Column("is_none", "boolean", "The coder decided that no label applies. An item without a row was not coded."),
    Column("at", "time", "When the coding was stored."),
)
_PATHS = (
    "item__sample__number", "item__sample__kind", "item__sample__rule", "item__sample__origin", "item__number",
    "item__assignment__code", "item__assignment__annotator__code", "item__assignment__batch__arm__name",
    "item__assignment__batch__arm__condition", "item__response__question__section__position", "item__response__question__key",
    "item__response__slot", "item__sample_id", "coder_id", "revision", "is_later", "labels", "is_none", "at",
)  # fmt: skip


def codings_of(selection: Selection) -> QuerySet[Coding]:
    """Return the codings of a selection. Codings of erased texts and of withdrawn annotators need ``withdrawn``."""
    rows = Coding.objects.filter(item__sample__study=selection.study)
    found = select(selection.use, rows, selection.origins, path="item__assignment")
    return found if selection.withdrawn else found.exclude(item__response__erased_at__isnull=False)


def coding_rows(selection: Selection, codings: QuerySet[Coding] | None = None) -> Iterator[tuple[Any, ...]]:
    """Yield cells in the order of ``CODING_COLUMNS``, sorted by sample, item, coder and revision, or in the order of ``codings``."""
    for _, cells in keyed_coding_rows(
        selection.study, codings_of(selection).order_by(*ORDER) if codings is None else codings
    ):
        yield cells


ORDER = ("item__sample__number", "item__number", "coder_id", "revision")


def keyed_coding_rows(study: Study, codings: QuerySet[Coding]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield (primary key, cells) of these codings, in their order. Makes two queries."""
    seats = {
        (sample, user): number
        for sample, user, number in CodingSeat.objects.filter(sample__study=study).values_list(
            "sample", "user", "number"
        )
    }
    later = Coding.objects.filter(item=OuterRef("item"), coder=OuterRef("coder"), revision__gt=OuterRef("revision"))
    annotated = codings.annotate(is_later=Exists(later), withdrawn=F("item__assignment__withdrawn_at"))
    for pk, withdrawn, *cells in annotated.values_list("pk", "withdrawn", *_PATHS).iterator(2000):
        (
            *head,
            code,
            annotator,
            arm,
            condition,
            section,
            question,
            slot,
            sample,
            coder,
            revision,
            is_later,
            labels,
            is_none,
            at,
        ) = cells
        name = None if withdrawn else annotator_pseudonym(study, annotator)
        yield (
            pk,
            (
                *head,
                assignment_pseudonym(code),
                name,
                arm,
                condition,
                section,
                question,
                slot,
                seats.get((sample, coder)),
                revision,
                not is_later,
                ";".join(labels.split()) or None,
                is_none,
                format_time(at),
            ),
        )


def coding_rows_sha256_and_count(selection: Selection) -> tuple[str, int]:
    """Return the hash of all codings of a selection, and their number."""
    import numpy as np

    from analysis.stats.seeds import unordered_rows_sha256

    rows = list(coding_rows(selection))
    header, numbers = [column.name for column in CODING_COLUMNS], np.arange(len(rows))
    return unordered_rows_sha256(header, ((numbers, column) for column in zip(*rows, strict=True))), len(rows)


def describe_coding_samples(study: Study) -> list[dict[str, Any]]:
    """Return the samples and what was declared for each before coding, for the codebook."""
    return [
        {
            "sample": sample.number, "kind": sample.kind, "rule": sample.rule, "rule_words": sample.get_rule_display(),
            "per_arm": sample.per_arm, "origin": sample.origin, "at": format_time(sample.at), "codebook": sample.codebook,
        }
        for sample in study.coding_samples.order_by("number")
    ]  # fmt: skip
