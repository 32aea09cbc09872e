"""Models of analyses, screenings, metrics, judges and API tokens. Those of codings are in ``analysis.coding.models``."""

import secrets

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now
from django.utils import timezone

from analysis.coding.models import Coding, CodingItem, CodingSample, CodingSeat
from annotators.models import Assignment
from studies.models import Job, Output, Question, Study
from studies.models.fields import (
    SMALLINT_VALIDATORS,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)
from studies.models.guards import AppendOnlyModel

__all__ = [
    "LARGEST_SCORE",
    "AnalysisRun",
    "AnnotatorScreening",
    "ApiToken",
    "CalibratedResult",
    "Coding",
    "CodingItem",
    "CodingSample",
    "CodingSeat",
    "Figure",
    "IdempotentRequest",
    "JudgeCheck",
    "JudgeCheckOutput",
    "JudgeCheckResult",
    "Metric",
    "MetricScore",
    "MetricsComparison",
    "PairScore",
    "ReportAnswer",
    "ReportLink",
    "StudiesComparison",
]

# Tokens of the REST API.


class ApiToken(models.Model):
    """A token for the REST API. Only its hash is stored."""

    class Scope(models.TextChoices):
        READ = "read", "read"
        DRAFT = "draft", "read, and write drafts"
        WRITE = "write", "read and write"
        PEOPLE = "people", "read and write, invite, and read messages and ids of people"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100, help_text="The program that uses the token.")
    hash = models.CharField(max_length=64, editable=False)
    scope = models.CharField(max_length=6, choices=Scope, default=Scope.READ)
    study = models.ForeignKey(
        Study,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="api_tokens",
        help_text="Only this study. Empty: all studies of the user.",
    )
    may_make_tokens = models.BooleanField(
        "may make tokens",
        default=False,
        help_text="Programs may make more tokens with it, with at most its own rights.",
    )
    parent = models.ForeignKey("self", models.CASCADE, null=True, editable=False, related_name="children")
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


class IdempotentRequest(models.Model):
    """A POST with an Idempotency-Key: by whom it was sent, hashes of its key and body, and its answer, or null while it is answered.

    The answer of a request that started a job is the job as it is now. ``made``: what a request made that showed a secret.
    """

    caller = models.CharField(max_length=30)
    path = models.CharField(max_length=300)
    key = models.CharField(max_length=64)
    body = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.JSONField(null=True)
    job = models.ForeignKey(Job, models.CASCADE, null=True, related_name="+")
    made = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        constraints = [UniqueConstraint(fields=["caller", "path", "key"], name="idempotent_request_once")]


# Models of stored analyses, their figures, and screenings of annotators.


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


class ReportAnswer(models.Model):
    """A researcher's answer to a question of forms about a study. It is no part of the design, and clones do not have it."""

    study = models.ForeignKey(Study, models.CASCADE, related_name="report_answers")
    key = models.CharField(max_length=120)
    text = models.TextField(blank=True)

    class Meta:
        constraints = [UniqueConstraint(fields=["study", "key"], name="report_answer_once_per_study")]

    def __str__(self):
        return self.key


class ReportLink(models.Model):
    """A read-only link to an analysis for people without an account. Only the hash of its token is stored.

    ``parts``: what an anonymous link shows although it may say who made the study. A link with names shows all of them.
    """

    class Part(models.TextChoices):
        COMMENTS = "comments", "Comments of annotators"
        PURPOSE = "purpose", "Purpose, as annotators read it"
        CONSENT = "consent", "Consent text"
        CONTACT = "contact", "Contact"

    study_path = "run__study"

    run = protected_foreign_key(AnalysisRun, "links")
    hash = models.CharField(max_length=64, editable=False)
    is_anonymous = models.BooleanField(default=False)
    parts = models.JSONField(default=list, blank=True)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    revoked_at = optional_noneditable_datetime_field()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            UniqueConstraint(fields=["hash"], name="report_link_hash_once"),
            CheckConstraint(name="report_link_is_hashed", condition=~Q(hash="")),
        ]

    def __str__(self):
        return f"link {self.pk} to {self.run}"

    @property
    def is_live(self) -> bool:
        return self.revoked_at is None and self.expires_at > timezone.now()


class StudiesComparison(AppendOnlyModel):
    """A numbered comparison of two or more studies or links, kept with one of them. ``parameters``: their codes and the settings."""

    study = protected_foreign_key(Study, "studies_comparisons")
    number = models.PositiveIntegerField()
    parameters = models.JSONField(default=dict)
    result = models.JSONField()
    result_sha256 = models.CharField(max_length=64)
    figure_svg = models.TextField()
    figure_pdf = models.BinaryField()
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-number"]
        base_manager_name = "objects"
        constraints = [UniqueConstraint(fields=["study", "number"], name="studies_comparison_number_once_per_study")]

    def __str__(self):
        return f"comparison {self.number}"


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


# Models of metrics and judges, their scores for outputs and pairs, and what they show beside people.


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


# Models of the check of a judge: the sample of outputs that people judge, and what their answers say. All rows are
# append-only.


SHARE_VALIDATORS = [MinValueValidator(0), MaxValueValidator(1)]


def new_badge_key() -> str:
    return secrets.token_urlsafe(24)


def _minimum(label: str) -> models.FloatField:
    return models.FloatField(label, null=True, blank=True, validators=SHARE_VALIDATORS)


def _is_share(name: str) -> Q:
    return Q(**{name: None}) | Q(**{f"{name}__gte": 0, f"{name}__lt": 1})


class JudgeCheck(AppendOnlyModel):
    """A drawn sample of the outputs that a judge scored, and what the judge must reach. The newest one of a study counts.

    ``threshold``: the score, on the judge's own scale, from which on its verdict is “yes”. ``certainty_ratio``: how many times as often the
    outputs of which the judge is least sure are drawn as those of which it is surest; 1 means equal probabilities. ``n_outputs``: the
    outputs from which the sample was drawn. ``is_from_answers``: they had ``people_per_output`` verdicts or more already; otherwise the
    sample was drawn in a draft, and so many people judge each output. ``badge_key`` is the secret part of the badge's address.
    """

    study = protected_foreign_key(Study, "judge_checks")
    judge = protected_foreign_key("analysis.Metric", "checks")
    question = protected_foreign_key(Question)
    threshold = models.FloatField()
    certainty_ratio = models.FloatField()
    n_development = models.PositiveIntegerField()
    n_test = models.PositiveIntegerField()
    n_outputs = models.PositiveIntegerField()
    people_per_output = models.PositiveSmallIntegerField(validators=SMALLINT_VALIDATORS)
    is_from_answers = models.BooleanField(default=False)
    seed = models.BigIntegerField()
    min_agreement = _minimum("lowest agreement")
    min_true_positive_rate = _minimum("lowest true-positive rate")
    min_true_negative_rate = _minimum("lowest true-negative rate")
    needs_alternative_test = models.BooleanField("must pass the alternative annotator test")
    epsilon = models.FloatField()
    badge_key = models.CharField(max_length=40, default=new_badge_key)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["badge_key"], name="judge_check_has_its_own_badge"),
            CheckConstraint(
                name="judge_check_sample_fits_its_outputs",
                condition=Q(n_test__gte=1, n_outputs__gte=F("n_test") + F("n_development")),
            ),
            CheckConstraint(name="judge_check_prefers_unsure_outputs", condition=Q(certainty_ratio__gte=1)),
            CheckConstraint(
                name="judge_check_of_answers_reads_no_score", condition=Q(is_from_answers=False) | Q(certainty_ratio=1)
            ),
            CheckConstraint(
                name="judge_check_minimums_are_shares",
                condition=_is_share("min_agreement")
                & _is_share("min_true_positive_rate")
                & _is_share("min_true_negative_rate")
                & Q(epsilon__gte=0, epsilon__lte=1),
            ),
            CheckConstraint(
                name="judge_check_declares_what_is_enough",
                condition=Q(needs_alternative_test=True)
                | Q(min_agreement__isnull=False)
                | Q(min_true_positive_rate__isnull=False)
                | Q(min_true_negative_rate__isnull=False),
            ),
        ]

    def __str__(self):
        return f"check {self.pk} of {self.judge}"


class JudgeCheckOutput(AppendOnlyModel):
    """An output of the sample. ``probability``: the chance with which the draw took it into the sample."""

    class Part(models.TextChoices):
        DEVELOPMENT = "development", "development: it may be used for changing the judge"
        TEST = "test", "test: it decides"

    judge_check = protected_foreign_key(JudgeCheck, "outputs")
    output = protected_foreign_key(Output)
    part = models.CharField(max_length=11, choices=Part)
    probability = models.FloatField()

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["judge_check", "output"], name="judge_check_draws_an_output_once"),
            CheckConstraint(name="judge_check_part_is_known", condition=Q(part__in=["development", "test"])),
            CheckConstraint(name="judge_check_probability_is_one", condition=Q(probability__gt=0, probability__lte=1)),
        ]


class JudgeCheckResult(AppendOnlyModel):
    """What the answers of people said about one version of the judge. ``fingerprint`` and ``guideline_sha256`` say what it is about."""

    class Verdict(models.TextChoices):
        GOOD = "good", "good enough"
        NOT_GOOD = "not_good", "not good enough"
        OPEN = "open", "open"

    judge_check = protected_foreign_key(JudgeCheck, "results")
    judge = protected_foreign_key("analysis.Metric")
    fingerprint = models.CharField(max_length=64)
    guideline_sha256 = models.CharField(max_length=64)
    verdict = models.CharField(max_length=8, choices=Verdict)
    n_labels = models.PositiveIntegerField()
    result = models.JSONField()
    code_version = models.CharField(max_length=80)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        base_manager_name = "objects"
        constraints = [
            CheckConstraint(name="judge_check_verdict_is_known", condition=Q(verdict__in=["good", "not_good", "open"])),
            CheckConstraint(
                name="judge_check_result_says_what_it_is_about", condition=~Q(fingerprint="") & ~Q(guideline_sha256="")
            ),
        ]
