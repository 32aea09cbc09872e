"""Fields, defaults and limits that several tables share."""

import secrets

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from studies.stimuli.texts import LANGUAGE_TAG

PROTECT = models.PROTECT
FIRST_TEST_NUMBER = 1_000_000_000  # batches and items of test runs are numbered from here, far above drawn ones

# Limits are wider than any study needs and narrower than what a database can hold. SQLite has no limits of its own.
FIRST_IMPORT_NUMBER = (
    1_500_000_000  # and those of answers that are being imported from here, until the last step of the import
)
NUMBER_VALIDATORS = [MaxValueValidator(FIRST_TEST_NUMBER - 1)]
SMALLINT_VALIDATORS = [MaxValueValidator(32_767)]
HEADCOUNT_VALIDATORS = [MaxValueValidator(1_000_000)]
MINUTES_VALIDATORS = [MaxValueValidator(24 * 60)]
NONNEGATIVE_VALIDATORS = [MinValueValidator(0)]
LANGUAGE_VALIDATORS = [
    RegexValidator(rf"\A(?:{LANGUAGE_TAG})\Z", "This is not a language tag. Enter one such as en, de or pt-BR.")
]
CURRENCY_VALIDATORS = [
    RegexValidator(r"\A[A-Z]{3}\Z", "This is not a currency code. Enter three letters, such as USD or EUR.")
]


def duration_validators(min_seconds: int, max_days: int) -> list:
    """Return the validators of a duration in seconds."""
    return [MinValueValidator(min_seconds), MaxValueValidator(max_days * 86_400)]


def protected_foreign_key(to, related_name="+", **options) -> models.ForeignKey:
    """Return a foreign key with PROTECT: deleting another row never deletes part of a study's record."""
    return models.ForeignKey(to, PROTECT, related_name=related_name, **options)


def optional_protected_foreign_key(to, related_name="+", **options) -> models.ForeignKey:
    return protected_foreign_key(to, related_name, null=True, blank=True, **options)


def new_seed() -> int:
    return secrets.randbits(62)


def optional_noneditable_datetime_field(**options) -> models.DateTimeField:
    return models.DateTimeField(null=True, blank=True, editable=False, **options)


# What people or prompts are grouped by, as ``Study.compared_groups`` names it.
_GROUPING = r"(?:panel|arm|language|domain|length|(?:answer|sample|attribute):[^;]*[^;\s][^;]*)"
GROUPING_VALIDATORS = [
    RegexValidator(
        rf"\A\s*{_GROUPING}\s*(?:;\s*{_GROUPING}\s*)*\Z",
        "This is not a list of groups. Separate them by semicolons: panel, arm, language, domain, length, answer:KEY, sample:COLUMN, "
        "attribute:NAME.",
    )
]


def parse_groupings(text: str) -> list[tuple[str, str]]:
    """Return the kind and the name of each grouping in a list such as ``Study.compared_groups``.

    >>> parse_groupings("domain; answer: fluent")
    [('domain', ''), ('answer', 'fluent')]
    """
    parts = (part.partition(":") for part in text.split(";") if part.strip())
    return list(dict.fromkeys((kind.strip(), name.strip()) for kind, _, name in parts))
