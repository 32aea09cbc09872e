"""The attempts at tests before the work."""

from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Section
from studies.models.fields import protected_foreign_key
from studies.models.guards import AppendOnlyModel

from .assignments import Assignment


class QualificationAttempt(AppendOnlyModel):
    """An attempt at the test of a study. A passed one is valid in other studies with the section's qualification."""

    assignment = protected_foreign_key(Assignment, "qualification_attempts", db_index=False)
    section = protected_foreign_key(Section, "qualification_attempts")
    number = models.PositiveSmallIntegerField()
    n_right = models.PositiveSmallIntegerField()
    n_asked = models.PositiveSmallIntegerField()
    is_passed = models.BooleanField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["assignment", "number"], name="qualification_attempt_once_per_number"),
            CheckConstraint(name="qualification_attempt_is_the_first_or_second", condition=Q(number__in=[1, 2])),
            CheckConstraint(
                name="qualification_attempt_has_no_more_right_than_asked", condition=Q(n_right__lte=F("n_asked"))
            ),
        ]

    def __str__(self):
        return f"attempt {self.number}: {self.n_right} of {self.n_asked} right"
