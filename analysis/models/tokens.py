"""Tokens of the REST API."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Study


class ApiToken(models.Model):
    """A token for the REST API. Only its hash is stored."""

    class Scope(models.TextChoices):
        READ = "read", "read"
        WRITE = "write", "read and write"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100, help_text="The program that uses the token.")
    hash = models.CharField(max_length=64, editable=False)
    scope = models.CharField(max_length=5, choices=Scope, default=Scope.READ)
    study = models.ForeignKey(
        Study,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="api_tokens",
        help_text="Only this study. Empty: all studies of the user.",
    )
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["hash"], name="api_token_hash_once"),
            CheckConstraint(name="api_token_is_hashed", condition=~Q(hash="")),
        ]

    def __str__(self):
        return self.name
