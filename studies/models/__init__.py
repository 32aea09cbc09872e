"""What is asked: studies, their design and the batches drawn from it. DESIGN: the database refuses what must never be."""

import secrets
import uuid

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Greatest, Least, Now

from studies import protocols
from studies.protocols.base.references import ENDS, Reference
from studies.stimuli.texts import LANGUAGE_TAG

from . import rules
from .guards import AppendOnlyModel, DesignModel, DesignQuerySet, StudyFrozen

PROTECT = models.PROTECT
TEST_NUMBERS = 1_000_000_000  # batches and items of tries are numbered from here, far from those that are drawn

# Limits are wider than any study needs and narrower than what a database can hold: SQLite has none of its own.
NUMBERED = [MaxValueValidator(TEST_NUMBERS - 1)]
SMALL = [MaxValueValidator(32_767)]
PEOPLE = [MaxValueValidator(1_000_000)]
MINUTES = [MaxValueValidator(24 * 60)]
NO_DEBT = [MinValueValidator(0)]
LANGUAGE = [RegexValidator(rf"\A(?:{LANGUAGE_TAG})\Z", "A language tag, such as en, de or pt-BR.")]
CURRENCY = [RegexValidator(r"\A[A-Z]{3}\Z", "Three letters, such as USD or EUR, in capitals.")]


def seconds(least: int, days: int) -> list:
    """Validators of a length of time."""
    return [MinValueValidator(least), MaxValueValidator(days * 86_400)]


def link(to, related_name="+", **options):
    """A foreign key; nothing that a study's record hangs on disappears by deleting something else."""
    return models.ForeignKey(to, PROTECT, related_name=related_name, **options)


def optional_link(to, related_name="+", **options):
    return link(to, related_name, null=True, blank=True, **options)


def new_seed() -> int:
    return secrets.randbits(62)


def moment(**options):
    return models.DateTimeField(null=True, blank=True, editable=False, **options)


class StudyQuerySet(DesignQuerySet):
    def refuse_if_frozen(self):
        if self.exclude(state="draft").exists():
            raise StudyFrozen("Study")

    def update(self, **kwargs):
        if "state" in kwargs:
            raise StudyFrozen("Study.state is written by studies.services.lifecycle alone")
        return super().update(**kwargs)


class Study(models.Model):
    """One human evaluation, from its draft to its closed record."""

    class State(models.TextChoices):
        DRAFT = "draft"
        LAUNCHING = "launching"
        LAUNCHED = "launched"
        PAUSED = "paused"
        CLOSING = "closing"
        CLOSED = "closed"

    # Groups of states: people may take part; answers may still arrive.
    RUNNING = (State.LAUNCHED, State.PAUSED)
    COLLECTING = (State.LAUNCHING, *RUNNING, State.CLOSING)

    class Target(models.TextChoices):
        SUBMITTED = "submitted", "n annotators who submitted"
        KEPT = "kept", "n annotators kept by the outcome-blind rules"

    class Coverage(models.TextChoices):
        BALANCED = "balanced", "balanced: every prompt shown equally often"
        INDEPENDENT = "independent", "independent: each batch a fresh random sample"

    class SectionOrder(models.TextChoices):
        FIXED = "fixed", "as listed"
        COUNTERBALANCED = "counterbalanced", "random per annotator (a section stays after the one it reuses)"

    study_path = "pk"
    grows_after_launch = True
    changes_after_launch = frozenset({"open_to", "usual_seconds", "archived_at", "unblinded_at", "version"})
    amendable = frozenset(
        {
            "public_title", "purpose", "instructions", "debriefing", "contact", "start_window_seconds", "idle_seconds",
            "grace_seconds", "wage_per_hour", "withdrawal_until", "target_cap",
        }
    )  # fmt: skip

    code = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    title = models.CharField(max_length=200, help_text="For researchers; annotators never see it.")
    public_title = models.CharField(
        max_length=200,
        blank=True,
        help_text="What annotators read on top of each page. It should tell nothing of the hypotheses.",
    )
    language = models.CharField(
        max_length=12,
        default="en",
        validators=LANGUAGE,
        help_text="Language of the annotators' pages, such as en or pt-BR.",
    )
    seed = models.PositiveBigIntegerField(
        default=new_seed,
        validators=[MaxValueValidator(2**62)],
        help_text="Every random draw of the study follows from it.",
    )
    owner = optional_link(settings.AUTH_USER_MODEL, "owned_studies")
    clone_of = optional_link("self", "clones", editable=False)
    keeps_origin_out = models.BooleanField(
        "keep out people of the study it was cloned from",
        default=True,
        help_text="Has no effect on a study that is no clone.",
    )
    exclusion_group = models.CharField(
        max_length=50, blank=True, help_text="Who took part in a study of this group cannot take part in another of it."
    )

    purpose = models.TextField(blank=True, help_text="One or two sentences: what the annotator will do. Markdown.")
    instructions = models.TextField(blank=True, help_text="A page of its own before the first text. Markdown.")
    consent = models.TextField(blank=True, help_text="What the annotator agrees to. Markdown.")
    debriefing = models.TextField(blank=True, help_text="Shown after the last page. Markdown.")
    institution = models.CharField(max_length=200, blank=True)
    approval_number = models.CharField(
        max_length=100, blank=True, help_text="Of the ethics board, as consent forms name it."
    )
    contact = models.CharField(max_length=200, blank=True, help_text="Whom annotators may write to. On every page.")
    retention = models.CharField(max_length=300, blank=True, help_text="What is kept, and how long.")
    content_warning = models.CharField(max_length=300, blank=True)

    preparation = models.JSONField(
        default=dict,
        blank=True,
        editable=False,
        help_text="How the stimuli were prepared (studies.stimuli.normalising.Preparation).",
    )
    batches_per_annotator = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1), *SMALL])
    annotators_per_batch = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1), *SMALL], help_text="How many annotators are given the same batch."
    )
    coverage = models.CharField(max_length=12, choices=Coverage, default=Coverage.BALANCED)
    section_order = models.CharField(max_length=16, choices=SectionOrder, default=SectionOrder.FIXED)
    target_kind = models.CharField(max_length=10, choices=Target, default=Target.SUBMITTED)
    target_n = models.PositiveIntegerField("target n", null=True, blank=True, validators=PEOPLE)
    target_cap = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=PEOPLE,
        help_text="Never more places than this, whoever is excluded. Empty: 1.5 times the target.",
    )
    replaces_excluded = models.BooleanField(
        "excluded people are replaced",
        default=False,
        help_text="Whoever is excluded by hand has the place opened again. A target of people kept does so in any case.",
    )

    currency = models.CharField(max_length=3, default="USD", validators=CURRENCY)
    reward = models.DecimalField(
        max_digits=7,
        decimal_places=2,
        null=True,
        blank=True,
        validators=NO_DEBT,
        help_text="For one batch.",
    )
    minutes = models.PositiveSmallIntegerField(
        "declared minutes", null=True, blank=True, validators=MINUTES, help_text="For one batch."
    )
    wage_per_hour = models.DecimalField(
        "wage aimed at, per hour",
        max_digits=8,
        decimal_places=2,
        null=True,
        blank=True,
        validators=NO_DEBT,
    )
    words_per_minute = models.PositiveSmallIntegerField(
        "reading speed, words per minute", default=240, validators=[MinValueValidator(50), MaxValueValidator(1000)]
    )

    withdrawal_blanks_ratings = models.BooleanField(
        "withdrawal deletes ratings too", default=False, help_text="Otherwise ratings stay, without any identity."
    )
    withdrawal_until = models.DateField(null=True, blank=True, help_text="Last day on which an annotator may withdraw.")
    erase_after_days = models.PositiveSmallIntegerField(
        default=90,
        validators=[MaxValueValidator(3650)],
        help_text="Days after closing when panel ids are erased, if payment did not erase them earlier.",
    )
    start_window_seconds = models.PositiveIntegerField(default=600, validators=seconds(60, 7))
    idle_seconds = models.PositiveIntegerField(
        null=True, blank=True, validators=seconds(60, 30),
        help_text="A place goes back after this long without an answer. Empty: the longer of 30 minutes and 3 times the declared minutes.",
    )  # fmt: skip
    grace_seconds = models.PositiveIntegerField(
        default=7200, validators=seconds(0, 30), help_text="After closing, those inside may finish for this long."
    )

    state = models.CharField(max_length=9, choices=State, default=State.DRAFT, editable=False)
    open_to = models.PositiveIntegerField(
        default=0, editable=False, help_text="Batches with a lower number may be claimed."
    )
    usual_seconds = models.PositiveIntegerField(
        null=True, editable=False, help_text="Median from start to submission, once enough have submitted."
    )
    version = models.PositiveIntegerField(default=0, editable=False, help_text="Counts saves; a stale form is refused.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    launched_at = moment()
    closing_at = moment()
    closed_at = moment()
    archived_at = moment()
    unblinded_at = moment()

    objects = StudyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "studies"
        base_manager_name = "objects"
        constraints = [
            CheckConstraint(
                name="study_state_agrees_with_its_times",
                condition=Q(state__in=["draft", "launching"], launched_at=None, closing_at=None, closed_at=None)
                | Q(state__in=["launched", "paused"], launched_at__isnull=False, closing_at=None, closed_at=None)
                | Q(state="closing", launched_at__isnull=False, closing_at__gte=F("launched_at"), closed_at=None)
                | Q(
                    state="closed",
                    launched_at__isnull=False,
                    closing_at__gte=F("launched_at"),
                    closed_at__gte=F("closing_at"),
                ),
            ),
            CheckConstraint(
                name="study_gives_at_least_one_batch",
                condition=Q(batches_per_annotator__gte=1, annotators_per_batch__gte=1),
            ),
            CheckConstraint(
                name="study_cap_is_at_least_its_target",
                condition=Q(target_cap=None) | Q(target_n=None) | Q(target_cap__gte=F("target_n")),
            ),
            CheckConstraint(
                name="study_pays_nothing_below_zero",
                condition=(Q(reward=None) | Q(reward__gte=0)) & (Q(wage_per_hour=None) | Q(wage_per_hour__gte=0)),
            ),
        ]

    def __str__(self):
        return self.title

    @classmethod
    def may_change(cls, columns) -> bool:
        return DesignModel.may_change.__func__(cls, columns)

    def save(self, *args, **kwargs):
        if not self._state.adding:
            self._refuse_frozen_changes(kwargs.get("update_fields"))
        super().save(*args, **kwargs)

    def _refuse_frozen_changes(self, columns):
        before = Study._base_manager.get(pk=self.pk)
        changed = {
            field.name
            for field in self._meta.concrete_fields
            if (columns is None or field.name in columns)
            and getattr(before, field.attname) != getattr(self, field.attname)
        }
        if "state" in changed:
            raise StudyFrozen("Study.state is written by studies.services.lifecycle alone")
        if before.state != "draft" and not self.may_change(changed):
            raise StudyFrozen(", ".join(sorted(changed - self.changes_after_launch)))

    def clean(self):
        found = {}
        if self.target_n == 0:
            found["target_n"] = "At least 1; leave it empty where a stopping rule decides."
        if self.target_n and self.target_cap and self.target_cap < self.target_n:
            found["target_cap"] = f"The cap ({self.target_cap}) must not be below the target ({self.target_n})."
        if self.idle_seconds == 0:
            found["idle_seconds"] = "At least 60 seconds; leave it empty for the default."
        if found:
            raise ValidationError(found)

    def delete(self, *args, **kwargs):
        Study.objects.filter(pk=self.pk).refuse_if_frozen()
        return super().delete(*args, **kwargs)

    @property
    def is_draft(self) -> bool:
        return self.state == self.State.DRAFT

    @property
    def is_blind(self) -> bool:
        """Whether outcomes are hidden: the study collects, and nobody has unblinded it, on the record."""
        return self.state in self.COLLECTING and not self.unblinded_at

    @property
    def idle_lease_seconds(self) -> int:
        return self.idle_seconds or max(1800, 180 * (self.minutes or 0))

    @property
    def cap(self) -> int | None:
        if self.target_n is None:
            return None
        return self.target_cap or -(-self.target_n * 3 // 2)


class Design(AppendOnlyModel):
    """The frozen design of a study: canonical JSON and its sha256. Version 1 at launch, one more for each amendment."""

    study = link(Study, "designs")
    version = models.PositiveSmallIntegerField()
    canonical = models.TextField()
    sha256 = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())
    by = optional_link(settings.AUTH_USER_MODEL)
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


class StudyMember(models.Model):
    """What a researcher may do in a study."""

    class Role(models.TextChoices):
        OWNER = "owner", "owner: everything, members too"
        EDITOR = "editor", "editor: define, launch, analyse"
        VIEWER = "viewer", "viewer: look"
        CODER = "coder", "coder: code explanations, blind"

    study = models.ForeignKey(Study, models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=6, choices=Role)

    class Meta:
        constraints = [UniqueConstraint(fields=["study", "user"], name="member_once_per_study")]

    def __str__(self):
        return f"{self.user} ({self.role})"


class System(DesignModel):
    """What is compared. A human author is a system too."""

    Reference = Reference
    ENDS = ENDS

    study = link(Study, "systems")
    name = models.CharField(max_length=100, help_text="Annotators never see it.")
    is_human = models.BooleanField("human author", default=False)
    reference = models.CharField(
        max_length=9, choices=Reference, blank=True,
        help_text="What others are measured against; maximal and minimal: the best and the worst that an output can be, planted among "
        "those that are rated.",
    )  # fmt: skip

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
    """A between-subject cell. Every study has at least one."""

    class Condition(models.TextChoices):
        NONE = "none"
        INSTRUCTIONS = "instructions"
        EXAMPLES = "examples"
        COMPARISON = "comparison"

    amendable = frozenset({"reward", "minutes", "instructions"})

    study = link(Study, "arms")
    name = models.CharField(max_length=50, default="all")
    condition = models.CharField(max_length=12, choices=Condition, default=Condition.NONE)
    instructions = models.TextField(blank=True, help_text="Replaces the study's instructions for this arm. Markdown.")
    domain = models.CharField(max_length=50, blank=True, help_text="Prompts of this domain alone; empty: all.")
    systems = models.ManyToManyField(System, through="ArmSystem", blank=True, related_name="+")
    wanted = models.PositiveIntegerField(
        null=True, blank=True, validators=PEOPLE, help_text="Places; empty: an equal share of the target."
    )
    reward = models.DecimalField(
        max_digits=7, decimal_places=2, null=True, blank=True, validators=NO_DEBT, help_text="Empty: the study's."
    )
    minutes = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=MINUTES, help_text="Empty: the study's."
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
        LIVE = "live", "live: counts"
        TRAINING = "training", "training: teaches, never in an estimate"
        SCREENING = "screening", "screening: who may take part"

    study = link(Study, "sections")
    position = models.PositiveSmallIntegerField(validators=SMALL)
    protocol = models.CharField(max_length=20, choices=protocols.choices)
    purpose = models.CharField(max_length=9, choices=Purpose, default=Purpose.LIVE)
    m = models.PositiveSmallIntegerField(
        default=5, validators=[MaxValueValidator(100)],
        help_text="Exposure samples: prompts shown in this section. 0 where it shows none (survey).",
    )  # fmt: skip
    settings = models.JSONField(default=dict, blank=True)
    reuses = optional_link(
        "self", "reused_by", help_text="Show the first m items of that section again instead of new ones."
    )
    arms = models.ManyToManyField(
        Arm, through="SectionArm", blank=True, related_name="+", help_text="Only these arms see it; empty: all."
    )

    class Meta:
        ordering = ["position"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "position"], name="section_position_once_per_study"),
            CheckConstraint(name="section_does_not_reuse_itself", condition=Q(reuses=None) | ~Q(reuses=F("id"))),
        ]

    def __str__(self):
        return f"{self.position}. {self.get_protocol_display()}"


class SectionArm(DesignModel):
    study_path = "section__study"
    section = models.ForeignKey(Section, models.PROTECT, related_name="section_arms")
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="+")

    class Meta:
        base_manager_name = "objects"
        constraints = [UniqueConstraint(fields=["section", "arm"], name="section_arm_once")]


class Question(DesignModel):
    """One directed question. ``{x}`` and ``{y}`` in its text become the labels that this annotator sees."""

    study_path = "section__study"
    amendable = frozenset({"text", "help"})

    section = link(Section, "questions")
    position = models.PositiveSmallIntegerField(validators=SMALL)
    key = models.SlugField(max_length=50)
    text = models.TextField()
    help = models.TextField(blank=True, help_text="Stands under the question. Markdown.")
    criterion = models.CharField(max_length=50, blank=True)
    scale = models.JSONField(default=dict, blank=True)
    required = models.BooleanField(default=True)
    skip_reasons = models.JSONField(default=list, blank=True)
    x = optional_link(System)
    y = optional_link(System)

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


class Contrast(DesignModel):
    """A planned comparison (x, y), in that order, with what is expected of it."""

    class Role(models.TextChoices):
        PRIMARY = "primary"
        SECONDARY = "secondary"
        EXPLORATORY = "exploratory"

    class Expected(models.TextChoices):
        NONE = "", "nothing expected"
        ABOVE = ">", "x > y"
        BELOW = "<", "x < y"
        SAME = "~", "x ~ y (equivalent)"

    study = link(Study, "contrasts")
    section = optional_link(Section, help_text="Empty: every live section that can.")
    estimand = models.CharField(max_length=40, blank=True, help_text="Empty: the section's own.")
    x = optional_link(System)
    y = optional_link(System)
    x_condition = models.CharField(max_length=12, blank=True, choices=Arm.Condition)
    y_condition = models.CharField(max_length=12, blank=True, choices=Arm.Condition)
    criterion = models.CharField(max_length=50, blank=True)
    role = models.CharField(max_length=11, choices=Role, default=Role.PRIMARY)
    family = models.CharField(max_length=50, blank=True, help_text="Corrected together; empty: all of its role.")
    expected = models.CharField(max_length=1, choices=Expected, blank=True)
    margin = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0)],
        help_text="Differences smaller than this are equivalent, on the estimand's scale (.05 is 5 points of a probability).",
    )  # fmt: skip
    # From one half on no test of equivalence exists: its interval would be turned round.
    level = models.FloatField(default=0.05, validators=[MinValueValidator(0.0001), MaxValueValidator(0.49)])

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
            CheckConstraint(name="contrast_margin_is_positive", condition=Q(margin=None) | Q(margin__gt=0)),
            CheckConstraint(name="contrast_level_is_below_one_half", condition=Q(level__gt=0, level__lt=0.5)),
            # SQLite ignores nulls_distinct=False: one constraint for each shape of row.
            UniqueConstraint(
                Least("x", "y"), Greatest("x", "y"), "study", "section", "estimand", "criterion",
                condition=Q(section__isnull=False, x__isnull=False), name="contrast_once_per_section_also_reversed",
            ),
            UniqueConstraint(
                Least("x", "y"), Greatest("x", "y"), "study", "estimand", "criterion",
                condition=Q(section=None, x__isnull=False), name="contrast_once_per_study_also_reversed",
            ),
            UniqueConstraint(
                Least("x_condition", "y_condition"), Greatest("x_condition", "y_condition"), "study", "section", "estimand", "criterion",
                condition=Q(section__isnull=False, x=None), name="contrast_of_conditions_once_per_section",
            ),
            UniqueConstraint(
                Least("x_condition", "y_condition"), Greatest("x_condition", "y_condition"), "study", "estimand", "criterion",
                condition=Q(section=None, x=None), name="contrast_of_conditions_once_per_study",
            ),
        ]  # fmt: skip

    def __str__(self):
        first, second = (self.x, self.y) if self.x_id else (self.x_condition, self.y_condition)
        return f"{first} {self.expected or '?'} {second}" if first else self.estimand or "against the null"


class ExclusionRule(DesignModel):
    """A named rule that leaves assignments out of the analysis, declared before launch with its parameters."""

    class Role(models.TextChoices):
        PRIMARY = "primary", "applied to the headline"
        SENSITIVITY = "sensitivity", "shown beside it"

    study = link(Study, "exclusion_rules")
    position = models.PositiveSmallIntegerField(default=1, validators=SMALL)
    rule = models.CharField(max_length=40, choices=rules.choices)
    settings = models.JSONField(default=dict, blank=True)
    role = models.CharField(max_length=11, choices=Role, default=Role.PRIMARY)

    class Meta:
        ordering = ["position", "rule"]
        base_manager_name = "objects"
        constraints = [UniqueConstraint(fields=["study", "rule"], name="exclusion_rule_once_per_study")]

    def __str__(self):
        return self.get_rule_display()


class Prompt(DesignModel):
    study = link(Study, "prompts")
    key = models.CharField(max_length=100)
    text = models.TextField(blank=True)
    source = models.TextField("source document", blank=True)
    media = models.CharField(max_length=80, blank=True, editable=False)
    domain = models.CharField(max_length=50, blank=True)
    language = models.CharField(max_length=12, blank=True, validators=LANGUAGE)
    attributes = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["key"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "key"], name="prompt_key_once_per_study"),
            CheckConstraint(name="prompt_has_a_key", condition=~Q(key="")),
        ]

    def __str__(self):
        return self.key


class Output(DesignModel):
    """What a system made of a prompt. ``original`` keeps the text from before preparation."""

    class Format(models.TextChoices):
        PLAIN = "plain", "plain text"
        MARKDOWN = "markdown", "Markdown"
        TURNS = "turns", "turns of a dialogue, one a line: speaker: words"

    study_path = "system__study"

    system = link(System, "outputs")
    prompt = link(Prompt, "outputs")
    sample = models.PositiveSmallIntegerField(default=0, validators=SMALL)
    format = models.CharField(max_length=8, choices=Format, default=Format.PLAIN)
    text = models.TextField(blank=True)
    media = models.CharField(max_length=80, blank=True, editable=False)
    alt = models.CharField("description of the image", max_length=300, blank=True)
    is_empty = models.BooleanField(
        "empty", default=False, help_text="The system gave nothing, and that is what is judged."
    )
    original = models.TextField(blank=True)
    language = models.CharField(max_length=12, blank=True, validators=LANGUAGE)

    class Meta:
        ordering = ["prompt__key", "system__name", "sample"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["system", "prompt", "sample"], name="output_sample_once_per_system_and_prompt"),
            CheckConstraint(
                name="output_is_exactly_one_of_text_media_empty",
                condition=(Q(media="", is_empty=False) & ~Q(text=""))
                | (Q(text="", is_empty=False) & ~Q(media=""))
                | Q(text="", media="", is_empty=True),
            ),
        ]

    def __str__(self):
        return f"{self.system} on {self.prompt}"


class Item(DesignModel):
    """What is judged: a prompt with the outputs shown for it. The same thing judged is the same row."""

    class Kind(models.TextChoices):
        LIVE = "live"
        TEST = "test"
        PRACTICE = "practice"

    grows_after_launch = True
    changes_after_launch = frozenset({"settled_at"})
    amendable = frozenset({"retired_in"})

    study = link(Study, "items")
    section = link(Section, "items")
    number = models.PositiveIntegerField(validators=NUMBERED)
    prompt = link(Prompt, "items")
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.LIVE)
    content = models.CharField(max_length=64, help_text="sha256 of prompt, sorted outputs and kind")
    settled_at = moment()
    retired_in = optional_link(Design, editable=False)

    class Meta:
        ordering = ["section", "number"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["section", "number"], name="item_number_once_per_section"),
            UniqueConstraint(fields=["section", "content"], name="item_is_the_same_thing_judged_once"),
        ]

    def __str__(self):
        return f"item {self.number}"


class Exposure(DesignModel):
    """One output in an item."""

    study_path = "item__study"
    grows_after_launch = True

    item = link(Item, "exposures")
    output = link(Output, "exposures")
    number = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["item", "number"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["item", "output"], name="exposure_output_once_per_item"),
            UniqueConstraint(fields=["item", "number"], name="exposure_number_once_per_item"),
        ]


class Expected(DesignModel):
    """What a test question or a practice item should be answered."""

    study_path = "item__study"
    grows_after_launch = True

    item = link(Item, "expected")
    question = link(Question)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    exposure = optional_link(Exposure)
    explanation = models.TextField(blank=True)

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["item", "question"], name="expected_once_per_item_and_question"),
            CheckConstraint(
                name="expected_is_a_range_or_an_exposure",
                condition=Q(low__isnull=False, high__gte=F("low"), exposure=None)
                | Q(low=None, high=None, exposure__isnull=False),
            ),
        ]


class Batch(DesignModel):
    """What one annotator is given. ``wanted`` places; ``claimed`` counts its assignments that are not released."""

    class Origin(models.TextChoices):
        DRAWN = "drawn"
        IMPORTED = "imported"
        TOP_UP = "top_up"
        REPLACEMENT = "replacement"
        ANSWERED = "answered", "of imported answers"
        TEST = "test"

    grows_after_launch = True
    changes_after_launch = frozenset({"claimed"})

    study = link(Study, "batches")
    arm = link(Arm, "batches")
    number = models.PositiveIntegerField(validators=NUMBERED)
    wanted = models.PositiveSmallIntegerField(default=1, validators=SMALL)
    claimed = models.PositiveSmallIntegerField(default=0)
    origin = models.CharField(max_length=11, choices=Origin, default=Origin.DRAWN)
    copy_of = optional_link("self", "copies")
    key = models.CharField(max_length=100, blank=True)

    class Meta:
        ordering = ["number"]
        verbose_name_plural = "batches"
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["study", "number"], name="batch_number_once_per_study"),
            UniqueConstraint(fields=["study", "key"], condition=~Q(key=""), name="batch_key_once_per_study"),
            CheckConstraint(name="batch_claimed_at_most_wanted", condition=Q(claimed__lte=F("wanted"))),
        ]
        indexes = [
            models.Index(
                fields=["study", "claimed", "number"], condition=Q(claimed__lt=F("wanted")), name="batch_open"
            ),
        ]

    def __str__(self):
        return f"batch {self.number}"


class Placement(DesignModel):
    """An item's place in a batch."""

    study_path = "batch__study"
    grows_after_launch = True

    batch = link(Batch, "placements")
    item = link(Item, "placements")
    number = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["batch", "number"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["batch", "number"], name="placement_number_once_per_batch"),
            UniqueConstraint(fields=["batch", "item"], name="placement_item_once_per_batch"),
        ]


class AuditEvent(AppendOnlyModel):
    """Who did what, when. ``data`` holds no personal data of annotators."""

    at = models.DateTimeField(db_default=Now())
    by = optional_link(settings.AUTH_USER_MODEL)
    study = optional_link(Study, "audit_events")
    assignment_code = models.CharField(max_length=32, blank=True)  # not a key: studies does not know annotators
    verb = models.CharField(max_length=50)
    data = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-pk"]
        base_manager_name = "objects"

    def __str__(self):
        return self.verb


class Job(models.Model):
    """Long work as a row with a lease: whoever holds the lease runs it, and a dead holder's lease runs out."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    code = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=50)
    study = optional_link(Study, "jobs")
    arguments = models.JSONField(default=dict, blank=True)
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    doing = models.CharField(max_length=200, blank=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    leased_until = moment()
    holder = models.CharField(max_length=64, blank=True)
    request_token = models.CharField(max_length=64, null=True, blank=True)
    result = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    is_cancel_wanted = models.BooleanField(default=False)
    by = optional_link(settings.AUTH_USER_MODEL)
    created_at = models.DateTimeField(db_default=Now())
    started_at = moment()
    ended_at = moment()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            UniqueConstraint(fields=["request_token"], name="job_request_token_once"),
            CheckConstraint(
                name="job_runs_under_a_lease",
                condition=(Q(state="running", leased_until__isnull=False) & ~Q(holder="")) | ~Q(state="running"),
            ),
            CheckConstraint(
                name="job_ended_has_a_time",
                condition=Q(state__in=["waiting", "running"], ended_at=None) | Q(ended_at__isnull=False),
            ),
        ]
        indexes = [models.Index(fields=["state", "leased_until"], name="job_to_run")]

    def __str__(self):
        return f"{self.kind} {self.code}"
