"""API views of systems, prompts, outputs and batches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models, transaction
from rest_framework.response import Response

from studies.access import Action, check_draw_is_readable, check_permission_or_404
from studies.models import Batch, Output, Prompt, Study, System, audit
from studies.models.guards import StudyFrozen
from studies.stimuli.texts import name_key

from . import serializers as shapes
from .base import StudyView, document_operation, page_serializer
from .query import Parameter, page_parameters, parse_single_line
from .renderers import RowErrors, row_error
from .serializers import MAX_ROWS, OutputSerializer, PromptSerializer, SystemSerializer

# Store many systems, prompts or outputs in one request: all or none. Sending the same rows again changes nothing.


@dataclass(frozen=True, slots=True)
class BulkKind:
    """A kind of row: its serializer, the fields that identify a row, and how rows are compared with stored ones."""

    noun: str
    serializer: type
    key: tuple[str, ...]
    prepare: Callable[[Study, Sequence[dict]], list[dict[str, Any]]]
    find_stored: Callable[[Study, Sequence[dict]], Mapping[tuple, Any]]
    model: type[models.Model]


def create_missing_rows(study: Study, kind: BulkKind, body: Any, by) -> tuple[int, int]:
    """Store the rows of a request and return (created, unchanged). Raises RowErrors, which names every bad row, or StudyFrozen."""
    check_permission_or_404(by, Action.EDIT, study)
    rows = _checked(kind, body)
    with transaction.atomic():
        locked = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        if not locked.is_draft:
            raise StudyFrozen(kind.noun)
        keys = [tuple(_at(row, name) for name in kind.key) for row in rows]
        _refuse_repeats(kind, keys)
        prepared = kind.prepare(study, rows)
        stored = kind.find_stored(study, prepared)
        _refuse_changes(kind, keys, prepared, stored)
        _refuse_new_images(kind, keys, prepared, stored)
        new = [kind.model(**columns) for key, columns in zip(keys, prepared, strict=True) if key not in stored]
        kind.model._default_manager.bulk_create(new)
        if new:
            audit.record(f"add {kind.noun}", study=study, by=by, n=len(new))
    return len(new), len(rows) - len(new)


def _checked(kind: BulkKind, body: Any) -> list[dict]:
    body = [body] if isinstance(body, dict) else body
    if not isinstance(body, list) or not body:
        raise RowErrors(
            [
                row_error(
                    None, None, f"The body contains no rows. Send one object, or a list of 1 to {MAX_ROWS:,} objects."
                )
            ]
        )
    if len(body) > MAX_ROWS:
        raise RowErrors(
            [row_error(None, None, f"The body has {len(body):,} rows. Send at most {MAX_ROWS:,} per request.")]
        )
    serializer = kind.serializer(data=body, many=True)
    serializer.is_valid(raise_exception=True)
    return serializer.validated_data


def _at(row: Mapping[str, Any], path: str) -> Any:
    for name in path.split("."):
        row = row[name]
    return row


def _refuse_repeats(kind: BulkKind, keys: Sequence[tuple]) -> None:
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


def _refuse_changes(kind: BulkKind, keys, prepared, stored: Mapping[tuple, Any]) -> None:
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


def _refuse_new_images(kind: BulkKind, keys, prepared, stored: Mapping[tuple, Any]) -> None:
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


def _key_field(kind: BulkKind) -> str:
    return kind.key[0].partition(".")[0]


# The three kinds of rows


def _all_columns(model, row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    defaults = model()
    return {name: row.get(name, getattr(defaults, name)) for name in names}


def _prepared_systems(study: Study, rows: Sequence[dict]) -> list[dict[str, Any]]:
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
    return [{"study": study, **_all_columns(System, row, ("name", "is_human", "reference"))} for row in rows]


def _prepared_prompts(study: Study, rows: Sequence[dict]) -> list[dict[str, Any]]:
    names = ("key", "text", "source", "domain", "language", "attributes", "group")
    return [{"study": study, **_all_columns(Prompt, row, names)} for row in rows]


def _prepared_outputs(study: Study, rows: Sequence[dict]) -> list[dict[str, Any]]:
    systems = {system.name: system for system in System.objects.filter(study=study)}
    prompt_keys = {row["prompt"]["key"] for row in rows}
    prompts = {prompt.key: prompt for prompt in Prompt.objects.filter(study=study, key__in=prompt_keys)}
    errors, prepared = [], []
    for number, row in enumerate(rows, 1):
        system, prompt = row["system"]["name"], row["prompt"]["key"]
        if system not in systems:
            errors.append(
                row_error(
                    number, "system", f"The study has no system “{system}”. Correct the name, or add the system first."
                )
            )
        if prompt not in prompts:
            errors.append(
                row_error(
                    number, "prompt", f"The study has no prompt “{prompt}”. Correct the key, or add the prompt first."
                )
            )
        names = ("sample", "format", "text", "media", "alt", "is_empty", "original", "language")
        columns = {"system": systems.get(system), "prompt": prompts.get(prompt), **_all_columns(Output, row, names)}
        prepared.append(columns)
    if errors:
        raise RowErrors(errors)
    return prepared


def _stored_outputs(study: Study, prepared: Sequence[dict]) -> dict[tuple, Output]:
    outputs = Output.objects.filter(
        system__in={row["system"].pk for row in prepared}, prompt__in={row["prompt"].pk for row in prepared}
    ).select_related("system", "prompt")
    return {(output.system.name, output.prompt.key, output.sample): output for output in outputs}


SYSTEMS = BulkKind(
    "systems",
    SystemSerializer,
    ("name",),
    _prepared_systems,
    lambda study, rows: {(s.name,): s for s in System.objects.filter(study=study).select_related("study")},
    System,
)
PROMPTS = BulkKind(
    "prompts",
    PromptSerializer,
    ("key",),
    _prepared_prompts,
    lambda study, rows: {
        (p.key,): p
        for p in Prompt.objects.filter(study=study, key__in=[row["key"] for row in rows]).select_related("study")
    },
    Prompt,
)
OUTPUTS = BulkKind(
    "outputs", OutputSerializer, ("system.name", "prompt.key", "sample"), _prepared_outputs, _stored_outputs, Output
)


class BulkView(StudyView):
    """A list to which editors can add rows while the study is a draft: up to 1000 per request, all or none."""

    kind: BulkKind

    def post(self, request, code):
        created, unchanged = create_missing_rows(self.study, self.kind, request.data, request.user)
        return Response({"created": created, "unchanged": unchanged}, status=201 if created else 200)


class SystemsView(BulkView):
    """The systems of the study."""

    kind = SYSTEMS
    parameters = page_parameters()

    @document_operation(
        "Systems", page_serializer("System", shapes.SystemSerializer), parameters=parameters, tag="stimuli"
    )
    def get(self, request, code):
        return self.paginated_response(System.objects.filter(study=self.study), shapes.SystemSerializer)

    @document_operation(
        "Add systems",
        shapes.BulkResultSerializer,
        request=shapes.SystemSerializer(many=True),
        status=201,
        tag="stimuli",
    )
    def post(self, request, code):
        return super().post(request, code)


class PromptsView(BulkView):
    """The prompts that the systems were given."""

    kind = PROMPTS
    parameters = (*page_parameters(), Parameter("domain", parse_single_line, "Only prompts of this domain."))

    @document_operation(
        "Prompts", page_serializer("Prompt", shapes.PromptSerializer), parameters=parameters, tag="stimuli"
    )
    def get(self, request, code):
        prompts = Prompt.objects.filter(study=self.study)
        if self.values["domain"] is not None:
            prompts = prompts.filter(domain=self.values["domain"])
        return self.paginated_response(prompts, shapes.PromptSerializer)

    @document_operation(
        "Add prompts",
        shapes.BulkResultSerializer,
        request=shapes.PromptSerializer(many=True),
        status=201,
        tag="stimuli",
    )
    def post(self, request, code):
        return super().post(request, code)


class OutputsView(BulkView):
    """The systems' outputs for the prompts."""

    kind = OUTPUTS
    parameters = (
        *page_parameters(),
        Parameter("system", parse_single_line, "Only outputs of the system with this name."),
        Parameter("prompt", parse_single_line, "Only outputs for the prompt with this key."),
    )

    @document_operation(
        "Outputs", page_serializer("Output", shapes.OutputSerializer), parameters=parameters, tag="stimuli"
    )
    def get(self, request, code):
        outputs = Output.objects.filter(system__study=self.study).select_related("system", "prompt")
        if self.values["system"] is not None:
            outputs = outputs.filter(system__name=self.values["system"])
        if self.values["prompt"] is not None:
            outputs = outputs.filter(prompt__key=self.values["prompt"])
        return self.paginated_response(outputs, shapes.OutputSerializer)

    @document_operation(
        "Add outputs, all or none",
        shapes.BulkResultSerializer,
        request=shapes.OutputSerializer(many=True),
        status=201,
        tag="stimuli",
    )
    def post(self, request, code):
        return super().post(request, code)


class BatchesView(StudyView):
    """The batches that annotators get, with their items in order."""

    parameters = (*page_parameters(), Parameter("arm", parse_single_line, "Only batches of this arm."))

    @document_operation(
        "Batches with their items",
        page_serializer("Batch", shapes.BatchSerializer),
        parameters=parameters,
        tag="answers",
    )
    def get(self, request, code):
        check_draw_is_readable(request.user, self.study)
        batches = Batch.objects.filter(study=self.study).select_related("arm", "copy_of")
        if self.values["arm"] is not None:
            batches = batches.filter(arm__name=self.values["arm"])
        return self.paginated_response(
            batches.prefetch_related("placements__item__section", "placements__item__prompt"), _batch
        )


def _batch(batch: Batch) -> dict[str, Any]:
    items = sorted(batch.placements.all(), key=lambda placement: placement.number)
    return {
        "number": batch.number, "arm": batch.arm.name, "origin": batch.origin, "wanted": batch.wanted,
        "claimed": batch.claimed, "key": batch.key, "copy_of": batch.copy_of and batch.copy_of.number,
        "items": [
            {"item": f"s{p.item.section.position}.{p.item.number}", "kind": p.item.kind, "prompt": p.item.prompt.key}
            for p in items
        ],
    }  # fmt: skip
