"""The resources of the REST interface, field by field. Names are the models'; ids of the database never leave."""

from typing import Any

from django.db import models
from rest_framework import serializers

from analysis.data.codings import CODING_COLUMNS
from analysis.data.flat_rows.columns import ASSIGNMENT_COLUMNS, RESPONSE_COLUMNS, Column
from analysis.models import AnalysisRun
from annotators.places.exclusions import EXCLUSION_REASONS
from studies.design.serialization import STUDY_FIELDS
from studies.models import Output, Prompt, Study, System
from studies.stimuli.texts import TextRefused, clean_name, clean_text, is_blank

MAX_TEXT = 1_000_000
MAX_ROWS = 1000


class CleanTextField(serializers.CharField):
    """A text as the rest of the application takes texts; only a JSON string, nothing else becomes one."""

    def __init__(self, **options):
        super().__init__(**{"trim_whitespace": False, **options})

    def run_validation(self, data=serializers.empty):
        if data is serializers.empty or data is None:
            return super().run_validation(data)
        try:
            text = clean_text(data, is_required=not self.allow_blank, max_length=self.max_length or MAX_TEXT)
        except TextRefused as refused:
            raise serializers.ValidationError(_refusal_message(refused)) from None
        return text if text == "" and self.allow_blank else super().run_validation(text)


class NameField(serializers.CharField):
    """A name or key: one visible line."""

    def run_validation(self, data=serializers.empty):
        if data is serializers.empty or data is None:
            return super().run_validation(data)
        try:
            return super().run_validation(clean_name(data, max_length=self.max_length or 200))
        except TextRefused as refused:
            raise serializers.ValidationError(_refusal_message(refused)) from None


def _refusal_message(refused: TextRefused) -> str:
    """The message without the field's name, which stands beside it."""
    return str(refused).partition(": ")[2] or str(refused)


class StrictIntegerField(serializers.IntegerField):
    """A JSON number that is whole; '3', 3.0, true and other digits are not."""

    def to_internal_value(self, data):
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictDecimalField(serializers.DecimalField):
    """A decimal number; '' is none, and says nothing of null either."""

    def validate_empty_values(self, data):
        if isinstance(data, str) and not data.strip():
            self.fail("invalid")
        return super().validate_empty_values(data)


class StrictBooleanField(serializers.BooleanField):
    def to_internal_value(self, data):
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class _StrictMixin:
    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {
        models.CharField: CleanTextField,
        models.TextField: CleanTextField,
        models.IntegerField: StrictIntegerField,
        models.PositiveIntegerField: StrictIntegerField,
        models.PositiveSmallIntegerField: StrictIntegerField,
        models.PositiveBigIntegerField: StrictIntegerField,
        models.BooleanField: StrictBooleanField,
        models.DecimalField: StrictDecimalField,
    }

    def to_internal_value(self, data):
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({name[:80]: ["There is no such field."] for name in unknown})
        return super().to_internal_value(data)


READ_ONLY = ("state", "open_to", "created_at", "launched_at", "closing_at", "closed_at", "archived_at", "unblinded_at")


class StudySerializer(_StrictMixin, serializers.ModelSerializer):
    """A study. What annotators read and what was planned; sections, questions and contrasts stand in its design."""

    code = serializers.UUIDField(
        required=False, help_text="May be chosen when a study is created, so that a repeated request is seen."
    )
    title = NameField(max_length=200)
    owner = serializers.CharField(source="owner.username", read_only=True, default=None, allow_null=True)
    clone_of = serializers.UUIDField(source="clone_of.code", read_only=True, default=None, allow_null=True)
    version = StrictIntegerField(
        required=False, min_value=0, help_text="Of the last reading: a change on top of another's is refused."
    )

    class Meta:
        model = Study
        fields = ("code", *STUDY_FIELDS, "owner", "clone_of", "version", *READ_ONLY)
        read_only_fields = READ_ONLY


class SystemSerializer(_StrictMixin, serializers.ModelSerializer):
    name = NameField(max_length=100)

    class Meta:
        model = System
        fields = ("name", "is_human", "reference")


class PromptSerializer(_StrictMixin, serializers.ModelSerializer):
    key = NameField(max_length=100)
    attributes = serializers.DictField(required=False)

    class Meta:
        model = Prompt
        fields = ("key", "text", "source", "media", "domain", "language", "attributes")
        read_only_fields = ("media",)


class OutputSerializer(_StrictMixin, serializers.ModelSerializer):
    """An output. New ones are text, or empty; images come by the import of a zip. An image that is there may be sent back as it was read."""

    system = NameField(source="system.name", max_length=100)
    prompt = NameField(source="prompt.key", max_length=100)
    sample = StrictIntegerField(required=False, default=0, min_value=0, max_value=32767)

    class Meta:
        model = Output
        fields = ("system", "prompt", "sample", "format", "text", "media", "alt", "is_empty", "original", "language")
        read_only_fields = ("media",)
        # The rules about several columns are checked for all rows at once, by the one who stores them.
        validators = ()

    def to_internal_value(self, data):
        row = super().to_internal_value(data)
        if isinstance(media := data.get("media"), str):
            row["media"] = media  # compared with the stored row, never written
        return row

    def validate(self, attrs):
        is_text = not is_blank(attrs.get("text") or "")
        if attrs.get("media"):
            if is_text or attrs.get("is_empty"):
                raise serializers.ValidationError({"media": ["An image has no text and is not empty."]})
        elif is_text is bool(attrs.get("is_empty")):
            raise serializers.ValidationError({"text": ["Give a text, or say is_empty; not both."]})
        return attrs


class ItemInBatchSerializer(serializers.Serializer):
    item = serializers.CharField(help_text="s<section>.<number>, as in responses")
    kind = serializers.CharField()
    prompt = serializers.CharField(allow_null=True)


class BatchSerializer(serializers.Serializer):
    number = serializers.IntegerField()
    arm = serializers.CharField()
    origin = serializers.CharField()
    wanted = serializers.IntegerField()
    claimed = serializers.IntegerField()
    key = serializers.CharField(allow_blank=True)
    copy_of = serializers.IntegerField(allow_null=True)
    items = ItemInBatchSerializer(many=True)


_FIELDS: dict[str, type[serializers.Field]] = {
    "text": serializers.CharField,
    "integer": serializers.IntegerField,
    "number": serializers.FloatField,
    "boolean": serializers.BooleanField,
    "time": serializers.DateTimeField,
}


def flat_serializer(name: str, columns: tuple[Column, ...]) -> type[serializers.Serializer]:
    """The description of a flat row; rows themselves are written as they are read."""
    fields: dict[str, Any] = {c.name: _FIELDS[c.type](allow_null=True, help_text=c.meaning) for c in columns}
    return type(f"{name}Serializer", (serializers.Serializer,), fields)


ResponseSerializer = flat_serializer("Response", RESPONSE_COLUMNS)
AssignmentSerializer = flat_serializer("Assignment", ASSIGNMENT_COLUMNS)
CodingSerializer = flat_serializer("Coding", CODING_COLUMNS)


class PaymentSerializer(serializers.Serializer):
    number = serializers.IntegerField()
    assignment = serializers.CharField()
    link = serializers.CharField()
    arm = serializers.CharField()
    kind = serializers.CharField()
    nth = serializers.IntegerField(help_text="Which of its kind for this assignment.")
    amount = serializers.CharField(help_text="With two places.")
    currency = serializers.CharField()
    way = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    made_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class PayReportSerializer(serializers.Serializer):
    currency = serializers.CharField()
    declared_per_hour = serializers.CharField(allow_null=True)
    arms = serializers.ListField(child=serializers.DictField())
    links = serializers.ListField(child=serializers.DictField())


class ExclusionSerializer(serializers.Serializer):
    number = serializers.IntegerField()
    assignment = serializers.CharField()
    reason = serializers.CharField()
    note = serializers.CharField(allow_blank=True)
    by = serializers.CharField()
    at = serializers.DateTimeField()
    reverses = serializers.IntegerField(allow_null=True, help_text="The number of the exclusion that was taken back.")
    is_standing = serializers.BooleanField()


class ExclusionRequestSerializer(_StrictMixin, serializers.Serializer):
    """Leave submitted assignments out of every later analysis. Those that are left out already are passed over."""

    assignments = serializers.ListField(child=NameField(max_length=16), min_length=1, max_length=MAX_ROWS)
    reason = serializers.ChoiceField(list(EXCLUSION_REASONS))
    note = CleanTextField(required=False, default="", allow_blank=True, max_length=2000)
    reopen = StrictBooleanField(default=False, help_text="Open their places for somebody else.")


class ReverseExclusionSerializer(_StrictMixin, serializers.Serializer):
    """Take an exclusion back."""

    note = CleanTextField(required=False, default="", allow_blank=True, max_length=2000)


class ExclusionsCreatedSerializer(serializers.Serializer):
    created = ExclusionSerializer(many=True)


class AnalysisSerializer(serializers.ModelSerializer):
    """An analysis without its result."""

    by = serializers.CharField(source="by.username", read_only=True, default=None, allow_null=True)
    figures = serializers.ListField(source="figure_names", child=serializers.CharField(), read_only=True)

    class Meta:
        model = AnalysisRun
        fields = (
            "number", "parameters", "responses_n", "responses_sha256", "design_sha256s", "code_version", "seed", "result_sha256",
            "by", "at", "figures",
        )  # fmt: skip
        read_only_fields = fields


class AnalysisResultSerializer(AnalysisSerializer):
    class Meta(AnalysisSerializer.Meta):
        fields = (*AnalysisSerializer.Meta.fields, "result")
        read_only_fields = fields


class AnalysisRequestSerializer(serializers.Serializer):
    """What a new analysis may be told; what is absent is as on the report's own form."""

    origins = serializers.ListField(child=serializers.CharField(), required=False, help_text="live when absent")
    level = serializers.FloatField(required=False, min_value=0.5, max_value=1, help_text="of the intervals")
    resamples = serializers.IntegerField(required=False, min_value=99, max_value=99_999)
    star_scheme = serializers.CharField(required=False)


class ExportRequestSerializer(_StrictMixin, serializers.Serializer):
    """An export made by a job."""

    table = serializers.ChoiceField(["responses", "assignments", "codings", "items"], default="responses")
    format = serializers.ChoiceField(["parquet"], default="parquet")
    origins = serializers.ListField(child=serializers.CharField(max_length=10), required=False, max_length=4)
    withdrawn = StrictBooleanField(default=False)


class JobSerializer(serializers.Serializer):
    code = serializers.UUIDField()
    kind = serializers.CharField()
    state = serializers.CharField()
    doing = serializers.CharField(allow_blank=True)
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    attempts = serializers.IntegerField()
    result = serializers.JSONField(allow_null=True)
    error = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class DesignSerializer(serializers.Serializer):
    version = serializers.IntegerField(allow_null=True, help_text="Null while the study is a draft.")
    sha256 = serializers.CharField(help_text="Of canonical, as UTF-8.")
    at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    canonical = serializers.CharField(help_text="The design as JSON text: keys sorted, no blanks.")


class ProgressSerializer(serializers.Serializer):
    state = serializers.CharField()
    target_n = serializers.IntegerField(allow_null=True)
    counted = serializers.IntegerField(
        help_text="Of target_n: submitted in time, and where it counts people kept, not replaced."
    )
    places = serializers.IntegerField(help_text="Open in all, those taken with the rest.")
    free = serializers.IntegerField(help_text="Of these, held by nobody, robots neither.")
    claimed = serializers.IntegerField(help_text="Live assignments that hold a place.")
    started = serializers.IntegerField(help_text="Of these, to which a page was shown, those submitted with the rest.")
    submitted = serializers.IntegerField(help_text="Of these, that were sent to the end.")
    released = serializers.IntegerField(help_text="Live assignments that hold none any more, or found none.")
    withdrawn = serializers.IntegerField(help_text="Whose person left the study, before the end or after it.")
    late = serializers.IntegerField(help_text="Of those released, that were sent to the end afterwards.")


class SampleCellSerializer(serializers.Serializer):
    value = serializers.CharField()
    n = serializers.IntegerField(
        allow_null=True, help_text="Null where it is hidden: small counts can tell who somebody is."
    )
    percent = serializers.FloatField(allow_null=True)


class SampleColumnSerializer(serializers.Serializer):
    name = serializers.CharField()
    kind = serializers.CharField()
    people = serializers.IntegerField()
    known = serializers.IntegerField(allow_null=True)
    missing = serializers.IntegerField(allow_null=True)
    cells = SampleCellSerializer(many=True)
    median = serializers.FloatField(allow_null=True)
    least = serializers.FloatField(allow_null=True)
    most = serializers.FloatField(allow_null=True)


class BulkResultSerializer(serializers.Serializer):
    created = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="Rows that were there already, the same in every field.")


class ExportHashSerializer(serializers.Serializer):
    sha256 = serializers.CharField()
    rows = serializers.IntegerField()


class RowErrorSerializer(serializers.Serializer):
    row = serializers.IntegerField(allow_null=True, help_text="From 1, in the order sent.")
    field = serializers.CharField(allow_null=True)
    message = serializers.CharField()


class ProblemSerializer(serializers.Serializer):
    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = RowErrorSerializer(many=True)
