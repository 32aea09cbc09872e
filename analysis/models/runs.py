"""Models of stored analyses, their figures, and screenings of annotators."""

from django.conf import settings
from django.db import models
from django.db.models import UniqueConstraint
from django.db.models.functions import Now

from annotators.models import Assignment
from studies.models import Study
from studies.models.fields import (
    optional_protected_foreign_key,
    protected_foreign_key,
)
from studies.models.guards import AppendOnlyModel


class AnalysisRun(AppendOnlyModel):
    """A numbered analysis of a study, with its parameters, result, and hashes of its data and code."""

    study = protected_foreign_key(Study, "analyses")
    number = models.PositiveIntegerField()
    parameters = models.JSONField(default=dict)
    responses_n = models.PositiveIntegerField()
    responses_sha256 = models.CharField(max_length=64)
    design_sha256s = models.JSONField(default=list)
    code_version = models.CharField(max_length=80)
    seed = models.CharField(max_length=64)
    result = models.JSONField()
    result_sha256 = models.CharField(max_length=64)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())
    figure_names: list[str]  # set where the API shows a row

    class Meta:
        ordering = ["-number"]
        base_manager_name = "objects"
        constraints = [UniqueConstraint(fields=["study", "number"], name="analysis_number_once_per_study")]

    def __str__(self):
        return f"analysis {self.number}"


class Figure(AppendOnlyModel):
    """A figure of an analysis as SVG and PDF, drawn once by the job."""

    run = protected_foreign_key(AnalysisRun, "figures")
    name = models.CharField(max_length=60)
    svg = models.TextField()
    pdf = models.BinaryField()

    class Meta:
        base_manager_name = "objects"
        constraints = [UniqueConstraint(fields=["run", "name"], name="figure_name_once_per_analysis")]


class AnnotatorScreening(AppendOnlyModel):
    """What the answers to test questions say about each annotator of a study, at one time.

    ``n_assignments``: submitted assignments that it read. ``has_agreement``: whether outcomes were visible then, so that
    it compares annotators' answers to live items.
    """

    study = protected_foreign_key(Study, "screenings")
    origin = models.CharField(max_length=8, choices=Assignment.Origin)
    n_assignments = models.PositiveIntegerField()
    n_answers = models.PositiveIntegerField()
    has_agreement = models.BooleanField()
    rule_settings = models.JSONField()
    result = models.JSONField()
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        base_manager_name = "objects"
        indexes = [models.Index(fields=["study", "origin", "-id"], name="screening_latest_of_study")]

    def __str__(self):
        return f"screening {self.pk}"
