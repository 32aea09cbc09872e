"""The registry of evaluation protocols and their contract.

A protocol is one module in this package and one template, ``protocols/<slug>.html``. There is no list to edit. The
package ``base`` holds the contract of protocols and the records that they use.
"""

from importlib import import_module
from pkgutil import iter_modules

from .base.fields import Answer
from .base.pages import (
    Page,
    PageField,
    PageItem,
    PageQuestion,
    PageSection,
    check_fields,
    question_fields,
    with_shown_texts,
)
from .base.protocol import (
    DraftTexts,
    DrawnItem,
    EstimandDirection,
    ExampleStudy,
    Problem,
    Protocol,
    ProtocolCard,
    ShownSystems,
    StimulusPool,
    UnfillableBatch,
    arms_of,
)

REGISTRY: dict[str, Protocol] = {}


def register(cls) -> type[Protocol]:
    """Register the decorated class as a protocol under its slug."""
    if not cls.slug or cls.slug in REGISTRY:
        raise ValueError(f"The protocol {cls.slug!r} has no slug or is registered twice.")
    REGISTRY[cls.slug] = cls()
    return cls


def load_protocols() -> None:
    """Import every module of this package. Django calls this once, when the application is ready.

    The registry is in the order of the slugs, also if a module was imported before.
    """
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    for slug in sorted(REGISTRY):
        REGISTRY[slug] = REGISTRY.pop(slug)


def choices() -> list[tuple[str, str]]:
    return [(protocol.slug, protocol.label) for protocol in REGISTRY.values()]


__all__ = [
    "REGISTRY", "Answer", "PageField", "DrawnItem", "PageSection", "Page", "PageItem", "PageQuestion", "StimulusPool", "UnfillableBatch",
    "Problem", "Protocol", "ProtocolCard", "DraftTexts", "EstimandDirection", "ExampleStudy", "ShownSystems", "arms_of", "check_fields", "choices", "load_protocols", "question_fields", "register", "with_shown_texts",
]  # fmt: skip
