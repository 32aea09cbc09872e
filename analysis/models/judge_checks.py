"""Models of the check of a judge: the sample of outputs that people judge, and what their answers say. All rows are append-only."""

import secrets

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Output, Question, Study
from studies.models.fields import SMALLINT_VALIDATORS, optional_protected_foreign_key, protected_foreign_key
from studies.models.guards import AppendOnlyModel

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
    outputs from which the sample was drawn. ``badge_key`` is the secret part of the badge's address.
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
