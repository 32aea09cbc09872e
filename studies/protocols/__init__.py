"""The registry of evaluation protocols and their contract.

A protocol is one module in this package and one template, ``protocols/<slug>.html``; there is no list to edit. Its
contract and the records that it works with stand in ``base``.
"""

from importlib import import_module
from pkgutil import iter_modules

from .base.contract import Protocol, Sample, arms_of
from .base.drawing import DrawnItem, Pool, PoolSpent, Shown
from .base.fields import Answer
from .base.pages import Ask, LaidSection, Page, PageItem, PageQuestion, question_asks
from .base.problems import Problem

REGISTRY: dict[str, Protocol] = {}


def register(cls):
    """Class decorator: make a protocol known by its slug."""
    if not cls.slug or cls.slug in REGISTRY:
        raise ValueError(f"The protocol {cls.slug!r} has no slug or is registered twice.")
    REGISTRY[cls.slug] = cls()
    return cls


def load() -> None:
    """Import every module of this package. Called once, when the application is ready."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


def choices():
    return [(protocol.slug, protocol.label) for protocol in REGISTRY.values()]


__all__ = [
    "REGISTRY", "Answer", "Ask", "DrawnItem", "LaidSection", "Page", "PageItem", "PageQuestion", "Pool", "PoolSpent",
    "Problem", "Protocol", "Sample", "Shown", "arms_of", "choices", "load", "question_asks", "register",
]  # fmt: skip
