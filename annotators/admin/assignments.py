"""Admin of assignments: the list, the detail page, and decisions about them. System names never appear here."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import F, Model, Q
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.template.defaultfilters import date
from django.template.response import TemplateResponse
from django.urls import path, reverse

from annotators.counting import Use, select
from annotators.pages.sequence import describe_page_key
from annotators.places.exclusions import (
    EXCLUSION_REASONS,
    annotate_is_excluded,
    create_exclusion_reversal,
    describe_excluded_places,
    exclude_assignments,
    release_place,
)
from annotators.places.places import compute_receipt, looks_like_receipt, normalize_receipt
from annotators.recruitment.channels import REGISTRY
from studies.access import Action, filter_allowed, get_row
from studies.admin import workflow
from studies.admin.forms import CleanTextMixin
from studies.admin.permissions import (
    ReadOnlyAdmin,
    StudyFilter,
    assignment_code_prefix_q,
    is_request_allowed,
    parse_row_id,
)
from studies.models import Arm, Study
from studies.services.lifecycle import ActionRefused

from ..models import Assignment, Exclusion, Recruitment

STATE_FILTERS: dict[str, dict[str, Any]] = {
    "reserved": {"released_at": None, "submitted_at": None},
    "submitted": {"released_at": None, "submitted_at__isnull": False},
    "late": {"is_late": True},
    "released": {"released_at__isnull": False},
    "withdrawn": {"withdrawn_at__isnull": False},
    "excluded": {"is_excluded": True},
}


def assignment_state_text(assignment: Assignment) -> str:
    """Return the status of an assignment in one or two words."""
    if assignment.withdrawn_at:
        return "withdrew"
    if assignment.is_late:
        return "late"
    if assignment.released_at:
        return f"released: {assignment.get_released_reason_display().lower()}"
    return "submitted" if assignment.submitted_at else "in progress"


class StateFilter(admin.SimpleListFilter):
    title, parameter_name = "state", "state"

    def lookups(self, request, model_admin):
        return [(name, {"reserved": "in progress"}.get(name, name)) for name in STATE_FILTERS]

    def queryset(self, request, queryset):
        return queryset.filter(**STATE_FILTERS.get(self.value() or "", {}))


class _StudyRowFilter(admin.SimpleListFilter):
    """A filter limited to rows of the study in the list."""

    rows: type[Model]
    column: str

    def lookups(self, request, model_admin):
        rows = filter_allowed(request.user, self.rows._default_manager.all()).order_by("pk")
        study = parse_row_id(request.GET.get("study", ""))
        return [(str(row.pk), str(row)) for row in rows.filter(study=study)[:50]] if study else []

    def queryset(self, request, queryset):
        value = self.value()
        if not value:
            return queryset
        return queryset.filter(**{self.column: parse_row_id(value)}) if parse_row_id(value) else queryset.none()


class ArmFilter(_StudyRowFilter):
    title, parameter_name, rows, column = "arm", "arm", Arm, "batch__arm"


class RecruitmentFilter(_StudyRowFilter):
    title, parameter_name, rows, column = "recruitment", "recruitment", Recruitment, "recruitment"


class AnnotatorFilter(admin.SimpleListFilter):
    """The assignments of one annotator. The page of annotators links to it; the list does not offer other annotators."""

    title, parameter_name = "annotator", "annotator"

    def lookups(self, request, model_admin):
        value = request.GET.get(self.parameter_name, "")
        return [(value, "the chosen one")] if parse_row_id(value) else []

    def queryset(self, request, queryset):
        return queryset.filter(annotator=parse_row_id(value)) if (value := self.value()) else queryset


class ExcludeForm(CleanTextMixin, forms.Form):
    reason = forms.ChoiceField(choices=[("", "(choose)"), *EXCLUSION_REASONS.items()])
    note = forms.CharField(
        required=False,
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 70}),
        help_text="For the record. Do not name a person: others may read the report.",
    )
    reopen = forms.BooleanField(
        required=False,
        label="reopen the place for another annotator",
        help_text=("heval adds a copy of the batch with one place."),
    )


class NoteForm(CleanTextMixin, forms.Form):
    note = forms.CharField(required=False, max_length=1000, widget=forms.Textarea(attrs={"rows": 2, "cols": 60}))


@admin.action(description="Exclude from the analysis…")
def render_exclusion_form(modeladmin, request, queryset) -> TemplateResponse | HttpResponseRedirect | None:
    """Redirect to the form that asks for the reason."""
    codes = list(queryset.values_list("code", flat=True)[:1001])
    if len(codes) > 1000:
        messages.error(request, "Choose at most 1000 assignments at a time.")
        return None
    return modeladmin.render_exclude_page(request, codes)


@admin.register(Assignment)
class AssignmentAdmin(ReadOnlyAdmin):
    list_display = (
        "short_code",
        "study",
        "arm",
        "origin",
        "state",
        "exclusion_text",
        "link_key",
        "claimed_time",
        "submitted_time",
        "trust_level",
    )
    list_filter = (StudyFilter, StateFilter, ArmFilter, RecruitmentFilter, AnnotatorFilter, "origin")
    list_select_related = ("study", "batch__arm", "recruitment")
    list_per_page = 100
    show_full_result_count = False
    search_fields = ("code",)
    search_help_text = "Search by receipt, by code, or by the first eight characters of a code"
    ordering = ("-pk",)
    actions = [render_exclusion_form]

    def get_queryset(self, request):
        return annotate_is_excluded(select(Use.RECORD, super().get_queryset(request)))

    def get_search_results(self, request, queryset, search_term):
        term = search_term.strip()
        if not term:
            return queryset, False
        matches = assignment_code_prefix_q(term, "code")
        if looks_like_receipt(term):
            # Receipts are computed from codes and not stored.
            rows = queryset.order_by().values_list("pk", "code").iterator()
            matches |= Q(
                pk__in=[pk for pk, code in rows if normalize_receipt(compute_receipt(code)) == normalize_receipt(term)]
            )
        return queryset.filter(matches), False

    def get_actions(self, request, action_location=None):
        location = {} if action_location is None else {"action_location": action_location}  # from Django 6.1 on
        actions = super().get_actions(request, **location)
        actions.pop("delete_selected", None)
        return actions if is_request_allowed(request, Action.MANAGE_ASSIGNMENTS) else {}

    @admin.display(description="code", ordering="code")
    def short_code(self, assignment):
        return assignment.code[:8]

    @admin.display(description="arm")
    def arm(self, assignment):
        return assignment.batch.arm.name if assignment.batch_id else "–"

    @admin.display(description="state")
    def state(self, assignment):
        return assignment_state_text(assignment)

    @admin.display(description="excluded")
    def exclusion_text(self, assignment):
        return "excluded" if assignment.is_excluded else ""

    @admin.display(description="trust", ordering="trust")
    def trust_level(self, assignment):
        return assignment.trust

    @admin.display(description="link", ordering="recruitment")
    def link_key(self, assignment):
        return assignment.recruitment.key if assignment.recruitment_id else "–"

    @admin.display(description="came", ordering="claimed_at")
    def claimed_time(self, assignment):
        return date(assignment.claimed_at, "DATETIME_FORMAT")

    @admin.display(description="submitted", ordering="submitted_at")
    def submitted_time(self, assignment):
        return date(assignment.submitted_at, "DATETIME_FORMAT") or "–"

    def get_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path("exclude/", wrap(self.exclude_view), name="annotators_exclude"),
            path("<int:pk>/release/", wrap(self.release_view), name="annotators_release"),
            path("exclusion/<int:pk>/reverse/", wrap(self.lift_exclusion_view), name="annotators_reverse_exclusion"),
            *super().get_urls(),
        ]

    # One assignment

    def change_view(self, request, object_id, form_url="", extra_context=None):
        assignment = self.get_object(request, object_id)
        if assignment is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]  # private in Django
        if request.method != "GET":
            return HttpResponseNotAllowed(["GET"])
        may_edit = is_request_allowed(request, Action.MANAGE_ASSIGNMENTS, assignment.study_id)
        visits = list(assignment.visits.order_by("pk"))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Assignment {assignment.code[:8]}",
            "subtitle": assignment.study.title,
            "study": assignment.study,
            "opts": self.opts,
            "tabs": workflow.study_tabs(request, assignment.study, "Collect"),
            "assignment": assignment,
            "state": assignment_state_text(assignment),
            "arm": self.arm(assignment),
            "receipt": compute_receipt(assignment.code),
            "visits": [(visit, describe_page_key(visit.key)) for visit in visits],
            "answers": _answers(assignment, visits),
            "exclusions": assignment.exclusions.filter(reverses=None)
            .select_related("by")
            .prefetch_related("reversed_by__by")
            .order_by("pk"),
            "events": assignment.study.audit_events.filter(assignment_code=assignment.code)
            .select_related("by")
            .order_by("pk"),
            "may_edit": may_edit,
            "may_exclude": may_edit
            and assignment.submitted_at
            and not assignment.is_excluded
            and assignment.origin != "test",
            "may_release": may_edit and not assignment.released_at and not assignment.submitted_at,
            "page_url": f"/p/{assignment.code}/",
            "may_decide": may_edit
            and assignment.recruitment is not None
            and assignment.recruitment.channel in REGISTRY,
        }
        return TemplateResponse(request, "admin/annotators/assignment.html", context)

    # Decisions

    def render_exclude_page(self, request, codes, form=None, status=200):
        rows = list(
            filter_allowed(request.user, Assignment.objects.filter(code__in=codes), Action.MANAGE_ASSIGNMENTS)
            .select_related("study")
            .order_by("pk")
        )
        if not rows:
            messages.error(request, "Choose at least one assignment of a study that you may change.")
            return HttpResponseRedirect(reverse("admin:annotators_assignment_changelist"))
        study = rows[0].study
        context = {
            **self.admin_site.each_context(request),
            "title": "Exclude from the analysis",
            "subtitle": study.title,
            "study": study,
            "opts": self.opts,
            "tabs": workflow.study_tabs(request, study, "Collect"),
            "rows": rows,
            "form": form or ExcludeForm(),
            "back": f"{reverse('admin:annotators_assignment_changelist')}?study={study.pk}",
        }
        return TemplateResponse(request, "admin/annotators/exclude.html", context, status=status)

    def exclude_view(self, request):
        """Exclude assignments: GET ?code=… asks for the reason, POST excludes."""
        data = request.POST if request.method == "POST" else request.GET
        codes = [code for code in data.getlist("code") if code.isascii() and code.isprintable()][:1000]
        if request.method != "POST":
            return self.render_exclude_page(request, codes)
        form = ExcludeForm(request.POST)
        rows = filter_allowed(
            request.user, Assignment.objects.filter(code__in=codes), Action.MANAGE_ASSIGNMENTS
        ).select_related("study")
        if not form.is_valid():
            return self.render_exclude_page(request, codes, form, 422)
        chosen = list(rows)
        answers = form.cleaned_data
        try:
            exclusions = exclude_assignments(
                chosen, answers["reason"], request.user, answers["note"], answers["reopen"]
            )
        except ActionRefused as refused:
            form.add_error(None, str(refused))
            return self.render_exclude_page(request, codes, form, 422)
        messages.success(request, _exclusion_message(exclusions, len(chosen), answers["reopen"]))
        return HttpResponseRedirect(f"{reverse('admin:annotators_assignment_changelist')}?study={chosen[0].study_id}")

    def lift_exclusion_view(self, request, pk):
        exclusion = get_row(
            request.user, Action.MANAGE_ASSIGNMENTS, Exclusion.objects.select_related("assignment__study"), pk=pk
        )
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        form = NoteForm(request.POST)
        try:
            if not form.is_valid():
                raise ActionRefused(" ".join(str(message) for errors in form.errors.values() for message in errors))
            create_exclusion_reversal(exclusion, request.user, form.cleaned_data["note"])
            messages.success(request, "The exclusion was taken back: the assignment counts again.")
        except ActionRefused as refused:
            messages.error(request, str(refused))
        return HttpResponseRedirect(reverse("admin:annotators_assignment_change", args=[exclusion.assignment_id]))

    def release_view(self, request, pk):
        assignment = get_row(request.user, Action.MANAGE_ASSIGNMENTS, Assignment.objects.select_related("study"), pk=pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            release_place(assignment, request.user)
            messages.success(
                request, "The place is free again. If the annotator returns before it is taken, they get it back."
            )
        except ActionRefused as refused:
            messages.error(request, str(refused))
        return HttpResponseRedirect(reverse("admin:annotators_assignment_change", args=[assignment.pk]))


def _exclusion_message(exclusions: list[Exclusion], chosen: int, is_reopened: bool) -> str:
    """Describe the exclusions, the reopened places, and assignments that were excluded before."""
    sentences = []
    if exclusions:
        study = Study.objects.get(pk=exclusions[0].assignment.study_id)
        sentences += [f"{len(exclusions)} excluded.", describe_excluded_places(study, len(exclusions), is_reopened)]
    if n_unchanged := chosen - len(exclusions):
        subject = "1 was" if n_unchanged == 1 else f"{n_unchanged} were"
        sentences.append(f"{subject} excluded before, so nothing changed for {'it' if n_unchanged == 1 else 'them'}.")
    return " ".join(sentences)


def _answers(assignment: Assignment, visits) -> list[tuple[str, str, str]]:
    """Return (question as shown, label, answer).

    The words are those of the page, with letters instead of system names.
    """
    question_texts = {pk: text for visit in visits for _, pk, text, _ in visit.shown.get("questions", ())}
    rows = assignment.responses.order_by("pk").annotate(question_text=F("question__text"), scale=F("question__scale"))
    return [
        (
            str(question_texts.get(row.question_id, row.question_text)).replace("{label}", row.label),
            row.label,
            _answer(row),
        )
        for row in rows
    ]


def _answer(response) -> str:
    if response.erased_at and response.value is None and not response.text:
        return "(deleted by the annotator)"
    if response.skip_reason:
        return f"not answered: {response.skip_reason}"
    if response.text:
        return response.text
    parts = []
    if response.choice:
        labels = {option["key"]: option["label"] for option in response.scale.get("options", ())}
        parts.append(labels.get(response.choice, response.choice))
    if response.chosen_id:
        parts.append(f"the text {response.label}")
    if response.value is not None:
        parts.append(f"{response.value.normalize():f}")
    return ", ".join(parts) + (f" at {response.part}" if response.part else "")
