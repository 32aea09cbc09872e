"""How commands find the study that is named by its code, the beginning of its code, or its title."""

from uuid import UUID

from django.core.management import CommandError

from heval_site.management.exit_codes import WRONG_USE
from studies.models import Study


def find_study(code_or_title: str) -> Study:
    """Return the named study. Raise CommandError. A matching title has priority over the beginning of a code."""
    matches = list(Study.objects.filter(title=code_or_title)[:2]) if code_or_title.isprintable() else []
    digits = code_or_title.strip().lower().replace("-", "")
    if not matches and 0 < len(digits) <= 32 and not digits.strip("0123456789abcdef"):
        low, high = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
        matches = list(Study.objects.filter(code__gte=low, code__lte=high)[:2])
    if not matches:
        raise CommandError(
            f"There is no study {code_or_title}. Give its code, the beginning of its code, or its title.",
            returncode=WRONG_USE,
        )
    if len(matches) > 1:
        raise CommandError(f"More than one study matches {code_or_title}. Give the whole code.", returncode=WRONG_USE)
    return matches[0]
