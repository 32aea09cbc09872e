"""Admin of recruitments: first the channel, then its settings as form fields, then the links to copy."""

from typing import Any

from django import forms
from django.conf import settings as site_settings
from django.contrib import admin, messages
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path, reverse

from annotators.participation import link_actions
from annotators.recruitment.channels import REGISTRY
from studies.access import Action, filter_allowed, get_row
from studies.admin import workflow
from studies.admin.forms.cleaning import CleanTextMixin
from studies.admin.forms.fields import (
    RowChoiceField,
    RowMultipleChoiceField,
    choice_field,
    choices_of,
    optional_utc_datetime_field,
)
from studies.admin.forms.settings import (
    SettingsFormMixin,
    build_form_with_settings,
    headed_settings_fieldsets,
    prefixed_settings_fields,
)
from studies.admin.permissions import StudyFilter, StudyScopedAdmin, is_request_allowed
from studies.models import Study

from ..models import Recruitment
from ..pay import promises
from . import promises_form
from .panel import PanelAdminMixin
from .pay import PayAdminMixin
from .rehearsal import RehearsalAdminMixin
from .sample import SampleAdminMixin
from .verdicts import VerdictAdminMixin

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


class RecruitmentForm(promises_form.PromisesFormMixin, SettingsFormMixin):
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
class RecruitmentAdmin(
    RehearsalAdminMixin, SampleAdminMixin, VerdictAdminMixin, PayAdminMixin, PanelAdminMixin, StudyScopedAdmin
):
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
        return [
            path(
                "<int:pk>/state/",
                self.admin_site.admin_view(self.stop_or_reopen_view),
                name="annotators_recruitment_state",
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
            fields = ("channel", "key", "pool", "wanted", "reward", "currency", "opens_at", "closes_at")
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
                    )
                },
            )
        ]
        parts.append(
            (
                "Pay for an early end",
                {
                    "fields": promises_form.FIELD_NAMES,
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
        extra = promises_form.outcome_pay_form_fields() | {
            "shown_arms": RowMultipleChoiceField(arms, label="arms", help_text="If you tick none, all are allowed.")
        }
        return super().get_form(request, obj, change, **kwargs | {"form": type("RecruitmentForm", (form,), extra)})

    def get_readonly_fields(self, request, obj=None):
        # The address and the people's identities must not change after the link was shared.
        return ("key", "pool") if obj is not None and obj.assignments.exists() else ()

    def get_changeform_initial_data(self, request):
        return {name: value for name, value in super().get_changeform_initial_data(request).items() if name == "study"}

    def save_model(self, request, obj, form, change):
        if change:
            promised = {name for pair in promises_form.FIELD_NAMES for name in pair}
            link_actions.update_link(
                obj, request.user, [name for name in form.changed_data if name not in promised], form.promises
            )
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
                "steps": workflow.workflow_steps(obj.study),
                "channel": channel,
                "links": links[:LINKS_SHOWN],
                "hidden_links": links[LINKS_SHOWN:],
                "has_panel": bool(channel and (channel.secrets or channel.can_read_export_file(obj))),
                "problems": [*channel.problems(obj), *channel.warnings(obj), *promises.pay_obstacles(obj)]
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
