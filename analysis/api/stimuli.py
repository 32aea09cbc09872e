"""Systems, prompts, outputs and batches."""

from typing import Any

from rest_framework.response import Response

from studies.models import Batch, Output, Prompt, System

from . import bulk
from . import serializers as shapes
from .base import StudyView, documented, listed
from .query import Parameter, paged, words


class BulkView(StudyView):
    """A list that editors may add to while the study is a draft, up to a thousand rows a request, all or none."""

    kind: bulk.Kind

    def post(self, request, code):
        created, unchanged = bulk.store(self.study, self.kind, request.data, request.user)
        return Response({"created": created, "unchanged": unchanged}, status=201 if created else 200)


class Systems(BulkView):
    """What is compared."""

    kind = bulk.SYSTEMS
    parameters = paged()

    @documented("Systems", listed("System", shapes.SystemSerializer), parameters=parameters, tag="stimuli")
    def get(self, request, code):
        return self.paged(System.objects.filter(study=self.study), shapes.SystemSerializer)

    @documented(
        "Add systems", shapes.StoredSerializer, request=shapes.SystemSerializer(many=True), status=201, tag="stimuli"
    )
    def post(self, request, code):
        return super().post(request, code)


class Prompts(BulkView):
    """What the systems were given."""

    kind = bulk.PROMPTS
    parameters = (*paged(), Parameter("domain", words, "Only prompts of this domain."))

    @documented("Prompts", listed("Prompt", shapes.PromptSerializer), parameters=parameters, tag="stimuli")
    def get(self, request, code):
        prompts = Prompt.objects.filter(study=self.study)
        if self.values["domain"] is not None:
            prompts = prompts.filter(domain=self.values["domain"])
        return self.paged(prompts, shapes.PromptSerializer)

    @documented(
        "Add prompts", shapes.StoredSerializer, request=shapes.PromptSerializer(many=True), status=201, tag="stimuli"
    )
    def post(self, request, code):
        return super().post(request, code)


class Outputs(BulkView):
    """What the systems made of the prompts."""

    kind = bulk.OUTPUTS
    parameters = (
        *paged(),
        Parameter("system", words, "Only outputs of the system of this name."),
        Parameter("prompt", words, "Only outputs for the prompt with this key."),
    )

    @documented("Outputs", listed("Output", shapes.OutputSerializer), parameters=parameters, tag="stimuli")
    def get(self, request, code):
        outputs = Output.objects.filter(system__study=self.study).select_related("system", "prompt")
        if self.values["system"] is not None:
            outputs = outputs.filter(system__name=self.values["system"])
        if self.values["prompt"] is not None:
            outputs = outputs.filter(prompt__key=self.values["prompt"])
        return self.paged(outputs, shapes.OutputSerializer)

    @documented(
        "Add outputs, all of them or none",
        shapes.StoredSerializer,
        request=shapes.OutputSerializer(many=True),
        status=201,
        tag="stimuli",
    )
    def post(self, request, code):
        return super().post(request, code)


class Batches(StudyView):
    """What annotators are given, with the items in order."""

    parameters = (*paged(), Parameter("arm", words, "Only batches of this arm."))

    @documented(
        "Batches with their items", listed("Batch", shapes.BatchSerializer), parameters=parameters, tag="answers"
    )
    def get(self, request, code):
        batches = Batch.objects.filter(study=self.study).select_related("arm", "copy_of")
        if self.values["arm"] is not None:
            batches = batches.filter(arm__name=self.values["arm"])
        return self.paged(batches.prefetch_related("placements__item__section", "placements__item__prompt"), _batch)


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
