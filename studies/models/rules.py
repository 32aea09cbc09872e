"""The registry of exclusion rules. ``analysis.exclusions`` fills it and computes the rules.

It is here because a design names its rules and their parameters, and ``studies`` must not import the code for answers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

REGISTRY: dict[str, "Rule"] = {}
# The rules that decide which annotators the test questions flag.
TEST_QUESTION_RULES = ("test_question_model", "failed_tests")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. ``flag(frame, **settings)`` returns pass, fail or unknown for each assignment; unknown never excludes.

    ``problems(sections, **settings)`` yields sentences for the checklist: why the rule cannot work with these sections.
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
        """The label without the explanation after the colon."""
        return self.label.partition(":")[0]

    def bound_form(self, settings: Mapping[str, Any]):
        """Return the settings form with stored values, or initial values where none is stored. Return None without settings."""
        if self.settings_form is None:
            return None
        fields = self.settings_form().fields
        return self.settings_form({name: settings.get(name, field.initial) for name, field in fields.items()})

    @property
    def help(self) -> str:
        return (self.flag.__doc__ or "").strip()


def register(slug: str, label: str, **options) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as a named rule."""

    def add(flag):
        if slug in REGISTRY:
            raise ValueError(f"The rule {slug!r} is registered twice.")
        REGISTRY[slug] = Rule(slug=slug, label=label, flag=flag, **options)
        return flag

    return add


def choices() -> list[tuple[str, str]]:
    return [(rule.slug, rule.label) for rule in REGISTRY.values()]
