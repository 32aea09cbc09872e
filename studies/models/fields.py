"""Several tables use these fields, defaults and limits."""

import secrets

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from studies.stimuli.texts import LANGUAGE_TAG

PROTECT = models.PROTECT
TEST_NUMBERS = 1_000_000_000  # batches and items of tries are numbered from here, far from those that are drawn

# Limits are wider than any study needs and narrower than what a database can hold: SQLite has none of its own.
NUMBERED = [MaxValueValidator(TEST_NUMBERS - 1)]
SMALL = [MaxValueValidator(32_767)]
PEOPLE = [MaxValueValidator(1_000_000)]
MINUTES = [MaxValueValidator(24 * 60)]
NO_DEBT = [MinValueValidator(0)]
LANGUAGE = [RegexValidator(rf"\A(?:{LANGUAGE_TAG})\Z", "A language tag, such as en, de or pt-BR.")]
CURRENCY = [RegexValidator(r"\A[A-Z]{3}\Z", "Three letters, such as USD or EUR, in capitals.")]


def seconds(least: int, days: int) -> list:
    """Validators of a length of time."""
    return [MinValueValidator(least), MaxValueValidator(days * 86_400)]


def link(to, related_name="+", **options):
    """A foreign key; nothing that a study's record hangs on disappears by deleting something else."""
    return models.ForeignKey(to, PROTECT, related_name=related_name, **options)


def optional_link(to, related_name="+", **options):
    return link(to, related_name, null=True, blank=True, **options)


def new_seed() -> int:
    return secrets.randbits(62)


def moment(**options):
    return models.DateTimeField(null=True, blank=True, editable=False, **options)
