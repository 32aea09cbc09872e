"""The registry of exclusion rules: declared in a study's design, computed in ``analysis.exclusions``, which fills it.

It stands here because a design names its rules and their parameters, and ``studies`` knows nothing of answers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

REGISTRY: dict[str, "Rule"] = {}


@dataclass(frozen=True, slots=True)
class Rule:
    """``flag(frame, **settings)`` gives pass, fail or unknown for each assignment; unknown never excludes.

    ``problems(sections, **settings)``: why the rule cannot work in a study with these sections, in words for the checklist.
    """

    slug: str
    label: str
    flag: Callable[..., Any]
    settings_form: type | None = None
    is_outcome_blind: bool = True
    source: str = ""
    problems: Callable[..., Iterable[str]] | None = None

    @property
    def name(self) -> str:
        """The first words of its label, without the explanation."""
        return self.label.partition(":")[0]

    def bound_form(self, settings: Mapping[str, Any]):
        """Its settings form with what is stored, and with the initial value of what is not. None where it has no settings."""
        if self.settings_form is None:
            return None
        fields = self.settings_form().fields
        return self.settings_form({name: settings.get(name, field.initial) for name, field in fields.items()})

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
