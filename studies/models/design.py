"""A design: systems, arms, sections and questions. The launch and each amendment freeze a version of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies import protocols
from studies.protocols.base.pairs import EXTREME_REFERENCES, Reference

from .fields import (
    FIRST_TEST_NUMBER,
    HEADCOUNT_VALIDATORS,
    MINUTES_VALIDATORS,
    NONNEGATIVE_VALIDATORS,
    SMALLINT_VALIDATORS,
    optional_protected_foreign_key,
    protected_foreign_key,
)
from .guards import AppendOnlyModel, DesignModel, DesignQuerySet
from .study import Study

# The registry of exclusion rules. ``analysis.exclusions`` fills it and computes the rules.
#
# It is here because a design names its rules and their parameters, and ``studies`` must not import the code for
# answers.


REGISTRY: dict[str, "Rule"] = {}
# The rules that decide which annotators the test questions flag.
TEST_QUESTION_RULES = ("test_question_model", "failed_tests")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. ``flag(frame, **settings)`` returns pass, fail or unknown for each assignment; unknown never excludes.

    ``problems(sections, **settings)`` yields sentences for the checklist: why the rule cannot work with these sections.
    """

    slug: str
    label: str
    flag: Callable[..., Any]
    settings_form: type | None = None
    is_outcome_blind: bool = True
    source: str = ""
    problems: Callable[..., Iterable[str]] | None = None

    @property
    def name(self) -> str:
        """The label without the explanation after the colon."""
        return self.label.partition(":")[0]

    def bound_form(self, settings: Mapping[str, Any]):
        """Return the settings form with stored values, or initial values where none is stored. Return None without settings."""
        if self.settings_form is None:
            return None
        fields = self.settings_form().fields
        return self.settings_form({name: settings.get(name, field.initial) for name, field in fields.items()})

    @property
    def help(self) -> str:
        return (self.flag.__doc__ or "").strip()


def register(slug: str, label: str, **options) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as a named rule."""

    def add(flag):
        if slug in REGISTRY:
            raise ValueError(f"The rule {slug!r} is registered twice.")
        REGISTRY[slug] = Rule(slug=slug, label=label, flag=flag, **options)
        return flag

    return add


def choices() -> list[tuple[str, str]]:
    return [(rule.slug, rule.label) for rule in REGISTRY.values()]


# A qualification: a pass that several studies accept, so that a person takes the test once.


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


class Design(AppendOnlyModel):
    """The frozen design of a study: canonical JSON and its sha256. The launch stores version 1, each amendment the next."""

    study = protected_foreign_key(Study, "designs")
    version = models.PositiveSmallIntegerField()
    canonical = models.TextField()
    sha256 = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["version"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "version"], name="design_version_once_per_study"),
            CheckConstraint(
                name="design_amendment_has_a_reason", condition=Q(version=1) | (Q(version__gt=1) & ~Q(reason=""))
            ),
        ]

    def __str__(self):
        return f"version {self.version}"


class SystemQuerySet(DesignQuerySet):
    def judged(self):
        """Leave out the source of texts that only test questions show. It is no system under evaluation."""
        return self.exclude(reference=Reference.TEST)


class System(DesignModel):
    """A source of outputs that are compared: a model, a program or a human author.

    A source with the reference ``test`` holds texts that only test questions show, and is not compared.
    """

    Reference = Reference
    EXTREME_REFERENCES = EXTREME_REFERENCES

    study = protected_foreign_key(Study, "systems")
    name = models.CharField(max_length=100, help_text="Annotators do not see it.")
    is_human = models.BooleanField("human author", default=False)
    reference = models.CharField(
        max_length=9,
        choices=Reference,
        blank=True,
        help_text="Reference: the other systems are compared with it. Maximal or minimal reference: its outputs are as good or as bad as possible and are rated among the others. Only in test questions: its outputs are never compared.",
    )

    objects = SystemQuerySet.as_manager()  # type: ignore[misc]  # the plugin knows no queryset of a subclass here

    class Meta:
        ordering = ["name"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "name"], name="system_name_once_per_study"),
            CheckConstraint(name="system_has_a_name", condition=~Q(name="")),
        ]

    def __str__(self):
        return self.name


class Arm(DesignModel):
    """A between-subject condition. Every study has at least one."""

    class Condition(models.TextChoices):
        NONE = "none"
        INSTRUCTIONS = "instructions"
        EXAMPLES = "examples"
        COMPARISON = "comparison"

    amendable_fields = frozenset({"reward", "minutes", "instructions"})

    study = protected_foreign_key(Study, "arms")
    name = models.CharField(max_length=50, default="all")
    condition = models.CharField(max_length=12, choices=Condition, default=Condition.NONE)
    instructions = models.TextField(blank=True, help_text="Replaces the study's instructions in this arm. Markdown.")
    domain = models.CharField(
        max_length=50, blank=True, help_text="Show only prompts of this domain. Empty: all domains."
    )
    systems = models.ManyToManyField(System, through="ArmSystem", blank=True, related_name="+")
    wanted = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=HEADCOUNT_VALIDATORS,
        help_text="Number of places. Empty: an equal share of the target.",
    )
    reward = models.DecimalField(
        max_digits=7,
        decimal_places=2,
        null=True,
        blank=True,
        validators=NONNEGATIVE_VALIDATORS,
        help_text="Empty: as in the study.",
    )
    minutes = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=MINUTES_VALIDATORS, help_text="Empty: as in the study."
    )

    class Meta:
        ordering = ["name"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "name"], name="arm_name_once_per_study"),
            CheckConstraint(name="arm_pays_nothing_below_zero", condition=Q(reward=None) | Q(reward__gte=0)),
        ]

    def __str__(self):
        return self.name


class ArmSystem(DesignModel):
    study_path = "arm__study"
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="arm_systems")
    system = models.ForeignKey(System, models.PROTECT, related_name="+")

    class Meta:
        base_manager_name = "objects"
        constraints = [UniqueConstraint(fields=["arm", "system"], name="arm_system_once")]


class Section(DesignModel):
    """A part of what one annotator does, under one protocol."""

    class Purpose(models.TextChoices):
        LIVE = "live", "live: counts in the results"
        TRAINING = "training", "training: never counts in the results"
        SCREENING = "screening", "screening: decides who can take part"
        ATTENTION = "attention", "attention checks: asked on pages of the live sections"

    study = protected_foreign_key(Study, "sections")
    position = models.PositiveSmallIntegerField(validators=SMALLINT_VALIDATORS)
    protocol = models.CharField(max_length=20, choices=protocols.choices)
    purpose = models.CharField(max_length=9, choices=Purpose, default=Purpose.LIVE)
    m = models.PositiveSmallIntegerField(
        default=5,
        validators=[MaxValueValidator(100)],
        help_text="Exposure samples: the number of prompts in this section. 0 for a survey.",
    )
    settings = models.JSONField(default=dict, blank=True)
    reuses = optional_protected_foreign_key(
        "self", "reused_by", help_text="Show the first m items of that section again instead of new items."
    )
    pass_mark = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text="Makes the section a test before the work: this many answers must be right, in one of two attempts. Empty: no test.",
    )
    qualification = optional_protected_foreign_key(
        Qualification,
        "sections",
        help_text="People who passed it lately, in any study that names it, skip the test. Empty: everybody takes it.",
    )
    arms = models.ManyToManyField(
        Arm,
        through="SectionArm",
        blank=True,
        related_name="+",
        help_text="Only these arms see the section. Empty: all arms.",
    )

    class Meta:
        ordering = ["position"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "position"], name="section_position_once_per_study"),
            CheckConstraint(name="section_does_not_reuse_itself", condition=Q(reuses=None) | ~Q(reuses=F("id"))),
            CheckConstraint(name="section_pass_mark_is_above_zero", condition=Q(pass_mark=None) | Q(pass_mark__gte=1)),
            CheckConstraint(
                name="section_with_a_pass_mark_does_not_count_in_the_results",
                condition=Q(pass_mark=None) | Q(purpose__in=["training", "screening"]),
            ),
            CheckConstraint(
                name="section_qualifies_only_with_a_pass_mark",
                condition=Q(qualification=None) | Q(pass_mark__isnull=False),
            ),
            UniqueConstraint(
                fields=["study"], condition=Q(pass_mark__isnull=False), name="section_is_the_only_test_of_its_study"
            ),
        ]

    def __str__(self):
        return f"{self.position}. {self.get_protocol_display()}"

    @property
    def design_items(self) -> models.QuerySet:
        """Return the section's items without those that only test runs made."""
        return self.items.filter(number__lt=FIRST_TEST_NUMBER)


class SectionArm(DesignModel):
    study_path = "section__study"
    section = models.ForeignKey(Section, models.PROTECT, related_name="section_arms")
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="+")

    class Meta:
        base_manager_name = "objects"
        constraints = [UniqueConstraint(fields=["section", "arm"], name="section_arm_once")]


class Question(DesignModel):
    """A question. ``{x}`` and ``{y}`` in its text are replaced by the labels that the annotator sees."""

    study_path = "section__study"
    amendable_fields = frozenset({"text", "help"})

    section = protected_foreign_key(Section, "questions")
    position = models.PositiveSmallIntegerField(validators=SMALLINT_VALIDATORS)
    key = models.SlugField(max_length=50)
    text = models.TextField()
    help = models.TextField(blank=True, help_text="Shown below the question. Markdown.")
    criterion = models.CharField(max_length=50, blank=True)
    scale = models.JSONField(default=dict, blank=True)
    required = models.BooleanField(default=True)
    skip_reasons = models.JSONField(default=list, blank=True)
    x = optional_protected_foreign_key(System)
    y = optional_protected_foreign_key(System)

    class Meta:
        ordering = ["position"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["section", "position"], name="question_position_once_per_section"),
            UniqueConstraint(fields=["section", "key"], name="question_key_once_per_section"),
            CheckConstraint(
                name="question_has_both_x_and_y_or_neither",
                condition=Q(x=None, y=None) | (Q(x__isnull=False, y__isnull=False) & ~Q(x=F("y"))),
            ),
        ]

    def __str__(self):
        return self.key
