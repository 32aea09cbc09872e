"""Images that an annotator could not see: how a page's form names them, and what is stored about them.

An image is named by what the page shows: ``i2.A`` is the output with the letter A of the second prompt, ``i2`` the image of
that prompt itself. Such a name tells nothing about a system.
"""

from collections.abc import Collection, Mapping

from studies.protocols import Page

# The form's field of an image is this, followed by the image's name.
UNSEEN_PREFIX = "unseen."
TICKED = "1"


def image_name(position: int, label: str = "") -> str:
    return f"i{position}.{label}" if label else f"i{position}"


def page_image_names(page: Page, images: Collection[tuple[str, int]]) -> list[str]:
    """The names of the page's images in the order in which they are shown. ``images``: all images of the annotator's plan."""
    names = []
    for item in page.items:
        if ("prompt", item.id) in images:
            names.append(image_name(item.position))
        names += [
            image_name(item.position, label) for label, exposure in item.exposures if ("output", exposure) in images
        ]
    return names


def mentions_images(data: Mapping[str, str]) -> bool:
    """Whether a form says of any image that it was not seen."""
    return any(name.startswith(UNSEEN_PREFIX) for name in data)


def parse_unseen_images(data, names: Collection[str]) -> tuple[list[str], list[str]]:
    """The images that a form says were not seen, in the order of ``names``, and the fields of the form that cannot be read."""
    sent = {name.removeprefix(UNSEEN_PREFIX): data.getlist(name) for name in data if name.startswith(UNSEEN_PREFIX)}
    wrong = [UNSEEN_PREFIX + name for name, values in sent.items() if name not in names or values != [TICKED]]
    return [name for name in names if sent.get(name) == [TICKED]], sorted(wrong)


def join_image_names(names: Collection[str]) -> str:
    """As ``PageVisit.unseen`` keeps them."""
    return ";".join(names)


def unseen_form_data(unseen: str) -> dict[str, str]:
    """What ``PageVisit.unseen`` keeps, as the fields of a form."""
    return {UNSEEN_PREFIX + name: TICKED for name in unseen.split(";") if name}
