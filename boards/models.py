"""Models of boards. A board's design and its studies belong to the apps below."""

import re
import unicodedata
import zoneinfo
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Study, System, new_seed
from studies.models.fields import (
    NONNEGATIVE_VALIDATORS,
    SMALLINT_VALIDATORS,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)
from studies.models.guards import AppendOnlyModel
from studies.stimuli.texts import name_key

# Names of submissions that look alike.


# Letters beside the Latin ones that they look like. Capitals of Greek come first: their small letters look like others.
_GREEK_CAPITALS = str.maketrans("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ", "ABEZHIKMNOPTYXCJ")
_SMALL = str.maketrans(
    "аьвсԁеғԍһнієїјкӏмопрԛгѕтуүѵԝхαβϲεικνηορτυωχγıɑɡɩ", "abbcdefghhieijklmonpqrstyyvwxabceikvnoptuwxyiagi"
)
# Marks and fillers that nobody sees, other dashes and quotation marks, and digits and letters that are alike in most typefaces.
_INVISIBLE = re.compile("[\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_SIGNS = str.maketrans("\u115f\u1160\u2800\u3164\uffa0−‘’ʼ′“”", "     -''''\"\"")
_TWINS = str.maketrans("01i|", "olll")
# How pages call a hidden submission, and one that was published under a name that another one had.
_RESERVED = re.compile(r"\bsubmission\W*\d")


def _folded(name: str) -> str:
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", name).translate(_SIGNS)).translate(
        _SIGNS | _GREEK_CAPITALS
    )
    small = name_key(plain).translate(_SMALL)
    return "".join("-" if unicodedata.category(sign) == "Pd" else sign for sign in small)


def is_reserved(name: str) -> bool:
    """Return whether a name looks like those that pages give to hidden submissions."""
    return bool(_RESERVED.search(_folded(name)))


def numbered_name(submission: Any) -> str:
    """Return a submission's name with its number, which no other can have."""
    return f"{submission.name[:70]} (submission {submission.number})"


def lookalike_key(name: str) -> str:
    """Return the SHA-256 of what names have in common that a reader takes for one another.

    >>> lookalike_key("Secret  Model 9") == lookalike_key("ѕecret mΟdel 9") != lookalike_key("Secret Model 8")
    True
    """
    return sha256(_folded(name).translate(_TWINS).encode()).hexdigest()


class LookalikeKeyField(models.CharField):
    """The key of a row's name, computed when the row is stored."""

    def __init__(self, **options: Any):
        super().__init__(**{"max_length": 64, "editable": False} | options)

    def pre_save(self, instance: models.Model, add: bool) -> Any:
        if add:
            setattr(instance, self.attname, lookalike_key(instance.name))  # type: ignore[attr-defined]  # of models with a name
        return super().pre_save(instance, add)


# A board: one task, on which systems are compared again and again.


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


# Samples: the prompts that a board's rounds score, in versions.


class BoardSample(AppendOnlyModel):
    """A version of a board's subsample. The first is drawn when the board opens; each later one renews a share of the one before it.

    ``keys``: all prompts of the version, in the order of their keys. ``share``: how much of the version before it was renewed.
    """

    board = models.ForeignKey(Board, models.PROTECT, related_name="samples")
    number = models.PositiveIntegerField()
    keys = models.JSONField()
    seed = models.PositiveBigIntegerField(validators=[MaxValueValidator(2**62)])
    share = models.DecimalField(max_digits=3, decimal_places=2, null=True)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["number"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["board", "number"], name="sample_number_once_per_board"),
            UniqueConstraint(fields=["board", "seed"], name="sample_seed_once_per_board"),
            CheckConstraint(
                name="sample_renews_a_share_of_an_earlier_one",
                condition=Q(number=1, share=None) | Q(number__gte=2, share__gt=0, share__lt=1),
            ),
        ]

    def __str__(self):
        return f"sample {self.number}"


# Submissions: the outputs of one system for all prompts of a board.


class Submission(models.Model):
    """One system on a board. Its outputs never change; a new file is a new submission.

    Systems of the template are submissions without a team and without outputs of their own: the template has them.
    ``request_token``: sent by a program, so that a repeated request finds the first one's submission.
    """

    board = models.ForeignKey(Board, models.PROTECT, related_name="submissions")
    number = models.PositiveIntegerField()
    team = optional_protected_foreign_key(Team, "submissions")
    name = models.CharField(max_length=100)
    name_key = LookalikeKeyField(help_text="Equal for names that look alike.")
    description = models.TextField(blank=True)
    url = models.URLField("web address", blank=True)
    is_anonymous = models.BooleanField("anonymous until published", default=False)
    is_anchor = models.BooleanField(default=False, help_text="Scored again in later rounds, to make rounds comparable.")
    is_human = models.BooleanField(default=False)
    filename = models.CharField(max_length=200, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    n_bytes = models.PositiveBigIntegerField(
        "bytes", default=0, help_text="Size of the file that was sent. 0: it came before sizes were stored."
    )
    n_outputs = models.PositiveIntegerField(default=0)
    metrics = models.JSONField(
        null=True,
        editable=False,
        help_text="Scores of all its outputs by each metric, computed when it arrived. Null: not computed.",
    )
    request_token = models.CharField(max_length=64, null=True, blank=True)
    received_at = models.DateTimeField(db_default=Now(), editable=False)
    withdrawn_at = optional_noneditable_datetime_field()
    published_at = optional_noneditable_datetime_field()

    class Meta:
        ordering = ["number"]
        constraints = [
            UniqueConstraint(fields=["board", "number"], name="submission_number_once_per_board"),
            UniqueConstraint(fields=["team", "name"], name="submission_name_once_per_team"),
            # A hidden name has no part in it: a refusal would reveal it.
            UniqueConstraint(
                fields=["board", "name_key"],
                condition=Q(is_anonymous=False, withdrawn_at=None),
                name="submission_shown_names_look_different",
            ),
            UniqueConstraint(fields=["team", "request_token"], name="submission_request_once_per_team"),
            CheckConstraint(name="submission_has_a_name", condition=~Q(name="")),
            CheckConstraint(
                name="submission_of_a_team_has_outputs",
                condition=Q(team=None, n_outputs=0) | (Q(team__isnull=False, n_outputs__gte=1) & ~Q(sha256="")),
            ),
        ]

    def __str__(self):
        return self.name

    @property
    def public_name(self) -> str:
        """Return the name that everybody may see: none of an anonymous or withdrawn submission."""
        if self.withdrawn_at:
            return f"Submission {self.number} (withdrawn)"
        return f"Submission {self.number}" if self.is_anonymous else self.name


class SubmittedOutput(AppendOnlyModel):
    """The output of a submission for one prompt. ``media``: the name of the stored image."""

    submission = models.ForeignKey(Submission, models.PROTECT, related_name="outputs")
    prompt_key = models.CharField(max_length=100)
    text = models.TextField(blank=True)
    media = models.CharField(max_length=80, blank=True, editable=False, db_index=True)
    is_empty = models.BooleanField(default=False)

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["submission", "prompt_key"], name="submitted_output_once_per_prompt"),
            CheckConstraint(
                name="submitted_output_is_text_or_image_or_empty",
                condition=(Q(media="", is_empty=False) & ~Q(text=""))
                | (Q(text="", is_empty=False) & ~Q(media=""))
                | Q(text="", media="", is_empty=True),
            ),
        ]

    def __str__(self):
        return self.prompt_key


# Rounds: studies that score submissions.


class BoardRound(models.Model):
    """A round of a board. Its study is a clone of the template with the outputs of new submissions and of anchors.

    ``sample``: the prompts that it scores. The first round of a renewed sample also scores those of the sample before.
    ``nonce``: random hexadecimal digits. At the launch everybody may read the hash of it and of the study's seed, and both when the round
    is closed. Empty for rounds from before there was a hash: their seeds follow from the board's.
    ``problem``: why the round could not be launched. ``expected_cost``: the cost by the plan, without panels' fees.
    """

    board = models.ForeignKey(Board, models.PROTECT, related_name="rounds")
    number = models.PositiveIntegerField()
    study = models.OneToOneField(Study, models.PROTECT, related_name="board_round")
    sample = models.ForeignKey(BoardSample, models.PROTECT, related_name="rounds")
    expected_cost = models.DecimalField(max_digits=11, decimal_places=2, validators=NONNEGATIVE_VALIDATORS)
    nonce = models.CharField(max_length=64, blank=True, default="", editable=False)
    problem = models.TextField(blank=True)
    planned_at = models.DateTimeField(db_default=Now(), editable=False)
    launched_at = optional_noneditable_datetime_field()
    cancelled_at = optional_noneditable_datetime_field()
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)

    class Meta:
        ordering = ["number"]
        constraints = [
            UniqueConstraint(fields=["board", "number"], name="round_number_once_per_board"),
            CheckConstraint(name="round_costs_nothing_below_zero", condition=Q(expected_cost__gte=0)),
            CheckConstraint(
                name="round_is_launched_or_cancelled", condition=Q(launched_at=None) | Q(cancelled_at=None)
            ),
        ]

    def __str__(self):
        return f"round {self.number}"

    @property
    def commitment(self) -> str:
        """Return the hash by which the seed is fixed before anybody may know it, or ''."""
        return sha256(f"{self.nonce}:{self.study.seed}".encode()).hexdigest() if self.nonce else ""

    @property
    def is_closed(self) -> bool:
        return self.study.state == Study.State.CLOSED

    @property
    def public_draw(self) -> dict[str, Any]:
        """Return what everybody may know of the draw of a launched round: nonce and seed only when it is closed."""
        return {
            "commitment": self.commitment,
            "nonce": self.nonce if self.is_closed else None,
            "seed": str(self.study.seed) if self.is_closed else None,
        }

    def clean(self):
        # PostgreSQL has a trigger in addition.
        if self.sample_id and self.board_id and self.sample.board_id != self.board_id:
            raise ValidationError({"sample": "The sample belongs to another board. Choose one of this board."})


class RoundEntry(models.Model):
    """A submission in a round, and the system that it is in the round's study."""

    round = models.ForeignKey(BoardRound, models.PROTECT, related_name="entries")
    submission = models.ForeignKey(Submission, models.PROTECT, related_name="entries")
    system = models.ForeignKey(System, models.PROTECT, related_name="+")
    is_new = models.BooleanField(help_text="Scored for the first time. An anchor is scored again.")

    class Meta:
        constraints = [
            UniqueConstraint(fields=["round", "submission"], name="round_entry_once"),
            UniqueConstraint(fields=["round", "system"], name="round_entry_has_its_own_system"),
        ]

    def __str__(self):
        return f"{self.submission} in {self.round}"


# Snapshots: the results of a board at one time.


class BoardSnapshot(AppendOnlyModel):
    """The results of a board over its closed rounds, computed once. Its address is permanent.

    ``result`` names submissions by their numbers, so that it never reveals the name of an anonymous or withdrawn one.
    """

    board = models.ForeignKey(Board, models.PROTECT, related_name="snapshots")
    number = models.PositiveIntegerField()
    result = models.JSONField()
    result_sha256 = models.CharField(max_length=64)
    n_labels = models.PositiveIntegerField()
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-number"]
        base_manager_name = "objects"
        constraints = [UniqueConstraint(fields=["board", "number"], name="snapshot_number_once_per_board")]

    def __str__(self):
        return f"snapshot {self.number}"


# Tables of metrics: the metrics of a snapshot's systems beside their scores by people.


class BoardMetricTable(AppendOnlyModel):
    """The metrics of the systems of a snapshot, beside their scores by people, as a job computed them.

    ``names``: the metrics of this site that were chosen; uploaded scores of the rounds' studies are in every table. ``result`` names
    submissions by their numbers, as snapshots do. A newer row of a snapshot replaces an older one on its page.
    """

    snapshot = models.ForeignKey(BoardSnapshot, models.PROTECT, related_name="metric_tables")
    names = models.JSONField(default=list)
    result = models.JSONField()
    result_sha256 = models.CharField(max_length=64)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-pk"]
        base_manager_name = "objects"

    def __str__(self):
        return f"metrics of {self.snapshot}"
