"""The form of a study: the groups of its fields, and the names of its Markdown fields."""

from django import forms

from . import field_labels
from .forms.cleaning import CleanTextMixin
from .forms.fields import MarkdownArea

MARKDOWN = ("purpose", "instructions", "consent", "debriefing")
FIELDSETS = (
    ("The study", {"fields": ("title", "language", "exclusion_group", "keeps_origin_out"), "classes": ["part-study"]}),
    (
        "Texts for annotators",
        {"fields": ("public_title", "purpose", "instructions", "debriefing", "content_warning"), "classes": ["part-words"]},
    ),
    (
        "Consent and ethics",
        {
            "fields": (
                "consent", "contact", "institution", "approval_number", "retention", "withdrawal_until",
                "withdrawal_blanks_ratings", "erase_after_days",
            ),
            "classes": ["part-consent"],
        },
    ),
    (
        "Design",
        {
            "fields": (("coverage", "section_order"), ("annotators_per_batch", "batches_per_annotator"), "bars_flagged_annotators", "seed"),
            "description": "How batches are drawn. Systems, arms, sections and planned comparisons follow below.",
            "classes": ["part-design"],
        },
    ),
    ("Target", {"fields": (("target_n", "target_kind"), ("target_cap", "replaces_excluded")), "classes": ["part-target"]}),
    (
        "Pay",
        {"fields": (("reward", "currency", "minutes"), ("wage_per_hour", "words_per_minute")), "classes": ["part-pay"]},
    ),
    (
        "Times",
        {"fields": (("start_window_seconds", "idle_seconds", "grace_seconds"),), "classes": ["part-times"]},
    ),
)  # fmt: skip
ADD_FIELDSETS = ((None, {"fields": ("title", "public_title")}),)


class StudyForm(CleanTextMixin, forms.ModelForm):
    class Meta(field_labels.build_form_meta("study")):  # type: ignore[misc]  # a class made from the labels
        widgets = {name: MarkdownArea(attrs={"rows": 7, "cols": 80}) for name in MARKDOWN} | {
            "withdrawal_until": forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
            "content_warning": forms.TextInput(attrs={"size": 80}),
            "retention": forms.TextInput(attrs={"size": 80}),
        }

    def clean_currency(self):
        return self.cleaned_data["currency"].upper()
