"""Plans of the size of a study: what was asked, and what simulated studies said."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from .fields import optional_protected_foreign_key, protected_foreign_key
from .guards import AppendOnlyModel, AppendOnlyQuerySet, AppendOnlyViolation
from .study import Study


class SizePlanQuerySet(AppendOnlyQuerySet):
    """Plans, and what they are made from, never change. Those of a draft are deleted with it."""

    def delete(self):
        self._refuse_launched()
        return models.QuerySet.delete(self)

    def _raw_delete(self, using):
        self._refuse_launched()
        return models.QuerySet._raw_delete(self, using)

    def _refuse_launched(self):
        if self.order_by().exclude(study__state=Study.State.DRAFT).exists():
            raise AppendOnlyViolation(self.model.__name__)


class PilotFile(AppendOnlyModel):
    """What a file of answers says about how much people and prompts vary, for the plans of a draft. The answers are not stored.

    ``sha256``: of the file and of how it was read. ``name``: of the file. ``estimate``: as JSON
    (`analysis.stats.planning.pilot_estimates.PilotEstimate`).
    """

    study = protected_foreign_key(Study, "pilot_files")
    sha256 = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    estimate = models.JSONField()
    at = models.DateTimeField(db_default=Now())
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)

    objects = SizePlanQuerySet.as_manager()  # type: ignore[misc]  # the plugin knows no queryset of a subclass here

    class Meta:
        ordering = ["-pk"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "sha256"], name="pilot_file_once_per_study"),
            CheckConstraint(name="pilot_file_has_a_hash", condition=~Q(sha256="")),
        ]

    def __str__(self):
        return self.name


class StudyPilot(AppendOnlyModel):
    """What the answers of a study say about how much people and prompts vary, for the plans of other studies.

    ``sha256``: of the answers and of the version of the method. ``comparison``: the one whose answers are read. ``estimate``: as
    JSON (`analysis.stats.planning.pilot_estimates.PilotEstimate`).
    """

    study = protected_foreign_key(Study, "pilot_estimates")
    sha256 = models.CharField(max_length=64)
    comparison = models.CharField(max_length=500)
    estimate = models.JSONField()
    at = models.DateTimeField(db_default=Now())
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            UniqueConstraint(fields=["study", "sha256"], name="study_pilot_once_per_study_and_answers"),
            CheckConstraint(name="study_pilot_has_a_hash", condition=~Q(sha256="")),
        ]

    def __str__(self):
        return f"pilot {self.pk}"


class SizePlan(AppendOnlyModel):
    """A computed plan of a study's size. `Study.size_plan` is the one that the researcher chose.

    ``inputs``: the size, the target, the variation, the pace and the prices (`analysis.stats.planning.inputs`, `plan_budget`).
    ``fingerprint``: sha256 of the inputs and of the version of the method, so that the same question is computed once.
    ``seed``: the seed of all simulations. ``result``: a `StudyPlan` with its budget, as JSON.
    """

    study = protected_foreign_key(Study, "size_plans")
    inputs = models.JSONField()
    fingerprint = models.CharField(max_length=64)
    seed = models.BigIntegerField()
    result = models.JSONField()
    at = models.DateTimeField(db_default=Now())
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)

    objects = SizePlanQuerySet.as_manager()  # type: ignore[misc]  # the plugin knows no queryset of a subclass here

    class Meta:
        ordering = ["-pk"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "fingerprint"], name="size_plan_once_per_study_and_inputs"),
            CheckConstraint(name="size_plan_has_a_fingerprint", condition=~Q(fingerprint="")),
        ]

    def __str__(self):
        return f"plan {self.pk}"
