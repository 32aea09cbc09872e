"""Admin of recruitments: first the channel, then its settings as form fields, then the links to copy."""

from typing import Any

from django import forms
from django.conf import settings as site_settings
from django.contrib import admin, messages
from django.http import HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path, reverse

from annotators.participation import link_actions
from annotators.places.steps import opens_in_steps
from annotators.recruitment import sample
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.links import possible_early_ends
from annotators.recruitment.panels import stand_in
from studies.access import Action, filter_allowed, get_row
from studies.admin import study_page, workflow
from studies.admin.forms import (
    CleanTextMixin,
    RowChoiceField,
    RowMultipleChoiceField,
    build_form_with_settings,
    choice_field,
    choices_of,
    headed_settings_fieldsets,
    optional_utc_datetime_field,
    prefixed_settings_fields,
)
from studies.admin.jobs import running_jobs
from studies.admin.permissions import StudyFilter, is_request_allowed
from studies.models import Job, Study

from ..models import Recruitment, SampleColumn
from ..pay import promises
from . import pay
from .panel import PanelFileForm
from .verdicts import VerdictAdmin


class RehearsalForm(forms.Form):
    people = forms.IntegerField(
        min_value=stand_in.MIN_PEOPLE,
        max_value=stand_in.MAX_PEOPLE,
        initial=stand_in.DEFAULT_PEOPLE,
        label="number of robots",
        help_text="One for each way to end (at most eleven). All other robots finish normally.",
    )


# The sample of a recruitment: declared columns, and the panel's demographic file.


MAX_COLUMNS = 20


class ColumnsForm(forms.Form):
    """One column per line. Columns that are not named here are never stored."""

    numbers = forms.CharField(
        required=False,
        label="numeric columns",
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One per line, as named in the file's first row, for example: Age",
    )
    categories = forms.CharField(
        required=False,
        label="categorical columns",
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="One per line, for example: Sex, Country of residence.",
    )
    shown_small = forms.CharField(
        required=False,
        label="columns with small counts shown",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=(
            "Counts below five can identify a person, so they are hidden. To show them for a column, "
            "name it here, one per line."
        ),
    )

    def __init__(self, study, data=None):
        rows = list(SampleColumn.objects.filter(study=study).order_by("pk"))
        kinds = {"numbers": SampleColumn.Kind.NUMBER, "categories": SampleColumn.Kind.CATEGORY}
        first = {field: "\n".join(row.name for row in rows if row.kind == kind) for field, kind in kinds.items()}
        super().__init__(data, initial=first | {"shown_small": "\n".join(row.name for row in rows if row.shows_small)})

    def clean(self):
        names_by_field = {
            field: [line.strip() for line in self.cleaned_data.get(field, "").splitlines() if line.strip()]
            for field in self.fields
        }
        columns = names_by_field["numbers"] + names_by_field["categories"]
        if long := next((name for name in columns if len(name) > sample.MAX_VALUE_LENGTH), None):
            raise forms.ValidationError(
                f"The column “{long[:40]}…” has more than {sample.MAX_VALUE_LENGTH} characters. Shorten it here and in the file."
            )
        if repeated_name := next(
            (name for name in columns if [other_name.lower() for other_name in columns].count(name.lower()) > 1), None
        ):
            raise forms.ValidationError(f"The column “{repeated_name}” is named twice. Remove one of the two lines.")
        if len(columns) > MAX_COLUMNS:
            raise forms.ValidationError(f"There are {len(columns)} columns. Declare at most {MAX_COLUMNS}.")
        if unknown := [name for name in names_by_field["shown_small"] if name not in columns]:
            raise forms.ValidationError(
                f"Small counts: “{unknown[0]}” is not a declared column. Declare it above, or remove it here."
            )
        kinds = {"numbers": SampleColumn.Kind.NUMBER, "categories": SampleColumn.Kind.CATEGORY}
        self.columns = [
            (name, kind, name in names_by_field["shown_small"])
            for field, kind in kinds.items()
            for name in names_by_field[field]
        ]
        return self.cleaned_data


class SampleFileForm(PanelFileForm):
    person = forms.CharField(max_length=100, label="column with the panel's participant ids")
    field_order = ("person", "file")

    def __init__(self, recruitment: Recruitment, data=None, files=None):
        super().__init__(data, files, initial={"person": REGISTRY[recruitment.channel].person_column})
        self.fields["file"].label = "The panel's demographic file"


LINKS_SHOWN = 20


def labelled_link_urls(recruitment: Recruitment) -> list[tuple[str, str]]:
    """Return (label, full address) for each link of a recruitment."""
    channel = REGISTRY.get(recruitment.channel)
    base = f"{site_settings.SITE_URL}{reverse('entry', args=[recruitment.key])}"
    return channel.links(recruitment, base) if channel else []


class AddRecruitmentForm(CleanTextMixin, forms.ModelForm):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        field = choice_field(self, "channel")
        field.choices = [(slug, channel.label) for slug, channel in REGISTRY.items() if channel.takes_new_links]
        field.widget = forms.RadioSelect(choices=choices_of(field))


class RecruitmentForm(pay.PromisesForm):
    # A channel reads the stored settings and knows no defaults.
    stores_defaults = True

    class Meta:
        labels = {"key": "Link name", "wanted": "Target number of people"}
        help_texts = {"key": "The part of the link after /e/. Annotators can see it."}

    opens_at = optional_utc_datetime_field(label="Opens")
    closes_at = optional_utc_datetime_field(label="Closes")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk and "shown_arms" in self.fields:
            self.initial["shown_arms"] = [row.arm_id for row in self.instance.recruitment_arms.all()]

    def clean_currency(self):
        return self.cleaned_data["currency"].upper()

    def _save_m2m(self):
        super()._save_m2m()  # type: ignore[misc]  # private in Django
        if "shown_arms" in self.changed_data:
            self.instance.arms.set(self.cleaned_data["shown_arms"])


@admin.register(Recruitment)
class RecruitmentAdmin(VerdictAdmin, pay.PayAdmin):
    action = Action.RECRUIT
    is_design = False
    form = RecruitmentForm
    change_form_template = "admin/annotators/recruitment.html"
    list_display = ("__str__", "study", "wanted", "reward", "stopped_at")
    list_filter = (StudyFilter, "channel")
    list_select_related = ("study",)
    list_per_page = 50
    search_fields = ("key", "pool")
    actions = None
    view_on_site = False

    def get_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/state/", wrap(self.stop_or_reopen_view), name="annotators_recruitment_state"),
            path("<int:pk>/rehearsal/", wrap(self.rehearsal_view), name="annotators_rehearsal"),
            path("<int:pk>/demographics/", wrap(self.demographics_view), name="annotators_demographics"),
            path(
                "<int:pk>/demographics/table.csv", wrap(self.demographics_csv_view), name="annotators_demographics_csv"
            ),
            *super().get_urls(),
        ]

    def stop_or_reopen_view(self, request, pk):
        """POST: stop the link for new people, or open it again."""
        recruitment = get_row(request.user, Action.RECRUIT, Recruitment.objects.select_related("study"), pk=pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if "stop" in request.POST and link_actions.stop_link(recruitment, request.user):
            self.message_user(
                request, "The link is stopped. People who have started can finish, and are paid.", messages.SUCCESS
            )
        elif "open" in request.POST and link_actions.reopen_link(recruitment, request.user):
            self.message_user(request, "The link is open to new people again.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:annotators_recruitment_change", args=[pk]))

    def rehearsal_view(self, request, pk):
        """Show the rehearsal page. POST starts a rehearsal if none is running."""
        recruitment = self._get_recruitment_or_404(request, pk)
        form = RehearsalForm()
        if request.method == "POST":
            form = RehearsalForm(request.POST)
            if form.is_valid():
                stand_in.get_or_create_rehearsal_job(recruitment, form.cleaned_data["people"], by=request.user)
                messages.success(request, "The rehearsal is starting.")
                return HttpResponseRedirect(reverse("admin:annotators_rehearsal", args=[pk]))
        rehearsals = stand_in.rehearsal_jobs_of(recruitment)
        last, last_done = rehearsals.defer("result").first(), rehearsals.filter(state=Job.State.DONE).first()
        context = {
            "title": "Rehearsal",
            "recruitment": recruitment,
            "channel": REGISTRY[recruitment.channel],
            "form": form,
            "job": last,
            "running_jobs": running_jobs(request, rehearsals),
            "done": last_done,
            "report": last_done.result if last_done else None,
        }
        return study_page.render_study_page(
            request,
            "admin/annotators/rehearsal.html",
            recruitment.study,
            context,
            status=400 if form.errors else 200,
        )

    def demographics_view(self, request, pk):
        """Show the sample table. POST declares columns, previews a file, or imports it."""
        recruitment = self._get_recruitment_or_404(request, pk)
        columns, file, joined = ColumnsForm(recruitment.study), SampleFileForm(recruitment), None
        sample_page = HttpResponseRedirect(reverse("admin:annotators_demographics", args=[pk]))
        if "declare" in request.POST:
            columns = ColumnsForm(recruitment.study, request.POST)
            if columns.is_valid():
                sample.replace_demographic_columns(recruitment.study, columns.columns, by=request.user)
                messages.success(request, "The columns are declared. Nothing else is kept from a file.")
                return sample_page
        elif request.method == "POST":
            file = SampleFileForm(recruitment, request.POST, request.FILES)
            if file.is_valid():
                joined = self._read_sample_file(request, recruitment, file)
                if joined is not None and "take" in request.POST:
                    messages.success(request, f"Imported: {joined.people} people of this link, {joined.values} values.")
                    return sample_page
        table = sample.sample_demographics_table(recruitment.study)
        context = {
            "title": "Sample",
            "hidden_forms": [] if table else [file],
            "recruitment": recruitment,
            "columns": columns,
            "file": file,
            "joined": joined,
            "table": table,
            "small": sample.SMALL_COUNT,
        }
        status = 400 if columns.errors or file.errors else 200
        template = "admin/annotators/demographics.html"
        return study_page.render_study_page(request, template, recruitment.study, context, status=status)

    def _read_sample_file(self, request, recruitment, form):
        values = form.cleaned_data
        try:
            return sample.import_sample_demographics(
                recruitment, values["file"], values["person"], by=request.user, dry_run="take" not in request.POST
            )
        except ValueError as refused:
            form.add_error("file", str(refused))
            return None

    def demographics_csv_view(self, request, pk):
        recruitment = self._get_recruitment_or_404(request, pk)
        text = sample.sample_demographics_csv(sample.sample_demographics_table(recruitment.study))
        headers = {"Content-Disposition": 'attachment; filename="sample.csv"'}
        return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)

    def has_add_permission(self, request):
        return is_request_allowed(request, Action.RECRUIT)

    def has_delete_permission(self, request, obj=None):
        return (
            obj is not None
            and is_request_allowed(request, Action.RECRUIT, obj.study_id)
            and not obj.assignments.exists()
        )

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("study")

    def get_fieldsets(self, request, obj=None):
        if obj is None:
            return ((None, {"fields": ("study", "channel")}),)
        channel = REGISTRY.get(obj.channel)
        names = tuple(prefixed_settings_fields(channel.settings_form if channel else None))
        if not is_request_allowed(request, Action.RECRUIT, obj.study_id):
            fields = (
                "channel",
                "key",
                "pool",
                "wanted",
                "reward",
                "currency",
                "opens_at",
                "closes_at",
                "is_for_experts",
            )
            return ((None, {"fields": fields}),)
        parts: list[tuple[str, dict[str, Any]]] = [
            (
                "Who can take part",
                {
                    "fields": (
                        ("key", "pool"),
                        "shown_arms",
                        ("wanted", "reward", "currency"),
                        ("opens_at", "closes_at"),
                        "is_for_experts",
                    )
                },
            )
        ]
        parts.append(
            (
                "Pay for an early end",
                {
                    "fields": pay.field_names(possible_early_ends(obj)),
                    "description": "The first page shows this. People who reach the last page get the reward.",
                    "classes": ["pairs"],
                },
            )
        )
        if names and channel and channel.settings_form:
            channel_fieldsets = headed_settings_fieldsets(channel.settings_form)
            own = tuple(
                name for name in names if not any(name in options["fields"] for _, options in channel_fieldsets)
            )
            parts += [(f"Settings of {channel.label}", {"fields": own}), *channel_fieldsets]
        return tuple(parts)

    def get_form(self, request, obj=None, change=False, **kwargs):
        if obj is None:
            studies = filter_allowed(
                request.user, Study.objects.filter(archived_at=None).exclude(state="closed"), Action.RECRUIT
            )
            rows = {row.pk: row for row in studies.order_by("-pk")[:200]}
            form = type(
                "AddRecruitmentForm", (AddRecruitmentForm,), {"study": RowChoiceField(rows, empty="choose a study")}
            )
            return super().get_form(request, obj, change, **kwargs | {"form": form})
        if not self.has_change_permission(request, obj):
            return super().get_form(request, obj, change, **kwargs | {"form": forms.ModelForm})
        channel = REGISTRY.get(obj.channel)
        arms = {row.pk: row for row in obj.study.arms.order_by("name")}
        form = build_form_with_settings(self.form, channel.settings_form if channel else None)
        extra = pay.outcome_pay_form_fields(possible_early_ends(obj)) | {
            "shown_arms": RowMultipleChoiceField(arms, label="arms", help_text="If you tick none, all are allowed.")
        }
        return super().get_form(request, obj, change, **kwargs | {"form": type("RecruitmentForm", (form,), extra)})

    def get_readonly_fields(self, request, obj=None):
        # The address, the people's identities and what their answers count for must not change after the link was shared.
        return ("key", "pool", "is_for_experts") if obj is not None and obj.assignments.exists() else ()

    def get_changeform_initial_data(self, request):
        return {name: value for name, value in super().get_changeform_initial_data(request).items() if name == "study"}

    def save_model(self, request, obj, form, change):
        if change:
            columns = [name for name in form.changed_data if not name.startswith("ends_")]
            link_actions.update_link(obj, request.user, columns, form.promises)
        else:
            link_actions.create_link(obj, request.user)

    def delete_model(self, request, obj):
        link_actions.delete_link(obj, request.user)

    def render_change_form(self, request, context, add=False, change=False, form_url="", obj=None):
        if obj is not None:
            channel = REGISTRY.get(obj.channel)
            may_edit = is_request_allowed(request, Action.RECRUIT, obj.study_id)
            links = labelled_link_urls(obj) if may_edit else []
            context |= {
                "study": obj.study,
                "tabs": workflow.study_tabs(request, obj.study, "Collect"),
                "channel": channel,
                "links": links[:LINKS_SHOWN],
                "hidden_links": links[LINKS_SHOWN:],
                "opens_in_steps": bool(channel and may_edit and opens_in_steps(obj)),
                "has_panel": bool(channel and (channel.secrets or channel.can_read_export_file(obj))),
                "warnings": channel.warnings(obj) if channel else [],
                "problems": [*channel.obstacles(obj), *promises.pay_obstacles(obj)]
                if channel
                else ["This channel is not installed."],
                "may_stop": may_edit,
                "title": str(obj),
                "subtitle": obj.study.title,
                "show_save_and_add_another": False,
            }
        return super().render_change_form(request, context, add, change, form_url, obj)

    def response_add(self, request, obj, post_url_continue=None):
        self.message_user(request, "The link is created. Now set its channel below.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:annotators_recruitment_change", args=[obj.pk]))

    def response_change(self, request, obj):
        self.message_user(request, "Saved.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:annotators_recruitment_change", args=[obj.pk]))
