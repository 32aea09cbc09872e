"""Frozen records of texts, labels and form fields for templates.

They never contain a system, an arm or a kind of item.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import cached_property, lru_cache
from typing import Any

from django.utils.safestring import SafeString

from annotators.counting import UNSEEN
from annotators.fast_path import CompiledSelect
from annotators.models import Assignment, Response
from studies.design.wording import wording_of
from studies.language import gettext
from studies.models import Expected, Exposure
from studies.protocols import REGISTRY, Page, PageField, PageItem, PageQuestion
from studies.protocols.base.fields import TEXT_KINDS, Field
from studies.protocols.base.known_answers import practice_answer
from studies.protocols.base.pages import labelled, output_name, shown_noun, shown_setting
from studies.protocols.spa import DEFAULT_EXPLANATION
from studies.stimuli.markdown import render_markdown, render_output

from .form_data import SKIP_SUFFIX, UNSEEN_PREFIX, PageForm, input_names_by_part, page_image_name
from .sequence import opaque_media_id


@lru_cache(maxsize=512)
def render_cached_markdown(text: str, top_heading: int = 2) -> SafeString:
    return render_markdown(text, scrolls_wide_blocks=True, top_heading=top_heading)


@lru_cache(maxsize=512)
def _render_cached_output(text: str, shows_addresses: bool) -> SafeString:
    return render_output(text, shows_addresses=shows_addresses)


# A prompt with more characters fills about half a small screen in the column beside its outputs.
LONG_PROMPT = 500
# The number of characters on about four screens of a phone.
LONG_TO_READ = 4000
# The length in characters of a question in a list of questions: two lines on a phone.
BRIEF = 60


@dataclass(frozen=True, slots=True)
class Turn:
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownOutput:
    """One output: a text, HTML from Markdown, the turns of a dialogue, an image, or nothing if it is empty."""

    kind: str
    text: str = ""
    html: str = ""
    turns: tuple[Turn, ...] = ()
    media: str = ""
    alt: str = ""
    language: str = ""
    image: "ShownImage | None" = None
    warning: str = ""


@dataclass(frozen=True, slots=True)
class ShownImage:
    """The name in the form of an image, or of an output with a warning, and whether the annotator did not see it."""

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
    """A form field with its texts, the typed value and the error message."""

    slot: str
    field: Field
    text: str
    help: str
    label: str
    position: int | None
    value: str = ""
    values: Mapping[str, str] = dataclass_field(default_factory=dict, hash=False)
    error: str = ""
    skip_reasons: tuple[tuple[str, str], ...] = ()
    skip_value: str = ""
    is_locked: bool = False

    @property
    def id(self) -> str:
        return self.slot.replace(".", "-")

    @property
    def focus_id(self) -> str:
        """Return the id of what takes the focus: a field that is typed, or a question and none of its answers."""
        return self.id if self.field.kind in ("number", *TEXT_KINDS) else f"{self.id}-l"

    @property
    def is_blank(self) -> bool:
        """Return whether the field looks the same on every page: it is empty and does not depend on its page."""
        own = self.field.inputs or self.field.depends_on_page
        return not (own or self.value or self.values or self.error or self.skip_value)

    @property
    def brief_text(self) -> str:
        """Return the question, shortened for a list.

        The middle is left out, because a page's questions differ at the end.
        """
        if len(self.text) <= BRIEF:
            return self.text
        start, end = self.text[: BRIEF // 3], self.text[-BRIEF * 2 // 3 :]
        # Cut between words, if the language has spaces between words.
        return f"{start.rpartition(' ')[0] or start} … {end.partition(' ')[2] or end}"

    @property
    def skip_name(self) -> str:
        return self.slot + SKIP_SUFFIX

    @property
    def template(self) -> str:
        return self.field.template

    @property
    def group(self) -> str:
        """Return the question's own slot, which all boxes of a multiple choice share."""
        return self.slot.partition(".o")[0]

    @property
    def is_option(self) -> bool:
        return self.group != self.slot

    @property
    def described_by(self) -> str:
        """Return the ids of the elements that describe this field: its help, the allowed numbers or length, and its error."""
        descriptions = (
            ("h", self.help),
            ("n", self.field.kind == "number"),
            ("c", getattr(self.field, "minimum_length", 0)),
            ("e", self.error),
        )
        return " ".join(f"{self.id}-{letter}" for letter, is_there in descriptions if is_there)


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
        """Return whether the prompt may be higher than the screen. Then it scrolls on its own beside its outputs."""
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
        """Return all fields of the page in display order."""
        inside = (
            shown_field
            for item in self.items
            for shown_field in (*(field for exposure in item.exposures for field in exposure.fields), *item.fields)
        )
        return [*inside, *self.fields]

    def compared_labels(self, field: ShownField) -> tuple[str, ...]:
        """Return the two labels that a field's question compares, sorted, or ()."""
        parts = ((field.label[:end], field.label[end:]) for end in range(1, len(field.label)))
        return next((tuple(sorted(pair)) for pair in parts if set(pair) <= set(self.labels)), ())

    @property
    def has_fields(self) -> bool:
        return bool(self.all_fields)

    @property
    def is_long_to_read(self) -> bool:
        """Return whether texts fill several screens of a phone, so that links to them and to the answers stay in sight."""
        if len(self.items) != 1 or not self.has_fields:
            return False
        outputs = [exposure.output for exposure in self.items[0].exposures]
        return sum(len(output.text or output.html) for output in outputs) + len(self.items[0].source) > LONG_TO_READ

    @property
    def has_images(self) -> bool:
        return any(item.image or any(exposure.output.media for exposure in item.exposures) for item in self.items)

    @property
    def has_warnings(self) -> bool:
        return any(exposure.output.warning for item in self.items for exposure in item.exposures)

    @property
    def errors(self) -> list[ShownField]:
        return [shown_field for shown_field in self.all_fields if shown_field.error]

    @property
    def located_errors(self) -> list[tuple[str, ShownField]]:
        """Return the refused fields, each with the text that it is about, such as "Writer B", or ''.

        A question about all outputs of an item may belong to the first of them. Its message names none.
        """
        labels = {
            id(shown_field): labelled(self.noun, exposure.label)
            for item in self.items
            if all(exposure.fields for exposure in item.exposures)
            for exposure in item.exposures
            for shown_field in exposure.fields
        }
        return [(labels.get(id(shown_field), ""), shown_field) for shown_field in self.errors]


def _output(
    format: str,
    text: str,
    media: str,
    alt: str,
    is_empty: bool,
    language: str,
    url: str,
    image: ShownImage,
    shows_addresses: bool,
) -> ShownOutput:
    if is_empty:
        return ShownOutput("empty", language=language)
    if media:
        return ShownOutput("image", media=url, alt=alt, language=language, image=image)
    if format == "markdown":
        return ShownOutput("markdown", html=_render_cached_output(text, shows_addresses), language=language)
    if format == "turns":
        turns = (line.partition(":") for line in text.split("\n") if line.strip())
        return ShownOutput(
            "turns", turns=tuple(Turn(speaker.strip(), line.strip()) for speaker, _, line in turns), language=language
        )
    return ShownOutput("code" if format == "code" else "plain", text=text, language=language)


def build_shown_page(
    assignment: Assignment,
    page: Page,
    page_fields: Mapping[str, PageField],
    *,
    stored_form_data: Mapping[str, Any] | None = None,
    draft_form_data: Mapping[str, Any] | None = None,
    form: PageForm | None = None,
) -> ShownPage:
    """Return the page with its texts and its fields. The fields show stored answers, a refused form, or a draft.

    One query loads the texts of this page only.
    """
    if form is not None:
        typed: Mapping[str, str] = form.typed
    elif stored_form_data is not None:
        typed = stored_form_data
    else:
        typed = {name: _first(values) for name, values in (draft_form_data or {}).items()}
    fields = [_field(slot, ask, typed, stored_form_data is not None, form) for slot, ask in page_fields.items()]
    fields_by_subject: dict[tuple[int | None, int | None], list[ShownField]] = {}
    for ask, shown_field in zip(page_fields.values(), fields, strict=True):
        fields_by_subject.setdefault((ask.item_id, ask.exposure_id), []).append(shown_field)
    settings = page.section.settings
    return ShownPage(
        key=page.key,
        step=page.step,
        noun=shown_noun(settings),
        explanation=render_cached_markdown(shown_setting(settings["explanation"], DEFAULT_EXPLANATION))
        if settings.get("explanation")
        else "",
        items=_items(assignment, page, fields_by_subject, typed),
        fields=tuple(fields_by_subject.get((None, None), ())),
        labels=tuple(
            sorted({label for item in page.items for label, _ in item.exposures}, key=lambda label: (len(label), label))
        ),
        said="" if assignment.limited_address else page.said,
    )


def _field(slot: str, ask: PageField, typed: Mapping[str, str], is_locked: bool, form: PageForm | None) -> ShownField:
    return ShownField(
        slot=slot,
        field=ask.field,
        text=ask.text,
        help=render_cached_markdown(ask.help) if ask.help else "",
        label=ask.label,
        position=ask.position,
        value=typed.get(slot, "" if is_locked else ask.field.starting_text),
        values={part: typed.get(name, "") for part, name in input_names_by_part(slot, ask).items()}
        if ask.field.inputs
        else {},
        error=form.errors.get(slot, "") if form is not None else "",
        skip_reasons=ask.skip_reasons,
        skip_value=typed.get(slot + SKIP_SUFFIX, ""),
        is_locked=is_locked,
    )


def _first(values: Any) -> str:
    return values[0] if isinstance(values, list) and values and isinstance(values[0], str) else ""


@lru_cache(maxsize=64)
def _texts_query(items: int) -> CompiledSelect:
    """Return the query for the texts of this number of items."""
    return CompiledSelect(
        lambda *ids: Exposure.objects.filter(item__in=ids).order_by().values_list(
            "pk", "item_id", "output__format", "output__text", "output__media", "output__alt", "output__is_empty",
            "output__language", "output__warning", "item__prompt__text", "item__prompt__source", "item__prompt__media", "item__prompt__language",
        ),
        *(int for _ in range(items)),
    )  # fmt: skip


def _load_texts(
    items: tuple[int, ...],
) -> tuple[dict[int, tuple[str, str, str, str, bool, str, str]], dict[int, tuple]]:
    """Return the columns of each exposure's output and of each item's prompt."""
    outputs, prompts = {}, {}
    for pk, item, format, text, media, alt, is_empty, language, warning, *prompt in _texts_query(len(items))(*items):
        outputs[pk] = (format, text, media, alt, is_empty, language, warning)
        prompts[item] = tuple(prompt)
    return outputs, prompts


def _items(assignment: Assignment, page: Page, fields_by_subject, typed: Mapping[str, str]) -> tuple[ShownItem, ...]:
    if not page.items:
        return ()
    ids = tuple(item.id for item in page.items)
    texts, prompts = _load_texts(ids)
    shows_addresses = wording_of(assignment.study, assignment.design_id).study["shows_link_addresses"]

    def image(position: int, label: str = "") -> ShownImage:
        name = page_image_name(position, label)
        return ShownImage(name, bool(typed.get(UNSEEN_PREFIX + name)))

    def output(item, label: str, exposure: int) -> ShownOutput:
        url = f"{assignment.path}m/{opaque_media_id(assignment.code, exposure)}" if texts[exposure][2] else ""
        warning = texts[exposure][6]
        shown = _output(*texts[exposure][:6], url, own := image(item.position, label), shows_addresses)
        return replace(shown, warning=warning, image=own) if warning else shown

    # The first of two sections with the same items may ask about outputs before annotators read the document.
    hides_source = page.section.settings.get("source") == "hidden"
    shown_items = []
    for item in page.items:
        text, source, media, language = prompts[item.id]
        if hides_source:
            source = ""
        url = f"{assignment.path}m/{opaque_media_id(assignment.code, item.id, 'prompt')}" if media else ""
        exposures = tuple(
            ShownExposure(label, output(item, label, exposure), tuple(fields_by_subject.get((item.id, exposure), ())))
            for label, exposure in item.exposures
        )
        shown_items.append(
            ShownItem(
                item.position,
                text,
                source,
                url,
                language,
                exposures,
                tuple(fields_by_subject.get((item.id, None), ())),
                image(item.position) if media else None,
            )
        )
    return tuple(shown_items)


def responses_as_form_data(page_fields: Mapping[str, PageField], page: Page, responses) -> dict[str, str]:
    """Return recorded answers as form data, to show a recorded page again."""
    letters = {exposure: label for item in page.items for label, exposure in item.exposures}
    texts: dict[str, str] = {}
    for response in responses:
        if response.slot not in page_fields:
            continue
        if response.skip_reason:
            texts[response.slot + SKIP_SUFFIX] = response.skip_reason
        elif page_fields[response.slot].field.inputs:
            names = input_names_by_part(response.slot, page_fields[response.slot])
            texts.update(
                {names[part]: text for part, text in page_fields[response.slot].field.as_form_values(response).items()}
            )
        elif response.chosen_id:
            texts[response.slot] = letters.get(response.chosen_id, "")
        elif response.text:
            texts[response.slot] = response.text
        elif page_fields[response.slot].answer_column in ("choice", "chosen"):
            texts[response.slot] = response.choice
        elif response.value is not None:
            texts[response.slot] = f"{response.value.normalize():f}"
    return texts


# Show the truth about a practice item, only after its question was answered and only on the feedback page.
#
# Feedback is built from stored answers, so an annotator who has not answered sees nothing, whatever address they
# open.


# Quotations of an explanation are marked in the text. Quotations under three characters would match everywhere.
QUOTED_TEXT = re.compile(r"“([^”]{3,300})”|\"([^\"]{3,300})\"")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text. It is marked if the explanation quotes it."""

    text: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class PracticeFeedback:
    """The answer to one practice item, the truth and the explanation.

    ``question`` is the question with the text that it is about. ``quotes`` are the texts that the explanation quotes.
    """

    position: int
    question: str
    said: str
    truth: str
    is_right: bool
    explanation: str
    quotes: tuple[str, ...]


def get_practice_feedback(assignment: Assignment, page: Page) -> tuple[PracticeFeedback, ...]:
    """Return the feedback on the items of a feedback page, for the questions that this annotator has answered."""
    items = {item.id: item for item in page.items}
    questions = {question.id: question for question in page.questions}
    answers: dict[tuple[int | None, int], dict[int | None, Response]] = {}
    for answer in Response.objects.filter(assignment=assignment, item__in=items, question__in=questions):
        answers.setdefault((answer.item_id, answer.question_id), {})[answer.exposure_id] = answer
    expected = Expected.objects.filter(
        item__in=items, question__in=questions, item__section__purpose="training", item__kind="practice"
    )
    feedback = []
    for row in expected.order_by("item__number", "question__position"):
        given = answers.get((row.item_id, row.question_id), {})
        found = given.get(row.about_id) if row.about_id else next(iter(given.values()), None)
        if found is not None:
            feedback.append(_build_feedback(page, questions[row.question_id], items[row.item_id], row, found))
    return tuple(feedback)


def _build_feedback(
    page: Page, question: PageQuestion, item: PageItem, expected: Expected, answer: Response
) -> PracticeFeedback:
    labels = {exposure: label for label, exposure in item.exposures}
    protocol = REGISTRY[page.step]
    truth: str | tuple[float, float]
    if expected.exposure_id or expected.low is None or expected.high is None:
        truth = labels[expected.exposure_id or 0]
    else:
        truth = (expected.low, expected.high)
    is_right = practice_answer(expected, question.scale).is_right(
        value=None if answer.value is None else float(answer.value),
        exposure=answer.exposure_id,
        chosen=answer.chosen_id,
        choice=answer.choice,
    )
    quotes = tuple(match[1] or match[2] for match in QUOTED_TEXT.finditer(expected.explanation))
    asked = protocol.page_fields(page)[answer.slot]
    return PracticeFeedback(
        item.position,
        _question_text(page, question, labels, answer, asked.text),
        _answer_text(page, question, labels, answer, asked.field),
        protocol.expected_answer_text(page, question, truth),
        bool(is_right),
        render_cached_markdown(expected.explanation) if expected.explanation else "",
        quotes,
    )


def _question_text(page: Page, question: PageQuestion, labels: dict[int, str], answer: Response, text: str) -> str:
    """Return the question as it was asked. A question about one of several texts names that text."""
    about = answer.exposure_id
    has_points = REGISTRY[page.step].practice_answers == "points"
    if about is None or not has_points or len(labels) == 1 or "{label}" in question.text:
        return text
    # Translators: the name of a text, then the question about it
    message = gettext("%(output)s: %(question)s")
    return message % {"output": output_name(page.section.settings, labels[about]), "question": text}


def _answer_text(page: Page, question: PageQuestion, labels: dict[int, str], answer: Response, asked: Field) -> str:
    if answer.skip_reason:
        unseen = {UNSEEN: gettext("I cannot see this image")}
        return (unseen | dict(question.skip_reasons)).get(answer.skip_reason, "")
    if answer.chosen_id:
        return output_name(page.section.settings, labels.get(answer.chosen_id, "")).strip()
    if answer.choice:
        return getattr(asked, "tie", "") or answer.choice
    if answer.value is None or question.scale.kind == "number":
        return answer.text
    # The field knows the letters that the page put into the words of its points.
    labels_by_value = {point.key: point.label for point in getattr(asked, "points", question.scale.points)}
    value = f"{answer.value.normalize():f}"
    return labels_by_value.get(value) or value


def split_at_quotes(text: str, quotes: Sequence[str]) -> tuple[TextPart, ...]:
    """Split the text at the beginning and end of each quotation.

    Without a quotation, return the whole text as one part.
    """
    if not quotes:
        return (TextPart(text),)
    pattern = "|".join(_whole_words(quote) for quote in sorted(quotes, key=len, reverse=True))
    return tuple(TextPart(part, n % 2 == 1) for n, part in enumerate(re.split(f"({pattern})", text)) if part)


def _whole_words(quote: str) -> str:
    """Return a pattern of the quotation that does not begin or end inside a word, in languages with spaces between words."""
    before, after = (r"(?<!\w)" * _is_spaced(quote[0]), r"(?!\w)" * _is_spaced(quote[-1]))
    return f"{before}{re.escape(quote)}{after}"


def _is_spaced(character: str) -> bool:
    # The scripts without spaces, from Thai on, come after this letter.
    return character.isalnum() and character < "\u0e00"
