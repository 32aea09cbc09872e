"""Codings as flat rows: what exports, the archive, REST and the hash in a report have of them. Coders are seats, never names."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet

from analysis.coding.models import Coding, CodingSample, CodingSeat
from studies.models import Arm, Study

from .flat_rows.cells import format_time
from .flat_rows.columns import Column
from .flat_rows.selection import Selection, annotator_pseudonym, assignment_pseudonym

CODING_COLUMNS = (
    Column("sample", "integer", "The number of the sample in the study."),
    Column("kind", "text", "What is coded.", levels=tuple(CodingSample.Kind.values)),
    Column(
        "rule", "text", "The declared rule by which two codings become one.", levels=tuple(CodingSample.Rule.values)
    ),
    Column("origin", "text", "Where the coded words come from."),
    Column("item", "integer", "The number of the item in the sample."),
    Column("assignment", "text", "A name of the assignment, as in the other tables."),
    Column("annotator", "text", "A pseudonym of the annotator, as in the other tables."),
    Column("arm", "text", "The arm of the assignment."),
    Column("condition", "text", "The training condition of the arm.", levels=tuple(Arm.Condition.values)),
    Column(
        "section", "integer", "The section of the explanation; empty where all of an annotator's work was reviewed."
    ),
    Column("question", "text", "The key of the question that the explanation answers; empty as before."),
    Column(
        "slot",
        "text",
        "The form field of the explanation: with the assignment it finds the row of responses; empty as before.",
    ),
    Column("coder", "integer", "The coder's seat: 1 and 2 code by themselves, 3 decides where the rule wants a third."),
    Column("revision", "integer", "Which coding of this item by this coder it is, from 1."),
    Column("is_current", "boolean", "The coder's last word on the item: it counts."),
    Column("labels", "text", "Keys of the sample's codebook, by semicolons; empty where none applies."),
    Column(
        "is_none", "boolean", "The coder looked and said that no label applies. An item without a row was not coded."
    ),
    Column("at", "time", "When the coding was stored."),
)
_PATHS = (
    "item__sample__number", "item__sample__kind", "item__sample__rule", "item__sample__origin", "item__number",
    "item__assignment__code", "item__assignment__annotator__code", "item__assignment__batch__arm__name",
    "item__assignment__batch__arm__condition", "item__response__question__section__position", "item__response__question__key",
    "item__response__slot", "item__sample_id", "coder_id", "revision", "is_later", "labels", "is_none", "at",
)  # fmt: skip


def codings_of(selection: Selection) -> QuerySet[Coding]:
    """The codings of a selection. Of words that were erased, and of people who withdrew, there are none unless asked for."""
    rows = Coding.objects.filter(item__sample__study=selection.study, item__assignment__origin__in=selection.origins)
    if not selection.withdrawn:
        rows = rows.filter(item__assignment__withdrawn_at=None).exclude(item__response__erased_at__isnull=False)
    return rows


def coding_rows(selection: Selection, rows: QuerySet[Coding] | None = None) -> Iterator[tuple[Any, ...]]:
    """Cells in the order of CODINGS: by sample, item, coder and revision, or in the order of the rows that are given."""
    for _, cells in keyed_coding_rows(
        selection.study, codings_of(selection).order_by(*ORDER) if rows is None else rows
    ):
        yield cells


ORDER = ("item__sample__number", "item__number", "coder_id", "revision")


def keyed_coding_rows(study: Study, rows: QuerySet[Coding]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """(key, cells) of these codings, in their order. Two queries."""
    seats = {
        (sample, user): number
        for sample, user, number in CodingSeat.objects.filter(sample__study=study).values_list(
            "sample", "user", "number"
        )
    }
    later = Coding.objects.filter(item=OuterRef("item"), coder=OuterRef("coder"), revision__gt=OuterRef("revision"))
    found = rows.annotate(is_later=Exists(later), withdrawn=F("item__assignment__withdrawn_at"))
    for pk, withdrawn, *cells in found.values_list("pk", "withdrawn", *_PATHS).iterator(2000):
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


def codings_digest(selection: Selection) -> tuple[str, int]:
    """The hash of all codings of a selection, and their number."""
    from analysis.stats.seeds import rows_sha256

    cells = list(coding_rows(selection))
    return rows_sha256(
        [[column.name for column in CODING_COLUMNS], *(["" if c is None else c for c in row] for row in cells)]
    ), len(cells)


def describe_coding_samples(study: Study) -> list[dict[str, Any]]:
    """The samples with what was declared of each before anybody coded: for the codebook."""
    return [
        {
            "sample": one.number, "kind": one.kind, "rule": one.rule, "rule_words": one.get_rule_display(), "per_arm": one.per_arm,
            "origin": one.origin, "at": format_time(one.at), "codebook": one.codebook,
        }
        for one in study.coding_samples.order_by("number")
    ]  # fmt: skip
