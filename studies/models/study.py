"""A study is one human evaluation, from its draft to its closed record."""

import uuid
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, F, Prefetch, Q, UniqueConstraint, prefetch_related_objects
from django.db.models.functions import Now

from .fields import (
    CURRENCY_VALIDATORS,
    GROUPING_VALIDATORS,
    HEADCOUNT_VALIDATORS,
    LANGUAGE_VALIDATORS,
    MINUTES_VALIDATORS,
    NONNEGATIVE_VALIDATORS,
    SMALLINT_VALIDATORS,
    duration_validators,
    new_seed,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)
from .guards import DesignModel, DesignQuerySet, StudyFrozen

if TYPE_CHECKING:
    from .design import Section
    from .plan import Contrast

_Study = TypeVar("_Study", bound="Study", covariant=True)
_Row = TypeVar("_Row", covariant=True)


class StudyQuerySet(DesignQuerySet[_Study, _Row]):
    def refuse_if_frozen(self):
        if self.exclude(state="draft").exists():
            raise StudyFrozen("Study")

    def update(self, **kwargs):
        if "state" in kwargs:
            raise StudyFrozen("Only studies.services.lifecycle may write Study.state.")
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

    # Groups of states: in RUNNING people may take part; in COLLECTING_STATES answers may still arrive.
    RUNNING = (State.LAUNCHED, State.PAUSED)
    COLLECTING_STATES = (State.LAUNCHING, *RUNNING, State.CLOSING)

    class Target(models.TextChoices):
        SUBMITTED = "submitted", "annotators who submitted"
        KEPT = "kept", "annotators kept by the outcome-blind rules"

    class Coverage(models.TextChoices):
        BALANCED = "balanced", "balanced: every prompt shown equally often"
        INDEPENDENT = "independent", "independent: each batch is a new random sample"

    class GroupNoun(models.TextChoices):
        GROUP = "", "groups of prompts"
        DOCUMENT = "document", "documents"
        DIALOGUE = "dialogue", "dialogues"
        TOPIC = "topic", "topics"
        SOURCE = "source", "sources"

    class MinimumWidth(models.IntegerChoices):
        ANY = 0, "any"
        TABLET = 600, "at least 600 pixels wide: a tablet or a computer"
        COMPUTER = 1000, "at least 1000 pixels wide: a computer or a large tablet"

    class SectionOrder(models.TextChoices):
        FIXED = "fixed", "as listed"
        COUNTERBALANCED = (
            "counterbalanced",
            "random for each annotator (a section stays after the section that it reuses)",
        )

    # From this version of the drawing on, each person meets systems, pairs and positions equally often.
    BALANCED_DRAWING = 2

    # From this version of the counting on, stopping rules leave out whom the exclusion rules leave out.
    JUDGED_COUNTING = 2

    study_path = "pk"
    may_add_after_launch = True
    mutable_fields = frozenset({"open_to", "usual_seconds", "archived_at", "unblinded_at", "version"})
    amendable_fields = frozenset(
        {
            "public_title", "purpose", "instructions", "debriefing", "contact", "start_window_seconds", "idle_seconds",
            "grace_seconds", "wage_per_hour", "withdrawal_until", "target_cap",
        }
    )  # fmt: skip

    code = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    title = models.CharField(max_length=200, help_text="For researchers. Annotators do not see it.")
    public_title = models.CharField(
        max_length=200,
        blank=True,
        help_text="The title on annotators' pages. It should not reveal the hypotheses.",
    )
    language = models.CharField(
        max_length=12,
        default="en",
        validators=LANGUAGE_VALIDATORS,
        help_text="The language of the texts, such as en or pt-BR. The words around them follow it if there is a translation.",
    )
    seed = models.PositiveBigIntegerField(
        default=new_seed,
        validators=[MaxValueValidator(2**62)],
        help_text="All random draws of the study depend on it.",
    )
    drawing_version = models.PositiveSmallIntegerField(
        default=BALANCED_DRAWING,
        editable=False,
        help_text="How batches and the order of pages are drawn: 1, each item by itself; 2, balanced within each person.",
    )
    counting_version = models.PositiveSmallIntegerField(
        default=JUDGED_COUNTING,
        editable=False,
        help_text="Which answers count: 1, a stopping rule counts every claim with the answers that it had; 2, a claim that the rules exclude when the stopping rule passes it does not count, and no answer about an unseen image does.",
    )
    owner = optional_protected_foreign_key(settings.AUTH_USER_MODEL, "owned_studies")
    clone_of = optional_protected_foreign_key("self", "clones", editable=False)
    size_plan = optional_protected_foreign_key("studies.SizePlan", editable=False)
    # The words of the annotators' pages. Without one: those that the program has for the study's language now. The launch stores them.
    translation = optional_protected_foreign_key("studies.Translation", "studies", editable=False)
    keeps_origin_out = models.BooleanField(
        "exclude annotators of the original study",
        default=True,
        help_text="Only for a study that is a clone.",
    )
    exclusion_group = models.CharField(
        max_length=50, blank=True, help_text="A person can take part in only one study of a group."
    )
    required_qualification = models.CharField(
        max_length=100,
        blank=True,
        default="",
        help_text="Only people who passed a test with this qualification in another study can take part.",
    )

    minimum_width = models.PositiveSmallIntegerField(
        default=MinimumWidth.ANY,
        choices=MinimumWidth,
        validators=SMALLINT_VALIDATORS,
        help_text="People on a smaller screen read before the consent that they need another device. They take no place.",
    )
    needs_mouse = models.BooleanField(
        "needs a mouse",
        default=False,
        help_text="People whose device has only a touch screen read before the consent that they need another one.",
    )
    purpose = models.TextField(blank=True, help_text="What the annotator will do, in one or two sentences. Markdown.")
    instructions = models.TextField(blank=True, help_text="Shown on a page before the first item. Markdown.")
    consent = models.TextField(blank=True, help_text="What the annotator agrees to. Markdown.")
    debriefing = models.TextField(blank=True, help_text="Shown after the last page. Markdown.")
    institution = models.CharField(max_length=200, blank=True)
    approval_number = models.CharField(
        max_length=100, blank=True, help_text="The approval number of the ethics board, for the consent form."
    )
    contact = models.CharField(
        max_length=200, blank=True, help_text="The person whom annotators can write to. Shown on every page."
    )
    retention = models.CharField(max_length=300, blank=True, help_text="Which data is kept, and for how long.")
    content_warning = models.CharField(max_length=300, blank=True)
    warning_limit = models.PositiveSmallIntegerField(
        "most outputs with a warning",
        null=True,
        blank=True,
        validators=SMALLINT_VALIDATORS,
        help_text="For each person, over all batches. A launch that could show more is refused. Empty: no limit.",
    )
    shows_link_addresses = models.BooleanField(
        "show the addresses of links",
        default=False,
        help_text="Links in outputs in Markdown are text. Their addresses, which may name the system, are shown only with this setting.",
    )
    asks_to_share_preferences = models.BooleanField(
        "ask whether preferences may be given away",
        default=False,
        help_text="Beside the consent, annotators are asked whether others may train models with their preferences. Without a yes, no export of preferences has theirs.",
    )
    joins_rounds = models.BooleanField(
        "join a person's answers in several rounds",
        default=False,
        help_text="Of the template of a board: in the file with the labels of all rounds, a person has one pseudonym. The consent text says so.",
    )
    licence = models.CharField(
        "licence of the data",
        max_length=100,
        blank=True,
        help_text="The licence under which you give the data away, such as cc-by-4.0. Cards of datasets name it.",
    )
    stimuli_source = models.CharField(
        "source of the texts",
        max_length=300,
        blank=True,
        help_text="Only if you may not pass the prompts and outputs on: where others get them, and their licence. Exports then have hashes of the texts.",
    )

    group_noun = models.CharField(
        "name of a group of prompts",
        max_length=12,
        blank=True,
        default=GroupNoun.GROUP,
        choices=GroupNoun,
        help_text="What reports call the groups if each prompt has one. An import takes it from the name of the column.",
    )
    preparation = models.JSONField(
        default=dict,
        blank=True,
        editable=False,
        help_text="How the stimuli were prepared (studies.stimuli.normalising.Preparation).",
    )
    batches_per_annotator = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1), *SMALLINT_VALIDATORS]
    )
    annotators_per_batch = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1), *SMALLINT_VALIDATORS],
        help_text="How many annotators receive the same batch.",
    )
    bars_flagged_annotators = models.BooleanField(
        "flagged annotators get no further batch",
        default=False,
        help_text="Annotators whom a declared rule about test questions flags finish their batch and get no other. The consent text says so.",
    )
    coverage = models.CharField(max_length=12, choices=Coverage, default=Coverage.BALANCED)
    section_order = models.CharField(max_length=16, choices=SectionOrder, default=SectionOrder.FIXED)
    target_kind = models.CharField(max_length=10, choices=Target, default=Target.SUBMITTED)
    target_n = models.PositiveIntegerField("target n", null=True, blank=True, validators=HEADCOUNT_VALIDATORS)
    target_cap = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=HEADCOUNT_VALIDATORS,
        help_text="The study never has more places, even after exclusions. Empty: 1.5 times the target.",
    )
    replaces_excluded = models.BooleanField(
        "replace excluded annotators",
        default=False,
        help_text="If you exclude an annotator, the place opens again. A target of kept annotators always does this.",
    )

    currency = models.CharField(max_length=3, default="USD", validators=CURRENCY_VALIDATORS)
    reward = models.DecimalField(
        max_digits=7,
        decimal_places=2,
        null=True,
        blank=True,
        validators=NONNEGATIVE_VALIDATORS,
        help_text="For one batch.",
    )
    minutes = models.PositiveSmallIntegerField(
        "declared minutes", null=True, blank=True, validators=MINUTES_VALIDATORS, help_text="For one batch."
    )
    wage_per_hour = models.DecimalField(
        "target hourly pay",
        max_digits=8,
        decimal_places=2,
        null=True,
        blank=True,
        validators=NONNEGATIVE_VALIDATORS,
    )
    words_per_minute = models.PositiveSmallIntegerField(
        "reading speed, words per minute", default=240, validators=[MinValueValidator(50), MaxValueValidator(1000)]
    )

    withdrawal_blanks_ratings = models.BooleanField(
        "withdrawal deletes ratings too", default=False, help_text="If not set, the ratings stay, without any identity."
    )
    withdrawal_until = models.DateField(
        null=True, blank=True, help_text="The last day on which an annotator can withdraw."
    )
    erase_after_days = models.PositiveSmallIntegerField(
        default=90,
        validators=[MaxValueValidator(3650)],
        help_text="Panel ids are erased this many days after closing, or earlier by payment.",
    )
    start_window_seconds = models.PositiveIntegerField(default=600, validators=duration_validators(60, 7))
    idle_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=duration_validators(60, 30),
        help_text="A place is released after this time without an answer. Empty: 30 minutes or 3 times the declared minutes, whichever is longer.",
    )
    grace_seconds = models.PositiveIntegerField(
        default=7200,
        validators=duration_validators(0, 30),
        help_text="Annotators who have started can finish within this time after closing.",
    )

    template = models.SlugField(
        max_length=60,
        blank=True,
        editable=False,
        help_text="The template of a paper from which the draft was made. Its report opens what it shows as in that paper.",
    )
    compared_groups = models.CharField(
        "compare groups by",
        max_length=300,
        blank=True,
        validators=GROUPING_VALIDATORS,
        help_text="The report says whether these groups of people or prompts agree. For example: domain; panel; answer: fluent. Also arm, language, length, and “sample:” and “attribute:” with a name.",
    )
    guide = models.JSONField(
        null=True,
        editable=False,
        help_text="What was chosen on the pages of a new study, which show it again. Only their drafts have it, and no design.",
    )
    state = models.CharField(max_length=9, choices=State, default=State.DRAFT, editable=False)
    open_to = models.PositiveIntegerField(
        default=0, editable=False, help_text="Batches with a lower number can be assigned."
    )
    usual_seconds = models.PositiveIntegerField(
        null=True,
        editable=False,
        help_text="Median time from start to submission, when enough annotators have submitted.",
    )
    version = models.PositiveIntegerField(
        default=0, editable=False, help_text="Counts the saves. heval refuses a form with an older number."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    launched_at = optional_noneditable_datetime_field()
    closing_at = optional_noneditable_datetime_field()
    closed_at = optional_noneditable_datetime_field()
    archived_at = optional_noneditable_datetime_field()
    unblinded_at = optional_noneditable_datetime_field()

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
        return DesignModel.may_change.__func__(cls, columns)  # type: ignore[attr-defined]  # of a class method

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
            raise StudyFrozen("Only studies.services.lifecycle may write Study.state.")
        if before.state != "draft" and not self.may_change(changed):
            raise StudyFrozen(", ".join(sorted(changed - self.mutable_fields)))

    def clean(self):
        errors = {}
        if self.target_n == 0:
            errors["target_n"] = "The target is 0. Enter at least 1, or leave it empty if a stopping rule decides."
        if self.target_n and self.target_cap and self.target_cap < self.target_n:
            errors["target_cap"] = (
                f"The cap ({self.target_cap}) is below the target ({self.target_n}). Raise the cap, or lower the target."
            )
        if self.idle_seconds == 0:
            errors["idle_seconds"] = "0 seconds are too short. Enter at least 60, or leave it empty for the default."
        if errors:
            raise ValidationError(errors)

    def delete(self, *args, **kwargs):
        Study.objects.filter(pk=self.pk).refuse_if_frozen()
        return super().delete(*args, **kwargs)

    # A page that asks for the rows of a design several times keeps them with its study. Others read them anew.

    def keep_design(self) -> None:
        prefetch_related_objects(
            [self], "sections__questions", "sections__arms", "arms", "systems", Prefetch("contrasts", self._contrasts())
        )

    def read_sections(self) -> list["Section"]:
        """Return the sections in order, with their questions and arms."""
        is_kept = self._is_kept("sections")
        return list(self.sections.all() if is_kept else self.sections.prefetch_related("questions", "arms"))

    def read_contrasts(self) -> list["Contrast"]:
        """Return the planned comparisons with their systems and sections."""
        return list(self.contrasts.all() if self._is_kept("contrasts") else self._contrasts())

    def _contrasts(self) -> models.QuerySet["Contrast"]:
        return self.contrasts.select_related("x", "y", "section")

    def _is_kept(self, name: str) -> bool:
        return name in getattr(self, "_prefetched_objects_cache", ())

    @property
    def is_draft(self) -> bool:
        return self.state == self.State.DRAFT

    @property
    def is_blind(self) -> bool:
        """Whether outcomes are hidden: the study is collecting, and no researcher has unblinded it."""
        return self.state in self.COLLECTING_STATES and not self.unblinded_at

    @property
    def idle_lease_seconds(self) -> int:
        return self.idle_seconds or max(1800, 180 * (self.minutes or 0))

    @property
    def cap(self) -> int | None:
        if self.target_n is None:
            return None
        return self.target_cap or -(-self.target_n * 3 // 2)


# Members: the researchers of a study, each with a role.


class StudyMember(models.Model):
    """A researcher's role in a study."""

    class Role(models.TextChoices):
        OWNER = "owner", "owner: can do everything and manage members"
        EDITOR = "editor", "editor: can define, launch and analyse"
        VIEWER = "viewer", "viewer: can only read"
        CODER = "coder", "coder: can only code explanations, blind"

    study = models.ForeignKey(Study, models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=6, choices=Role)

    class Meta:
        constraints = [UniqueConstraint(fields=["study", "user"], name="member_once_per_study")]

    def __str__(self):
        return f"{self.user} ({self.role})"


class ResearcherFacts(models.Model):
    """What an account writes in the texts of all its studies, and what it pays people who cannot take part.

    A new study is filled in with it. Studies and links keep what was true when they were made.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="study_facts")
    institution = models.CharField(max_length=200, blank=True, help_text="Shown to annotators as “Run by”.")
    responsible = models.CharField(
        "responsible person", max_length=200, blank=True, help_text="With an address or a telephone number."
    )
    contact = models.CharField(
        "contact for annotators",
        max_length=200,
        blank=True,
        help_text="An address that somebody reads. Shown on every page.",
    )
    ethics_contact = models.CharField(
        "ethics board and its contact",
        max_length=300,
        blank=True,
        help_text="Or who takes complaints if there is no board.",
    )
    legal_basis = models.CharField(
        max_length=300,
        blank=True,
        default="your consent",
        help_text="Why you may process the data. It ends a sentence.",
    )
    storage = models.CharField(
        "where the data are stored",
        max_length=300,
        blank=True,
        help_text="Such as: on a server of our university in Graz.",
    )
    retention = models.CharField(
        "how long they are kept", max_length=200, blank=True, help_text="Such as: for ten years, and then deleted."
    )
    screened_out_pay = models.DecimalField(
        "pay for people whom the first answers screen out",
        max_digits=7,
        decimal_places=2,
        null=True,
        blank=True,
        validators=NONNEGATIVE_VALIDATORS,
        help_text="Filled in on new links, in the currency of the study. 0 for nothing.",
    )
    full_pay = models.DecimalField(
        "pay for people of a panel who find no place left",
        max_digits=7,
        decimal_places=2,
        null=True,
        blank=True,
        validators=NONNEGATIVE_VALIDATORS,
        help_text="Filled in on new links, in the currency of the study. 0 for nothing.",
    )

    class Meta:
        verbose_name_plural = "facts about researchers"
        constraints = [
            CheckConstraint(
                name="researcher_pays_nothing_below_zero",
                condition=(Q(screened_out_pay=None) | Q(screened_out_pay__gte=0))
                & (Q(full_pay=None) | Q(full_pay__gte=0)),
            ),
        ]

    def __str__(self):
        return f"facts about {self.user}"


class OwnTemplate(models.Model):
    """A study's design as its members keep it for new studies: a bundle, with or without texts. It has no seed."""

    study = protected_foreign_key(Study, "own_templates")
    title = models.CharField(max_length=200)
    bundle = models.JSONField()
    has_texts = models.BooleanField(default=False)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    created_at = models.DateTimeField(db_default=Now())
    archived_at = optional_noneditable_datetime_field()

    class Meta:
        ordering = ["-pk"]

    def __str__(self):
        return self.title
