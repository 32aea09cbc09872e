"""API views of the plans of a study's size: approximate numbers, the job that simulates, the stored plans, and the choice."""

from typing import Any

from django import forms
from rest_framework import serializers
from rest_framework.generics import ListAPIView, RetrieveAPIView

from analysis.planning import noise_models, pilots, strategies
from analysis.planning.checklist import HELP, TEXTS, WHOLE, changed_inputs, starting_inputs
from analysis.planning.inputs import InvalidPlanInputs
from analysis.planning.results import quick_numbers
from analysis.planning.run import KIND, choose_plan, request_plan
from analysis.planning.simulations import SimulationForm
from analysis.report.planned import preregistration_sentences
from studies.models import Job, SizePlan

from .base import JobMixin, PostMixin, StudyView
from .query import Parameter, integer_parser, number_parser, parse_single_line
from .serializers import CleanTextField, FiniteField, ListedField, StrictBooleanField, StrictIntegerField, StrictMixin


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


def _simulation_field(field: forms.Field) -> serializers.Field:
    text = " ".join(part for part in (f"{field.label}.", str(field.help_text)) if part)
    more: dict[str, Any] = {"required": False, "help_text": text}
    if isinstance(field, strategies.SharesField):
        return serializers.ListField(child=FiniteField(), allow_empty=False, max_length=strategies.MOST_SHARES, **more)
    if isinstance(field, forms.CharField):
        return CleanTextField(allow_blank=True, max_length=field.max_length, **more)
    if isinstance(field, forms.ChoiceField):
        return ListedField(choices=field.choices, **more)  # type: ignore[arg-type]  # lists, in this form
    # A field of Django for any number is one for whole numbers, too.
    if isinstance(field, forms.IntegerField) and not isinstance(field, forms.FloatField):
        return StrictIntegerField(**more)
    return FiniteField(allow_null=not field.required, **more)


class SimulationRequestSerializer(StrictMixin, serializers.Serializer):
    """Values of a page of simulations that differ from the first ones there."""

    form_class: type[SimulationForm]

    def get_fields(self):
        return {name: _simulation_field(field) for name, field in self.form_class.base_fields.items()}


class StrategiesRequestSerializer(SimulationRequestSerializer):
    form_class = strategies.StrategiesForm


class NoiseModelsRequestSerializer(SimulationRequestSerializer):
    form_class = noise_models.NoiseModelsForm


class ChoiceRequestSerializer(StrictMixin, serializers.Serializer):
    sets_target = StrictBooleanField(default=False, help_text="Also set the draft's target and items each.")


class PlanSerializer(serializers.Serializer):
    id = serializers.IntegerField(help_text="Number of the plan, for “choose”.")
    at = serializers.DateTimeField()
    by = serializers.CharField(source="by.username", allow_null=True)
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

    def to_representation(self, plan):
        study = self.context["view"].study
        plan.is_chosen = plan.pk == study.size_plan_id
        plan.sentences = preregistration_sentences(plan, study.currency)
        return super().to_representation(plan)


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
    power_by_people = serializers.ListField(
        child=serializers.DictField(),
        help_text="The protocol of the plan, and ratings and SPA beside it: `protocol`, `comparison`, `level`, and `points` with `people` and "
        "`power`. With a pilot study: a line for each of its comparisons.",
    )
    currency = serializers.CharField()
    budget = serializers.DictField()
    panels = serializers.ListField(
        child=serializers.DictField(),
        help_text="The money at each panel: `total`, with the published fees (`rate`, null if not known) and their source.",
    )
    sentences = serializers.ListField(child=serializers.CharField())
    advice = serializers.ListField(child=serializers.CharField())


class PlanView(StudyView):
    tag = "plans"
    queryset = SizePlan.objects.select_related("by")
    lookup_url_kwarg = "plan"
    serializer_class = PlanSerializer


class PlansView(JobMixin, PlanView, ListAPIView):
    """The plans of a study's size. POST simulates one; the same inputs are simulated once."""

    summaries = {"GET": "Plans of the size", "POST": "Simulate a plan of the size; returns the job to poll"}
    body_serializer_class = PlanRequestSerializer
    job_kind = KIND

    def start_job(self, token: str | None, **changes: Any) -> Job:
        inputs = changed_inputs(starting_inputs(self.study), changes, self.request.user)
        return request_plan(self.study, self.request.user, inputs, token)


class PlanNumbersView(StudyView, RetrieveAPIView):
    """Approximate numbers of a size, at once and without storing anything. Nothing is simulated."""

    tag = "plans"
    summaries = {"GET": "Approximate numbers of a plan"}
    parameters = tuple(
        Parameter(
            name,
            parse_single_line if name in TEXTS else integer_parser() if name in WHOLE else number_parser(),
            text,
            type=str if name in TEXTS else int if name in WHOLE else float,
        )
        for name, text in HELP.items()
    )
    serializer_class = QuickNumbersSerializer

    def get_object(self) -> dict[str, Any]:
        changes = {name: value for name, value in self.values.items() if value is not None}
        inputs = changed_inputs(starting_inputs(self.study), changes, self.request.user)
        try:
            pilot = pilots.pilot_of(inputs, self.request.user)
        except InvalidPlanInputs:  # a chosen plan of a pilot that says something else by now, or is away
            pilot = None
        return quick_numbers(inputs, self.study.currency, *((pilot.draws, pilot.own) if pilot else ()))


class PlanPilotsView(JobMixin, StudyView):
    """Read the answers of another study as a pilot. Then its code can be the ``prior`` of a plan: ``pilot:CODE``."""

    tag = "plans"
    summaries = {"POST": "Read a study as a pilot of plans; returns the job to poll"}
    body_serializer_class = PilotRequestSerializer
    job_kind = pilots.KIND

    def start_job(self, token: str | None, pilot: str) -> Job:
        try:
            return pilots.request_estimate(self.study, self.request.user, pilot, request_token=token)
        except InvalidPlanInputs as refused:
            raise InvalidPlanInputs({"pilot": refused.errors["prior"]}) from None


class PlanSimulationView(JobMixin, StudyView):
    tag = "plans"
    body_serializer_class: type[SimulationRequestSerializer]

    def start_job(self, token: str | None, **options: Any) -> Job:
        return self.body_serializer_class.form_class.request(self.study, self.request.user, options, token)


class PlanStrategiesView(PlanSimulationView):
    """Simulate how many answers labelling strategies need until a stopping rule decides. The result is that of the job."""

    summaries = {"POST": "Simulate labelling strategies; returns the job to poll"}
    body_serializer_class = StrategiesRequestSerializer
    job_kind = strategies.StrategiesForm.kind


class PlanTestQuestionsView(PlanSimulationView):
    """Simulate how well test questions find careless annotators, by model and number of questions. The result is that of the job."""

    summaries = {"POST": "Simulate answers to test questions; returns the job to poll"}
    body_serializer_class = NoiseModelsRequestSerializer
    job_kind = noise_models.NoiseModelsForm.kind


class PlanDetailView(PlanView, RetrieveAPIView):
    """One plan of the size."""

    summaries = {"GET": "A plan of the size"}


class ChoosePlanView(PostMixin, PlanView):
    """Make a plan that of the draft. It becomes a part of the design."""

    summaries = {"POST": "Choose a plan of the size"}
    serializer_class = ChosenPlanSerializer
    body_serializer_class = ChoiceRequestSerializer

    def perform(self, sets_target: bool) -> SizePlan:
        plan = self.get_object()
        plan.changed = choose_plan(self.study, plan, self.request.user, sets_target=sets_target)
        return plan
