"""Serializers of boards. Requests are strict; what is sent is described for OpenAPI."""

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from analysis.api.annotators import ScreeningSerializer, TestQuestionCountsSerializer
from analysis.api.query import MAX_INTEGER
from analysis.api.serializers import (
    CleanTextField,
    CodeField,
    ListedField,
    ListField,
    NameField,
    StrictBooleanField,
    StrictDecimalField,
    StrictIntegerField,
    StrictMixin,
)
from boards.models import Board, BoardMember
from boards.services.labels import FORMATS
from boards.services.snapshots import STATES, display_rows, public_result, scored_withdrawals
from boards.services.submissions import MAX_DESCRIPTION_CHARACTERS
from studies.models import Job

PUBLIC_COLUMNS = (
    "slug", "title", "description", "state", "visibility", "output_kind", "population", "controls_style", "balances_pairs", "shows_examples", "seed", "labels_per_output", "created_at",
    "opened_at", "closed_at",
)  # fmt: skip
# What only members see: money, the template, and when rounds open.
MEMBER_COLUMNS = (
    "sample_size", "double_label_share", "anchor_share", "max_submissions_per_round", "max_waiting_per_team", "max_daily_per_team", "max_megabytes_per_team", "budget_per_submission", "budget_per_month", "opens_by_itself",
    "launch_weekdays", "launch_hour", "time_zone", "design_sha256",
)  # fmt: skip
# What pages need to know whether the rows of a snapshot are still current.
LEFT_OUT_OF_ROWS = ("is_named", "changed_at")
READ_ONLY = ("state", "created_at", "opened_at", "closed_at", "design_sha256")


class BoardSerializer(StrictMixin, serializers.ModelSerializer):
    """A board. Only members get ``template`` and the settings of rounds and budgets."""

    slug = NameField(max_length=50)
    title = NameField(max_length=200)
    template = CodeField(
        source="template.code",
        help_text="The code of the study that every round is a clone of. A ready-made template for boards gives settings that are not sent.",
    )
    sample_size = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_INTEGER,
        help_text="Null: all prompts of the template.",
    )
    anchor_share = StrictDecimalField(
        max_digits=3, decimal_places=2, min_value=Decimal(0), max_value=Decimal("0.9"), required=False
    )
    prompts = serializers.SerializerMethodField(help_text="Number of prompts that each submission answers.")
    newest_snapshot = serializers.SerializerMethodField(help_text="Number of the newest snapshot, or null.")

    class Meta:
        model = Board
        fields = (*PUBLIC_COLUMNS, "prompts", "newest_snapshot", "template", *MEMBER_COLUMNS)
        read_only_fields = READ_ONLY
        # The services check rules about several columns.
        validators = ()

    def get_prompts(self, board) -> int:
        return len(board.sample_keys)

    def get_newest_snapshot(self, board) -> int | None:
        return board.newest_number

    def to_representation(self, board) -> dict[str, Any]:
        """Return a board, which has ``newest_number``, as this caller may see it."""
        fields = super().to_representation(board)
        if self.context["view"].shows_settings(board):
            return fields
        return {name: value for name, value in fields.items() if name not in ("template", *MEMBER_COLUMNS)}


class MemberSerializer(StrictMixin, serializers.Serializer):
    """A member and their role."""

    user = NameField(max_length=150, help_text="The name that they log in with.")
    role = ListedField(BoardMember.Role.choices)


class MembersSerializer(StrictMixin, serializers.Serializer):
    """All members of a board. At least one is an owner."""

    members = MemberSerializer(many=True)


class BoardBundleSerializer(serializers.Serializer):
    """A board as one file."""

    schema = serializers.CharField(help_text="heval.board-bundle/1")
    board = serializers.DictField(help_text="The settings of the board.")
    template = serializers.DictField(help_text="The bundle of the template study.")


class RenewalSerializer(StrictMixin, serializers.Serializer):
    """How much of the sample is renewed."""

    share = StrictDecimalField(max_digits=3, decimal_places=2, help_text="Between 0 and 1.")
    after = StrictIntegerField(
        min_value=1,
        max_value=MAX_INTEGER,
        help_text="The number of the newest sample, so that a repeated request draws nothing.",
    )


class LengthField(serializers.IntegerField):
    def to_representation(self, rows):
        return len(rows)


class SampleSerializer(serializers.Serializer):
    """A version of the board's prompts."""

    number = serializers.IntegerField()
    prompts = LengthField(source="keys")
    seed = serializers.IntegerField()
    share = serializers.DecimalField(max_digits=3, decimal_places=2, allow_null=True)
    at = serializers.DateTimeField()


class PromptToAnswerSerializer(serializers.Serializer):
    prompt = serializers.CharField(help_text="The key of the prompt, which an output names.")
    text = serializers.CharField(allow_blank=True)
    source = serializers.CharField(allow_blank=True)
    domain = serializers.CharField(allow_blank=True)
    language = serializers.CharField(allow_blank=True)
    image = serializers.CharField(
        allow_blank=True, help_text="The path of its image in the ZIP of prompts; empty if the prompt has no image."
    )


class OutputRowSerializer(serializers.Serializer):
    """The output for one prompt. Other names in the object are ignored."""

    prompt = serializers.CharField(help_text="The key of a prompt of the board.")
    output = serializers.CharField(allow_blank=True)
    empty = serializers.BooleanField(required=False, help_text="true: the system returned nothing.")


class SubmissionFieldsSerializer(StrictMixin, serializers.Serializer):
    """What a submission says about itself."""

    name = NameField(max_length=100)
    description = CleanTextField(required=False, default="", allow_blank=True, max_length=MAX_DESCRIPTION_CHARACTERS)
    url = CleanTextField(required=False, default="", allow_blank=True, max_length=200, help_text="A web address.")
    is_anonymous = StrictBooleanField(default=False, help_text="Hide the name until it is published.")
    team = NameField(required=False, max_length=100, help_text="Only for members: the team that submits.")
    columns = ListField(
        child=CleanTextField(),
        required=False,
        default=list,
        help_text="What columns with other names than heval's are, such as “prompt_key=id” or “text=answer”.",
    )


class SubmissionRequestSerializer(SubmissionFieldsSerializer):
    """A submission as JSON."""

    outputs = OutputRowSerializer(many=True)


class SubmissionFormSerializer(SubmissionFieldsSerializer):
    """A submission as a form with a file."""

    is_anonymous = ListedField(
        ["true", "false"], default="false", help_text="true: hide the name until it is published."
    )
    file = serializers.FileField(
        help_text="CSV (.csv, .tsv) or JSON lines (.jsonl), with prompt, output and optionally empty. On a board of images: a ZIP, "
        "answered with 202 and a check."
    )


class ScoreSerializer(serializers.Serializer):
    """The score of one criterion in points, with its interval and rank set."""

    estimate = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    status = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    rank_low = serializers.IntegerField(allow_null=True)
    rank_high = serializers.IntegerField(allow_null=True)
    labels = serializers.IntegerField()
    annotators = serializers.IntegerField()
    prompts = serializers.IntegerField()


class SubmissionMetricSerializer(serializers.Serializer):
    """The score of all outputs of a submission by a metric, on the metric's own scale."""

    name = serializers.CharField()
    label = serializers.CharField()
    version = serializers.CharField()
    is_lower_better = serializers.BooleanField()
    score = serializers.FloatField()
    n = serializers.IntegerField(help_text="Number of outputs with a reference.")


class SubmissionSerializer(serializers.Serializer):
    """A submission. Its team and members get everything; others get scored ones, with the name that everybody may see."""

    number = serializers.IntegerField()
    name = serializers.CharField()
    team = serializers.CharField(allow_blank=True)
    description = serializers.CharField(allow_blank=True)
    url = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(STATES)
    round = serializers.IntegerField(allow_null=True, help_text="The round that scores it first.")
    snapshot = serializers.IntegerField(allow_null=True, help_text="The snapshot from which scores are.")
    overall = serializers.CharField(allow_null=True, help_text="The criterion that systems are ranked by.")
    scores = serializers.DictField(
        child=ScoreSerializer(), allow_null=True, help_text="By criterion; null without scores."
    )
    is_anonymous = serializers.BooleanField()
    is_anchor = serializers.BooleanField()
    is_human = serializers.BooleanField()
    is_reference = serializers.BooleanField(help_text="A system of the board's template.")
    received_at = serializers.DateTimeField()
    published_at = serializers.DateTimeField(allow_null=True)
    withdrawn_at = serializers.DateTimeField(allow_null=True)
    filename = serializers.CharField(
        required=False, help_text="Only for its team and members, as the next three fields."
    )
    sha256 = serializers.CharField(required=False)
    n_outputs = serializers.IntegerField(required=False)
    metrics = SubmissionMetricSerializer(
        many=True,
        required=False,
        allow_null=True,
        help_text="Computed when the submission arrived. Null: not computed, or not yet. Only for its team and members.",
    )


class CheckErrorSerializer(serializers.Serializer):
    """One problem of a file."""

    row = serializers.IntegerField(allow_null=True)
    field = serializers.CharField(allow_null=True)
    message = serializers.CharField()


class SubmissionCheckSerializer(serializers.Serializer):
    """The check of a ZIP of images, which a job runs. It ends with a submission or with errors."""

    check = serializers.UUIDField()
    state = serializers.ChoiceField(Job.State.choices)
    doing = serializers.CharField(allow_blank=True)
    done = serializers.IntegerField(help_text="Images that are read.")
    total = serializers.IntegerField()
    submission = serializers.IntegerField(allow_null=True, help_text="The number of the stored submission.")
    errors = CheckErrorSerializer(many=True)
    n_errors = serializers.IntegerField(help_text="The number of all errors; “errors” has the first 100.")


class AnchorSerializer(StrictMixin, serializers.Serializer):
    """Whether later rounds score the submission again."""

    is_anchor = StrictBooleanField()


class ComparisonSerializer(serializers.Serializer):
    """The difference of two overall scores, submission minus baseline, with its simultaneous interval."""

    submission = serializers.IntegerField()
    baseline = serializers.IntegerField()
    snapshot = serializers.IntegerField()
    criterion = serializers.CharField()
    estimate = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    level = serializers.FloatField(help_text="Probability that the intervals of all pairs of systems hold together.")
    method = serializers.CharField()
    unit = serializers.CharField(help_text="“points” of 100, or “rating points” on a Bradley-Terry board.")
    systems = serializers.IntegerField(help_text="Number of systems whose pairs the interval holds for.")
    reason = serializers.CharField(allow_blank=True, help_text="Why there is no interval.")


class RoundSerializer(serializers.Serializer):
    """A round. Only members see rounds that are not launched, and the fields after ``seed``."""

    number = serializers.IntegerField()
    state = serializers.CharField(help_text="For others than members, “running” until it is closed.")
    launched_at = serializers.DateTimeField(allow_null=True)
    closed_at = serializers.DateTimeField(allow_null=True)
    submissions = serializers.ListField(
        child=serializers.IntegerField(), allow_null=True, help_text="Null for others than members until it is closed."
    )
    commitment = serializers.CharField(
        allow_blank=True,
        help_text="SHA-256 of nonce, colon and seed. Empty: the round is from before 2026-11-29, and its seed follows from the board's.",
    )
    nonce = serializers.CharField(allow_null=True, allow_blank=True, help_text="Null until the round is closed.")
    seed = serializers.CharField(
        allow_null=True, help_text="The decimal digits of the seed of the round's study; null until it is closed."
    )
    study = serializers.UUIDField(required=False)
    expected_cost = serializers.CharField(required=False)
    currency = serializers.CharField(required=False)
    planned_at = serializers.DateTimeField(required=False)
    cancelled_at = serializers.DateTimeField(required=False, allow_null=True)
    problem = serializers.CharField(required=False, allow_blank=True, help_text="Why the round could not be launched.")


class RoundPlanSerializer(serializers.Serializer):
    """The round that would open now."""

    submissions = serializers.ListField(child=serializers.IntegerField())
    anchors = serializers.ListField(child=serializers.IntegerField())
    places = serializers.IntegerField()
    cost = serializers.CharField(help_text="Without panels' fees.")
    currency = serializers.CharField()
    n_waiting = serializers.IntegerField()
    refusal = serializers.CharField(allow_blank=True, help_text="Why no round can open now.")
    next_launch_at = serializers.DateTimeField(allow_null=True)


class SnapshotSerializer(serializers.Serializer):
    """A snapshot without its results."""

    number = serializers.IntegerField()
    at = serializers.DateTimeField()
    labels = serializers.IntegerField(source="n_labels")
    result_sha256 = serializers.CharField(help_text="SHA-256 of the stored result.")


class SnapshotResultSerializer(SnapshotSerializer):
    """A snapshot with its results. ``rows`` are in the order of the overall score, with the names that everybody may see now."""

    withdrawn_scored = serializers.IntegerField(
        help_text="Submissions of the board that were withdrawn after their round had closed."
    )
    rows = serializers.ListField(child=serializers.DictField())
    result = serializers.DictField(help_text="Criteria, tables, rounds, sample and population of the snapshot.")

    def to_representation(self, snapshot) -> dict[str, Any]:
        result = public_result(snapshot.result)
        return {
            **SnapshotSerializer(snapshot).data,
            "withdrawn_scored": len(scored_withdrawals(snapshot.board)),
            "rows": [
                {name: value for name, value in row.items() if name not in LEFT_OUT_OF_ROWS}
                for row in display_rows(snapshot)
            ],
            "result": {name: value for name, value in result.items() if name != "rows"},
        }


class ComputeBoardMetricsSerializer(StrictMixin, serializers.Serializer):
    """Which metrics of this site are computed."""

    names = ListField(
        child=CleanTextField(),
        help_text="Names of built-in metrics or plug-ins. Empty: only scores that were uploaded in the studies of rounds.",
    )


class LabelsRequestSerializer(StrictMixin, serializers.Serializer):
    """The format of the file of labels."""

    format = serializers.ChoiceField(choices=FORMATS, default="csv")


class BoardMetricsSerializer(serializers.Serializer):
    """A table of metrics beside people for each criterion, with the names that everybody may see now."""

    snapshot = serializers.IntegerField(help_text="The snapshot whose systems and scores by people these are.")
    at = serializers.DateTimeField()
    names = serializers.ListField(child=serializers.CharField(), help_text="The metrics that were chosen.")
    level = serializers.FloatField()
    result_sha256 = serializers.CharField(help_text="SHA-256 of the stored result.")
    tables = serializers.ListField(
        child=serializers.DictField(),
        help_text="For each criterion: metrics, rows (with intervals), agreements (with people), paper (as in Table 3 of Khashabi et al. 2022), means (of systems by people and each metric), and comparisons (of each two metrics).",
    )


class BoardAnnotatorSerializer(serializers.Serializer):
    annotator = serializers.CharField(help_text="Pseudonym in the study of the newest of the rounds.")
    study = serializers.UUIDField(source="study.code", help_text="The study of the newest of the rounds.")
    rounds = serializers.ListField(child=serializers.IntegerField(), help_text="In which the person took part.")
    positive = TestQuestionCountsSerializer()
    negative = TestQuestionCountsSerializer(help_text="Negative, damaged and given test questions.")
    is_flagged = serializers.BooleanField(allow_null=True, help_text="By the model.")
    is_failed = serializers.BooleanField(allow_null=True, help_text="By the simple rule.")
    barred = serializers.BooleanField(source="is_barred", help_text="Gets no further batch in any round.")


class PooledRoundSerializer(serializers.Serializer):
    round = serializers.IntegerField()
    answers = serializers.IntegerField(help_text="Counted answers to test questions.")
    annotators = serializers.IntegerField()


class BoardScreeningSerializer(serializers.Serializer):
    """The newest screening of a round, with the people of all rounds whose answers it pooled."""

    round = serializers.IntegerField(source="round.number", help_text="The round whose screening it is.")
    pooled = PooledRoundSerializer(many=True, help_text="Empty if only that round has answers to test questions.")
    screening = ScreeningSerializer()
    annotators = BoardAnnotatorSerializer(source="people", many=True)


class TeamRequestSerializer(StrictMixin, serializers.Serializer):
    name = NameField(max_length=100)


class TeamSerializer(serializers.Serializer):
    """A team. Its key is never sent again."""

    number = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)
    submissions = serializers.IntegerField(source="n_submissions")


class TeamWithKeySerializer(TeamSerializer):
    """A team with its new key, which is shown only in this response."""

    key = serializers.CharField()
    link = serializers.URLField(help_text="The page of the team. Everybody with this link can submit for the team.")
