"""The coding workspace: researchers draw samples, and coders label texts. Coders see only the texts and the codebook."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Exists, OuterRef, Q
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html

from annotators.models import Assignment
from studies.access import Action, allowed_active_member_users, filter_allowed, get_study, is_researcher
from studies.admin import study_page
from studies.admin.forms import CleanTextMixin, LinesField, RowChoiceField
from studies.admin.permissions import RestrictedLookupAdmin, parse_row_id
from studies.models import Study
from studies.services.lifecycle import ActionRefused

from . import samples
from .codebook import EXPLANATIONS_CODEBOOK, REJECTIONS_CODEBOOK, Codebook, CodebookRefused, parse_codebook
from .models import CodingSample, CodingSeat
from .samples import draw_coding_sample, explanations_shown_to_coder

STARTING_CODEBOOKS = {
    CodingSample.Kind.EXPLANATIONS.value: EXPLANATIONS_CODEBOOK,
    CodingSample.Kind.REJECTIONS.value: REJECTIONS_CODEBOOK,
}


class DrawSampleForm(CleanTextMixin, forms.Form):
    """The form that draws a sample: its kind, coders, codebook and rule."""

    kind = forms.ChoiceField(choices=CodingSample.Kind.choices, label="kind of sample")
    per_arm = forms.IntegerField(
        min_value=1,
        max_value=10_000,
        initial=50,
        label="annotators of each arm",
        help_text="Drawn at random: one explanation of each annotator, or for rejections all explanations of each.",
    )
    origin = forms.ChoiceField(
        choices=[(value, label) for value, label in Assignment.Origin.choices if value != "test"], label="answers of"
    )
    rule = forms.ChoiceField(
        choices=CodingSample.Rule.choices,
        initial=CodingSample.Rule.UNION,
        label="when two differ",
        help_text="Declared before coding and named in the report. Agreement is computed before the rule is applied.",
    )
    codebook = LinesField(
        rows=14,
        label="codebook",
        help_text="One label per line: category | key | label | description | example. Description and example are optional.",
    )
    left_out = forms.CharField(
        required=False,
        max_length=200,
        initial="Null",
        label="categories that are not counted",
        help_text="Coders can use these labels, but the shares do not count them, as in Clark et al. 2021 for Null. Separate by commas.",
    )

    def __init__(self, study, *args, **kwargs):
        super().__init__(*args, **kwargs)
        people = {person.pk: person for person in allowed_active_member_users(Action.CODE, study)}
        names = (
            ("first", "first coder", "choose"),
            ("second", "second coder", "choose"),
            ("third", "third coder", "nobody"),
        )
        for name, label, empty in names:
            text = "Decides items on which the two coders differ. Only for that rule." if name == "third" else ""
            self.fields[name] = RowChoiceField(
                people, empty=empty, required=name != "third", label=label, help_text=text
            )
        self.order_fields(["kind", "per_arm", "origin", "first", "second", "rule", "third", "codebook", "left_out"])

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if "codebook" in cleaned and "left_out" in cleaned:
            left_out = [part.strip() for part in cleaned["left_out"].split(",") if part.strip()]
            try:
                cleaned["codebook"] = parse_codebook(cleaned["codebook"], left_out)
            except CodebookRefused as refused:
                self.add_error("codebook", str(refused))
        if (cleaned.get("rule") == CodingSample.Rule.THIRD) != bool(cleaned.get("third")):
            self.add_error(
                "third", "Choose a third coder if a third coder decides, and leave this empty for the other rules."
            )
        return cleaned

    @property
    def coders(self) -> list:
        return [self.cleaned_data[name] for name in ("first", "second", "third") if self.cleaned_data.get(name)]


@admin.register(CodingSample)
class CodingSampleAdmin(RestrictedLookupAdmin):
    """Show samples to researchers and let coders code them. Samples cannot be changed."""

    list_display = ("__str__", "about", "kind", "at", "code_link")
    list_display_links = ("__str__",)
    list_per_page = 50
    actions = None
    change_list_template = "admin/studies/list.html"

    def has_module_permission(self, request):
        return is_researcher(request.user)

    def has_add_permission(self, request):
        return False

    def has_delete_permission(self, request, obj=None):
        return False

    def has_change_permission(self, request, obj=None):
        return False

    def has_view_permission(self, request, obj=None):
        return self.has_module_permission(request)

    def get_queryset(self, request):
        """Return the visible samples. ``is_looked_at``: the user can see the study. ``has_seat``: the user codes the sample."""
        samples = super().get_queryset(request).select_related("study")
        seats = CodingSeat.objects.filter(sample=OuterRef("pk"), user=request.user)
        own_study = Study.objects.filter(pk=OuterRef("study"))
        can_view, can_code = (
            Exists(filter_allowed(request.user, own_study, action)) for action in (Action.VIEW, Action.CODE)
        )
        samples = samples.annotate(is_looked_at=can_view, has_seat=Exists(seats))
        return samples.filter(can_view | (can_code & Q(has_seat=True)))

    def changelist_view(self, request, extra_context=None):
        text = "There is nothing to code yet. A researcher must draw a sample and choose its coders."
        extra = {"title": "Coding samples", "empty_words": text}
        return super().changelist_view(request, extra | (extra_context or {}))

    @admin.display(description="study")
    def about(self, sample):
        """Return the study's title. Coders get the public title, because the internal title can reveal hypotheses."""
        return sample.study.title if sample.is_looked_at else sample.study.public_title

    @admin.display(description="")
    def code_link(self, sample):
        if not sample.has_seat:
            return ""
        url = reverse("admin:analysis_codingsample_code", args=[sample.pk])
        return format_html('<a href="{}" aria-label="Code {}">Code</a>', url, sample)

    def get_urls(self):
        wrap = self.admin_site.admin_view
        name = "analysis_codingsample"
        return [
            path("<int:pk>/code/", wrap(self.redirect_to_next_uncoded_item_view), name=f"{name}_code"),
            path("<int:pk>/code/<int:number>/", wrap(self.code_item_view), name=f"{name}_item"),
            *super().get_urls(),
        ]

    def study_urls(self):
        wrap = self.admin_site.admin_view
        return [path("<int:pk>/coding/draw/", wrap(self.draw_sample_view), name="analysis_codingsample_draw")]

    # For researchers

    def draw_sample_view(self, request, pk):
        study = get_study(request.user, Action.SAMPLE, pk=pk)
        kind = request.GET.get("kind", CodingSample.Kind.EXPLANATIONS.value)
        template = STARTING_CODEBOOKS.get(kind, EXPLANATIONS_CODEBOOK)
        initial = {"kind": kind, "codebook": template.as_lines(), "left_out": ", ".join(template.left_out)}
        form = DrawSampleForm(study, request.POST if request.method == "POST" else None, initial=initial)
        if request.method == "POST" and form.is_valid():
            cleaned = form.cleaned_data
            try:
                sample = draw_coding_sample(
                    study,
                    kind=cleaned["kind"],
                    rule=cleaned["rule"],
                    codebook=cleaned["codebook"],
                    per_arm=cleaned["per_arm"],
                    coders=form.coders,
                    by=request.user,
                    origin=cleaned["origin"],
                )
            except ActionRefused as refused:
                form.add_error(None, str(refused))
            else:
                messages.success(
                    request, f"Sample {sample.number} was drawn: {sample.items.count()} items in random order."
                )
                return HttpResponseRedirect(reverse("admin:analysis_codingsample_change", args=[sample.pk]))
        context = {"title": "Draw a coding sample", "form": form, "kind": kind, "kinds": CodingSample.Kind.choices}
        status = 422 if form.is_bound else 200
        return study_page.render_study_page(request, "admin/analysis/coding_draw.html", study, context, status)

    def change_view(self, request, object_id, form_url="", extra_context=None):
        sample = self._get_sample(request, parse_row_id(object_id))
        is_looking = sample.is_looked_at  # type: ignore[attr-defined]  # from get_queryset
        codings = samples.current_codings_by_item(sample)
        seats = list(sample.seats.select_related("user"))
        progress: list[dict[str, Any]] = []
        for seat in seats:
            items = samples.items_of_seat(sample, seat.number, codings)
            done = sum(seat.number in codings.get(item.pk, {}) for item in items)
            progress.append({"seat": seat, "done": done, "all": len(items)})
        own_progress = next((entry for entry in progress if entry["seat"].user_id == request.user.pk), None)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Sample {sample.number}: {sample.get_kind_display()}",
            "sample": sample,
            "codebook": Codebook.from_json(sample.codebook),
            "progress": progress if is_looking else [own_progress] if own_progress else [],
            "mine": own_progress,
            "study": sample.study if is_looking else None,
            "about": sample.study.public_title,
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/analysis/coding_sample.html", context)

    # For coders

    def _get_sample(self, request, pk) -> CodingSample:
        sample = self.get_queryset(request).filter(pk=pk).first() if pk else None
        if sample is None:
            raise Http404("This sample does not exist, or you do not have access to it.")
        return sample

    def _get_seat(self, request, sample) -> int:
        seat = samples.coder_seat_number(sample, request.user)
        if seat is None:
            raise Http404("You are not a coder of this sample.")
        return seat

    def redirect_to_next_uncoded_item_view(self, request, pk):
        """Redirect to the first item that this coder has not coded, or to the sample's page if all are coded."""
        sample = self._get_sample(request, pk)
        seat = self._get_seat(request, sample)
        codings = samples.current_codings_by_item(sample)
        items = samples.items_of_seat(sample, seat, codings)
        position = next((n for n, item in enumerate(items, 1) if seat not in codings.get(item.pk, {})), None)
        if position is None:
            messages.success(request, "You have coded all your items. You can still review them.")
            return HttpResponseRedirect(reverse("admin:analysis_codingsample_change", args=[sample.pk]))
        return HttpResponseRedirect(
            reverse("admin:analysis_codingsample_item", args=[sample.pk, items[position - 1].number])
        )

    def code_item_view(self, request, pk, number):
        sample = self._get_sample(request, pk)
        seat = self._get_seat(request, sample)
        codings = samples.current_codings_by_item(sample)
        items = samples.items_of_seat(sample, seat, codings)
        item = next((candidate for candidate in items if candidate.number == number), None)
        if item is None:
            raise Http404("This item does not exist, or you do not code it.")
        coding = codings.get(item.pk, {}).get(seat)
        chosen, is_none, error = (coding.labels if coding else frozenset()), bool(coding and not coding.labels), ""
        if request.method == "POST":
            labels, is_none = request.POST.getlist("label"), request.POST.get("none") == "1"
            seen = request.POST.get("seen", "")
            item.sample = sample
            try:
                samples.store_coding(
                    item,
                    request.user,
                    labels,
                    is_none,
                    int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 6 else -1,
                )
                return HttpResponseRedirect(reverse("admin:analysis_codingsample_code", args=[sample.pk]))
            except samples.CodingConflict:
                error = "You coded this item in another window meanwhile. Your new choice is below; save it again if it is right."
                chosen = frozenset(labels)
            except ActionRefused as refused:
                error, chosen = str(refused), frozenset(labels)
        return self._item_page(request, sample, seat, codings, items, item, chosen, is_none, error)

    def _item_page(self, request, sample, seat, codings, items, item, chosen, is_none, error):
        position = items.index(item)
        done = sum(seat in codings.get(own_item.pk, {}) for own_item in items)
        codebook = Codebook.from_json(sample.codebook)
        names = {label.key: label.name for label in codebook.labels}
        coding = codings.get(item.pk, {}).get(seat)
        others = []
        if seat == samples.ADJUDICATOR_SEAT:
            # Sorted, so that the order does not reveal which coder gave which labels.
            sets = sorted((sorted(codings[item.pk][n].labels) for n in (1, 2)), key=str)
            others = [", ".join(names.get(key, key) for key in labels) or "no label applies" for labels in sets]
        address = "admin:analysis_codingsample_item"
        context = {
            **self.admin_site.each_context(request),
            "title": f"Item {position + 1} of {len(items)}",
            "sample": sample,
            "works": explanations_shown_to_coder(sample, item),
            "is_review": sample.kind == CodingSample.Kind.REJECTIONS,
            "categories": codebook.categories.items(),
            "chosen": chosen,
            "is_none": is_none,
            "seen": coding.revision if coding else 0,
            "others": others,
            "error": error,
            "done": done,
            "all": len(items),
            "before": reverse(address, args=[sample.pk, items[position - 1].number]) if position else "",
            "after": reverse(address, args=[sample.pk, items[position + 1].number])
            if position + 1 < len(items)
            else "",
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/analysis/coding_item.html", context, status=422 if error else 200)
