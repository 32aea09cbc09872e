"""API views of systems, prompts, outputs and batches."""

from typing import Any

from rest_framework.response import Response

from studies.access import check_draw_is_readable
from studies.models import Batch, Output, Prompt, System

from . import bulk
from . import serializers as shapes
from .base import StudyView, document_operation, page_serializer
from .query import Parameter, page_parameters, parse_single_line


class BulkView(StudyView):
    """A list to which editors can add rows while the study is a draft: up to 1000 per request, all or none."""

    kind: bulk.BulkKind

    def post(self, request, code):
        created, unchanged = bulk.create_missing_rows(self.study, self.kind, request.data, request.user)
        return Response({"created": created, "unchanged": unchanged}, status=201 if created else 200)


class SystemsView(BulkView):
    """The systems of the study."""

    kind = bulk.SYSTEMS
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

    kind = bulk.PROMPTS
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

    kind = bulk.OUTPUTS
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
