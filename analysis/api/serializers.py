"""Serializers of the API resources. Most field names are those of the models. Database ids are not sent."""

from typing import Any

from django.db import models
from rest_framework import serializers

from analysis.data.codings import CODING_COLUMNS
from analysis.data.exports import TABLES
from analysis.data.flat_rows import ASSIGNMENT_COLUMNS, RESPONSE_COLUMNS, Column, assignment_pseudonym
from analysis.forms.answers import MAX_ANSWER
from analysis.models import AnalysisRun, ReportLink, StudiesComparison
from analysis.report.build import DELTA_LIMITS, MAX_DELTAS
from analysis.report.links import DEFAULT_DAYS, MAX_DAYS
from annotators.models import Barring
from annotators.places.barrings import MAX_REASON_LENGTH
from annotators.places.exclusions import EXCLUSION_REASONS
from studies.design.serialization import LATER_STUDY_FIELDS, STUDY_FIELDS
from studies.models import Study
from studies.stimuli.texts import TextRefused, advice_on_unknown_name, clean_name, clean_text

# Strict fields of the serializers. Each refusal says what to send instead.


MAX_TEXT = 1_000_000
# Infinity and NaN are outside.
LARGEST = 1e12


class _Refusals:
    """The refusals that every field has."""

    default_error_messages = {
        "required": "This field is missing. Send it.",
        "null": "This field must not be null. Send a value.",
    }


class CleanedField(_Refusals, serializers.CharField):
    """A text that ``clean`` cleans as in the rest of heval. Only JSON strings are accepted; other types are not converted."""

    def run_validation(self, data=serializers.empty):
        if data is serializers.empty or data is None:
            return super().run_validation(data)
        try:
            text = self.clean(data)
        except TextRefused as refused:
            # The message without the field name, because the problem already names the field.
            raise serializers.ValidationError(str(refused).partition(": ")[2] or str(refused)) from None
        return text if text == "" and self.allow_blank else super().run_validation(text)


class CleanTextField(CleanedField):
    """A text of several lines."""

    def __init__(self, **options):
        super().__init__(**{"trim_whitespace": False, **options})

    def clean(self, data) -> str:
        return clean_text(data, is_required=not self.allow_blank, max_length=self.max_length or MAX_TEXT)


class NameField(CleanedField):
    """A name or key of one line."""

    def clean(self, data) -> str:
        return clean_name(data, max_length=self.max_length or 200)


class TextField(_Refusals, serializers.CharField):
    """A short text."""

    default_error_messages = {
        "invalid": "This is not a text. Send a text in quotation marks.",
        "blank": "This text is empty. Send at least one character.",
        "max_length": "This text has more than {max_length} characters. Shorten it.",
    }


class StrictIntegerField(_Refusals, serializers.IntegerField):
    """A JSON integer. '3', 3.0, true and non-ASCII digits are refused."""

    default_error_messages = {
        "invalid": "This is not a JSON integer. Send an integer without quotation marks and decimals.",
        "max_value": "This number must be less than or equal to {max_value}. Send a smaller one.",
        "min_value": "This number must be greater than or equal to {min_value}. Send a larger one.",
    }

    def to_internal_value(self, data):
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictDecimalField(_Refusals, serializers.DecimalField):
    """A decimal number. '' is refused and is not read as null."""

    default_error_messages = {
        "invalid": "This is not a decimal number. Send one, for example 4.50.",
        "min_value": "This amount must be greater than or equal to {min_value}. Send a larger one.",
        "max_digits": "The number has more than {max_digits} digits. Send a shorter one.",
        "max_decimal_places": "The number has more than {max_decimal_places} decimals. Round it.",
        "max_whole_digits": "The number has more than {max_whole_digits} digits before the point. Send a smaller one.",
        "max_string_length": "The number has more than 1000 characters. Send a shorter one.",
    }

    def validate_empty_values(self, data):
        if isinstance(data, str) and not data.strip():
            self.fail("invalid")
        return super().validate_empty_values(data)


class FiniteField(_Refusals, serializers.FloatField):
    """A JSON number. Infinity and numbers in quotation marks are refused."""

    default_error_messages = {"invalid": "This is not a JSON number. Send a finite number without quotation marks."}

    def to_internal_value(self, data):
        if isinstance(data, bool) or not isinstance(data, int | float) or not abs(data) < LARGEST:
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictBooleanField(_Refusals, serializers.BooleanField):
    default_error_messages = {"invalid": "This is neither true nor false. Send one of them without quotation marks."}

    def to_internal_value(self, data):
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class ListedField(_Refusals, serializers.ChoiceField):
    """One of a few values. The refusal lists them."""

    default_error_messages = {"invalid_choice": "“{input}” is not a possible value. Send one of {choices}."}

    def fail(self, key, **values):
        super().fail(key, choices=", ".join(map(str, self.choices)), **values)


class DateField(_Refusals, serializers.DateField):
    default_error_messages = {"invalid": "This is not a date. Send one, for example 2026-12-31."}


class TimeField(_Refusals, serializers.DateTimeField):
    default_error_messages = {
        "invalid": "This is not a time. Send one, for example 2026-12-31T18:00:00Z.",
    }


class CodeField(_Refusals, serializers.UUIDField):
    default_error_messages = {"invalid": "“{value}” is not a UUID. Send one, or leave the field out."}


class ObjectField(_Refusals, serializers.DictField):
    default_error_messages = {"not_a_dict": "This is not a JSON object. Send an object with names and values."}


class ListField(_Refusals, serializers.ListField):
    default_error_messages = {
        "not_a_list": "This is not a JSON list. Send the values in square brackets.",
        "min_length": "The list has fewer than {min_length} values. Send more.",
        "max_length": "The list has more than {max_length} values. Send fewer.",
    }


class StrictMixin(_Refusals):
    """A serializer with the fields of this module. It refuses fields that it does not know."""

    default_error_messages = {"invalid": "This is not a JSON object. Send an object with the fields of this resource."}
    serializer_choice_field = ListedField
    # Whether it makes one row that does not exist yet, so that its read-only fields have their first values.
    is_one_new_row = False
    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {
        models.CharField: CleanTextField,
        models.TextField: CleanTextField,
        models.IntegerField: StrictIntegerField,
        models.PositiveIntegerField: StrictIntegerField,
        models.PositiveSmallIntegerField: StrictIntegerField,
        models.PositiveBigIntegerField: StrictIntegerField,
        models.BooleanField: StrictBooleanField,
        models.DecimalField: StrictDecimalField,
        models.DateField: DateField,
    }

    def to_internal_value(self, data):
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            writable = [name for name, field in self.fields.items() if not field.read_only and name not in data]
            raise serializers.ValidationError(
                {
                    name[:80]: [f"This resource has no such field. {advice_on_unknown_name(name, writable)}"]
                    for name in unknown
                }
            )
        if isinstance(data, dict) and (wrong := self._changed_read_only_fields(data)):
            raise serializers.ValidationError(
                dict.fromkeys(wrong, ["heval sets this field. Leave it out, or send it as it is stored."])
            )
        return super().to_internal_value(data)

    def _changed_read_only_fields(self, data: dict[str, Any]) -> list[str]:
        """Return the read-only fields that were sent with another value than the stored one, so that no change seems accepted."""
        sent = [name for name, field in self.fields.items() if field.read_only and name in data]
        if not sent:
            return []
        if self.instance is not None:
            stored = self.to_representation(self.instance)
        elif self.is_one_new_row:
            stored = {name: getattr(self.Meta.model(), str(self.fields[name].source), None) for name in sent}
        else:
            return []  # rows are sent back as they were read; what stores them compares them with those that exist
        return [name for name in sent if data[name] != stored.get(name)]


MAX_ROWS = 1000


READ_ONLY = (
    "state", "opened_batches", "created_at", "launched_at", "closing_at", "closed_at", "archived_at", "unblinded_at",
)  # fmt: skip


class StudySerializer(StrictMixin, serializers.ModelSerializer):
    """A study: its texts for annotators and its plan. The design has its sections, questions, contrasts and declared families."""

    code = CodeField(
        required=False,
        help_text="You can choose the code when you create a study, so that a repeated request creates no second study.",
    )
    title = NameField(max_length=200)
    owner = serializers.CharField(source="owner.username", read_only=True, default=None, allow_null=True)
    clone_of = serializers.UUIDField(source="clone_of.code", read_only=True, default=None, allow_null=True)
    revision = StrictIntegerField(
        source="version",
        required=False,
        min_value=0,
        help_text="The revision that you last read. If somebody changed the study since then, your change is refused.",
    )
    opened_batches = serializers.IntegerField(
        source="open_to", read_only=True, help_text="Number of batches opened so far: those with a lower number."
    )

    class Meta:
        model = Study
        fields = ("code", *STUDY_FIELDS, *LATER_STUDY_FIELDS, "owner", "clone_of", "revision", *READ_ONLY)
        read_only_fields = READ_ONLY


class NewStudySerializer(StudySerializer):
    """A new draft: empty, of a bundle, or of a template. Other fields replace those of the bundle or template."""

    is_one_new_row = True

    bundle = ObjectField(required=False, help_text="A design as another study's bundle has it (heval.bundle/1).")
    template = NameField(required=False, help_text="The key of a template, see the list of templates.")

    class Meta(StudySerializer.Meta):
        fields = (*StudySerializer.Meta.fields, "bundle", "template")

    def get_fields(self):
        fields = super().get_fields()
        if isinstance(sent := getattr(self, "initial_data", None), dict) and {"bundle", "template"} & set(sent):
            fields["title"].required = False
        return fields


class PseudonymField(serializers.CharField):
    """The pseudonym of an assignment."""

    def to_representation(self, assignment):
        return assignment_pseudonym(assignment.code)


_FIELDS: dict[str, type[serializers.Field]] = {
    "text": serializers.CharField,
    "integer": serializers.IntegerField,
    "number": serializers.FloatField,
    "boolean": serializers.BooleanField,
    "time": serializers.DateTimeField,
}


def flat_row_serializer(name: str, columns: tuple[Column, ...]) -> type[serializers.Serializer]:
    """Return the serializer that describes a flat row in OpenAPI. Rows themselves are sent without it."""
    fields: dict[str, Any] = {c.name: _FIELDS[c.type](allow_null=True, help_text=c.meaning) for c in columns}
    return type(f"{name}Serializer", (serializers.Serializer,), fields)


ResponseSerializer = flat_row_serializer("Response", RESPONSE_COLUMNS)
AssignmentSerializer = flat_row_serializer("Assignment", ASSIGNMENT_COLUMNS)
CodingSerializer = flat_row_serializer("Coding", CODING_COLUMNS)


class PaymentSerializer(serializers.Serializer):
    number = serializers.IntegerField(source="pk")
    assignment = PseudonymField()
    link = serializers.CharField()
    arm = serializers.CharField()
    kind = serializers.CharField()
    ordinal = serializers.IntegerField(
        source="number", help_text="Number of this payment among those of its kind for this assignment."
    )
    amount = serializers.CharField(help_text="With two decimals.")
    currency = serializers.CharField()
    method = serializers.CharField(source="way")
    state = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField(source="made_at")
    ended_at = serializers.DateTimeField(allow_null=True)


class PayReportSerializer(serializers.Serializer):
    currency = serializers.CharField()
    declared_per_hour = serializers.CharField(allow_null=True)
    arms = serializers.ListField(child=serializers.DictField())
    links = serializers.ListField(child=serializers.DictField())


class ReportQuestionSerializer(serializers.Serializer):
    key = serializers.CharField()
    label = serializers.CharField()
    options = serializers.ListField(
        child=serializers.CharField(),
        help_text="Options of the official form. An answer begins with their numbers, from 1.",
    )
    text = serializers.CharField(help_text="The answer; empty while the question is open.")


class ReportFormsSerializer(serializers.Serializer):
    analysis = serializers.IntegerField(
        allow_null=True, help_text="The final report that the forms read; null without one."
    )
    questions = ReportQuestionSerializer(many=True)
    forms = serializers.ListField(child=serializers.DictField())
    deviations = serializers.ListField(child=serializers.DictField())


class FormAnswersSerializer(StrictMixin, serializers.Serializer):
    """Answers by the key of their question. An empty text opens a question again."""

    answers = serializers.DictField(child=CleanTextField(allow_blank=True, max_length=MAX_ANSWER))


class ExclusionSerializer(serializers.Serializer):
    number = serializers.IntegerField(source="pk")
    assignment = PseudonymField()
    reason = serializers.CharField()
    note = serializers.CharField(allow_blank=True)
    by = serializers.CharField(source="by.username")
    at = serializers.DateTimeField()
    reverses = serializers.IntegerField(
        source="reverses_id", allow_null=True, help_text="The number of the exclusion that this row reverses."
    )
    is_active = serializers.BooleanField()


class ExclusionRequestSerializer(StrictMixin, serializers.Serializer):
    """Exclude submitted assignments from every later analysis. Assignments that are already excluded are skipped."""

    assignments = ListField(child=NameField(max_length=16), min_length=1, max_length=MAX_ROWS)
    reason = ListedField(list(EXCLUSION_REASONS))
    note = CleanTextField(required=False, default="", allow_blank=True, max_length=2000)
    reopen = StrictBooleanField(default=False, help_text="Open their places for other annotators.")


class ReverseExclusionSerializer(StrictMixin, serializers.Serializer):
    """Reverse an exclusion."""

    note = CleanTextField(required=False, default="", allow_blank=True, max_length=2000)


class ExclusionsCreatedSerializer(serializers.Serializer):
    created = ExclusionSerializer(many=True)


class BarringRequestSerializer(StrictMixin, serializers.Serializer):
    """Why the annotator gets no further batch, or gets some again. Only colleagues read it."""

    reason = CleanTextField(max_length=MAX_REASON_LENGTH)


class BarringSerializer(serializers.ModelSerializer):
    by = serializers.CharField(source="by.username", default=None, allow_null=True)
    lifted_by = serializers.CharField(source="lifted_by.username", default=None, allow_null=True)

    class Meta:
        model = Barring
        fields = ("ground", "scope", "reason", "by", "at", "lifted_at", "lifted_by", "lift_reason")


class NamesField(serializers.ListField):
    """The names of related rows."""

    child = serializers.CharField()

    def to_representation(self, rows):
        return [row.name for row in rows.all()]


class AnalysisSerializer(serializers.ModelSerializer):
    """An analysis without its result."""

    by = serializers.CharField(source="by.username", read_only=True, default=None, allow_null=True)
    figures = NamesField(read_only=True)

    class Meta:
        model = AnalysisRun
        fields: tuple[str, ...] = (
            "number", "parameters", "responses_n", "responses_sha256", "design_sha256s", "code_version", "seed", "result_sha256",
            "by", "at", "figures",
        )  # fmt: skip
        read_only_fields = fields


class AnalysisResultSerializer(AnalysisSerializer):
    class Meta(AnalysisSerializer.Meta):
        fields = (*AnalysisSerializer.Meta.fields, "result")
        read_only_fields = fields


class ReportLinkSerializer(serializers.ModelSerializer):
    """A read-only link to an analysis. Its address is shown only when it is made."""

    number = serializers.IntegerField(source="pk")
    analysis = serializers.IntegerField(source="run.number")
    by = serializers.CharField(source="by.username", default=None, allow_null=True)

    class Meta:
        model = ReportLink
        fields: tuple[str, ...] = (
            "number",
            "analysis",
            "is_anonymous",
            "parts",
            "by",
            "at",
            "expires_at",
            "revoked_at",
        )
        read_only_fields = fields


class ReportLinkMadeSerializer(ReportLinkSerializer):
    url = serializers.CharField(help_text="The address with its token. It is not stored.")

    class Meta(ReportLinkSerializer.Meta):
        fields = (*ReportLinkSerializer.Meta.fields, "url")
        read_only_fields = fields


class ReportLinkRequestSerializer(StrictMixin, serializers.Serializer):
    """Which analysis a new link shows, and for how long."""

    analysis = StrictIntegerField(min_value=1, help_text="The number of an analysis with outcomes.")
    days = StrictIntegerField(
        min_value=1, max_value=MAX_DAYS, default=DEFAULT_DAYS, help_text="After so many days it expires."
    )
    is_anonymous = StrictBooleanField(
        default=False,
        help_text="true: without names, accounts, institution, contact, host and the titles of the study.",
    )
    parts = ListField(
        child=ListedField(choices=ReportLink.Part.values),
        required=False,
        default=list,
        help_text="What an anonymous link shows as well. A link with names shows all.",
    )


class AnalysisRequestSerializer(serializers.Serializer):
    """The parameters of a new analysis. Absent ones have the defaults of the form on the report page."""

    origins = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Default: live, or imported if the study has only imported answers.",
    )
    level = serializers.FloatField(
        required=False, min_value=0.5, max_value=1, help_text="Confidence level of the intervals."
    )
    resamples = serializers.IntegerField(required=False, min_value=99, max_value=99_999)
    star_scheme = serializers.CharField(required=False)
    deltas = serializers.ListField(
        child=serializers.FloatField(min_value=DELTA_LIMITS[0], max_value=DELTA_LIMITS[1]),
        required=False,
        max_length=MAX_DELTAS,
        help_text="Two choices: further values of delta for which the report counts the labels that each strategy needs.",
    )


class StudiesComparisonSerializer(serializers.ModelSerializer):
    """A comparison of studies without its result."""

    by = serializers.CharField(source="by.username", read_only=True, default=None, allow_null=True)

    class Meta:
        model = StudiesComparison
        fields: tuple[str, ...] = ("number", "parameters", "result_sha256", "by", "at")
        read_only_fields = fields


class StudiesComparisonResultSerializer(StudiesComparisonSerializer):
    class Meta(StudiesComparisonSerializer.Meta):
        fields = (*StudiesComparisonSerializer.Meta.fields, "result")
        read_only_fields = fields


class StudiesComparisonRequestSerializer(StrictMixin, serializers.Serializer):
    """Which studies and links are compared, and how."""

    studies = serializers.ListField(
        child=serializers.CharField(),
        help_text="Codes of studies, or of links as “code of the study:key of the link”. The study of the address is one of them.",
    )
    comparisons = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="The name of one comparison of each study, if the studies compare different systems.",
    )
    origins = serializers.ListField(child=serializers.CharField(), required=False)
    level = serializers.FloatField(required=False, min_value=0.5, max_value=1)


class ExportRequestSerializer(StrictMixin, serializers.Serializer):
    """An export to be made by a job."""

    table = ListedField(list(TABLES), default="responses")
    format = ListedField(
        list(dict.fromkeys(form for table in TABLES.values() for form in table.formats)), default="parquet"
    )
    origins = ListField(child=TextField(max_length=10), required=False, max_length=4)
    withdrawn = StrictBooleanField(default=False)


class DeletedSerializer(serializers.Serializer):
    outcome = serializers.ChoiceField(("deleted", "archived"), help_text="What happened to the draft.")


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


class ClaimVerdictSerializer(serializers.Serializer):
    claim = serializers.CharField(help_text="The claim in words, such as “new beats old on fluency”.")
    verdict = serializers.ChoiceField(
        ("yes", "no", "open"),
        help_text="no: the opposite is shown, or that both are equally good. open: neither is shown.",
    )
    x = serializers.CharField()
    y = serializers.CharField()
    about = serializers.CharField(allow_blank=True, help_text="The question, if the study asks several.")
    hypothesis = serializers.CharField()
    role = serializers.CharField()
    pvalue = serializers.FloatField(allow_null=True, help_text="Adjusted in its family. Null if nothing was tested.")
    sentence = serializers.CharField(help_text="What the report says.")
    numbers = serializers.CharField()
    warnings = serializers.ListField(child=serializers.CharField())


class VerdictSerializer(serializers.Serializer):
    state = serializers.CharField(help_text="State of the study.")
    analysis = serializers.IntegerField(allow_null=True, help_text="Number of the analysis. Null if there is none.")
    reason = serializers.CharField(allow_blank=True, help_text="Why nothing is said yet, or empty.")
    claims = ClaimVerdictSerializer(many=True)


class DesignSerializer(serializers.Serializer):
    version = serializers.IntegerField(allow_null=True, help_text="Null while the study is a draft.")
    sha256 = serializers.CharField(help_text="SHA-256 of canonical as UTF-8.")
    at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    canonical = serializers.CharField(help_text="The design as JSON text: keys sorted, no spaces.")


class QualificationResultsSerializer(serializers.Serializer):
    section = serializers.IntegerField(help_text="Position of the section that is the test.")
    pass_mark = serializers.IntegerField()
    qualification = serializers.CharField(allow_null=True)
    passed = serializers.IntegerField(help_text="Annotators who passed, in the first or second attempt.")
    failed = serializers.IntegerField(help_text="Annotators who failed both attempts.")
    skipped = serializers.IntegerField(help_text="Annotators who passed before, in a study with this qualification.")


class ProgressSerializer(serializers.Serializer):
    state = serializers.CharField()
    target_n = serializers.IntegerField(allow_null=True)
    counted = serializers.IntegerField(
        help_text="Assignments that count towards target_n: submitted in time, and not replaced if the target counts kept annotators."
    )
    places = serializers.IntegerField(help_text="All places, taken or free.")
    free = serializers.IntegerField(help_text="Places that no annotator and no robot holds.")
    claimed = serializers.IntegerField(help_text="Live assignments that hold a place.")
    started = serializers.IntegerField(help_text="Claimed assignments that saw a page, including submitted ones.")
    submitted = serializers.IntegerField(help_text="Claimed assignments that were submitted.")
    released = serializers.IntegerField(help_text="Live assignments that no longer hold a place, or found none.")
    withdrawn = serializers.IntegerField(
        help_text="Live assignments whose annotator withdrew, before or after submitting."
    )
    late = serializers.IntegerField(help_text="Released assignments that were submitted afterwards.")
    test = QualificationResultsSerializer(
        allow_null=True, help_text="Results of the test before the work. Null if the study has none."
    )
    steps = serializers.ListField(
        child=serializers.DictField(),
        help_text="Links whose places open in steps, by the number of the link: `people` wanted, `step_places`, and people who may have come (`opened`), `finished`, are `at_work` "
        "or may come now (`free`).",
    )


class DemographicCellSerializer(serializers.Serializer):
    value = serializers.CharField()
    n = serializers.IntegerField(
        allow_null=True, help_text="Null if hidden, because small counts can identify a person."
    )
    percent = serializers.FloatField(allow_null=True)


class DemographicColumnSerializer(serializers.Serializer):
    name = serializers.CharField()
    kind = serializers.CharField()
    people = serializers.IntegerField()
    known = serializers.IntegerField(allow_null=True)
    missing = serializers.IntegerField(allow_null=True)
    cells = DemographicCellSerializer(many=True)
    median = serializers.FloatField(allow_null=True)
    minimum = serializers.FloatField(allow_null=True)
    maximum = serializers.FloatField(allow_null=True)


class BulkResultSerializer(serializers.Serializer):
    created = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="Rows that were already stored with the same fields.")


class ExportHashSerializer(serializers.Serializer):
    sha256 = serializers.CharField()
    rows = serializers.IntegerField()


class RowErrorSerializer(serializers.Serializer):
    row = serializers.IntegerField(allow_null=True, help_text="Row number from 1, in the order sent.")
    field = serializers.CharField(allow_null=True)
    message = serializers.CharField()
    key = serializers.CharField(required=False, help_text="Of a warning at a launch: what acknowledges it.")


class ProblemSerializer(serializers.Serializer):
    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = RowErrorSerializer(many=True)
