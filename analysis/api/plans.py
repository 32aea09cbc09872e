"""API views of the plans of a study's size: approximate numbers, the job that simulates, the stored plans, and the choice."""

from typing import Any

from django.http import Http404
from rest_framework import serializers
from rest_framework.response import Response

from analysis.planning import pilots
from analysis.planning.checklist import HELP, TEXTS, WHOLE, changed_inputs, starting_inputs
from analysis.planning.inputs import InvalidPlanInputs, PlanInputs
from analysis.planning.pilots import draws_of
from analysis.planning.results import quick_numbers
from analysis.planning.run import KIND, choose_plan, request_plan
from analysis.report.planned import preregistration_sentences
from studies.models import SizePlan, Study

from . import serializers as shapes
from .base import StudyView, document_operation, page_serializer, require_json_object
from .exports import accepted_job_response, idempotency_token
from .query import Parameter, integer_parser, number_parser, page_parameters, parse_single_line
from .renderers import RowErrors, row_error
from .serializers import CleanTextField, FiniteField, StrictBooleanField, StrictIntegerField, StrictMixin

TAG = "plans"


def _field(name: str) -> serializers.Field:
    help_text = HELP[name]
    if name in TEXTS:
        return CleanTextField(required=False, allow_blank=True, help_text=help_text)
    if name in WHOLE:
        return StrictIntegerField(required=False, help_text=help_text)
    return FiniteField(required=False, allow_null=name in ("margin", "reward"), help_text=help_text)


class PlanRequestSerializer(StrictMixin, serializers.Serializer):
    """Values that differ from the chosen plan, or else from what the draft says."""

    def get_fields(self):
        return {name: _field(name) for name in HELP}


class PilotRequestSerializer(StrictMixin, serializers.Serializer):
    pilot = CleanTextField(
        help_text="Code of a study on this site. Its answers must be submitted, and its outcomes shown to you."
    )


class ChoiceRequestSerializer(StrictMixin, serializers.Serializer):
    sets_target = StrictBooleanField(default=False, help_text="Also set the draft's target and items each.")


class PlanSerializer(serializers.Serializer):
    id = serializers.IntegerField(help_text="Number of the plan, for “choose”.")
    at = serializers.DateTimeField()
    by = serializers.CharField(allow_null=True)
    fingerprint = serializers.CharField(help_text="SHA-256 of the inputs and of the version of the method.")
    seed = serializers.CharField(help_text="Seed of all simulations.")
    is_chosen = serializers.BooleanField(help_text="true: the plan is a part of the design.")
    inputs = serializers.DictField(
        help_text="`size`, `target`, `variation`, `pace`, `prices`, `prior`, and `comparisons` if there are several."
    )
    result = serializers.DictField(
        help_text="`plan` has the simulated numbers with their Monte-Carlo errors; `budget` people, time and money."
    )
    sentences = serializers.ListField(child=serializers.CharField(), help_text="The plan for a preregistration.")


class ChosenPlanSerializer(PlanSerializer):
    changed = serializers.ListField(child=serializers.CharField(), help_text="What else changed in the draft.")


class QuickNumbersSerializer(serializers.Serializer):
    inputs = serializers.DictField()
    fingerprint = serializers.CharField()
    is_approximate = serializers.BooleanField(help_text="Always true: closed formulas, without simulation.")
    power = serializers.FloatField(help_text="With a pilot: the mean over what it leaves open.")
    power_low = serializers.FloatField(
        allow_null=True, help_text="With a pilot: 80 % of what it leaves open have a power from here,"
    )
    power_high = serializers.FloatField(allow_null=True, help_text="to here. null without a pilot.")
    half_width = serializers.FloatField(help_text="Half the width of the expected interval, on the result's scale.")
    value = serializers.FloatField(help_text="The expected result.")
    se = serializers.FloatField()
    df = serializers.FloatField()
    population = serializers.CharField()
    smallest_difference = serializers.FloatField(
        allow_null=True, help_text="Found with the wanted power; null if none is, or for another goal than difference."
    )
    comparisons = serializers.ListField(
        child=serializers.DictField(),
        help_text="Several comparisons: `power` at the level divided by the size of the family, `power_at_most` at the whole level.",
    )
    currency = serializers.CharField()
    budget = serializers.DictField()
    panels = serializers.ListField(
        child=serializers.DictField(),
        help_text="The money at each panel: `total`, with the published fees (`rate`, null if not known) and their source.",
    )
    sentences = serializers.ListField(child=serializers.CharField())
    advice = serializers.ListField(child=serializers.CharField())


def plan_as_json(study: Study, plan: SizePlan) -> dict[str, Any]:
    return {
        "id": plan.pk,
        "at": plan.at,
        "by": plan.by and plan.by.get_username(),
        "fingerprint": plan.fingerprint,
        "seed": str(plan.seed),
        "is_chosen": plan.pk == study.size_plan_id,
        "inputs": plan.inputs,
        "result": plan.result,
        "sentences": preregistration_sentences(plan, study.currency),
    }


def _changed(study: Study, changes: dict[str, Any], user: Any) -> PlanInputs:
    try:
        return changed_inputs(starting_inputs(study), changes, user)
    except InvalidPlanInputs as refused:
        raise RowErrors([row_error(None, name, text) for name, text in refused.errors.items()]) from None


class PlansView(StudyView):
    """The plans of a study's size. POST simulates one; the same inputs are simulated once."""

    parameters = page_parameters()

    @document_operation("Plans of the size", page_serializer("Plan", PlanSerializer), parameters=parameters, tag=TAG)
    def get(self, request, code):
        return self.paginated_response(
            self.study.size_plans.select_related("by"), lambda plan: PlanSerializer(plan_as_json(self.study, plan)).data
        )

    @document_operation(
        "Simulate a plan of the size; returns the job to poll",
        shapes.JobSerializer,
        request=PlanRequestSerializer,
        status=202,
        tag=TAG,
    )
    def post(self, request, code):
        sent = PlanRequestSerializer(data=require_json_object(request))
        sent.is_valid(raise_exception=True)
        inputs = _changed(self.study, dict(sent.validated_data), request.user)
        return accepted_job_response(
            request_plan(self.study, request.user, inputs, idempotency_token(request, self.study, KIND))
        )


class PlanNumbersView(StudyView):
    """Approximate numbers of a size, at once and without storing anything. Nothing is simulated."""

    parameters = tuple(
        Parameter(
            name,
            parse_single_line if name in TEXTS else integer_parser() if name in WHOLE else number_parser(),
            text,
            type=str if name in TEXTS else int if name in WHOLE else float,
        )
        for name, text in HELP.items()
    )

    @document_operation("Approximate numbers of a plan", QuickNumbersSerializer, parameters=parameters, tag=TAG)
    def get(self, request, code):
        changes = {name: value for name, value in self.values.items() if value is not None}
        inputs = _changed(self.study, changes, request.user)
        try:
            draws = draws_of(inputs, request.user)
        except InvalidPlanInputs:  # a chosen plan of a pilot that says something else by now, or is away
            draws = ()
        return Response(QuickNumbersSerializer(quick_numbers(inputs, self.study.currency, draws)).data)


class PlanPilotsView(StudyView):
    """Read the answers of another study as a pilot. Then its code can be the ``prior`` of a plan: ``pilot:CODE``."""

    @document_operation(
        "Read a study as a pilot of plans; returns the job to poll",
        shapes.JobSerializer,
        request=PilotRequestSerializer,
        status=202,
        tag=TAG,
    )
    def post(self, request, code):
        sent = PilotRequestSerializer(data=require_json_object(request))
        sent.is_valid(raise_exception=True)
        token = idempotency_token(request, self.study, pilots.KIND)
        try:
            job = pilots.request_estimate(self.study, request.user, sent.validated_data["pilot"], request_token=token)
        except InvalidPlanInputs as refused:
            raise RowErrors([row_error(None, "pilot", refused.errors["prior"])]) from None
        return accepted_job_response(job)


def _plan_or_404(study: Study, number: int) -> SizePlan:
    plan = study.size_plans.select_related("by").filter(pk=number).first()
    if plan is None:
        raise Http404
    return plan


class PlanDetailView(StudyView):
    """One plan of the size."""

    @document_operation("A plan of the size", PlanSerializer, tag=TAG)
    def get(self, request, code, plan):
        return Response(PlanSerializer(plan_as_json(self.study, _plan_or_404(self.study, plan))).data)


class ChoosePlanView(StudyView):
    """Make a plan that of the draft. It becomes a part of the design."""

    @document_operation("Choose a plan of the size", ChosenPlanSerializer, request=ChoiceRequestSerializer, tag=TAG)
    def post(self, request, code, plan):
        sent = ChoiceRequestSerializer(data=require_json_object(request))
        sent.is_valid(raise_exception=True)
        found = _plan_or_404(self.study, plan)
        changed = choose_plan(self.study, found, request.user, sets_target=sent.validated_data["sets_target"])
        return Response(ChosenPlanSerializer(plan_as_json(self.study, found) | {"changed": changed}).data)
