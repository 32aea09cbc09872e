"""Images that an annotator could not see: their names in a page's form, and how they are stored.

An image is named after its position on the page: ``i2.A`` is output A of the second prompt, ``i2`` is the image of that
prompt itself. Such a name says nothing about a system.
"""

from collections.abc import Collection, Mapping

from studies.protocols import Page

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
