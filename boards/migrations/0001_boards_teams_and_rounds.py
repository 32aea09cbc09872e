"""Boards, what teams submit to them, and what their rounds found."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

import boards.models
import studies.models.fields
from studies.migrations._tables import link, moment, optional_link, table
from studies.models.guards import append_only_operation, only_on_postgresql

# PostgreSQL refuses an image on a board of texts, a text on a board of images, and a round with the sample of another board.
GUARDS = """
CREATE FUNCTION boards_submittedoutput_kind() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted o JOIN boards_submission s ON s.id = o.submission_id JOIN boards_board b ON b.id = s.board_id
    WHERE (o.media <> '' AND b.output_kind <> 'image') OR (o.text <> '' AND b.output_kind <> 'text')
  ) THEN
    RAISE EXCEPTION 'submitted outputs are not of the kind of their board' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER boards_submittedoutput_kind AFTER INSERT ON boards_submittedoutput
  REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION boards_submittedoutput_kind();

CREATE FUNCTION boards_board_kind() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the kind of outputs of an open board does not change' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER boards_board_kind BEFORE UPDATE ON boards_board
  FOR EACH ROW WHEN (OLD.state <> 'draft' AND NEW.output_kind <> OLD.output_kind) EXECUTE FUNCTION boards_board_kind();

CREATE FUNCTION boards_boardround_sample() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM boards_boardsample s WHERE s.id = NEW.sample_id AND s.board_id = NEW.board_id) THEN
    RAISE EXCEPTION 'the sample of a round belongs to another board' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER boards_boardround_sample BEFORE INSERT OR UPDATE OF sample_id, board_id ON boards_boardround
  FOR EACH ROW EXECUTE FUNCTION boards_boardround_sample();
"""
NO_GUARDS = """
DROP TRIGGER boards_submittedoutput_kind ON boards_submittedoutput;
DROP FUNCTION boards_submittedoutput_kind();
DROP TRIGGER boards_board_kind ON boards_board;
DROP FUNCTION boards_board_kind();

DROP TRIGGER boards_boardround_sample ON boards_boardround;
DROP FUNCTION boards_boardround_sample();
"""


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("boards", "0001_boards_submissions_rounds_and_snapshots"),
        ("boards", "0002_guards"),
        ("boards", "0003_images_of_submissions"),
        ("boards", "0004_submitted_outputs_are_of_their_boards_kind"),
        ("boards", "0005_renewable_samples"),
        ("boards", "0006_first_samples"),
        ("boards", "0007_samples_are_the_only_source"),
        ("boards", "0008_boards_have_tables_of_metrics"),
        ("boards", "0009_rounds_score_samples_of_their_board"),
        ("boards", "0010_boards_of_preferences_may_count_pairs_alike"),
        ("boards", "0011_population_labels_name_their_source"),
        ("boards", "0012_rounds_commit_to_secret_seeds"),
        ("boards", "0013_teams_have_limits_and_shown_names_look_different"),
    ]
    dependencies = [("studies", "0002_comparisons_stimuli_and_jobs")]
    operations = [
        table(
            "Board",
            {
                "ordering": ["title"],
                "constraints": [
                    CheckConstraint(
                        condition=Q(closed_at=None, opened_at=None, state="draft")
                        | Q(closed_at=None, opened_at__isnull=False, state="open")
                        | Q(closed_at__gte=F("opened_at"), opened_at__isnull=False, state="closed"),
                        name="board_state_agrees_with_its_times",
                    ),
                    CheckConstraint(condition=Q(state="draft") | ~Q(design_sha256=""), name="board_open_has_a_design"),
                    CheckConstraint(
                        condition=(Q(budget_per_submission=None) | Q(budget_per_submission__gte=0))
                        & (Q(budget_per_month=None) | Q(budget_per_month__gte=0)),
                        name="board_pays_nothing_below_zero",
                    ),
                    CheckConstraint(
                        condition=Q(
                            anchor_share__gte=0,
                            anchor_share__lte=0.9,
                            double_label_share__gte=0,
                            double_label_share__lte=1,
                        ),
                        name="board_shares_are_shares",
                    ),
                    CheckConstraint(condition=Q(output_kind__in=["text", "image"]), name="board_takes_texts_or_images"),
                ],
            },
            slug=models.SlugField(
                "address",
                unique=True,
                help_text="The last part of the board's web address.",
                validators=[boards.models.validate_slug_is_free],
            ),
            title=models.CharField(max_length=200),
            description=models.TextField(blank=True, help_text="Shown on the board's page. Markdown."),
            state=models.CharField(
                max_length=6,
                default="draft",
                editable=False,
                choices=[("draft", "Draft"), ("open", "Open"), ("closed", "Closed")],
            ),
            visibility=models.CharField(
                max_length=7,
                default="members",
                choices=[
                    ("members", "private: only members see results"),
                    ("public", "public: everybody can see results without a login"),
                ],
            ),
            population=models.CharField(
                "scores hold for",
                max_length=9,
                default="prompts",
                choices=[
                    ("prompts", "people and prompts like these"),
                    ("subsample", "people, for exactly this subsample of prompts (as in Khashabi et al. 2022)"),
                ],
            ),
            controls_style=models.BooleanField(
                "control for style",
                default=False,
                help_text="Only for preferences: ratings are those of outputs of equal length and format.",
            ),
            shows_examples=models.BooleanField(
                "show example outputs",
                default=False,
                help_text="Only if the licence of the prompts and outputs allows it.",
            ),
            seed=models.PositiveBigIntegerField(
                default=studies.models.fields.new_seed, validators=[MaxValueValidator(4611686018427387904)]
            ),
            sample_size=models.PositiveIntegerField(
                "prompts in the subsample",
                blank=True,
                null=True,
                help_text="Empty: all prompts of the template.",
                validators=[MinValueValidator(1)],
            ),
            design_sha256=models.CharField(max_length=64, blank=True, editable=False),
            labels_per_output=models.PositiveSmallIntegerField(
                "labels per output",
                default=1,
                help_text="How many annotators judge each output in a round.",
                validators=[MinValueValidator(1), MaxValueValidator(32767)],
            ),
            double_label_share=models.DecimalField(
                "share of second labels",
                default="0.10",
                help_text="With one label per output: at least this share of outputs gets a second label, so that agreement can be measured.",
                validators=[MinValueValidator(0), MaxValueValidator(1)],
                max_digits=3,
                decimal_places=2,
            ),
            anchor_share=models.DecimalField(
                "share of anchors",
                default="0.20",
                help_text="At least this share of each round's outputs comes from anchors, if there are enough anchors.",
                validators=[MinValueValidator(0), MaxValueValidator(0.9)],
                max_digits=3,
                decimal_places=2,
            ),
            max_submissions_per_round=models.PositiveSmallIntegerField(
                "most submissions per round", default=10, validators=[MinValueValidator(1), MaxValueValidator(100)]
            ),
            budget_per_submission=models.DecimalField(
                "budget per submission",
                blank=True,
                null=True,
                help_text="In the template's currency. Empty: no limit.",
                validators=[MinValueValidator(0)],
                max_digits=9,
                decimal_places=2,
            ),
            budget_per_month=models.DecimalField(
                "budget per month",
                blank=True,
                null=True,
                help_text="In the template's currency, for all rounds that open in a calendar month. Empty: no limit.",
                validators=[MinValueValidator(0)],
                max_digits=9,
                decimal_places=2,
            ),
            opens_by_itself=models.BooleanField(
                "rounds open by themselves",
                default=False,
                help_text="At the launch window, if the budget allows. If not set, a member opens each round.",
            ),
            launch_weekdays=models.CharField(
                max_length=13,
                blank=True,
                default="0,1,2,3,4",
                help_text="Days of the launch window: numbers from 0 (Monday) to 6 (Sunday), with commas.",
                validators=[
                    RegexValidator("\\A(?:[0-6](?:,[0-6])*)?\\Z", "Enter numbers from 0 (Monday) to 6, with commas.")
                ],
            ),
            launch_hour=models.PositiveSmallIntegerField(
                "launch window: hour",
                default=10,
                help_text="The hour at which the launch window begins.",
                validators=[MaxValueValidator(23)],
            ),
            time_zone=models.CharField(max_length=40, default="UTC", validators=[boards.models.validate_time_zone]),
            created_at=models.DateTimeField(db_default=Now(), editable=False),
            opened_at=moment(),
            closed_at=moment(),
            owner=optional_link(settings.AUTH_USER_MODEL, "owned_boards", editable=False),
            template=link(
                "studies.study",
                "boards",
                help_text="A draft that defines the questions, prompts, references, pay and links of every round.",
            ),
            output_kind=models.CharField(
                "teams submit",
                max_length=5,
                default="text",
                choices=[("text", "texts"), ("image", "images")],
                help_text="The outputs of all systems.",
            ),
            balances_pairs=models.BooleanField(
                "count pairs alike",
                default=False,
                help_text="Only for preferences: each pair of systems counts as much as any other, however often people saw it.",
            ),
            max_waiting_per_team=models.PositiveSmallIntegerField(
                "waiting submissions per team",
                default=10,
                help_text="A team that has so many sends another when a round has scored one.",
                validators=[MinValueValidator(1), MaxValueValidator(1000)],
            ),
            max_daily_per_team=models.PositiveSmallIntegerField(
                "submissions per team and day",
                default=10,
                help_text="In any 24 hours, withdrawn ones included.",
                validators=[MinValueValidator(1), MaxValueValidator(1000)],
            ),
            max_megabytes_per_team=models.PositiveIntegerField(
                "megabytes per team",
                default=2000,
                help_text="All files of a team together, withdrawn ones included.",
                validators=[MinValueValidator(1), MaxValueValidator(1000000)],
            ),
        ),
        table(
            "BoardMember",
            {"constraints": [UniqueConstraint(fields=["board", "user"], name="board_member_once")]},
            role=models.CharField(
                max_length=6,
                choices=[
                    ("owner", "owner: can do everything and manage members"),
                    ("editor", "editor: can open rounds and manage teams"),
                    ("viewer", "viewer: can only read"),
                ],
            ),
            board=models.ForeignKey("boards.board", models.CASCADE, related_name="members"),
            user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="board_memberships"),
        ),
        table(
            "BoardSnapshot",
            {
                "ordering": ["-number"],
                "base_manager_name": "objects",
                "constraints": [UniqueConstraint(fields=["board", "number"], name="snapshot_number_once_per_board")],
            },
            number=models.PositiveIntegerField(),
            result=models.JSONField(),
            result_sha256=models.CharField(max_length=64),
            n_labels=models.PositiveIntegerField(),
            at=models.DateTimeField(db_default=Now()),
            board=link("boards.board", "snapshots"),
            by=optional_link(settings.AUTH_USER_MODEL),
        ),
        table(
            "Team",
            {
                "ordering": ["name"],
                "constraints": [
                    UniqueConstraint(fields=["board", "name"], name="team_name_once_per_board"),
                    CheckConstraint(condition=~Q(name="") & ~Q(key_hash=""), name="team_has_a_name_and_a_hash"),
                ],
            },
            name=models.CharField(max_length=100),
            key_hash=models.CharField(max_length=64, unique=True, editable=False),
            created_at=models.DateTimeField(db_default=Now(), editable=False),
            revoked_at=moment(),
            board=link("boards.board", "teams"),
        ),
        table(
            "Submission",
            {
                "ordering": ["number"],
                "constraints": [
                    UniqueConstraint(fields=["board", "number"], name="submission_number_once_per_board"),
                    UniqueConstraint(fields=["team", "request_token"], name="submission_request_once_per_team"),
                    CheckConstraint(condition=~Q(name=""), name="submission_has_a_name"),
                    CheckConstraint(
                        condition=Q(n_outputs=0, team=None) | (Q(n_outputs__gte=1, team__isnull=False) & ~Q(sha256="")),
                        name="submission_of_a_team_has_outputs",
                    ),
                    UniqueConstraint(fields=["team", "name"], name="submission_name_once_per_team"),
                    UniqueConstraint(
                        fields=["board", "name_key"],
                        condition=Q(is_anonymous=False, withdrawn_at=None),
                        name="submission_shown_names_look_different",
                    ),
                ],
            },
            number=models.PositiveIntegerField(),
            name=models.CharField(max_length=100),
            description=models.TextField(blank=True),
            url=models.URLField("web address", blank=True),
            is_anonymous=models.BooleanField("anonymous until published", default=False),
            is_anchor=models.BooleanField(
                default=False, help_text="Scored again in later rounds, to make rounds comparable."
            ),
            is_human=models.BooleanField(default=False),
            filename=models.CharField(max_length=200, blank=True),
            sha256=models.CharField(max_length=64, blank=True),
            n_outputs=models.PositiveIntegerField(default=0),
            request_token=models.CharField(max_length=64, blank=True, null=True),
            received_at=models.DateTimeField(db_default=Now(), editable=False),
            withdrawn_at=moment(),
            published_at=moment(),
            board=link("boards.board", "submissions"),
            team=optional_link("boards.team", "submissions"),
            n_bytes=models.PositiveBigIntegerField(
                "bytes", default=0, help_text="Size of the file that was sent. 0: it came before sizes were stored."
            ),
            name_key=boards.models.LookalikeKeyField(
                max_length=64, editable=False, help_text="Equal for names that look alike."
            ),
        ),
        table(
            "SubmittedOutput",
            {
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["submission", "prompt_key"], name="submitted_output_once_per_prompt"),
                    CheckConstraint(
                        condition=(Q(is_empty=False, media="") & ~Q(text=""))
                        | (Q(is_empty=False, text="") & ~Q(media=""))
                        | Q(is_empty=True, media="", text=""),
                        name="submitted_output_is_text_or_image_or_empty",
                    ),
                ],
            },
            prompt_key=models.CharField(max_length=100),
            text=models.TextField(blank=True),
            is_empty=models.BooleanField(default=False),
            submission=link("boards.submission", "outputs"),
            media=models.CharField(max_length=80, blank=True, db_index=True, editable=False),
        ),
        table(
            "BoardSample",
            {
                "ordering": ["number"],
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["board", "number"], name="sample_number_once_per_board"),
                    UniqueConstraint(fields=["board", "seed"], name="sample_seed_once_per_board"),
                    CheckConstraint(
                        condition=Q(number=1, share=None) | Q(number__gte=2, share__gt=0, share__lt=1),
                        name="sample_renews_a_share_of_an_earlier_one",
                    ),
                ],
            },
            number=models.PositiveIntegerField(),
            keys=models.JSONField(),
            seed=models.PositiveBigIntegerField(validators=[MaxValueValidator(4611686018427387904)]),
            share=models.DecimalField(null=True, max_digits=3, decimal_places=2),
            at=models.DateTimeField(db_default=Now()),
            board=link("boards.board", "samples"),
            by=optional_link(settings.AUTH_USER_MODEL),
        ),
        table(
            "BoardRound",
            {
                "ordering": ["number"],
                "constraints": [
                    UniqueConstraint(fields=["board", "number"], name="round_number_once_per_board"),
                    CheckConstraint(condition=Q(expected_cost__gte=0), name="round_costs_nothing_below_zero"),
                    CheckConstraint(
                        condition=Q(launched_at=None) | Q(cancelled_at=None), name="round_is_launched_or_cancelled"
                    ),
                ],
            },
            number=models.PositiveIntegerField(),
            expected_cost=models.DecimalField(validators=[MinValueValidator(0)], max_digits=11, decimal_places=2),
            problem=models.TextField(blank=True),
            planned_at=models.DateTimeField(db_default=Now(), editable=False),
            launched_at=moment(),
            cancelled_at=moment(),
            board=link("boards.board", "rounds"),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=models.OneToOneField("studies.study", models.PROTECT, related_name="board_round"),
            sample=link("boards.boardsample", "rounds"),
            nonce=models.CharField(max_length=64, blank=True, default="", editable=False),
        ),
        table(
            "RoundEntry",
            {
                "constraints": [
                    UniqueConstraint(fields=["round", "submission"], name="round_entry_once"),
                    UniqueConstraint(fields=["round", "system"], name="round_entry_has_its_own_system"),
                ]
            },
            is_new=models.BooleanField(help_text="Scored for the first time. An anchor is scored again."),
            round=link("boards.boardround", "entries"),
            system=link("studies.system"),
            submission=link("boards.submission", "entries"),
        ),
        table(
            "BoardMetricTable",
            {"ordering": ["-pk"], "base_manager_name": "objects"},
            names=models.JSONField(default=list),
            result=models.JSONField(),
            result_sha256=models.CharField(max_length=64),
            at=models.DateTimeField(db_default=Now()),
            by=optional_link(settings.AUTH_USER_MODEL),
            snapshot=link("boards.boardsnapshot", "metric_tables"),
        ),
        *(
            append_only_operation(f"boards_{name}")
            for name in ("submittedoutput", "boardsnapshot", "boardsample", "boardmetrictable")
        ),
        only_on_postgresql(GUARDS, NO_GUARDS),
    ]
