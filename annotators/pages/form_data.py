"""Parse a page's form, check it against the page's questions, and build the rows that are stored."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from annotators.counting import UNSEEN
from annotators.models import Assignment, Response
from annotators.places.batch_plan import get_batch_plan
from studies.language import gettext
from studies.protocols import Page, PageField, Protocol
from studies.protocols.base.fields import Answer, AnswerRefused

from .sequence import Step

# Images that an annotator could not see: their names in a page's form, and how they are stored.
#
# An image is named after its position on the page: ``i2.A`` is output A of the second prompt, ``i2`` is the image of
# that prompt itself. Such a name says nothing about a system.


# The form field of an image has this prefix, followed by the image's name.
UNSEEN_PREFIX = "unseen."
TICKED = "1"


def page_image_name(position: int, label: str = "") -> str:
    return f"i{position}.{label}" if label else f"i{position}"


def page_image_names(page: Page, images: Collection[tuple[str, int]]) -> list[str]:
    """Return the names of the page's images, and outputs with a warning, in display order.

    ``images`` are all of these in the annotator's plan.
    """
    names = []
    for item in page.items:
        if ("prompt", item.id) in images:
            names.append(page_image_name(item.position))
        names += [
            page_image_name(item.position, label)
            for label, exposure in item.exposures
            if ("output", exposure) in images
        ]
    return names


def has_unseen_image_fields(data: Mapping[str, str]) -> bool:
    """Return whether a form contains a field about an unseen image."""
    return any(name.startswith(UNSEEN_PREFIX) for name in data)


def parse_unseen_images_and_invalid_fields(data, known_names: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the unseen images in the order of ``known_names``, and the names of invalid form fields."""
    values_by_name = {
        name.removeprefix(UNSEEN_PREFIX): data.getlist(name) for name in data if name.startswith(UNSEEN_PREFIX)
    }
    wrong_names = [
        UNSEEN_PREFIX + name for name, values in values_by_name.items() if name not in known_names or values != [TICKED]
    ]
    return [name for name in known_names if values_by_name.get(name) == [TICKED]], sorted(wrong_names)


def join_image_names(names: Collection[str]) -> str:
    """Return image names in the format of ``PageVisit.unseen``."""
    return ";".join(names)


def unseen_images_as_form_data(joined_names: str) -> dict[str, str]:
    """Return the value of ``PageVisit.unseen`` as form data."""
    return {UNSEEN_PREFIX + name: TICKED for name in joined_names.split(";") if name}


def is_about_unseen_image(slot: str, protocol: Protocol, unseen: Collection[str]) -> bool:
    """Return whether the question of a slot is about one of these images of its section's pages.

    A question about an item is about its prompt's image, and about the images of the outputs that it asks about.
    """
    parts = slot.split(".")
    position = next((part for part in parts if part[:1] == "i" and part[1:].isdigit()), "")
    if not position:
        return False
    label = next((part for part in parts if part.isupper()), "")
    if label and protocol.asks_about_single_outputs:
        return position in unseen or f"{position}.{label}" in unseen
    return any(name.partition(".")[0] == position for name in unseen)


def free_questions_about_unseen_images(
    protocol: Protocol, page_fields: Mapping[str, PageField], unseen: Collection[str], is_blank: Mapping[str, bool]
) -> dict[str, Answer | None]:
    """Return what is stored for the questions that an annotator left out because of an image: a reason to skip, by slot.

    A question with several inputs gets one reason. A question that compares outputs is left out as a whole if one of its
    answers is missing. An answer that was given is kept.
    """
    subjects: dict[tuple, dict[int | None, list[str]]] = {}
    for slot, ask in page_fields.items():
        if ask.item_id is not None and is_about_unseen_image(slot, protocol, unseen):
            about = ask.exposure_id if protocol.asks_about_single_outputs else None
            subjects.setdefault((ask.question_id, ask.item_id, about), {}).setdefault(ask.exposure_id, []).append(slot)
    freed: dict[str, Answer | None] = {}
    for answers in subjects.values():
        if any(all(is_blank[slot] for slot in slots) for slots in answers.values()):
            for first, *others in answers.values():
                freed |= {first: Answer(skip_reason=UNSEEN), **dict.fromkeys(others)}
    return freed


SKIP_SUFFIX = ".skip"
# Form fields of a page that are not answers.
CONTROL_NAMES = frozenset({"go", "save", "layout", "active", "seen", "tab"})


@dataclass(slots=True)
class PageForm:
    """A parsed form: cleaned values and error messages by slot, and the texts as typed."""

    values: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    typed: dict[str, str] = field(default_factory=dict)
    # The images that the annotator could not see, in the format of ``PageVisit.unseen``.
    unseen: str = ""
    non_field_errors: list[str] = field(default_factory=list)

    @property
    def is_valid(self) -> bool:
        return not self.errors and not self.non_field_errors


@dataclass(slots=True)
class NewResponse:
    """The columns of a new Response. Creating this takes a tenth of the time of creating the model instance."""

    assignment_id: int
    question_id: int
    item_id: int | None
    exposure_id: int | None
    slot: str
    label: str
    position: int | None
    value: Any = None
    chosen_id: int | None = None
    choice: str = ""
    part: str = ""
    text: str = ""
    skip_reason: str = ""


def parse_page_form(
    step: Step,
    page_fields: Mapping[str, PageField],
    data: QueryDict,
    has_files: bool = False,
    assignment: Assignment | None = None,
) -> PageForm:
    """Check the form against the page's questions: each name must be known, and each value must be single and allowed.

    ``assignment``: whose form it is. It is needed to read which images of the page the annotator could not see.
    """
    form = PageForm()
    unseen = _clean_unseen_images(assignment, step.page, data, form) if assignment else []
    form.unseen = join_image_names(unseen)
    names = {slot: input_names_by_part(slot, ask) for slot, ask in page_fields.items()}
    known_names = {name for slot_names in names.values() for name in slot_names.values()}
    known_names |= {slot + SKIP_SUFFIX for slot, ask in page_fields.items() if ask.skip_reasons}
    # ``_clean_unseen_images`` checks the names of images.
    if unknown := [
        name for name in data if not (name in known_names or name in CONTROL_NAMES or name.startswith(UNSEEN_PREFIX))
    ]:
        # Translators: names of form fields
        message = gettext("This page does not ask for %(names)s. Please reload it.")
        form.non_field_errors.append(message % {"names": ", ".join(name[:40] for name in sorted(unknown)[:3])})
    if has_files:
        form.non_field_errors.append(
            gettext("You cannot send files on this page. Please send your answers without a file.")
        )
    for slot, ask in page_fields.items():
        values = {part: data.getlist(name) for part, name in names[slot].items()}
        skips = [reason for reason in data.getlist(slot + SKIP_SUFFIX) if reason]
        form.typed.update({names[slot][part]: texts[0] if texts else "" for part, texts in values.items()})
        if skips:
            form.typed[slot + SKIP_SUFFIX] = skips[0]
        try:
            form.values[slot] = clean_answer(ask, values, skips)
        except AnswerRefused as refused:
            form.errors[slot] = str(refused)
    freed = {}
    if unseen:
        is_blank = {
            slot: not any(text.strip() for name in names[slot].values() for text in data.getlist(name))
            and not any(data.getlist(slot + SKIP_SUFFIX))
            for slot in page_fields
        }
        freed = free_questions_about_unseen_images(step.protocol, page_fields, unseen, is_blank)
        form.values |= dict.fromkeys(freed)
    # Show all errors at once: check the valid values together, even if other values were refused.
    errors = step.protocol.complete_data_and_find_errors(step.page, form.values) | form.errors
    form.errors = {slot: error for slot, error in errors.items() if slot not in freed}
    form.values |= freed
    return form


def _clean_unseen_images(assignment: Assignment, page: Page, data: QueryDict, form: PageForm) -> list[str]:
    """Return the names of the images that the annotator could not see.

    Add the values to show again, and errors about unknown images, to ``form``.
    """
    if not has_unseen_image_fields(data):
        return []
    unseen, unknown_names = parse_unseen_images_and_invalid_fields(
        data, page_image_names(page, get_batch_plan(assignment).images)
    )
    form.typed.update(unseen_images_as_form_data(join_image_names(unseen)))
    if unknown_names:
        names = ", ".join(name[:40] for name in unknown_names[:3])
        # Translators: names of images, such as i2.A
        message = gettext("This page does not show the image %(names)s. Please reload it.")
        form.non_field_errors.append(message % {"names": names})
    return unseen


def input_names_by_part(slot: str, page_field: PageField) -> dict[str, str]:
    """Return the names of a slot's form inputs by part. A plain field has one input, with the name of the slot."""
    return {part: f"{slot}.{part}" for part in page_field.field.inputs} or {"": slot}


def clean_answer(page_field: PageField, texts_by_part: dict[str, list[str]], skip_reasons: list[str]) -> Any:
    if any(len(texts) > 1 for texts in texts_by_part.values()) or len(skip_reasons) > 1:
        raise AnswerRefused(gettext("Please give only one answer."))
    single = {part: texts[0] if texts else "" for part, texts in texts_by_part.items()}
    if skip_reasons:
        if skip_reasons[0] not in dict(page_field.skip_reasons):
            raise AnswerRefused(gettext("Please choose one of the answers."))
        if not all(map(page_field.field.is_untouched, single.values())):
            raise AnswerRefused(gettext("Please answer, or say that you cannot answer, but not both."))
        return Answer(skip_reason=skip_reasons[0])
    # A field with several inputs takes a dict of texts.
    texts: Any = single if page_field.field.inputs else single[""]
    return page_field.field.clean(texts)


def response_column_values(page_field: PageField, cleaned_value: Any) -> dict[str, Any] | None:
    """Return the columns of a Response for a cleaned value, or None if there is no answer."""
    if cleaned_value is None:
        return None
    if isinstance(cleaned_value, Answer):
        if cleaned_value.is_empty:
            return None
        columns = {
            name: getattr(cleaned_value, name)
            for name in ("value", "chosen_id", "choice", "part", "text", "skip_reason")
        }
    else:
        columns = {"chosen_id" if page_field.answer_column == "chosen" else page_field.answer_column: cleaned_value}
    if page_field.choice:
        columns["choice"] = page_field.choice
    return columns


def build_new_responses(assignment_id: int, page_fields: Mapping[str, PageField], form: PageForm) -> list[NewResponse]:
    rows = []
    for slot, ask in page_fields.items():
        columns = response_column_values(ask, form.values.get(slot))
        if columns is not None:
            rows.append(
                NewResponse(
                    assignment_id=assignment_id,
                    question_id=ask.question_id,
                    item_id=ask.item_id,
                    exposure_id=ask.exposure_id,
                    slot=slot,
                    label=_label(ask, form.typed.get(slot, "")),
                    position=ask.position,
                    **columns,
                )
            )
    return rows


def _label(ask: PageField, text: str) -> str:
    """Return the letter on the annotator's screen: of the output that the question is about, or of the chosen output."""
    if ask.answer_column != "chosen":
        return ask.label
    return text if text in dict(getattr(ask.field, "exposures", ())) else ""


def answer_value(response: Response | NewResponse) -> Any:
    """Return the value of an earlier answer as protocols see it."""
    if response.value is not None:
        return response.value
    return response.chosen_id or response.choice or response.text or None


def parse_active_seconds(data: QueryDict) -> int:
    """Return the active seconds that the page's script counted. This is a hint, not evidence."""
    value = data.get("active", "")
    return min(int(value), 86_400) if value.isascii() and value.isdigit() and len(value) < 7 else 0


def nonempty_answer_inputs(data: QueryDict) -> dict[str, list[str]]:
    """Return all non-empty values of a form by the names of its inputs, without the page's controls."""
    typed = {
        name: [value for value in values if value.strip()] for name, values in data.lists() if name not in CONTROL_NAMES
    }
    return {name: values for name, values in typed.items() if values}


# The answers of a form as text that people can read and copy. Pages that say that answers are not stored show it.


@dataclass(frozen=True, slots=True)
class TypedAnswer:
    """One answer.

    ``asked`` is '' if the page has no such question. ``is_in_field``: the page's form shows the answer too.
    """

    asked: str
    said: str
    is_in_field: bool = False


def describe_posted_answers(page_fields: Mapping[str, PageField], data: QueryDict) -> list[TypedAnswer]:
    """Return all answers of a form, in the order in which they were sent."""
    inputs = {
        name: (ask, part) for slot, ask in page_fields.items() for part, name in input_names_by_part(slot, ask).items()
    }
    skips = {slot + SKIP_SUFFIX: ask for slot, ask in page_fields.items()}
    answers = []
    for name, values in nonempty_answer_inputs(data).items():
        for value in values:
            if name in skips:
                question, answer = skips[name].text, dict(skips[name].skip_reasons).get(value)
            elif name in inputs:
                ask, part = inputs[name]
                question, answer = ask.text, ask.field.displayed_text(value, part)
                if part:
                    # Translators: a question, and in brackets the part of the answer, such as: Error 1 (Severity)
                    message = gettext("%(question)s (%(part)s)")
                    question = message % {"question": question, "part": gettext(ask.field.input_labels[part])}
            elif name.startswith(UNSEEN_PREFIX):
                question, answer = name.removeprefix(UNSEEN_PREFIX), gettext("I cannot see this, or do not want to")
            else:
                question, answer = "", None
            # If one name has several values, a form shows only the first.
            answers.append(
                TypedAnswer(
                    question, value if answer is None else answer, answer is not None and value == data.getlist(name)[0]
                )
            )
    return answers
