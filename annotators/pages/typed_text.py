"""What somebody typed on a page, in words that can be read and copied: for the pages that say that it is not stored."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import QueryDict

from studies.protocols import PageField

from .form_data import SKIP_SUFFIX, input_names, nonempty_inputs
from .images import UNSEEN_PREFIX


@dataclass(frozen=True, slots=True)
class TypedAnswer:
    """One answer. ``asked`` is empty where the page does not ask for it; ``is_in_field``: the page's own form shows it too."""

    asked: str
    said: str
    is_in_field: bool = False


def typed_answers(asks: Mapping[str, PageField], data: QueryDict) -> list[TypedAnswer]:
    """Everything that was typed or chosen, in the order in which it was sent."""
    inputs = {name: (ask, part) for slot, ask in asks.items() for part, name in input_names(slot, ask).items()}
    skips = {slot + SKIP_SUFFIX: ask for slot, ask in asks.items()}
    found = []
    for name, values in nonempty_inputs(data).items():
        for value in values:
            if name in skips:
                asked, words = skips[name].text, dict(skips[name].skip_reasons).get(value)
            elif name in inputs:
                ask, part = inputs[name]
                asked, words = f"{ask.text} ({part})" if part else ask.text, ask.field.words(value, part)
            elif name.startswith(UNSEEN_PREFIX):
                asked, words = f"Image {name.removeprefix(UNSEEN_PREFIX)}", "I cannot see this image"
            else:
                asked, words = "", None
            # Of several values under one name, a form shows the first that was sent.
            found.append(
                TypedAnswer(
                    asked, value if words is None else words, words is not None and value == data.getlist(name)[0]
                )
            )
    return found
