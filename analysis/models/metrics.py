"""Models of metrics and judges, their scores for outputs and pairs, and what they show beside people."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Output, Question, Study
from studies.models.fields import (
    SMALLINT_VALIDATORS,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)
from studies.models.guards import AppendOnlyModel

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


class CalibratedResult(AppendOnlyModel):
    """Numbers of people about one question, and beside them the numbers that judges make more precise, at one time.

    ``judges``: the fingerprints of the metrics and judges that were combined. ``n_assignments``: submitted assignments that it read.
    ``options``: what the person who asked said about the sample and about the plan. A newer row of a question replaces an older one on the page.
    """

    study = protected_foreign_key(Study, "calibrated_results")
    question = protected_foreign_key(Question)
    judges = models.JSONField(default=list)
    options = models.JSONField(default=dict)
    n_assignments = models.PositiveIntegerField()
    result = models.JSONField()
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        base_manager_name = "objects"
        indexes = [models.Index(fields=["study", "question", "-id"], name="calibrated_latest_of_question")]

    def __str__(self):
        return f"calibrated result {self.pk}"
