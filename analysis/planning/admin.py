"""The page Plan of a study, in the frame of the admin."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import path, reverse

from analysis.stats.planning.inputs import HEADLINES, PROTOCOLS
from studies.access import Action, get_study
from studies.admin import study_page
from studies.admin.permissions import ReadOnlyAdmin, is_request_allowed, parse_row_id
from studies.models import Job, SizePlan, Study
from studies.services.lifecycle import ActionRefused

from . import strategies
from .forms import PlanForm
from .inputs import InvalidPlanInputs, PlanInputs, claim_labels, inputs_from_draft
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
from .run import FORMAT, KIND, choose_plan, request_plan

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
        may_plan = is_request_allowed(request, Action.EDIT, study.pk)
        found = strategies.latest_strategies(study)
        form = strategies.StrategiesForm(initial=found["options"] if found else None)
        status = 200
        if request.method == "POST" and may_plan:
            form = strategies.StrategiesForm(request.POST.dict())
            if form.is_valid():
                job = strategies.request_strategies(study, request.user, form.cleaned_data)
                return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
            status = 422
        context = {
            "title": "Labelling strategies",
            "here": "Plan" if study.is_draft else "",
            "form": form,
            "found": found,
            "may_plan": may_plan,
        }
        return study_page.render_study_page(request, "admin/analysis/plan/strategies.html", study, context, status)

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
                labels=claim_labels(study) if stored is None and form.inputs.comparisons.claims else {},
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
            "job": study.jobs.filter(kind=KIND, state__in=[Job.State.WAITING, Job.State.RUNNING]).first(),
            **public_numbers(),
        }
        if form is not None:
            context |= self._live(request, study, form) | {
                "pilot_studies": pilot_studies(request.user).exclude(pk=study.pk)[:MOST_LISTED],
                "pilot_protocols": [(name, HEADLINES[name].label) for name in PROTOCOLS],
                "pilot_problems": pilot_problems,
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
