"""The answers of a form as text that people can read and copy. Pages that say that answers are not stored show it."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import QueryDict

from studies.protocols import PageField

from .form_data import SKIP_SUFFIX, input_names_by_part, nonempty_answer_inputs
from .images import UNSEEN_PREFIX


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
                question, answer = f"{ask.text} ({part})" if part else ask.text, ask.field.displayed_text(value, part)
            elif name.startswith(UNSEEN_PREFIX):
                question, answer = f"Image {name.removeprefix(UNSEEN_PREFIX)}", "I cannot see this image"
            else:
                question, answer = "", None
            # If one name has several values, a form shows only the first.
            answers.append(
                TypedAnswer(
                    question, value if answer is None else answer, answer is not None and value == data.getlist(name)[0]
                )
            )
    return answers
