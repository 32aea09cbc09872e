"""API views of systems, prompts, outputs and batches."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import models, transaction
from rest_framework import serializers
from rest_framework.generics import ListAPIView, RetrieveAPIView

from studies.access import Action, check_draw_is_readable, check_permission_or_404
from studies.imports.preparation import (
    PreparationReport,
    prepare_stimuli_and_delete_dropped_prompts,
    preview_preparation,
)
from studies.models import Batch, Output, Prompt, Study, System, audit
from studies.models.fields import FIRST_IMPORT_NUMBER
from studies.models.guards import StudyFrozen
from studies.services.lifecycle import refuse_during_import
from studies.stimuli.texts import SettingsRefused, is_blank, name_key

from .base import CreatedOrUnchangedMixin, PostMixin, StudyView
from .query import rows_of, text_filter
from .renderers import FieldError, RowErrors, row_error
from .serializers import (
    MAX_ROWS,
    BulkResultSerializer,
    NameField,
    ObjectField,
    StrictBooleanField,
    StrictIntegerField,
    StrictMixin,
)

# Store many systems, prompts or outputs in one request: all or none. Sending the same rows again changes nothing.


class RowSerializer(StrictMixin, serializers.ModelSerializer):
    # A kind of row, and how its rows are stored. It has no docstring, because OpenAPI would show it.
    # ``identified_by``: the fields that identify a row. ``not_copied``: the fields whose columns are not simply what was sent.
    noun: str
    identified_by: tuple[str, ...]
    not_copied: tuple[str, ...] = ()

    @classmethod
    def prepare(cls, study: Study, rows: Sequence[dict]) -> list[dict[str, Any]]:
        """Return the columns of new rows. Raise RowErrors."""
        return [{"study": study, **cls.copied_columns(row)} for row in rows]

    @classmethod
    def copied_columns(cls, row: Mapping[str, Any]) -> dict[str, Any]:
        defaults = cls.Meta.model()
        names = [name for name in cls.Meta.fields if name not in cls.not_copied]
        return {name: row.get(name, getattr(defaults, name)) for name in names}

    @classmethod
    def find_stored(cls, study: Study, prepared: Sequence[dict]) -> dict[tuple, models.Model]:
        """Return the rows that the study has already, by their keys."""
        (name,) = cls.identified_by
        stored = cls.Meta.model.objects.filter(study=study, **{f"{name}__in": [row[name] for row in prepared]})
        return {(getattr(row, name),): row for row in stored.select_related("study")}


class SystemSerializer(RowSerializer):
    noun, identified_by = "systems", ("name",)

    name = NameField(max_length=100)

    class Meta:
        model = System
        fields = ("name", "is_human", "reference")

    @classmethod
    def prepare(cls, study, rows):
        names = {name_key(name): name for name in System.objects.filter(study=study).values_list("name", flat=True)}
        errors = []
        for number, row in enumerate(rows, 1):
            first_name = names.setdefault(name_key(row["name"]), row["name"])
            if first_name != row["name"]:
                errors.append(
                    row_error(
                        number,
                        "name",
                        f"The name differs from “{first_name}” only in case, width or spaces. Choose a clearly different name.",
                    )
                )
        if errors:
            raise RowErrors(errors)
        return super().prepare(study, rows)


class PromptSerializer(RowSerializer):
    noun, identified_by, not_copied = "prompts", ("key",), ("media",)

    key = NameField(max_length=100)
    attributes = ObjectField(required=False)

    class Meta:
        model = Prompt
        fields = ("key", "text", "source", "media", "domain", "language", "attributes", "group")
        read_only_fields = ("media",)


class OutputSerializer(RowSerializer):
    """An output. New outputs are texts or empty; add images by a zip to imports/. Stored images may be sent back unchanged."""

    noun, identified_by, not_copied = "outputs", ("system.name", "prompt.key", "sample"), ("system", "prompt")

    system = NameField(source="system.name", max_length=100)
    prompt = NameField(source="prompt.key", max_length=100)
    sample = StrictIntegerField(required=False, default=0, min_value=0, max_value=32767)

    class Meta:
        model = Output
        fields = (
            "system",
            "prompt",
            "sample",
            "format",
            "text",
            "media",
            "alt",
            "is_empty",
            "original",
            "language",
            "warning",
        )
        read_only_fields = ("media",)
        # ``bulk.store`` checks rules about several columns for all rows together.
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
                raise serializers.ValidationError(
                    {"media": ["An image has no text and is not empty. Remove text and is_empty from this row."]}
                )
        elif is_text is bool(attrs.get("is_empty")):
            raise serializers.ValidationError(
                {"text": ["An output has either a text or is_empty: true. Send exactly one of the two."]}
            )
        return attrs

    @classmethod
    def prepare(cls, study, rows):
        systems = {system.name: system for system in System.objects.filter(study=study)}
        prompt_keys = {row["prompt"]["key"] for row in rows}
        prompts = {prompt.key: prompt for prompt in Prompt.objects.filter(study=study, key__in=prompt_keys)}
        errors, prepared = [], []
        for number, row in enumerate(rows, 1):
            system, prompt = row["system"]["name"], row["prompt"]["key"]
            if system not in systems:
                errors.append(
                    row_error(
                        number,
                        "system",
                        f"The study has no system “{system}”. Correct the name, or add the system first.",
                    )
                )
            if prompt not in prompts:
                errors.append(
                    row_error(
                        number,
                        "prompt",
                        f"The study has no prompt “{prompt}”. Correct the key, or add the prompt first.",
                    )
                )
            prepared.append({"system": systems.get(system), "prompt": prompts.get(prompt), **cls.copied_columns(row)})
        if errors:
            raise RowErrors(errors)
        return prepared

    @classmethod
    def find_stored(cls, study, prepared):
        outputs = Output.objects.filter(
            system__in={row["system"].pk for row in prepared}, prompt__in={row["prompt"].pk for row in prepared}
        ).select_related("system", "prompt")
        return {(output.system.name, output.prompt.key, output.sample): output for output in outputs}


def create_missing_rows(study: Study, kind: type[RowSerializer], body: Any, by) -> tuple[int, int]:
    """Store the rows of a request and return (created, unchanged). Raises RowErrors, which names every bad row, or StudyFrozen."""
    check_permission_or_404(by, Action.EDIT, study)
    rows = _checked(kind, body)
    with transaction.atomic():
        locked = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        if not locked.is_draft:
            raise StudyFrozen(kind.noun)
        refuse_during_import(locked)
        keys = [tuple(_at(row, name) for name in kind.identified_by) for row in rows]
        _refuse_repeats(kind, keys)
        prepared = kind.prepare(study, rows)
        stored = kind.find_stored(study, prepared)
        _refuse_changes(kind, keys, prepared, stored)
        _refuse_new_images(kind, keys, prepared, stored)
        model = kind.Meta.model
        new = [model(**columns) for key, columns in zip(keys, prepared, strict=True) if key not in stored]
        model.objects.bulk_create(new)
        if new:
            audit.record(f"add {kind.noun}", study=study, by=by, n=len(new))
    return len(new), len(rows) - len(new)


def _checked(kind: type[RowSerializer], body: Any) -> list[dict]:
    body = [body] if isinstance(body, dict) else body
    if not isinstance(body, list) or not body:
        raise FieldError(None, f"The body contains no rows. Send one object, or a list of 1 to {MAX_ROWS:,} objects.")
    if len(body) > MAX_ROWS:
        raise FieldError(None, f"The body has {len(body):,} rows. Send at most {MAX_ROWS:,} per request.")
    serializer = kind(data=body, many=True)
    serializer.is_valid(raise_exception=True)
    return serializer.validated_data


def _at(row: Mapping[str, Any], path: str) -> Any:
    for name in path.split("."):
        row = row[name]
    return row


def _refuse_repeats(kind: type[RowSerializer], keys: Sequence[tuple]) -> None:
    seen: dict[tuple, int] = {}
    errors = []
    for number, key in enumerate(keys, 1):
        if key in seen:
            errors.append(
                row_error(number, _key_field(kind), f"This row repeats row {seen[key]}. Remove one of the two.")
            )
        seen.setdefault(key, number)
    if errors:
        raise RowErrors(errors)


def _refuse_changes(kind: type[RowSerializer], keys, prepared, stored: Mapping[tuple, Any]) -> None:
    errors = []
    for number, (key, columns) in enumerate(zip(keys, prepared, strict=True), 1):
        row = stored.get(key)
        if row is None:
            continue
        changed = [name for name, value in columns.items() if getattr(row, name) != value]
        if changed:
            message = (
                f"This row is already stored with a different {', '.join(changed)}. REST never changes rows. "
                "Leave this row out, or change it in the admin."
            )
            errors.append(row_error(number, _key_field(kind), message))
    if errors:
        raise RowErrors(errors, 409)


def _refuse_new_images(kind: type[RowSerializer], keys, prepared, stored: Mapping[tuple, Any]) -> None:
    errors = [
        row_error(
            number,
            "media",
            "A row cannot add an image. Send a zip with the images to imports/; send media only for stored outputs.",
        )
        for number, (key, columns) in enumerate(zip(keys, prepared, strict=True), 1)
        if key not in stored and columns.get("media")
    ]
    if errors:
        raise RowErrors(errors)


def _key_field(kind: type[RowSerializer]) -> str:
    return kind.identified_by[0].partition(".")[0]


class BulkView(CreatedOrUnchangedMixin, StudyView, ListAPIView):
    """A list to which editors can add rows while the study is a draft: up to 1000 per request, all or none."""

    tag = "stimuli"
    result_serializer_class = BulkResultSerializer
    serializer_class: type[RowSerializer]

    @property
    def documented_body(self):
        return self.serializer_class(many=True)

    def perform(self) -> tuple[dict[str, int], bool]:
        rows = self.request.data
        created, unchanged = create_missing_rows(self.study, self.serializer_class, rows, self.request.user)
        return {"created": created, "unchanged": unchanged}, created > 0


class SystemsView(BulkView):
    """The systems of the study."""

    summaries = {"GET": "Systems", "POST": "Add systems"}
    queryset = System.objects.all()
    serializer_class = SystemSerializer


class PromptsView(BulkView):
    """The prompts that the systems were given."""

    summaries = {"GET": "Prompts", "POST": "Add prompts"}
    parameters = (text_filter("domain", "domain", "Only prompts of this domain.", named=rows_of("prompts", "domain")),)
    queryset = Prompt.objects.all()
    serializer_class = PromptSerializer


class OutputsView(BulkView):
    """The systems' outputs for the prompts."""

    summaries = {"GET": "Outputs", "POST": "Add outputs, all or none"}
    parameters = (
        text_filter(
            "system", "system__name", "Only outputs of the system with this name.", named=rows_of("systems", "name")
        ),
        text_filter(
            "prompt", "prompt__key", "Only outputs for the prompt with this key.", named=rows_of("prompts", "key")
        ),
    )
    queryset = Output.objects.select_related("system", "prompt")
    serializer_class = OutputSerializer


class PreparationRequestSerializer(StrictMixin, serializers.Serializer):
    settings = ObjectField(help_text="The whole preparation: prompt_filters, output_filters, normalisation, length.")
    is_dry_run = StrictBooleanField(default=False, help_text="true: say what would change, and change nothing.")


class LeftOutSerializer(serializers.Serializer):
    key = serializers.CharField(help_text="The prompt, or the output as “system on prompt”.")
    filter = serializers.CharField()
    reason = serializers.CharField()


class PreparationReportSerializer(serializers.Serializer):
    """What a preparation changes, or would change."""

    is_written = serializers.BooleanField()
    outputs = serializers.IntegerField(help_text="Outputs that were read and stay.")
    changed_outputs = serializers.IntegerField()
    changed_prompts = serializers.IntegerField()
    by_step = serializers.DictField(child=serializers.IntegerField(), help_text="Texts that each step changes.")
    dropped = LeftOutSerializer(many=True, help_text="Prompts that are left out, with their outputs.")
    dropped_outputs = LeftOutSerializer(many=True)
    dropped_outputs_by_system = serializers.DictField(child=serializers.IntegerField())


class StoredPreparationSerializer(serializers.Serializer):
    preparation = serializers.DictField(help_text="The settings, as POST takes them. Empty: nothing is prepared.")


class PreparationView(PostMixin, StudyView, RetrieveAPIView):
    """How the texts of a study are prepared. POST prepares those of a draft, always from their originals."""

    tag = "stimuli"
    summaries = {"GET": "Preparation of the texts", "POST": "Prepare the texts of a draft"}
    serializer_class = StoredPreparationSerializer
    body_serializer_class = PreparationRequestSerializer
    result_serializer_class = PreparationReportSerializer

    def get_object(self) -> Study:
        return self.study

    def perform(self, settings: dict[str, Any], is_dry_run: bool) -> PreparationReport:
        try:
            if is_dry_run:
                return preview_preparation(self.study, settings)
            return prepare_stimuli_and_delete_dropped_prompts(self.study, settings, by=self.request.user)
        except SettingsRefused as refused:
            raise FieldError("settings", str(refused)) from None


class ItemNameField(serializers.CharField):
    def to_representation(self, item):
        return f"s{item.section.position}.{item.number}"


class ItemInBatchSerializer(serializers.Serializer):
    item = ItemNameField(help_text="s<section>.<number>, as in responses")
    kind = serializers.CharField(source="item.kind")
    prompt = serializers.CharField(source="item.prompt.key", allow_null=True)


class BatchSerializer(serializers.Serializer):
    number = serializers.IntegerField()
    arm = serializers.CharField(source="arm.name")
    origin = serializers.CharField()
    wanted = serializers.IntegerField()
    claimed = serializers.IntegerField()
    key = serializers.CharField(allow_blank=True)
    copy_of = serializers.IntegerField(source="copy_of.number", allow_null=True)
    items = ItemInBatchSerializer(many=True, source="placements")


class BatchesView(StudyView, ListAPIView):
    """The batches that annotators get, with their items in order."""

    tag = "answers"
    summaries = {"GET": "Batches with their items"}
    parameters = (text_filter("arm", "arm__name", "Only batches of this arm.", named=rows_of("arms", "name")),)
    queryset = Batch.objects.select_related("arm", "copy_of").prefetch_related(
        "placements__item__section", "placements__item__prompt"
    )
    serializer_class = BatchSerializer

    def get_queryset(self):
        check_draw_is_readable(self.request.user, self.study)
        return super().get_queryset().filter(number__lt=FIRST_IMPORT_NUMBER)
