"""Prompts and outputs: their lists, their forms, and the view that serves their images."""

from typing import cast

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import Http404, HttpResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from studies.services import copying, drafts, lifecycle
from studies.stimuli.images import ImageRefused, image_path
from studies.stimuli.texts import is_blank

from ..access import Action, get_study, study_of
from ..models import Output, Prompt, Study
from . import workflow
from .acts import counts_in_words, removal_message
from .forms import CleanTextMixin, find_lookalike_name
from .permissions import StudyFilter, StudyScopedAdmin, changed_fields_and_row_kinds, is_request_allowed
from .study_page import render_study_page


def image_link_html(study_id: int, image_name: str, alt: str = "", is_large: bool = False) -> SafeString:
    url = reverse("admin:studies_media", args=[study_id, image_name])
    size = "picture" if is_large else "thumbnail"
    return format_html(
        '<a href="{0}"><img class="{2}" src="{0}" alt="{1}" loading="lazy"></a>', url, alt or "image", size
    )


def excerpt_html(text: str) -> SafeString:
    return format_html('<span class="excerpt" dir="auto">{}</span>', Truncator(text).chars(160))


class PromptForm(CleanTextMixin, forms.ModelForm):
    def clean_key(self):
        key = self.cleaned_data["key"]
        others = Prompt.objects.filter(study=self.instance.study_id).exclude(pk=self.instance.pk)
        if other := find_lookalike_name(key, others.values_list("key", flat=True)):
            raise forms.ValidationError(f"Another prompt has this key: “{other}”. Choose another key.")
        return key


class OutputForm(CleanTextMixin, forms.ModelForm):
    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if "text" not in self.fields:
            return cleaned
        contents = [not is_blank(cleaned.get("text") or ""), bool(self.instance.media), bool(cleaned.get("is_empty"))]
        if sum(contents) != 1:
            text = "An output must be exactly one of these: a text, an image, or empty. Change its text or its tick."
            self.add_error("is_empty" if cleaned.get("is_empty") else "text", text)
        return cleaned


class StimulusAdmin(StudyScopedAdmin):
    change_list_template = "admin/studies/stimuli.html"
    list_per_page = 50
    show_full_result_count = False
    view_on_site = False

    def changelist_view(self, request, extra_context=None):
        study = self.listed_study(request)
        extra = {}
        if study and study.is_draft and is_request_allowed(request, Action.EDIT, study.pk):
            extra["import_url"] = workflow.reverse_or_empty("import", study.pk)
            extra["remove_all_url"] = reverse("admin:studies_act", args=[study.pk, "remove-texts"])
        return super().changelist_view(request, extra | (extra_context or {}))

    def save_model(self, request, obj, form, change):
        super().save_model(request, obj, form, change)
        if columns := changed_fields_and_row_kinds(form):
            stimulus_text = f"{obj._meta.verbose_name} {obj}"
            study = cast(Study, study_of(obj))  # a stimulus has a study
            drafts.record_edit_and_raise_version(study, request.user, about=stimulus_text, columns=columns)

    def get_actions(self, request, action_location=None):  # Django passes a location from 6.1 on
        # Not Django's own deletion, which keeps test runs and refuses texts that items show. Only in the list of one draft.
        study = self.listed_study(request)
        if not (study and study.is_draft and is_request_allowed(request, Action.EDIT, study.pk)):
            return {}
        label = f"Remove the chosen {self.opts.verbose_name_plural}"
        return {"remove": (StimulusAdmin.remove_chosen, "remove", label)}

    def remove_chosen(self, request, queryset):
        """Ask whether to remove the chosen texts, with what leaves with them. Confirmed, remove them."""
        study = cast(Study, self.listed_study(request))  # the action is offered for one study only
        if "confirmed" in request.POST:
            try:
                messages.success(request, removal_message(copying.remove_texts(study, request.user, queryset)))
            except lifecycle.ActionRefused as refused:
                messages.error(request, str(refused))
            return None
        counts = {name: len(ids) for name, ids in copying.texts_to_remove(study, queryset).items()}
        context = {
            "title": f"Remove {counts_in_words({str(self.opts.verbose_name_plural): queryset.count()})}?",
            "removed": counts_in_words(counts),
            "chosen": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "is_across": request.POST.get("select_across") == "1",
            "back": request.get_full_path(),
        }
        return render_study_page(request, "admin/studies/remove_texts.html", study, context)


@admin.register(Prompt)
class PromptAdmin(StimulusAdmin):
    form = PromptForm
    list_display = ("key", "text_excerpt", "thumbnail", "group", "domain", "language", "study")
    list_filter = (StudyFilter,)
    list_select_related = ("study",)
    search_fields = ("key", "text", "group", "domain")
    search_help_text = "Key, words, group or domain"
    fields = ("study", "key", "text", "source", "group", "domain", "language", "large_image", "attributes_text")
    readonly_fields = ("study", "large_image", "attributes_text")

    def get_urls(self):
        return [
            path("media/<int:pk>/<str:name>", self.admin_site.admin_view(self.media_view), name="studies_media"),
            *super().get_urls(),
        ]

    def media_view(self, request, pk, name):
        """Return an image of this study to users who may see the study."""
        study = get_study(request.user, Action.VIEW, pk=pk)
        belongs_to_study = (
            Output.objects.filter(system__study=study, media=name).exists()
            or Prompt.objects.filter(study=study, media=name).exists()
        )
        if not belongs_to_study or "\x00" in name:
            raise Http404
        try:
            data = image_path(settings.MEDIA_ROOT, name).read_bytes()
        except (ImageRefused, OSError):
            raise Http404("The image is not in the media folder.") from None
        response = HttpResponse(data, content_type="image/webp")
        response.headers["Cache-Control"] = "private, max-age=3600"
        return response

    @admin.display(description="text")
    def text_excerpt(self, prompt):
        return excerpt_html(prompt.text or prompt.source)

    @admin.display(description="image")
    def thumbnail(self, prompt):
        return image_link_html(prompt.study_id, prompt.media, prompt.key) if prompt.media else ""

    @admin.display(description="image")
    def large_image(self, prompt):
        return image_link_html(prompt.study_id, prompt.media, prompt.key, is_large=True) if prompt.media else "none"

    @admin.display(description="attributes")
    def attributes_text(self, prompt):
        return "; ".join(f"{name}: {value}" for name, value in prompt.attributes.items()) or "none"


@admin.register(Output)
class OutputAdmin(StimulusAdmin):
    form = OutputForm
    list_display = ("prompt_key", "system_name", "sample", "text_excerpt", "thumbnail", "format", "study_title")
    list_filter = (StudyFilter, "format", "is_empty")
    list_select_related = ("system__study", "prompt")
    search_fields = ("prompt__key", "system__name", "text")
    search_help_text = "Prompt key, system or words"
    fields = (
        "system",
        "prompt",
        "sample",
        "format",
        "text",
        "is_empty",
        "language",
        "large_image",
        "alt",
        "warning",
        "original",
    )
    readonly_fields = ("system", "prompt", "sample", "large_image", "original")
    ordering = ("prompt__key", "system__name", "sample")

    @admin.display(description="prompt", ordering="prompt__key")
    def prompt_key(self, output):
        return output.prompt.key

    @admin.display(description="system", ordering="system__name")
    def system_name(self, output):
        return output.system.name

    @admin.display(description="study")
    def study_title(self, output):
        return output.system.study.title

    @admin.display(description="text")
    def text_excerpt(self, output):
        return "(nothing)" if output.is_empty else excerpt_html(output.text)

    @admin.display(description="image")
    def thumbnail(self, output):
        return image_link_html(output.system.study_id, output.media, output.alt) if output.media else ""

    @admin.display(description="image")
    def large_image(self, output):
        return (
            image_link_html(output.system.study_id, output.media, output.alt, is_large=True) if output.media else "none"
        )
