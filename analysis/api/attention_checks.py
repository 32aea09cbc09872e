"""API view of the attention checks of a study."""

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from studies.imports.attention_check_file import (
    LIMITS,
    ChecksFileRefused,
    attention_sections,
    store_attention_checks_and_delete_test_runs,
)

from .base import StudyView, document_operation
from .fields import ListField, ObjectField, StrictBooleanField, StrictMixin
from .parsers import StrictMultiPartParser
from .renderers import RowErrors, StrictJSONParser
from .uploads import read_upload, row_errors

TAG = "stimuli"


class AttentionCheckSerializer(serializers.Serializer):
    section = serializers.IntegerField(help_text="Position of the section that holds it.")
    key = serializers.CharField()
    text = serializers.CharField()
    help = serializers.CharField(allow_blank=True)
    scale = serializers.DictField(help_text="The answers as options. Exactly one has is_right.")


class AttentionChecksSerializer(serializers.Serializer):
    checks = AttentionCheckSerializer(many=True)


class ChecksFieldsSerializer(StrictMixin, serializers.Serializer):
    """What a request says about its checks."""

    section = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Position of the section. Default: the only one that holds attention checks, or a new one.",
    )
    replaces = StrictBooleanField(
        default=False, help_text="true: a check may replace the one with the same key. false: this is refused."
    )


class ChecksRequestSerializer(ChecksFieldsSerializer):
    """Attention checks as JSON."""

    checks = ListField(
        child=ObjectField(),
        help_text="Each has key, text, answers (a list of texts), right (one of the answers), and optionally help.",
    )


class ChecksFormSerializer(serializers.Serializer):
    """Attention checks as a form with a file."""

    file = serializers.FileField(help_text="CSV or JSON lines. In a CSV, bars separate the answers.")
    settings = serializers.CharField(required=False, help_text="The other fields of the request, as one JSON object.")


class StoredChecksSerializer(serializers.Serializer):
    section = serializers.IntegerField()
    added = serializers.ListField(child=serializers.CharField(), help_text="Keys of new checks.")
    replaced = serializers.ListField(child=serializers.CharField(), help_text="Keys of checks with other words now.")
    unchanged = serializers.ListField(child=serializers.CharField(), help_text="Keys that were stored already.")


class AttentionChecksView(StudyView):
    """The attention checks of a study. POST stores some in a draft, all or none."""

    parser_classes = (StrictJSONParser, StrictMultiPartParser)
    # A form has a few short fields beside its file.
    max_form_bytes = LIMITS.bytes + 2**20

    @document_operation("Attention checks", AttentionChecksSerializer, tag=TAG)
    def get(self, request, code):
        checks: list[dict[str, Any]] = [
            {
                "section": section.position,
                "key": question.key,
                "text": question.text,
                "help": question.help,
                "scale": question.scale,
            }
            for section in attention_sections(self.study)
            for question in section.questions.all()
        ]
        return Response({"checks": checks})

    @document_operation(
        "Store attention checks in a draft, all or none",
        StoredChecksSerializer,
        request={"application/json": ChecksRequestSerializer, "multipart/form-data": ChecksFormSerializer},
        status=201,
        tag=TAG,
    )
    def post(self, request, code):
        body, filename, data = read_upload(request, "checks", "question", LIMITS.bytes)
        serializer = ChecksFieldsSerializer(data=body)
        serializer.is_valid(raise_exception=True)
        sent = serializer.validated_data
        try:
            stored = store_attention_checks_and_delete_test_runs(
                self.study, filename, data, by=request.user, position=sent["section"], replaces=sent["replaces"]
            )
        except ChecksFileRefused as refused:
            raise RowErrors(row_errors(refused.problems)) from None
        return Response(StoredChecksSerializer(stored).data, status=201 if stored.added or stored.replaced else 200)
