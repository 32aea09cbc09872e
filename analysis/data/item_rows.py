"""What was shown, as flat rows: which outputs each item consists of. A row of answers names its item, and one system at most."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from studies.models import Exposure, Item

from .flat_rows.columns import Column
from .flat_rows.selection import Selection

ITEM_COLUMNS = (
    Column("item", "text", "The item, s<section>.<number>, as in the rows of answers."),
    Column("section", "integer", "The position of the section in the design."),
    Column("item_kind", "text", "What the item is for.", levels=tuple(Item.Kind.values)),
    Column("prompt", "text", "The key of the item's prompt."),
    Column("domain", "text", "The domain of the prompt."),
    Column("system", "text", "A system whose output the item shows; an item that compares two has a row for each."),
    Column("is_human", "boolean", "The system is people."),
    Column("sample", "integer", "Which of the system's outputs for the prompt it is, from 0."),
    Column("retired_in", "integer", "The version of the design that took the item out; empty while it is asked."),
)
_PATHS = (
    "item__section__position", "item__number", "item__kind", "item__prompt__key", "item__prompt__domain", "output__system__name",
    "output__system__is_human", "output__sample", "item__retired_in__version",
)  # fmt: skip


def item_exposures(selection: Selection) -> QuerySet[Exposure]:
    """The outputs of all items of the study, whoever answered them."""
    return Exposure.objects.filter(item__study=selection.study)


def item_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    """Cells in the order of ITEMS: by section, item and system. One query."""
    rows = item_exposures(selection).order_by(
        "item__section__position", "item__number", "output__system__name", "output__sample"
    )
    for section, number, kind, prompt, domain, *rest in rows.values_list(*_PATHS).iterator(2000):
        yield (f"s{section}.{number}", section, kind, prompt, domain or None, *rest)
