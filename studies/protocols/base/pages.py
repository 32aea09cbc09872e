"""Records of an annotator's pages. They reveal no system, no arm and no kind of item."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.text import capfirst

from studies.language import gettext, gettext_noop

from .fields import ChoiceField, Field, Option, RewriteField, ScaleSpec

# What an output is called unless the researcher has chosen another word.
DEFAULT_NOUNS = {
    # Translators: the word for an output, in labels such as "Text A"
    "text": gettext_noop("Text"),
    # Translators: the word for a column of texts, in labels such as "Writer A"
    "writer": gettext_noop("Writer"),
}


def shown_noun(settings: Mapping[str, Any]) -> str:
    """Return what the pages of a section call an output. The program's own words are translated, a researcher's word is kept.

    It is used in labels only: the grammar of a sentence would depend on the word.
    """
    noun = str(settings.get("noun") or "text")
    return gettext(DEFAULT_NOUNS[noun]) if noun in DEFAULT_NOUNS else capfirst(noun)


def labelled(noun: str, label: str) -> str:
    """Return a noun with its letter, such as "Text A"."""
    # Translators: the name of a text on a page, such as "Text A"
    return gettext("%(noun)s %(label)s") % {"noun": noun, "label": label}


def output_name(settings: Mapping[str, Any], label: str) -> str:
    """Return the name of an output on a page, such as "Text A"."""
    return labelled(shown_noun(settings), label)


def shown_setting(stored: str, default: str) -> str:
    """Return a text of a section's settings as its pages show it: translated if it is the program's own, else as written."""
    return gettext(default.strip()) if stored.strip() == default.strip() else stored


@dataclass(frozen=True, slots=True)
class PageField:
    """One form field and the subject of its answer.

    ``answer_column``: the column for a plain cleaned value (value | chosen | choice | text). A field may also return an ``Answer``,
    which is stored unchanged. ``choice`` is a constant of the slot (an option of a multiple choice). ``right_key``: the key
    of the right answer, only of an attention check.
    """

    field: Field
    question_id: int
    answer_column: str = "value"
    item_id: int | None = None
    exposure_id: int | None = None
    label: str = ""
    position: int | None = None
    choice: str = ""
    text: str = ""
    help: str = ""
    skip_reasons: tuple[tuple[str, str], ...] = ()
    right_key: str = ""


@dataclass(frozen=True, slots=True)
class PageItem:
    """An item as this annotator sees it. ``exposures`` are pairs (label, exposure id) in the order of the labels."""

    position: int
    id: int
    exposures: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """A question as this annotator reads it. It holds the labels of x and y if it compares two systems."""

    position: int
    id: int
    key: str
    text: str
    help: str
    scale: ScaleSpec
    required: bool = True
    skip_reasons: tuple[tuple[str, str], ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section as this annotator sees it. ``position`` counts only the sections that they see."""

    position: int
    m: int
    settings: Mapping[str, Any]
    questions: tuple[PageQuestion, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One page. ``step`` names the kind of page for the protocol's template. ``said`` is the annotator's earlier answer, in
    the words that they chose, if the page asks about it. ``checks``: the attention checks that this page also asks."""

    key: str
    section: PageSection
    items: tuple[PageItem, ...] = ()
    questions: tuple[PageQuestion, ...] = ()
    step: str = ""
    said: str = ""
    checks: tuple[PageQuestion, ...] = ()

    def slot(
        self,
        question: PageQuestion,
        item: PageItem | None = None,
        label: str = "",
        option: int | None = None,
        part: int | None = None,
    ) -> str:
        """Return the name of a form field. It only counts what is shown, so it reveals nothing."""
        name = f"s{self.section.position}.q{question.position}"
        if item is not None:
            name += f".i{item.position}"
        if label:
            name += f".{label}"
        if option is not None:
            name += f".o{option}"
        if part is not None:
            name += f".p{part}"
        return name


def question_fields(
    page: Page, question: PageQuestion, item: PageItem | None = None, label: str = "", exposure_id: int | None = None
) -> dict[str, PageField]:
    """Return the fields of a question (about nothing, an item or an exposure): one field, or one per option of a multiple choice."""
    common: dict[str, Any] = {
        "question_id": question.id,
        "item_id": item.id if item else None,
        "exposure_id": exposure_id,
        "label": label or question.label,
        "position": item.position if item else question.position,
        "text": question.text.replace("{label}", label),
        "help": question.help,
    }
    if question.scale.kind == "multiple":
        return {
            page.slot(question, item, label, option=number): PageField(box, choice=option.key, **common)
            for number, (option, box) in enumerate(question.scale.option_fields(), 1)
        }
    reasons = question.skip_reasons
    ask = PageField(
        question.scale.field(question.required),
        answer_column=question.scale.answer_column,
        skip_reasons=reasons,
        **common,
    )
    return {page.slot(question, item, label): ask}


def check_fields(page: Page) -> dict[str, PageField]:
    """Return the fields of the page's attention checks. They look like the fields of any other question about no output."""
    item = page.items[0] if len(page.items) == 1 else None
    return {
        page.slot(check, item): PageField(
            ChoiceField(options=tuple(Option(option.key, option.label) for option in check.scale.options)),
            check.id,
            answer_column="choice",
            position=check.position,
            text=check.text,
            help=check.help,
            right_key=check.scale.right_key,
        )
        for check in page.checks
    }


def with_shown_texts(
    page_fields: dict[str, PageField], read_texts: Callable[[Collection[int]], Mapping[int, str]]
) -> dict[str, PageField]:
    """Return a page's fields, in which fields for rewriting have the texts of their outputs. Pages without them read no text.

    ``read_texts`` returns the texts of these exposures.
    """
    asked = {
        slot: (ask, ask.field, ask.exposure_id)
        for slot, ask in page_fields.items()
        if isinstance(ask.field, RewriteField) and ask.exposure_id
    }
    texts = read_texts({exposure for _, _, exposure in asked.values()}) if asked else {}
    return page_fields | {
        slot: replace(ask, field=replace(field, original=texts[exposure]))
        for slot, (ask, field, exposure) in asked.items()
    }
