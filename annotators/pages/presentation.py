"""What templates are given: frozen records of words, labels and form fields. None leads to a system, an arm or a kind of item."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from django.utils.safestring import SafeString
from django.utils.text import capfirst

from annotators.models import Assignment
from studies.models import Exposure
from studies.protocols import Page, PageField
from studies.protocols.base.fields import Field
from studies.stimuli.markdown import render_markdown

from .cache import SizedLRUCache
from .compiled_queries import CompiledSelect
from .form_data import SKIP_SUFFIX, PageForm, input_names
from .images import UNSEEN_PREFIX, image_name
from .sequence import media_id


@lru_cache(maxsize=512)
def cached_markdown(text: str) -> SafeString:
    return render_markdown(text, scrolls_wide_blocks=True)


# Characters of a prompt that fill about half a small screen in the column beside its outputs.
LONG_PROMPT = 500
# Characters of a question in a list of questions: two lines of a phone.
BRIEF = 60


@dataclass(frozen=True, slots=True)
class Turn:
    speaker: str
    words: str


@dataclass(frozen=True, slots=True)
class ShownOutput:
    """One output, as text, HTML made of Markdown, turns of a dialogue or an image; or nothing, where the system gave nothing."""

    kind: str
    text: str = ""
    html: str = ""
    turns: tuple[Turn, ...] = ()
    media: str = ""
    alt: str = ""
    language: str = ""
    image: "ShownImage | None" = None


@dataclass(frozen=True, slots=True)
class ShownImage:
    """How the form names an image, and whether the annotator said that it could not be seen."""

    name: str
    is_unseen: bool = False

    @property
    def field(self) -> str:
        return UNSEEN_PREFIX + self.name

    @property
    def id(self) -> str:
        return self.field.replace(".", "-")


@dataclass(frozen=True, slots=True)
class ShownField:
    """A form field with what was typed, said of it, and refused."""

    slot: str
    field: Field
    text: str
    help: str
    label: str
    position: int | None
    value: str = ""
    values: Mapping[str, str] = field(default_factory=dict, hash=False)
    error: str = ""
    skip_reasons: tuple[tuple[str, str], ...] = ()
    skip_value: str = ""
    is_locked: bool = False

    @property
    def id(self) -> str:
        return self.slot.replace(".", "-")

    @property
    def is_blank(self) -> bool:
        """Whether it looks the same wherever its question stands: nobody has typed here, and it shows nothing of its page."""
        own = self.field.inputs or self.field.depends_on_page
        return not (own or self.value or self.values or self.error or self.skip_value)

    @property
    def brief_text(self) -> str:
        """The question for a long list. Its middle is left out: questions of a page begin alike and end in what tells them apart."""
        if len(self.text) <= BRIEF:
            return self.text
        start, end = self.text[: BRIEF // 3], self.text[-BRIEF * 2 // 3 :]
        # At words, where the writing has spaces between them.
        return f"{start.rpartition(' ')[0] or start} … {end.partition(' ')[2] or end}"

    @property
    def skip_name(self) -> str:
        return self.slot + SKIP_SUFFIX

    @property
    def template(self) -> str:
        return self.field.template

    @property
    def group(self) -> str:
        """The question's own slot: the boxes of a multiple choice share it."""
        return self.slot.partition(".o")[0]

    @property
    def is_option(self) -> bool:
        return self.group != self.slot

    @property
    def described_by(self) -> str:
        """The ids of what is said about this field: its help, the numbers it takes, why it was refused."""
        said = (("h", self.help), ("n", self.field.kind == "number"), ("e", self.error))
        return " ".join(f"{self.id}-{letter}" for letter, is_there in said if is_there)


@dataclass(frozen=True, slots=True)
class ShownExposure:
    label: str
    output: ShownOutput
    fields: tuple[ShownField, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownItem:
    position: int
    prompt: str
    source: str
    media: str
    language: str
    exposures: tuple[ShownExposure, ...]
    fields: tuple[ShownField, ...] = ()
    image: ShownImage | None = None

    @property
    def is_long(self) -> bool:
        """Whether the prompt may be higher than a screen, so that it scrolls by itself beside its outputs."""
        return len(self.prompt) + len(self.source) > LONG_PROMPT or bool(self.media and self.source)


@dataclass(frozen=True)
class ShownPage:
    key: str
    step: str
    noun: str
    explanation: str
    items: tuple[ShownItem, ...]
    fields: tuple[ShownField, ...]
    labels: tuple[str, ...]
    said: str = ""

    @cached_property
    def all_fields(self) -> list[ShownField]:
        """Every field of the page, in the order in which the page shows them."""
        inside = (
            shown
            for item in self.items
            for shown in (*(f for exposure in item.exposures for f in exposure.fields), *item.fields)
        )
        return [*inside, *self.fields]

    @property
    def has_fields(self) -> bool:
        return bool(self.all_fields)

    @property
    def has_images(self) -> bool:
        return any(item.image or any(one.output.image for one in item.exposures) for item in self.items)

    @property
    def errors(self) -> list[ShownField]:
        return [shown for shown in self.all_fields if shown.error]

    @property
    def located_errors(self) -> list[tuple[str, ShownField]]:
        """What was refused, with the place that a question asked of many texts does not tell: "Writer B"."""
        noun = capfirst(self.noun or "text")
        labels = {id(f): f"{noun} {one.label}" for item in self.items for one in item.exposures for f in one.fields}
        return [(labels.get(id(shown), ""), shown) for shown in self.errors]


def _output(
    format: str, text: str, media: str, alt: str, is_empty: bool, language: str, url: str, image: ShownImage
) -> ShownOutput:
    if is_empty:
        return ShownOutput("empty", language=language)
    if media:
        return ShownOutput("image", media=url, alt=alt, language=language, image=image)
    if format == "markdown":
        return ShownOutput("markdown", html=cached_markdown(text), language=language)
    if format == "turns":
        turns = (line.partition(":") for line in text.split("\n") if line.strip())
        return ShownOutput(
            "turns", turns=tuple(Turn(who.strip(), words.strip()) for who, _, words in turns), language=language
        )
    return ShownOutput("plain", text=text, language=language)


def shown_page(
    assignment: Assignment,
    page: Page,
    asks: Mapping[str, PageField],
    *,
    stored: Mapping[str, Any] | None = None,
    draft: Mapping[str, Any] | None = None,
    form: PageForm | None = None,
) -> ShownPage:
    """The page with its texts (one query, of this page alone) and its fields: as stored, as refused just now, or as drafted."""
    if form is not None:
        typed: Mapping[str, str] = form.typed
    elif stored is not None:
        typed = stored
    else:
        typed = {name: _first(values) for name, values in (draft or {}).items()}
    fields = [_field(slot, ask, typed, stored is not None, form) for slot, ask in asks.items()]
    about: dict[tuple[int | None, int | None], list[ShownField]] = {}
    for ask, shown in zip(asks.values(), fields, strict=True):
        about.setdefault((ask.item_id, ask.exposure_id), []).append(shown)
    settings = page.section.settings
    return ShownPage(
        key=page.key,
        step=page.step,
        noun=settings.get("noun", ""),
        explanation=cached_markdown(settings["explanation"]) if settings.get("explanation") else "",
        items=_items(assignment, page, about, typed),
        fields=tuple(about.get((None, None), ())),
        labels=tuple(label for label, _ in page.items[0].exposures) if page.items else (),
        said=page.said,
    )


def _field(slot: str, ask: PageField, typed: Mapping[str, str], is_locked: bool, sent: PageForm | None) -> ShownField:
    return ShownField(
        slot=slot,
        field=ask.field,
        text=ask.text,
        help=cached_markdown(ask.help) if ask.help else "",
        label=ask.label,
        position=ask.position,
        value=typed.get(slot, ""),
        values={part: typed.get(name, "") for part, name in input_names(slot, ask).items()} if ask.field.inputs else {},
        error=sent.errors.get(slot, "") if sent is not None else "",
        skip_reasons=ask.skip_reasons,
        skip_value=typed.get(slot + SKIP_SUFFIX, ""),
        is_locked=is_locked,
    )


def _first(values: Any) -> str:
    return values[0] if isinstance(values, list) and values and isinstance(values[0], str) else ""


@lru_cache(maxsize=64)
def _texts_query(items: int) -> CompiledSelect:
    """The query for the texts of so many items."""
    return CompiledSelect(
        lambda *ids: Exposure.objects.filter(item__in=ids).order_by().values_list(
            "pk", "item_id", "output__format", "output__text", "output__media", "output__alt", "output__is_empty",
            "output__language", "item__prompt__text", "item__prompt__source", "item__prompt__media", "item__prompt__language",
        ),
        *(int for _ in range(items)),
    )  # fmt: skip


Texts = tuple[dict[int, tuple], dict[int, tuple]]


def _load_texts(items: tuple[int, ...]) -> Texts:
    """What these items show: of each exposure its output's columns, of each item its prompt's."""
    outputs, prompts = {}, {}
    for pk, item, format, text, media, alt, is_empty, language, *prompt in _texts_query(len(items))(*items):
        outputs[pk] = (format, text, media, alt, is_empty, language)
        prompts[item] = tuple(prompt)
    return outputs, prompts


def _characters(texts: Texts) -> int:
    return sum(len(column) for rows in texts for row in rows.values() for column in row if isinstance(column, str))


# Texts that a frozen design shows never change. A character takes one to four bytes.
text_cache = SizedLRUCache(3_000_000)


def _items(assignment: Assignment, page: Page, about, typed: Mapping[str, str]) -> tuple[ShownItem, ...]:
    if not page.items:
        return ()
    ids = tuple(item.id for item in page.items)
    if assignment.design_id:
        texts, prompts = text_cache.get(ids, lambda: _load_texts(ids), _characters)
    else:
        texts, prompts = _load_texts(ids)

    def image(position: int, label: str = "") -> ShownImage:
        name = image_name(position, label)
        return ShownImage(name, bool(typed.get(UNSEEN_PREFIX + name)))

    def output(item, label: str, exposure: int) -> ShownOutput:
        url = f"/p/{assignment.code}/m/{media_id(assignment.code, exposure)}" if texts[exposure][2] else ""
        return _output(*texts[exposure], url, image(item.position, label))

    shown = []
    for item in page.items:
        text, source, media, language = prompts[item.id]
        url = f"/p/{assignment.code}/m/{media_id(assignment.code, item.id, 'prompt')}" if media else ""
        exposures = tuple(
            ShownExposure(label, output(item, label, exposure), tuple(about.get((item.id, exposure), ())))
            for label, exposure in item.exposures
        )
        shown.append(
            ShownItem(
                item.position,
                text,
                source,
                url,
                language,
                exposures,
                tuple(about.get((item.id, None), ())),
                image(item.position) if media else None,
            )
        )
    return tuple(shown)


def responses_as_form_data(asks: Mapping[str, PageField], page: Page, responses) -> dict[str, str]:
    """Recorded answers as a form would have sent them, for the page that is looked at again."""
    letters = {exposure: label for item in page.items for label, exposure in item.exposures}
    texts: dict[str, str] = {}
    for r in responses:
        if r.slot not in asks:
            continue
        if r.skip_reason:
            texts[r.slot + SKIP_SUFFIX] = r.skip_reason
        elif asks[r.slot].field.inputs:
            names = input_names(r.slot, asks[r.slot])
            texts.update({names[part]: text for part, text in asks[r.slot].field.as_form_values(r).items()})
        elif r.chosen_id:
            texts[r.slot] = letters.get(r.chosen_id, "")
        elif r.text:
            texts[r.slot] = r.text
        elif asks[r.slot].answer_column in ("choice", "chosen"):
            texts[r.slot] = r.choice
        elif r.value is not None:
            texts[r.slot] = f"{r.value.normalize():f}"
    return texts
