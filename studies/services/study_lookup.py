"""Which study a command is about: named by its code, by the beginning of it, or by its title."""

from uuid import UUID

from django.core.management import CommandError

from studies.models import Study


def find_study(code_or_title: str) -> Study:
    """The one study that is meant. Raises CommandError. A title goes before the beginning of a code."""
    found = list(Study.objects.filter(title=code_or_title)[:2]) if code_or_title.isprintable() else []
    digits = code_or_title.strip().lower().replace("-", "")
    if not found and 0 < len(digits) <= 32 and not digits.strip("0123456789abcdef"):
        low, high = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
        found = list(Study.objects.filter(code__gte=low, code__lte=high)[:2])
    if not found:
        raise CommandError(
            f"There is no study {code_or_title}. Name it by its code, by the beginning of it, or by its title."
        )
    if len(found) > 1:
        raise CommandError(f"More than one study is called {code_or_title}: give the whole code.")
    return found[0]
