"""A qualification: a pass that several studies accept, so that a person takes the test once."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from .fields import protected_foreign_key
from .guards import AppendOnlyModel


class Qualification(AppendOnlyModel):
    """What studies of one owner call the same test. It never changes, because frozen designs name it."""

    name = models.CharField(max_length=100)
    owner = protected_foreign_key(settings.AUTH_USER_MODEL, "qualifications")
    valid_days = models.PositiveSmallIntegerField(
        "valid for days",
        default=180,
        validators=[MinValueValidator(1), MaxValueValidator(3650)],
        help_text="A person who passed the test within this many days skips it in the next study.",
    )
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["owner", "name", "valid_days"], name="qualification_name_once_per_owner"),
            CheckConstraint(name="qualification_has_a_name", condition=~Q(name="")),
            CheckConstraint(name="qualification_is_valid_for_a_day_or_longer", condition=Q(valid_days__gte=1)),
        ]

    def __str__(self):
        return f"{self.name} (valid for {self.valid_days} days)"
