"""The plan of the analysis: comparisons and exclusion rules, declared before the launch."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Greatest, Least, Now

from . import design
from .design import Arm, Section, System
from .fields import SMALLINT_VALIDATORS, optional_protected_foreign_key, protected_foreign_key
from .guards import AppendOnlyModel, AppendOnlyQuerySet, AppendOnlyViolation, DesignModel
from .study import Study

# Plans of the size of a study: what was asked, and what simulated studies said.


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


class Contrast(DesignModel):
    """A planned comparison (x, y), in that order, with its expected result."""

    class Role(models.TextChoices):
        PRIMARY = "primary"
        SECONDARY = "secondary"
        EXPLORATORY = "exploratory"

    class Expected(models.TextChoices):
        NONE = "", "no expectation"
        ABOVE = ">", "x > y"
        BELOW = "<", "x < y"
        SAME = "~", "x ~ y (equivalent)"

    class Hypothesis(models.TextChoices):
        DIFFERENCE = "difference", "x and y differ"
        NONINFERIORITY = "noninferiority", "x not worse than y"
        SUPERIORITY_BY_MARGIN = "superiority_by_margin", "x better by margin"

    class Population(models.TextChoices):
        UNDECLARED = "", "not declared"
        PEOPLE_AND_PROMPTS = "people_and_prompts", "People and prompts like these"
        PEOPLE = "people", "People like these, exactly these prompts"

    study = protected_foreign_key(Study, "contrasts")
    section = optional_protected_foreign_key(Section, help_text="Empty: all live sections that can be compared.")
    estimand = models.CharField(max_length=40, blank=True, help_text="Empty: the default of the section.")
    x = optional_protected_foreign_key(System)
    y = optional_protected_foreign_key(System)
    x_condition = models.CharField(max_length=12, blank=True, choices=Arm.Condition)
    y_condition = models.CharField(max_length=12, blank=True, choices=Arm.Condition)
    criterion = models.CharField(max_length=50, blank=True)
    role = models.CharField(max_length=11, choices=Role, default=Role.PRIMARY)
    family = models.CharField(
        max_length=50,
        blank=True,
        help_text="Contrasts of one family are adjusted together. Empty: all contrasts with the same role.",
    )
    expected = models.CharField(max_length=1, choices=Expected, blank=True)
    hypothesis = models.CharField(
        max_length=21,
        choices=Hypothesis,
        default=Hypothesis.DIFFERENCE,
        help_text="What the comparison is to show. The last two need a margin and two systems.",
    )
    margin = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Differences smaller than this do not matter, on the estimand's scale (.05 is 5 points of a probability).",
    )
    # A level of one half or more allows no equivalence test: its interval would be reversed.
    level = models.FloatField(default=0.05, validators=[MinValueValidator(0.0001), MaxValueValidator(0.49)])
    population = models.CharField(
        max_length=18,
        blank=True,
        choices=Population,
        help_text="What the result is about: other people and other prompts like these, or other people with exactly these prompts.",
    )

    class Meta:
        ordering = ["pk"]
        base_manager_name = "objects"
        constraints = [
            CheckConstraint(
                name="contrast_is_of_two_systems_or_two_conditions_or_none",
                condition=(Q(x__isnull=False, y__isnull=False, x_condition="", y_condition="") & ~Q(x=F("y")))
                | (Q(x=None, y=None) & ~Q(x_condition="") & ~Q(y_condition="") & ~Q(x_condition=F("y_condition")))
                | Q(x=None, y=None, x_condition="", y_condition=""),
            ),
            CheckConstraint(name="contrast_expected_is_a_sign", condition=Q(expected__in=["", "<", ">", "~"])),
            CheckConstraint(
                name="contrast_population_is_a_choice",
                condition=Q(population__in=["", "people_and_prompts", "people"]),
            ),
            CheckConstraint(
                name="contrast_hypothesis_has_what_it_needs",
                condition=Q(hypothesis="difference")
                | (
                    Q(hypothesis__in=["noninferiority", "superiority_by_margin"], margin__isnull=False, x__isnull=False)
                    & ~Q(expected="~")
                ),
            ),
            CheckConstraint(name="contrast_margin_is_positive", condition=Q(margin=None) | Q(margin__gt=0)),
            CheckConstraint(name="contrast_level_is_below_one_half", condition=Q(level__gt=0, level__lt=0.5)),
            # SQLite ignores nulls_distinct=False, so each shape of row has its own constraint.
            UniqueConstraint(
                Least("x", "y"),
                Greatest("x", "y"),
                "study",
                "section",
                "estimand",
                "criterion",
                condition=Q(section__isnull=False, x__isnull=False),
                name="contrast_once_per_section_also_reversed",
            ),
            UniqueConstraint(
                Least("x", "y"),
                Greatest("x", "y"),
                "study",
                "estimand",
                "criterion",
                condition=Q(section=None, x__isnull=False),
                name="contrast_once_per_study_also_reversed",
            ),
            UniqueConstraint(
                Least("x_condition", "y_condition"),
                Greatest("x_condition", "y_condition"),
                "study",
                "section",
                "estimand",
                "criterion",
                condition=Q(section__isnull=False, x=None),
                name="contrast_of_conditions_once_per_section",
            ),
            UniqueConstraint(
                Least("x_condition", "y_condition"),
                Greatest("x_condition", "y_condition"),
                "study",
                "estimand",
                "criterion",
                condition=Q(section=None, x=None),
                name="contrast_of_conditions_once_per_study",
            ),
        ]

    def __str__(self):
        first, second = (self.x, self.y) if self.x_id else (self.x_condition, self.y_condition)
        return f"{first} {self.expected or 'against'} {second}" if first else self.estimand or "against the null"


class ComparisonFamily(DesignModel):
    """How the comparisons of one family are adjusted, and the family that must be shown before.

    A family is a name: that of ``Contrast.family`` or of a role. Without a row it is adjusted by Bonferroni's method and has
    no order, as all families before this model existed.
    """

    class Adjustment(models.TextChoices):
        BONFERRONI = "bonferroni", "Bonferroni"
        HOLM = "holm", "Holm"
        HOMMEL = "hommel", "Hommel"

    study = protected_foreign_key(Study, "comparison_families")
    name = models.CharField(
        max_length=50, help_text="As in the comparisons' field Family, or a role: primary, secondary or exploratory."
    )
    adjustment = models.CharField(max_length=10, choices=Adjustment, default=Adjustment.BONFERRONI)
    after = models.CharField(
        max_length=50,
        blank=True,
        help_text="The name of another family. This one is tested only if all comparisons of that family were shown.",
    )

    class Meta:
        ordering = ["pk"]
        base_manager_name = "objects"
        verbose_name = "family of comparisons"
        verbose_name_plural = "families of comparisons"
        constraints = [
            UniqueConstraint(fields=["study", "name"], name="comparison_family_once_per_study"),
            CheckConstraint(name="comparison_family_has_a_name", condition=~Q(name="")),
            CheckConstraint(name="comparison_family_is_not_after_itself", condition=~Q(name=F("after"))),
            CheckConstraint(
                name="comparison_family_adjustment_is_a_choice",
                condition=Q(adjustment__in=["bonferroni", "holm", "hommel"]),
            ),
        ]

    def __str__(self):
        return self.name


class ExclusionRule(DesignModel):
    """A rule that leaves assignments out of the analysis. It is declared before the launch, with its parameters."""

    class Role(models.TextChoices):
        PRIMARY = "primary", "applied to the headline"
        SENSITIVITY = "sensitivity", "shown beside the headline"

    study = protected_foreign_key(Study, "exclusion_rules")
    position = models.PositiveSmallIntegerField(default=1, validators=SMALLINT_VALIDATORS)
    rule = models.CharField(max_length=40, choices=design.choices)
    settings = models.JSONField(default=dict, blank=True)
    role = models.CharField(max_length=11, choices=Role, default=Role.PRIMARY)

    class Meta:
        ordering = ["position", "rule"]
        base_manager_name = "objects"
        constraints = [UniqueConstraint(fields=["study", "rule"], name="exclusion_rule_once_per_study")]

    def __str__(self):
        return self.get_rule_display()
