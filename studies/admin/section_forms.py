"""Forms of a section: the choice of its protocol, its settings, and the form that generates its questions."""

from django import forms
from django.db.models import Max

from studies.protocols.base.pairs import unknown_system_names
from studies.services import questions

from ..models import Question, Section
from ..protocols import REGISTRY
from .forms.cleaning import CleanTextMixin
from .forms.fields import choice_field, choices_of
from .forms.settings import SettingsFormMixin


class SectionForm(SettingsFormMixin):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk and "shown_arms" in self.fields:
            self.initial["shown_arms"] = [row.arm_id for row in self.instance.section_arms.all()]

    def clean_m(self):
        m = self.cleaned_data["m"]
        protocol = REGISTRY.get(self.instance.protocol)
        if protocol and not protocol.has_items and m and not self.data.get("pass_mark"):
            raise forms.ValidationError("This protocol shows no items: enter 0 for m.")
        return m

    def clean_position(self):
        position = self.cleaned_data["position"]
        others = Section.objects.filter(study=self.instance.study_id, position=position).exclude(pk=self.instance.pk)
        if others.exists():
            raise forms.ValidationError("Another section has this position. Change the order on the study's page.")
        return position

    def _save_m2m(self):
        super()._save_m2m()  # type: ignore[misc]  # private in Django
        if "shown_arms" in self.changed_data:
            self.instance.arms.set(self.cleaned_data["shown_arms"])


class AddSectionForm(CleanTextMixin, forms.ModelForm):
    """The choice of the protocol. The other fields depend on it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["protocol"].widget = forms.RadioSelect(choices=choices_of(choice_field(self, "protocol"))[1:])

    def save(self, commit=True):
        section = self.instance
        protocol = REGISTRY[section.protocol]
        section.settings = {}
        section.settings = protocol.raw_settings(section)
        if not protocol.has_items:
            section.m = 0
        last = Section.objects.filter(study=section.study_id).aggregate(last=Max("position"))["last"]
        section.position = (last or 0) + 1
        return super().save(commit)

    def _save_m2m(self):
        super()._save_m2m()  # type: ignore[misc]  # private in Django
        Question.objects.bulk_create(
            Question(section=self.instance, position=n, **columns)
            for n, columns in enumerate(REGISTRY[self.instance.protocol].questions, 1)
        )


class GenerateQuestionsForm(CleanTextMixin, forms.Form):
    """The pairs and the text of the questions to generate."""

    which = forms.ChoiceField(choices=list(questions.PAIR_CHOICES.items()), label="pairs")
    order = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3, "cols": 40}),
        required=False,
        label="order of the systems",
        help_text="Their names, one per line. Systems that you leave out follow at the end. Empty: in alphabetical order.",
    )
    text = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
        label="question",
        help_text="heval replaces {x} and {y} by the letters.",
    )
    criterion = forms.CharField(max_length=50, required=False)
    both = forms.BooleanField(required=False, label="both directions of each pair")
    plans = forms.BooleanField(required=False, initial=True, label="plan the missing comparisons too")

    def __init__(self, study, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.study = study

    def clean_order(self):
        if unknown := unknown_system_names(self.study, self.cleaned_data["order"]):
            raise forms.ValidationError(f"The study has no system “{unknown[0]}”. Correct or remove this line.")
        return self.cleaned_data["order"]

    def clean_text(self):
        text = self.cleaned_data["text"]
        if "{x}" not in text or "{y}" not in text:
            raise forms.ValidationError(
                "The question does not contain {x} and {y}. Add both; heval replaces them by the letters."
            )
        return text
