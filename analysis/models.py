"""Models of stored analyses, figures, screenings of annotators, metrics and judges with their scores and agreement with people, and API tokens."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from annotators.models import Assignment
from studies.models import Output, Question, Study
from studies.models.fields import (
    SMALLINT_VALIDATORS,
    optional_noneditable_datetime_field,
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


# Infinity and NaN are outside of these bounds, and no metric has larger values.
LARGEST_SCORE = 1e12


class Metric(models.Model):
    """One version of a metric or judge in a study, with everything that its scores depend on.

    A changed prompt, model or setting is another version, never a changed row. ``question`` is the one that the scores are about;
    without one they are about the output as a whole. ``fingerprint``: the hash of name, kind, version and parameters. ``scale_low`` and
    ``scale_high``: the ends of the scale of a judge that answers as people do. A metric on a scale of its own has neither.
    """

    class Kind(models.TextChoices):
        METRIC = "metric", "automatic metric"
        JUDGE = "judge", "model as judge"

    class Source(models.TextChoices):
        BUILT_IN = "built_in", "computed by heval"
        PLUG_IN = "plug_in", "computed by an installed plug-in"
        UPLOAD = "upload", "uploaded file"

    study = protected_foreign_key(Study, "metrics")
    kind = models.CharField(max_length=6, choices=Kind)
    name = models.CharField(max_length=100)
    version = models.CharField(
        max_length=200, help_text="The version of the metric's program, or of the judge's model."
    )
    question = optional_protected_foreign_key(
        Question, help_text="The question that the scores are about. Empty: the output as a whole."
    )
    parameters = models.JSONField(default=dict, blank=True)
    family = models.CharField(
        "family of models",
        max_length=100,
        blank=True,
        help_text="For a judge: who made its model, so that heval can warn where a judged system has the same maker.",
    )
    fingerprint = models.CharField(max_length=64, editable=False)
    is_lower_better = models.BooleanField("lower is better", default=False)
    scale_low = models.FloatField("lowest point of the scale", null=True, blank=True)
    scale_high = models.FloatField("highest point of the scale", null=True, blank=True)
    source = models.CharField(max_length=8, choices=Source)
    file_sha256 = models.CharField(max_length=64, blank=True, editable=False)
    n_scores = models.PositiveIntegerField(default=0, editable=False)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())
    discarded_at = optional_noneditable_datetime_field()

    class Meta:
        ordering = ["name", "version", "pk"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(
                fields=["study", "name", "version", "question"],
                condition=Q(discarded_at=None),
                name="metric_version_once_per_question",
            ),
            UniqueConstraint(
                fields=["study", "name", "version"],
                condition=Q(discarded_at=None, question=None),
                name="metric_version_once_for_whole_outputs",
            ),
            CheckConstraint(name="metric_has_a_name_and_a_version", condition=~Q(name="") & ~Q(version="")),
            CheckConstraint(name="metric_is_of_a_known_kind", condition=Q(kind__in=["metric", "judge"])),
            CheckConstraint(
                name="metric_comes_from_a_known_source", condition=Q(source__in=["built_in", "plug_in", "upload"])
            ),
            CheckConstraint(
                name="metric_scale_has_two_ends_or_none",
                condition=Q(scale_low=None, scale_high=None)
                | Q(scale_low__isnull=False, scale_high__isnull=False, scale_low__lt=F("scale_high")),
            ),
        ]

    def __str__(self):
        return f"{self.name} {self.version}"


def _score_is_finite(name: str) -> CheckConstraint:
    return CheckConstraint(name=name, condition=Q(value__gte=-LARGEST_SCORE, value__lte=LARGEST_SCORE))


class MetricScore(AppendOnlyModel):
    """The score of one output. ``run``: repeated runs of a judge on the same output are numbered from 1."""

    metric = protected_foreign_key(Metric, "scores")
    output = protected_foreign_key(Output)
    run = models.PositiveSmallIntegerField(default=1, validators=SMALLINT_VALIDATORS)
    value = models.FloatField()

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["metric", "output", "run"], name="metric_scores_an_output_once_per_run"),
            _score_is_finite("metric_score_is_finite"),
            CheckConstraint(name="metric_run_is_numbered_from_1", condition=Q(run__gte=1)),
        ]


class PairScore(AppendOnlyModel):
    """A judge's verdict about two outputs for one prompt, shown in this order: 1 prefers the first, 0 the second, .5 neither."""

    metric = protected_foreign_key(Metric, "pair_scores")
    first = protected_foreign_key(Output)
    second = protected_foreign_key(Output)
    run = models.PositiveSmallIntegerField(default=1, validators=SMALLINT_VALIDATORS)
    value = models.FloatField()

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(
                fields=["metric", "first", "second", "run"], name="judge_scores_a_pair_once_per_order_and_run"
            ),
            CheckConstraint(name="pair_score_is_a_share", condition=Q(value__gte=0, value__lte=1)),
            CheckConstraint(name="pair_score_is_about_two_outputs", condition=~Q(first=F("second"))),
            CheckConstraint(name="pair_run_is_numbered_from_1", condition=Q(run__gte=1)),
        ]


class MetricsComparison(AppendOnlyModel):
    """How the metrics and judges of a study agree with people about one question, as a job computed it.

    ``metrics``: fingerprint and hash of the scores of each metric that it read. ``answers_state``: the submissions and exclusions
    then (``analysis.metrics.comparison.answers_state``). The page compares both with those of now.
    """

    study = protected_foreign_key(Study, "metrics_comparisons")
    question = protected_foreign_key(Question)
    metrics = models.JSONField(default=list)
    answers_state = models.JSONField(default=dict)
    n_answers = models.PositiveIntegerField()
    result = models.JSONField()
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        base_manager_name = "objects"
        indexes = [models.Index(fields=["study", "question", "-id"], name="comparison_latest_of_question")]

    def __str__(self):
        return f"comparison {self.pk}"


from .coding.models import Coding, CodingItem, CodingSample, CodingSeat  # noqa: E402, F401 - Django finds models only in this module
