"""A board: one task, on which systems are compared again and again."""

import zoneinfo
from collections.abc import Sequence

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Study, new_seed
from studies.models.fields import (
    NONNEGATIVE_VALIDATORS,
    SMALLINT_VALIDATORS,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)

# Last parts of addresses below /boards/ that are pages of their own.
RESERVED_SLUGS = frozenset({"new"})
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def validate_time_zone(name: str) -> None:
    """Raise ValidationError if the name is not a time zone of the IANA database."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValidationError("This is not a time zone. Enter a name such as UTC or Europe/Berlin.") from None


def validate_slug_is_free(slug: str) -> None:
    """Raise ValidationError if the address belongs to a page of its own."""
    if slug in RESERVED_SLUGS:
        raise ValidationError("This address is used by a page of heval. Choose another one.")


class Board(models.Model):
    """A task with a template study. Each round of the board is a clone of the template with the submitted outputs.

    Its prompts are in ``samples``: a fixed subsample, of which an owner can renew a share.
    """

    class State(models.TextChoices):
        DRAFT = "draft"
        OPEN = "open"
        CLOSED = "closed"

    class Visibility(models.TextChoices):
        MEMBERS = "members", "private: only members see results"
        PUBLIC = "public", "public: everybody can see results without a login"

    class OutputKind(models.TextChoices):
        TEXT = "text", "texts"
        IMAGE = "image", "images"

    class Population(models.TextChoices):
        PROMPTS = "prompts", "people and prompts like these"
        SUBSAMPLE = "subsample", "people, for exactly this subsample of prompts (as in Khashabi et al. 2022)"

    slug = models.SlugField(
        "address",
        max_length=50,
        unique=True,
        validators=[validate_slug_is_free],
        help_text="The last part of the board's web address.",
    )
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True, help_text="Shown on the board's page. Markdown.")
    template = protected_foreign_key(
        Study,
        "boards",
        help_text="A draft that defines the questions, prompts, references, pay and links of every round.",
    )
    state = models.CharField(max_length=6, choices=State, default=State.DRAFT, editable=False)
    visibility = models.CharField(max_length=7, choices=Visibility, default=Visibility.MEMBERS)
    output_kind = models.CharField(
        "teams submit",
        max_length=5,
        choices=OutputKind,
        default=OutputKind.TEXT,
        help_text="The outputs of all systems.",
    )
    population = models.CharField("scores hold for", max_length=9, choices=Population, default=Population.PROMPTS)
    controls_style = models.BooleanField(
        "control for style",
        default=False,
        help_text="Only for preferences: ratings are those of outputs of equal length and format.",
    )
    balances_pairs = models.BooleanField(
        "count pairs alike",
        default=False,
        help_text="Only for preferences: each pair of systems counts as much as any other, however often people saw it.",
    )
    shows_examples = models.BooleanField(
        "show example outputs",
        default=False,
        help_text="Only if the licence of the prompts and outputs allows it.",
    )
    seed = models.PositiveBigIntegerField(default=new_seed, validators=[MaxValueValidator(2**62)])
    sample_size = models.PositiveIntegerField(
        "prompts in the subsample",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Empty: all prompts of the template.",
    )
    design_sha256 = models.CharField(max_length=64, blank=True, editable=False)
    labels_per_output = models.PositiveSmallIntegerField(
        "labels per output",
        default=1,
        validators=[MinValueValidator(1), *SMALLINT_VALIDATORS],
        help_text="How many annotators judge each output in a round.",
    )
    double_label_share = models.DecimalField(
        "share of second labels",
        max_digits=3,
        decimal_places=2,
        default="0.10",
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="With one label per output: at least this share of outputs gets a second label, so that agreement can be measured.",
    )
    anchor_share = models.DecimalField(
        "share of anchors",
        max_digits=3,
        decimal_places=2,
        default="0.20",
        validators=[MinValueValidator(0), MaxValueValidator(0.9)],
        help_text="At least this share of each round's outputs comes from anchors, if there are enough anchors.",
    )
    max_submissions_per_round = models.PositiveSmallIntegerField(
        "most submissions per round", default=10, validators=[MinValueValidator(1), MaxValueValidator(100)]
    )
    max_waiting_per_team = models.PositiveSmallIntegerField(
        "waiting submissions per team",
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
        help_text="A team that has so many sends another when a round has scored one.",
    )
    max_daily_per_team = models.PositiveSmallIntegerField(
        "submissions per team and day",
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
        help_text="In any 24 hours, withdrawn ones included.",
    )
    max_megabytes_per_team = models.PositiveIntegerField(
        "megabytes per team",
        default=2000,
        validators=[MinValueValidator(1), MaxValueValidator(1_000_000)],
        help_text="All files of a team together, withdrawn ones included.",
    )
    budget_per_submission = models.DecimalField(
        "budget per submission",
        max_digits=9,
        decimal_places=2,
        null=True,
        blank=True,
        validators=NONNEGATIVE_VALIDATORS,
        help_text="In the template's currency. Empty: no limit.",
    )
    budget_per_month = models.DecimalField(
        "budget per month",
        max_digits=9,
        decimal_places=2,
        null=True,
        blank=True,
        validators=NONNEGATIVE_VALIDATORS,
        help_text="In the template's currency, for all rounds that open in a calendar month. Empty: no limit.",
    )
    opens_by_itself = models.BooleanField(
        "rounds open by themselves",
        default=False,
        help_text="At the launch window, if the budget allows. If not set, a member opens each round.",
    )
    launch_weekdays = models.CharField(
        max_length=13,
        blank=True,
        default="0,1,2,3,4",
        validators=[RegexValidator(r"\A(?:[0-6](?:,[0-6])*)?\Z", "Enter numbers from 0 (Monday) to 6, with commas.")],
        help_text="Days of the launch window: numbers from 0 (Monday) to 6 (Sunday), with commas.",
    )
    launch_hour = models.PositiveSmallIntegerField(
        "launch window: hour",
        default=10,
        validators=[MaxValueValidator(23)],
        help_text="The hour at which the launch window begins.",
    )
    time_zone = models.CharField(max_length=40, default="UTC", validators=[validate_time_zone])
    owner = optional_protected_foreign_key(settings.AUTH_USER_MODEL, "owned_boards", editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    opened_at = optional_noneditable_datetime_field()
    closed_at = optional_noneditable_datetime_field()

    class Meta:
        ordering = ["title"]
        constraints = [
            CheckConstraint(
                name="board_state_agrees_with_its_times",
                condition=Q(state="draft", opened_at=None, closed_at=None)
                | Q(state="open", opened_at__isnull=False, closed_at=None)
                | Q(state="closed", opened_at__isnull=False, closed_at__gte=F("opened_at")),
            ),
            CheckConstraint(name="board_takes_texts_or_images", condition=Q(output_kind__in=["text", "image"])),
            CheckConstraint(name="board_open_has_a_design", condition=Q(state="draft") | ~Q(design_sha256="")),
            CheckConstraint(
                name="board_pays_nothing_below_zero",
                condition=(Q(budget_per_submission=None) | Q(budget_per_submission__gte=0))
                & (Q(budget_per_month=None) | Q(budget_per_month__gte=0)),
            ),
            CheckConstraint(
                name="board_shares_are_shares",
                condition=Q(
                    anchor_share__gte=0, anchor_share__lte=0.9, double_label_share__gte=0, double_label_share__lte=1
                ),
            ),
        ]

    def __str__(self):
        return self.title

    @property
    def takes_images(self) -> bool:
        return self.output_kind == self.OutputKind.IMAGE

    @property
    def sample_keys(self) -> list[str]:
        """Return the prompts of the newest sample; none before the board is opened."""
        return self.samples.order_by("-number").values_list("keys", flat=True).first() or []

    @property
    def is_public(self) -> bool:
        return self.visibility == self.Visibility.PUBLIC and self.state != self.State.DRAFT

    @property
    def launch_days(self) -> Sequence[int]:
        """Return the weekdays of the launch window; Monday is 0."""
        return sorted({int(day) for day in self.launch_weekdays.split(",") if day})

    @property
    def launch_window_text(self) -> str:
        days = ", ".join(WEEKDAYS[day] for day in self.launch_days)
        return f"{days} at {self.launch_hour:02d}:00 ({self.time_zone})" if days else ""


class BoardMember(models.Model):
    """A researcher's role in a board. It gives the same role in the studies of its rounds."""

    class Role(models.TextChoices):
        OWNER = "owner", "owner: can do everything and manage members"
        EDITOR = "editor", "editor: can open rounds and manage teams"
        VIEWER = "viewer", "viewer: can only read"

    board = models.ForeignKey(Board, models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="board_memberships")
    role = models.CharField(max_length=6, choices=Role)

    class Meta:
        constraints = [UniqueConstraint(fields=["board", "user"], name="board_member_once")]

    def __str__(self):
        return f"{self.user} ({self.role})"


class Team(models.Model):
    """A person or group that submits to a board, with one secret: the end of its link, and its token. Only a hash is stored."""

    board = models.ForeignKey(Board, models.PROTECT, related_name="teams")
    name = models.CharField(max_length=100)
    key_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    revoked_at = optional_noneditable_datetime_field()

    class Meta:
        ordering = ["name"]
        constraints = [
            UniqueConstraint(fields=["board", "name"], name="team_name_once_per_board"),
            CheckConstraint(name="team_has_a_name_and_a_hash", condition=~Q(name="") & ~Q(key_hash="")),
        ]

    def __str__(self):
        return self.name
