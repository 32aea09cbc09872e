"""Catalogues of the words of annotators' pages that studies have used or were given."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from .fields import LANGUAGE_VALIDATORS, optional_protected_foreign_key
from .guards import AppendOnlyModel


class Translation(AppendOnlyModel):
    """A catalogue: the words of annotators' pages in one language. It never changes, because words are part of what was shown.

    ``text``: a canonical PO file, and ``version`` its sha256. ``by``: who brought the file; nobody, if it came with the
    program.
    """

    language = models.CharField(max_length=12, validators=LANGUAGE_VALIDATORS)
    version = models.CharField(max_length=64)
    text = models.TextField()
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["language", "version"], name="translation_once"),
            CheckConstraint(name="translation_has_text", condition=~Q(text="")),
        ]

    def __str__(self):
        return f"{self.language}, version {self.version[:8]}"
