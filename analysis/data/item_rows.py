"""Items as flat rows: the outputs of each item. A row of answers names its item, but at most one system."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from studies.models import Exposure, Item

from .flat_rows.columns import Column
from .flat_rows.selection import Selection

ITEM_COLUMNS = (
    Column("item", "text", "The item as s<section>.<number>, as in the table responses."),
    Column("section", "integer", "The position of the section in the design."),
    Column("item_kind", "text", "The purpose of the item.", levels=tuple(Item.Kind.values)),
    Column("prompt", "text", "The key of the item's prompt."),
    Column("domain", "text", "The domain of the prompt."),
    Column("system", "text", "A system whose output the item shows. An item with two outputs has two rows."),
    Column("is_human", "boolean", "The system is a human author."),
    Column("sample", "integer", "Number of the output among the system's outputs for the prompt, from 0."),
    Column("retired_in", "integer", "The version of the design that retired the item. Empty if the item is in use."),
)
_PATHS = (
    "item__section__position", "item__number", "item__kind", "item__prompt__key", "item__prompt__domain", "output__system__name",
    "output__system__is_human", "output__sample", "item__retired_in__version",
)  # fmt: skip


def exposures_of_all_items(selection: Selection) -> QuerySet[Exposure]:
    """Return the outputs of all items of the study, answered or not."""
    return Exposure.objects.filter(item__study=selection.study)


def item_output_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    """Yield cells in the order of ``ITEM_COLUMNS``, sorted by section, item and system. Makes one query."""
    rows = exposures_of_all_items(selection).order_by(
        "item__section__position", "item__number", "output__system__name", "output__sample"
    )
    for section, number, kind, prompt, domain, *rest in rows.values_list(*_PATHS).iterator(2000):
        yield (f"s{section}.{number}", section, kind, prompt, domain or None, *rest)
