"""The page Plan of a study, in the frame of the admin, and the page of a new study about its people and their pay."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from analysis.stats.planning.inputs import HEADLINES, PROTOCOLS
from analysis.stats.planning.sizes import Prices, plan_budget
from annotators.admin.launch import about_channel, channel_field
from annotators.recruitment.channels import REGISTRY as CHANNELS
from studies.access import Action, get_study
from studies.admin import study_page
from studies.admin.forms import CleanTextMixin
from studies.admin.jobs import running_jobs
from studies.admin.permissions import ReadOnlyAdmin, is_request_allowed, parse_row_id
from studies.design.workload import low_pay_text
from studies.imports.study_templates import follow_pay
from studies.models import Job, SizePlan, Study
from studies.protocols import REGISTRY
from studies.services.drafts import update_draft
from studies.services.lifecycle import ActionRefused
from studies.services.questions import find_ai_tools_question

from . import noise_models, strategies
from .checklist import forecast_inputs
from .forms import PlanForm
from .inputs import (
    InvalidPlanInputs,
    PlanInputs,
    claim_labels,
    describe_groups,
    inputs_from_draft,
    items_per_prompt,
    planned_section,
)
from .page import live_context, public_numbers, stored_context
from .pilots import (
    FILE,
    MAX_FILE_BYTES,
    AnswersRefused,
    ResolvedPrior,
    pilot_of,
    pilot_sentence,
    pilot_studies,
    pilots_to_choose,
    request_estimate,
    store_answers_file,
)
from .results import OWN, panel_rows, panel_values, site_costs
from .run import FORMAT, KIND, choose_plan, most_places, proposed_target, request_plan
from .simulations import SimulationForm

# Stored plans that the page lists.
MOST_LISTED = 20
# The button of a row of the panels' table sends this.
USE_PANEL = "use_panel"


@admin.register(SizePlan)
class SizePlanAdmin(ReadOnlyAdmin):
    """Registered for the page Plan of a study, which lists the rows. A row has no page of its own."""

    def has_module_permission(self, request):
        return False

    def get_urls(self):
        return []

    def study_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/plan/", wrap(self.plan_view), name="studies_plan"),
            path("<int:pk>/plan/simulate/", wrap(self.simulate_view), name="studies_plan_simulate"),
            path("<int:pk>/plan/pilot/", wrap(self.pilot_view), name="studies_plan_pilot"),
            path("<int:pk>/plan/choose/", wrap(self.choose_view), name="studies_plan_choose"),
            path("<int:pk>/plan/strategies/", wrap(self.strategies_view), name="studies_plan_strategies"),
            path("<int:pk>/plan/test-questions/", wrap(self.test_questions_view), name="studies_plan_test_questions"),
        ]

    def plan_view(self, request, pk):
        """Show the form with its numbers, or only the numbers for the page's script (``part=live``)."""
        study = get_study(request.user, Action.VIEW, pk=pk)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET"])
        if not study.is_draft:
            return self._render(request, study, None, study.size_plan)
        study.keep_design()
        shown = _asked_plan(request, study)
        form = _form(request, study, shown, request.GET)
        if request.GET.get("part") == "live":
            context = self._live(request, study, form) | {"shown": shown}
            return TemplateResponse(
                request, "admin/analysis/plan/_live.html", context, status=200 if form.is_valid() else 422
            )
        return self._render(request, study, form, shown)

    def simulate_view(self, request, pk):
        study = get_study(request.user, Action.EDIT, pk=pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        shown = _asked_plan(request, study)
        form = _form(request, study, shown, request.POST)
        if not form.is_valid():
            return self._render(request, study, form, shown, status=422)
        try:
            job = request_plan(study, request.user, form.inputs)
        except ActionRefused as refused:
            messages.warning(request, str(refused))
            return HttpResponseRedirect(reverse("admin:studies_plan", args=[study.pk]))
        return HttpResponseRedirect(_job_target(study, job))

    def pilot_view(self, request, pk):
        """Submit the job that reads the named study, or estimate the variation from the uploaded file and show the plan with it."""
        study = get_study(request.user, Action.EDIT, pk=pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        # What else the form says stays.
        sent = {name: value for name, value in request.POST.items() if name in (*PlanForm.base_fields, "plan")}
        try:
            if not request.FILES and request.GET.get("from") != "file":
                job = request_estimate(study, request.user, request.POST.get("pilot", ""), sent)
                return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
            prior, estimate = _sent_file(request, study)
        except AnswersRefused as refused:
            problems = [str(problem) for problem in refused.problems]
        except (ActionRefused, InvalidPlanInputs) as refused:
            problems = [str(refused).removeprefix("prior: ")]
        else:
            messages.success(request, pilot_sentence(estimate))
            numbers = {name: estimate["variation"][name] for name in ("sd_people", "sd_prompts")}
            query = urlencode(sent | {"prior": prior} | numbers)
            return HttpResponseRedirect(f"{reverse('admin:studies_plan', args=[study.pk])}?{query}")
        shown = _asked_plan(request, study)
        form = _form(request, study, shown, request.POST)
        return self._render(request, study, form, shown, status=422, pilot_problems=problems)

    def choose_view(self, request, pk):
        study = get_study(request.user, Action.EDIT, pk=pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        plan = study.size_plans.filter(pk=parse_row_id(request.POST.get("plan", "")) or 0).first()
        try:
            if plan is None:
                raise ActionRefused("This study has no such plan. Choose a plan from the list.")
            changed = choose_plan(study, plan, request.user, sets_target="sets_target" in request.POST)
        except ActionRefused as refused:
            messages.warning(request, str(refused))
        else:
            messages.success(request, " ".join(["This is the study's plan now.", *changed]))
        return HttpResponseRedirect(reverse("admin:studies_plan", args=[study.pk]))

    def strategies_view(self, request, pk):
        """Show the newest plan of labelling strategies, and submit the job of another one."""
        study = get_study(request.user, Action.VIEW, pk=pk)
        found = strategies.latest_strategies(study)
        return self._simulation(request, study, strategies.StrategiesForm, found, "strategies", "Labelling strategies")

    def test_questions_view(self, request, pk):
        """Show how well test questions find careless annotators, as last simulated, and submit the job of another simulation."""
        study = get_study(request.user, Action.VIEW, pk=pk)
        found = noise_models.latest_flag_rates(study)
        form_class = noise_models.NoiseModelsForm
        return self._simulation(request, study, form_class, found, "test_questions", "Plan test questions")

    def _simulation(
        self,
        request: HttpRequest,
        study: Study,
        form_class: type[SimulationForm],
        found: dict[str, Any] | None,
        template: str,
        title: str,
    ) -> HttpResponse:
        may_plan = is_request_allowed(request, Action.EDIT, study.pk)
        form = form_class(initial=found["options"] if found else None, user=request.user)
        status = 200
        if request.method == "POST" and may_plan:
            form = form_class(request.POST.dict(), user=request.user)
            if form.is_valid():
                job = form_class.request(study, request.user, form.cleaned_data)
                return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
            status = 422
        context = {
            "title": title,
            "here": "Plan" if study.is_draft else "",
            "form": form,
            "found": found,
            "may_plan": may_plan,
        }
        return study_page.render_study_page(request, f"admin/analysis/plan/{template}.html", study, context, status)

    def _live(self, request: HttpRequest, study: Study, form: PlanForm) -> dict[str, Any]:
        """Return the numbers of valid inputs, with the stored plan of the same inputs if there is one."""
        context: dict[str, Any] = {"study": study, "form": form, "is_valid": form.is_valid()}
        if not context["is_valid"]:
            return context
        stored = study.size_plans.filter(fingerprint=form.inputs.fingerprint(), result__format=FORMAT).first()
        return context | {
            "hidden": [(name, "" if value is None else value) for name, value in form.sent_again().items()],
            "may_plan": study.is_draft and is_request_allowed(request, Action.EDIT, study.pk),
            "panels": panel_rows(
                form.inputs,
                study.currency,
                site_costs(request.user, study.currency),
                set(study.recruitments.values_list("channel", flat=True)),
            ),
            **live_context(
                form.inputs,
                study.currency,
                stored,
                _pilot(form.inputs, request.user),
                knows_fees=form.cleaned_data["fee_rate"] is not None,
                labels=claim_labels(study) if form.inputs.comparisons.claims else {},
            ),
        }

    def _render(
        self,
        request: HttpRequest,
        study: Study,
        form: PlanForm | None,
        shown: SizePlan | None,
        status: int = 200,
        pilot_problems: Sequence[str] = (),
    ) -> HttpResponse:
        context: dict[str, Any] = {
            "title": "Plan",
            "here": "Plan" if study.is_draft else "",
            "form": form,
            "shown": shown,
            "may_plan": study.is_draft and is_request_allowed(request, Action.EDIT, study.pk),
            "plans": _listed_plans(study),
            "running_jobs": running_jobs(request, study.jobs.filter(kind=KIND)),
            **public_numbers(),
        }
        if form is not None:
            context |= self._live(request, study, form) | {
                "pilot_studies": pilot_studies(request.user).exclude(pk=study.pk)[:MOST_LISTED],
                "pilot_protocols": [(name, HEADLINES[name].label) for name in PROTOCOLS],
                "pilot_problems": pilot_problems,
                "groups": describe_groups(study),
            }
        elif shown is not None:
            context["stored"] = stored_context(shown, study.currency)
        return study_page.render_study_page(request, "admin/analysis/plan/plan.html", study, context, status)


def _asked_plan(request: HttpRequest, study: Study) -> SizePlan | None:
    """Return the plan that the address names, or else the chosen one."""
    asked = parse_row_id(request.GET.get("plan") or request.POST.get("plan", ""))
    return (study.size_plans.filter(pk=asked).first() if asked else None) or study.size_plan


def _form(request: HttpRequest, study: Study, shown: SizePlan | None, sent: QueryDict) -> PlanForm:
    drafted = inputs_from_draft(study)
    start, panel = _start(drafted, shown), sent.get(USE_PANEL, "")
    own = site_costs(request.user, study.currency) if panel.startswith(OWN) else {}
    return PlanForm(
        start,
        sent.dict(),
        pilots_to_choose(study, request.user, sent.get("prior", start.prior)),
        drafted.comparisons,
        panel_values(panel, study.currency, own),
    )


def _sent_file(request: HttpRequest, study: Study) -> tuple[str, dict[str, Any]]:
    """Return the prior that the request uploads, and its estimate as JSON."""
    sent = request.FILES.get("file")
    if sent is None:
        raise ActionRefused("No file is chosen. Choose a file of answers.")
    if (sent.size or 0) > MAX_FILE_BYTES:
        raise ActionRefused(f"The file is larger than {MAX_FILE_BYTES // 2**20} MB. Send a smaller file.")
    name = sent.name or "answers.csv"
    stored = store_answers_file(study, request.user, name, sent.read(), protocol=request.POST.get("file_protocol", ""))
    return f"{FILE}{stored.sha256}", stored.estimate


def _start(drafted: PlanInputs, shown: SizePlan | None) -> PlanInputs:
    if shown is not None:
        try:
            return PlanInputs.from_json(shown.inputs)
        except InvalidPlanInputs:  # a plan of another version of heval
            pass
    return drafted


def _pilot(inputs: PlanInputs, user: Any) -> ResolvedPrior | None:
    """Return what the pilot of the inputs says now. A stored plan may have a pilot that says something else, or is away."""
    try:
        return pilot_of(inputs, user)
    except InvalidPlanInputs:
        return None


def _listed_plans(study: Study) -> list[dict[str, Any]]:
    rows = study.size_plans.filter(result__format=FORMAT).select_related("by").defer("inputs")[:MOST_LISTED]
    return [
        {"plan": plan, "planned": plan.result["plan"]["planned"], "is_chosen": plan.pk == study.size_plan_id}
        for plan in rows
    ]


def _job_target(study: Study, job: Job) -> str:
    """Return the page of the job, or that of its plan if it has ended."""
    if job.state == Job.State.DONE and job.result:
        return f"{reverse('admin:studies_plan', args=[study.pk])}?plan={job.result['plan']}"
    return reverse("admin:studies_job_page", args=[job.code])


class PeopleForm(CleanTextMixin, forms.ModelForm):
    """How many people a new study needs, and what each of them gets. An empty draft is proposed a size and a reward.

    ``instance`` has the values of the form afterwards, for the numbers beside it. The page stores ``changes``.
    """

    class Meta:
        model = Study
        fields = ("target_n", "annotators_per_batch", "minutes", "wage_per_hour", "reward", "currency")
        labels = {
            "target_n": "People",
            "annotators_per_batch": "People who have the same batch",
            "minutes": "Minutes that one person needs",
            "wage_per_hour": "Pay for an hour that you aim at",
            "reward": "Pay for one person",
        }
        help_texts = {
            "target_n": "The study is full when this many have finished.",
            "annotators_per_batch": "A batch is the work of one person. 1: each person has another one. 3: three people have the same one, and you see how far they agree.",
            "minutes": "Shown on the first page. Proposed from the texts and the answers, with a last question, and rounded up.",
            "wage_per_hour": "heval warns if the pay is lower.",
            "reward": "Empty: what your aim gives for these minutes, and nothing by an open link, whose people heval cannot pay.",
        }

    def __init__(self, study: Study, data: Mapping[str, Any] | None = None):
        self.stored = {
            name: getattr(study, name) for name in (*self.Meta.fields, "batches_per_annotator", "target_cap", "guide")
        }
        sections = [one for one in study.read_sections() if one.protocol in REGISTRY]
        needed = [REGISTRY[one.protocol].annotators_needed_per_batch(one) for one in sections]
        self.fixed = next((n for n in needed if n is not None), None)
        self.is_for_one = any(REGISTRY[one.protocol].is_for_one_annotator(one) for one in sections)
        self.most = most_places(study)
        if self.fixed is not None:
            study.annotators_per_batch = self.fixed
        inputs, _ = forecast_inputs(study)
        budget = plan_budget(inputs.size, inputs.pace, inputs.prices)
        # The page Texts, which follows, usually adds one question at the end.
        later = 0 if find_ai_tools_question(study) else inputs.pace.seconds_per_answer / 60
        minutes = math.ceil(budget.minutes_each / study.batches_per_annotator + later)
        wage = study.wage_per_hour if study.wage_per_hour is not None else Decimal(int(Prices().wage_per_hour))
        proposed = {
            "target_n": None if study.target_n else proposed_target(study, inputs),
            "minutes": minutes,
            "wage_per_hour": wage,
        }
        for name, value in proposed.items():
            if getattr(study, name) is None:
                setattr(study, name, value)
        super().__init__(data, instance=study)
        self.channel = ""
        if study.guide is not None:
            self.fields = {"channel": channel_field(study), **self.fields}
            self.channel = self.fields["channel"].initial
        for name in ("target_n", "minutes"):
            self.fields[name].required = True
        if study.reward is None:
            study.reward = self._proposed_reward()
        if self.fixed is not None or inputs.size.prompts_each >= inputs.size.prompts:
            del self.fields["annotators_per_batch"]  # the design decides it, or everybody judges every prompt

    def _proposed_reward(self) -> Decimal:
        """Return the pay that the aim gives, rounded up so that it is not below, or 0 where heval does not pay."""
        channel, study = CHANNELS.get(self.channel), self.instance
        if channel is not None and (not channel.identifies_people or channel.credits_on_completion):
            return Decimal(0)
        return math.ceil(study.minutes * Decimal(study.wage_per_hour) / 60 * 20) / Decimal(20)

    def clean_currency(self) -> str:
        return self.cleaned_data["currency"].upper()

    def clean_target_n(self) -> int:
        target = self.cleaned_data["target_n"]
        if self.most and target > self.most:
            raise forms.ValidationError(
                f"There are texts for {self.most} people with this design. Enter at most {self.most}."
            )
        return target

    def clean(self) -> dict[str, Any]:
        cleaned, study = super().clean() or {}, self.instance
        self.channel = cleaned.get("channel", "")
        if {"reward", "wage_per_hour"} <= {name for name, value in cleaned.items() if value is None}:
            self.add_error("reward", "Enter the pay for one person, or the pay for an hour that you aim at.")
        if (target := cleaned.get("target_n")) and study.target_cap and study.target_cap < target:
            study.target_cap = None  # the cap is then 1.5 times the target
        if target and self.is_for_one:
            study.batches_per_annotator = max(study.batches_per_annotator, target)
        return cleaned

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # it fills the instance
        if not self.errors and self.instance.reward is None:
            self.instance.reward = self._proposed_reward()

    def changes(self) -> dict[str, Any]:
        """Return the columns that differ from what is stored."""
        if "channel" in self.fields:
            self.instance.guide = (self.instance.guide or {}) | {"channel": self.channel}
        now = {name: getattr(self.instance, name) for name in self.stored}
        return {name: value for name, value in now.items() if value != self.stored[name]}


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_study_people_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask how many people a new study needs and what they get, beside the numbers of its plan. POST stores it, or shows the numbers."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    if not study.is_draft:
        return HttpResponseRedirect(reverse("admin:studies_study_change", args=[pk]))
    study.keep_design()
    template = "admin/studies/new/people.html"
    if (section := planned_section(study)) is None:
        return study_page.render_new_study_page(request, template, study, "People", {})
    is_live = request.GET.get("part") == "live"
    sent = request.POST if request.method == "POST" else request.GET if is_live else None
    form = PeopleForm(study, sent)
    is_valid = not form.is_bound or form.is_valid()
    if request.method == "POST" and is_valid and "show" not in request.POST:
        try:
            update_draft(study, request.user, form.changes() | {"consent": follow_pay(form.instance)})
            return HttpResponseRedirect(study_page.next_new_study_url(request, study, "People"))
        except (ActionRefused, ValidationError) as refused:
            form.add_error(None, refused if isinstance(refused, ValidationError) else str(refused))
            is_valid = False
    context: dict[str, Any] = {"form": form, "is_valid": is_valid, "has_texts": study.prompts.exists()}
    if is_valid:
        inputs, stored = forecast_inputs(study)
        own = site_costs(request.user, study.currency)
        rows = panel_rows(inputs, study.currency, own, {form.channel}) if study.reward else []
        fees = [row for row in rows if row["is_linked"]]
        is_free = bool(fees) and all(one["rate"] == 0 for one in fees)
        minutes = (study.minutes or 0) * study.batches_per_annotator
        context |= live_context(inputs, study.currency, stored, knows_fees=is_free, minutes=minutes)
        said = about_channel(form.channel, study.reward) if "channel" in form.fields else ""
        context |= {"fees": fees, "about_channel": said, "study": study}
        context |= {"low_pay": low_pay_text(study), "times_each": items_per_prompt(section)}
        context |= {"pay": study.reward, "turn": "output" if inputs.size.kind == "superiority" else "pair"}
    status = 200 if is_valid else 422
    if is_live:
        return TemplateResponse(request, "admin/analysis/plan/_people.html", context, status=status)
    return study_page.render_new_study_page(request, template, study, "People", context, status)


study_pages = [path("<int:pk>/new/people/", new_study_people_page, name="new_study_people")]
