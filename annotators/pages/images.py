"""Images that an annotator could not see: their names in a page's form, and how they are stored.

An image is named after its position on the page: ``i2.A`` is output A of the second prompt, ``i2`` is the image of that
prompt itself. Such a name says nothing about a system.
"""

from collections.abc import Collection, Mapping

from annotators.counting import UNSEEN
from studies.protocols import Page, PageField, Protocol
from studies.protocols.base.fields import Answer

# The form field of an image has this prefix, followed by the image's name.
UNSEEN_PREFIX = "unseen."
TICKED = "1"


def page_image_name(position: int, label: str = "") -> str:
    return f"i{position}.{label}" if label else f"i{position}"


def page_image_names(page: Page, images: Collection[tuple[str, int]]) -> list[str]:
    """Return the names of the page's images in display order. ``images`` are all images of the annotator's plan."""
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
