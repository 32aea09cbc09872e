"""Studies: their list, and the page on which a study is defined."""

import hashlib
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import flatten, flatten_fieldsets
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.http import HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.timesince import timesince

from studies import signals
from studies.models import Study, audit
from studies.services import drafts, questions
from studies.services.lifecycle import ActionRefused
from studies.stimuli.markdown import render_markdown

from .. import access
from ..access import Action
from . import acts, attention_checks, field_labels, study_page, words, workflow
from .field_labels import FIELDSETS, part_of_fieldset
from .forms import CleanTextMixin, MarkdownArea
from .inlines import INLINES, MemberInline
from .permissions import StudyScopedAdmin, changed_fields_and_row_kinds, is_request_allowed

MARKDOWN = ("purpose", "instructions", "consent", "debriefing")


def _part_of_inline(inline) -> str:
    return inline.model._meta.get_field("study").remote_field.get_accessor_name()


def _label_of_inline(inline) -> str:
    label = inline.verbose_name_plural or inline.model._meta.verbose_name_plural
    return str(capfirst(label)).partition(",")[0].partition(" (")[0]


# The parts of the page that have an address of their own, ``?part=<name>``: the name and the label of each.
PARTS = {part_of_fieldset(options): name for name, options in FIELDSETS} | {
    _part_of_inline(inline): _label_of_inline(inline) for inline in INLINES
}


def _shown_part(request) -> str:
    """Return the name of the only part that the address asks for, or '' for the whole page."""
    part = request.GET.get("part", "")
    return part if part in PARTS else ""


class StudyForm(CleanTextMixin, forms.ModelForm):
    class Meta(field_labels.build_form_meta("study")):  # type: ignore[misc]  # a class made from the labels
        widgets = {name: MarkdownArea(attrs={"rows": 7, "cols": 80}) for name in MARKDOWN} | {
            "withdrawal_until": forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
            "content_warning": forms.TextInput(attrs={"size": 80}),
            "retention": forms.TextInput(attrs={"size": 80}),
            "compared_groups": forms.TextInput(attrs={"size": 80}),
            "stimuli_source": forms.TextInput(attrs={"size": 80}),
        }

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk and (field := self.fields.get("language")):
            url = reverse("admin:studies_study_words", args=[self.instance.pk])
            field.help_text = format_html('{} <a href="{}">Words of the pages</a>', field.help_text, url)

    def clean_currency(self):
        return self.cleaned_data["currency"].upper()

    def _update_errors(self, errors):
        """Leave out what is wrong in a part of the page that is not shown. The checklist names it."""
        shown = {name: found for name, found in errors.error_dict.items() if name in (NON_FIELD_ERRORS, *self.fields)}
        if shown:
            super()._update_errors(ValidationError(shown))  # type: ignore[misc]  # private in Django


# Two people edit one form: the second to save sees what changed meanwhile, and loses nothing that they typed.
#
# A form carries a fingerprint of the rows that it edits. heval compares it while it holds the study's lock.


FINGERPRINT_FIELD = "_seen"


def editable_columns_fingerprint(*instances_or_querysets: Model | QuerySet) -> str:
    """Return a hash of the editable columns of these rows."""
    digest = hashlib.sha256()
    for part in instances_or_querysets:
        model = part.model if isinstance(part, QuerySet) else type(part)
        names = ["pk", *(f.attname for f in model._meta.concrete_fields if f.editable and not f.primary_key)]
        if isinstance(part, QuerySet):
            rows = list(part.order_by("pk").values_list(*names))
        else:
            rows = [tuple(getattr(part, name) for name in names)]
        digest.update(repr((model._meta.label, rows)).encode())
    return digest.hexdigest()[:32]


def lock_study(study_id: int) -> None:
    """Lock the study, so that saves of one study run one after the other."""
    Study.objects.select_for_update(no_key=True, of=("self",)).filter(pk=study_id).first()


def request_deletes_draft_rows(request, study: Study) -> bool:
    """Return whether the request deletes rows of a draft. Call it under the lock: the study may have been launched meanwhile."""
    study.refresh_from_db(fields=["state"])
    return study.is_draft and any(name.endswith("-DELETE") for name in request.POST)


def conflict_page(
    request, site, *, opts, original, current_fingerprint: str, differing: list[tuple[str, object, str]]
) -> TemplateResponse:
    """Return status 409 with the stored values beside the typed ones, and both ways to continue."""
    data: QueryDict = request.POST.copy()
    for name in ("csrfmiddlewaretoken", FINGERPRINT_FIELD):
        data.pop(name, None)
    context = {
        **site.each_context(request),
        "title": "Somebody else saved this page while you had it open",
        "opts": opts,
        "original": original,
        "differing": differing,
        "posted": [(name, value) for name, values in data.lists() for value in values],
        "fingerprint_field": FINGERPRINT_FIELD,
        "fingerprint": current_fingerprint,
    }
    return TemplateResponse(request, "admin/studies/conflict.html", context, status=409)


def differing_field_values(form) -> list[tuple[str, object, str]]:
    """Return (label, stored value, typed value) of the fields in which a bound form differs from its instance."""
    rows = []
    for name in form.changed_data:
        if name in form.fields:
            bound = form[name]
            typed = bound.data
            rows.append((bound.label, bound.initial, ", ".join(typed) if isinstance(typed, list) else typed))
    return rows


class StateFilter(admin.SimpleListFilter):
    title, parameter_name = "state", "state"

    def lookups(self, request, model_admin):
        return [*Study.State.choices, ("archived", "Archived")]

    def queryset(self, request, queryset):
        value = self.value()
        if value == "archived":
            return queryset.filter(archived_at__isnull=False)
        queryset = queryset.filter(archived_at=None) if not _is_detail_request(request) else queryset
        return queryset.filter(state=value) if value in Study.State.values else queryset


def _is_detail_request(request) -> bool:
    """Return whether the request is for one study. The URL of an archived study still works."""
    return bool(request.resolver_match and "object_id" in request.resolver_match.kwargs)


class RoleFilter(admin.SimpleListFilter):
    title, parameter_name = "my role", "role"

    def lookups(self, request, model_admin):
        return [(role, role.capitalize()) for role in ("owner", "editor", "viewer")]

    def queryset(self, request, queryset):
        value = self.value()
        if value in access.MEMBERS:
            return access.filter_by_role(queryset, request.user, value)
        return queryset


@admin.register(Study)
class StudyAdmin(StudyScopedAdmin):
    form = StudyForm
    inlines = INLINES
    change_form_template = "admin/studies/study.html"
    change_list_template = "admin/studies/studies.html"
    list_display = ("name", "state_label", "submitted_of_target", "time_since_last_answer", "owners")
    list_filter = (StateFilter, RoleFilter)
    list_per_page = 50
    search_fields = ("title", "public_title", "code")
    search_help_text = "Title or code"
    ordering = ("-pk",)
    actions = None
    save_on_top = False
    view_on_site = False

    # Permissions. Each part decides what may change after launch.

    def has_add_permission(self, request):
        return False  # the page of a new study makes drafts

    def has_change_permission(self, request, obj=None):
        return is_request_allowed(request, Action.EDIT, obj.pk if obj else None)

    def has_delete_permission(self, request, obj=None):
        return False  # an act of its own deletes or archives a draft

    # The list

    def get_changelist_instance(self, request):
        changelist = super().get_changelist_instance(request)
        ids = [study.pk for study in changelist.result_list]
        progress: dict[int, Any] = {}
        owners = access.owner_names_by_study_id(ids)
        for _, counted in signals.counting_progress.send(Study, study_ids=ids):
            progress |= counted
        for study in changelist.result_list:
            study.shown_progress = progress.get(study.pk)
            study.shown_owners = ", ".join(owners.get(study.pk, ()))
        return changelist

    @admin.display(description="study", ordering="title")
    def name(self, study):
        return study.title

    @admin.display(description="state", ordering="state")
    def state_label(self, study):
        return format_html('<span class="state state-{0}">{0}</span>', "archived" if study.archived_at else study.state)

    @admin.display(description="submitted")
    def submitted_of_target(self, study):
        done = study.shown_progress.submitted if study.shown_progress else 0
        robots = study.shown_progress.robots if study.shown_progress else 0
        imported = study.shown_progress.imported if study.shown_progress else 0
        extra_counts = [f"{robots} robot{'' if robots == 1 else 's'}"] if robots else []
        extra_counts += [f"{imported} imported"] if imported else []
        tried = format_html('<br><span class="quiet">and {}</span>', " and ".join(extra_counts)) if extra_counts else ""
        if not study.target_n:
            return format_html("{}{}", done or "–", tried)
        return format_html(
            '<progress max="{1}" value="{0}" aria-label="{0} of {1}"></progress> {0} of {1}{2}',
            done,
            study.target_n,
            tried,
        )

    @admin.display(description="last answer")
    def time_since_last_answer(self, study):
        last = study.shown_progress.last_submitted_at if study.shown_progress else None
        return (
            format_html('<time datetime="{}">{} ago</time>', last.isoformat(), timesince(last, depth=1))
            if last
            else "–"
        )

    @admin.display(description="owner")
    def owners(self, study):
        return study.shown_owners or "–"

    # The page

    def get_fieldsets(self, request, obj=None):
        hidden: tuple[str, ...] = () if obj.clone_of_id else ("keeps_origin_out",)
        hidden += () if access.may_read_draw(request.user, obj) else ("seed",)
        part = _shown_part(request)
        return tuple(
            (
                name,
                options
                | {"fields": tuple(field for field in options["fields"] if field not in hidden)}
                | ({"classes": options["classes"][:1]} if part else {}),
            )
            for name, options in FIELDSETS
            if part in ("", part_of_fieldset(options))
        )

    def get_readonly_fields(self, request, obj=None):
        if obj.is_draft:
            return ()
        return flatten_fieldsets(FIELDSETS)

    def get_inlines(self, request, obj):
        part = _shown_part(request)
        return [inline for inline in self.inlines if part in ("", _part_of_inline(inline))]

    def get_urls(self):
        return [
            path(
                "preview-text/",
                self.admin_site.admin_view(study_page.markdown_preview_page),
                name="studies_preview_text",
            ),
            path(
                "<int:pk>/attention-checks/",
                self.admin_site.admin_view(attention_checks.attention_checks_page),
                name="studies_study_attention_checks",
            ),
            path("<int:pk>/words/", self.admin_site.admin_view(words.words_page), name="studies_study_words"),
            *self._urls_of_other_apps(),
            *acts.act_url_patterns(self),
            *super().get_urls(),
        ]

    def _urls_of_other_apps(self):
        """Return the pages below a study's address that other classes of the admin serve: those with the method ``study_urls``."""
        for model_admin in self.admin_site._registry.values():
            yield from getattr(model_admin, "study_urls", list)()

    def _fingerprint(self, study: Study) -> str:
        rows = (
            study.systems,
            study.arms,
            study.contrasts,
            study.comparison_families,
            study.exclusion_rules,
            study.sections,
        )
        return editable_columns_fingerprint(study, *(manager.all() for manager in rows), access.members_of(study))

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        extra = {"shows_words": MARKDOWN, **(extra_context or {})}
        study = self.get_object(request, object_id) if object_id else None
        if study is None:
            return super().changeform_view(request, object_id, form_url, extra)
        if request.method == "POST" and self.has_change_permission(request, study):
            with transaction.atomic():
                lock_study(study.pk)
                if request_deletes_draft_rows(request, study):
                    drafts.delete_test_runs(study.pk, request.user)
                if conflict := self._conflict(request, study):
                    return conflict
                return super().changeform_view(request, object_id, form_url, extra)
        return super().changeform_view(request, object_id, form_url, extra | self._context(request, study))

    def _conflict(self, request, study):
        study.refresh_from_db()
        fingerprint = self._fingerprint(study)
        if request.POST.get(FINGERPRINT_FIELD, fingerprint) == fingerprint:
            return None
        fields = flatten_fieldsets(self.get_fieldsets(request, study))
        form = self.get_form(request, study, change=True, fields=fields)(request.POST, instance=study)
        return conflict_page(
            request,
            self.admin_site,
            opts=self.opts,
            original=study,
            current_fingerprint=fingerprint,
            differing=differing_field_values(form),
        )

    def _context(self, request, study):
        problems, populations = workflow.check_linked_design(study) if study.is_draft else ([], [])
        is_ready = study.is_draft and not any(problem.is_blocking for problem in problems)
        may_edit = is_request_allowed(request, Action.EDIT, study.pk)
        rendered_texts = (
            []
            if study.is_draft
            else [(study._meta.get_field(n).verbose_name, render_markdown(getattr(study, n))) for n in MARKDOWN]
        )
        return {
            "fingerprint": self._fingerprint(study),
            "fingerprint_field": FINGERPRINT_FIELD,
            "study": study,
            "tabs": workflow.study_tabs(request, study, "Design"),
            "parts": PARTS,
            "part": _shown_part(request),
            "next_step": workflow.next_step(study, problems, may_edit),
            "checklist": problems,
            "populations": populations,
            "plan_url": workflow.reverse_or_empty("admin:studies_plan", study.pk) if study.is_draft else "",
            "is_ready": is_ready,
            **(workflow.design_forecast(study) if study.is_draft else {}),
            "planned_families": workflow.planned_families(study) if study.is_draft else [],
            **acts.available_acts_by_weight(request, study),
            "rendered_words": [(label, html) for label, html in rendered_texts if html.strip()],
            "answers_url": workflow.reverse_or_empty("import_answers", study.pk)
            if may_edit and (study.is_draft or (study.state == Study.State.CLOSED and not study.open_to))
            else "",
            "import_url": workflow.reverse_or_empty("import", study.pk) if may_edit and study.is_draft else "",
            "counts": {"prompts": study.prompts.count(), "outputs": _outputs(study)},
            "lists": {
                "prompts": f"{reverse('admin:studies_prompt_changelist')}?study={study.pk}",
                "outputs": f"{reverse('admin:studies_output_changelist')}?study={study.pk}",
                "log": f"{reverse('admin:studies_auditevent_changelist')}?study={study.pk}",
                "annotators": workflow.reverse_or_empty("study_annotators", study.pk) if study.launched_at else "",
            },
            "add_section_url": f"{reverse('admin:studies_section_add')}?study={study.pk}"
            if may_edit and study.is_draft
            else "",
            "preview_text_url": reverse("admin:studies_preview_text"),
            "show_save": study.is_draft and may_edit or is_request_allowed(request, Action.SHARE, study.pk),
            "show_save_and_add_another": False,
            "show_save_and_continue": False,  # saving stays on this page
            "title": study.title,
            "subtitle": None,
        }

    def render_change_form(self, request, context, add=False, change=False, form_url="", obj=None):
        if change and obj is not None and "tabs" not in context:  # the form was refused: show it in the same page
            # The page around the form shows the stored study: the form's own instance holds the refused values.
            stored = Study.objects.get(pk=obj.pk)
            own = self._context(request, stored)
            titles = {name: own[name] for name in ("title", "subtitle")}
            context = {
                **own,
                **context,
                **titles,
                "fingerprint": request.POST.get(FINGERPRINT_FIELD, ""),
            }
        # Unfold what is wrong or missing. Django does so only for errors of fields that have a line of their own.
        form = context["adminform"].form
        marked = {*form.errors, *(problem.field for problem in context.get("checklist", ()) if problem.is_blocking)}
        for _, options in context["adminform"].fieldsets:
            if not marked.isdisjoint(flatten(options["fields"])):
                options["classes"] = options.get("classes", ())[:1]
        for group in context["inline_admin_formsets"]:
            if _shown_part(request) or group.formset.non_form_errors() or group.formset.prefix in marked:
                group.classes = group.classes.replace("collapse", "")
        return super().render_change_form(request, context, add, change, form_url, obj)

    def save_model(self, request, obj, form, change):
        if obj.is_draft and form.has_changed():
            obj.save()

    def save_formset(self, request, form, formset, change):
        if formset.model is not MemberInline.model:
            super().save_formset(request, form, formset, change)
            return
        formset.save(commit=False)  # Django's own log reads what this finds
        if formset.has_changed():
            access.replace_member_roles(form.instance, request.user, formset.roles())

    def save_related(self, request, form, formsets, change):
        super().save_related(request, form, formsets, change)
        study = form.instance
        columns = changed_fields_and_row_kinds(
            form, [formset for formset in formsets if formset.model is not MemberInline.model]
        )
        if study.is_draft and columns:
            drafts.record_edit_and_raise_version(study, request.user, columns=columns)

    def response_change(self, request, obj):
        if "_preview" in request.POST:
            return HttpResponseRedirect(workflow.reverse_or_empty("admin:annotators_preview", obj.pk) or request.path)
        # Saving stays on the study's page.
        self.message_user(request, "Saved.", messages.SUCCESS)
        if "_all_pairs" not in request.POST:
            return HttpResponseRedirect(request.get_full_path())
        try:
            n_added = questions.add_missing_comparisons(obj, request.user)
            self.message_user(request, f"Comparisons added: {n_added}.", messages.SUCCESS)
        except ActionRefused as refused:
            self.message_user(request, str(refused), messages.ERROR)
        return HttpResponseRedirect(f"{request.get_full_path()}#contrasts-group")

    def history_view(self, request, object_id, extra_context=None):
        study = self.get_object(request, object_id)
        events = audit.events_of(study).select_related("by").order_by("-pk")[:200] if study else ()
        frame = {"study": study, "tabs": workflow.study_tabs(request, study, "Design")} if study else {}
        return super().history_view(request, object_id, {"events": events, **frame, **(extra_context or {})})

    def get_search_results(self, request, queryset, search_term):
        # A code must match exactly: a partial search of a uuid column differs between databases.
        results, may_repeat = super().get_search_results(request, queryset, "")
        for word in search_term.split():
            results = results.filter(Q(title__icontains=word) | Q(public_title__icontains=word) | _by_code(word))
        return results, may_repeat


def _by_code(word: str) -> Q:
    import uuid

    try:
        return Q(code=uuid.UUID(word))
    except ValueError:
        return Q(pk__in=[])


def _outputs(study) -> int:
    from ..models import Output

    return Output.objects.filter(system__study=study).count()
