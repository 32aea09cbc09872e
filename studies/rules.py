"""The registry of exclusion rules: declared in a study's design, computed in ``analysis.exclusions``, which fills it.

It stands here because a design names its rules and their parameters, and ``studies`` knows nothing of answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

REGISTRY: dict[str, "Rule"] = {}


@dataclass(frozen=True, slots=True)
class Rule:
    """``flag(frame, **settings)`` gives pass, fail or unknown for each assignment; unknown never excludes."""

    slug: str
    label: str
    flag: Callable[..., Any]
    settings_form: type | None = None
    is_outcome_blind: bool = True
    source: str = ""

    @property
    def help(self) -> str:
        return (self.flag.__doc__ or "").strip()


def register(slug: str, label: str, **options):
    """Decorator: make a function a named rule."""

    def add(flag):
        if slug in REGISTRY:
            raise ValueError(f"The rule {slug!r} is registered twice.")
        REGISTRY[slug] = Rule(slug=slug, label=label, flag=flag, **options)
        return flag

    return add


def choices():
    return [(rule.slug, rule.label) for rule in REGISTRY.values()]
