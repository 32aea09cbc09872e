"""Forms of a section: the choice of its protocol, its settings, and the form that generates its questions."""

from django import forms
from django.db.models import Max

from studies.protocols.base.pairs import unknown_system_names
from studies.services import questions

from ..models import Qualification, Question, Section
from ..protocols import REGISTRY
from .forms.cleaning import CleanTextMixin
from .forms.fields import choice_field, choices_of
from .forms.settings import SettingsFormMixin


def qualification_fields(study) -> dict[str, forms.Field]:
    """Return the fields that name the qualification of a test. The study's owner has it once for each name and validity."""
    names = Qualification.objects.filter(owner=study.owner_id).values_list("name", flat=True).distinct()
    existing = f" You have: {', '.join(names[:20])}." if names else ""
    return {
        "qualification_name": forms.CharField(
            required=False,
            max_length=100,
            label="qualification",
            help_text=f"People who passed a test with this name lately, in any of your studies, skip it. Empty: everybody takes the test.{existing}",
        ),
        "valid_days": forms.IntegerField(
            required=False,
            min_value=1,
            max_value=3650,
            initial=180,
            label="valid for days",
            help_text="How long a pass lasts.",
        ),
    }


class SectionForm(SettingsFormMixin):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk and self.instance.qualification:
            self.initial["qualification_name"] = self.instance.qualification.name
            self.initial["valid_days"] = self.instance.qualification.valid_days
        if self.instance.pk and "shown_arms" in self.fields:
            self.initial["shown_arms"] = [row.arm_id for row in self.instance.section_arms.all()]

    def clean_m(self):
        m = self.cleaned_data["m"]
        protocol = REGISTRY.get(self.instance.protocol)
        if protocol and not protocol.has_items and m and not self.data.get("pass_mark"):
            raise forms.ValidationError("This protocol shows no items: enter 0 for m.")
        return m

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("pass_mark") is None:
            if cleaned.get("qualification_name"):
                self.add_error(
                    "qualification_name", "Only a test has a qualification. Enter a pass mark, or leave this empty."
                )
            return cleaned
        if cleaned.get("purpose") not in (Section.Purpose.TRAINING, Section.Purpose.SCREENING):
            self.add_error("pass_mark", "Only training and screening can be a test. Choose one of these purposes.")
        others = Section.objects.filter(study=self.instance.study_id, pass_mark__isnull=False).exclude(
            pk=self.instance.pk
        )
        if others.exists():
            self.add_error("pass_mark", "Another section is the test of this study. Remove its pass mark first.")
        if cleaned.get("qualification_name") and self.instance.study.owner_id is None:
            self.add_error("qualification_name", "The study has no owner to hold the qualification. Leave this empty.")
        if cleaned.get("qualification_name") and not cleaned.get("valid_days"):
            self.add_error("valid_days", "A qualification needs a validity. Enter a number of days.")
        return cleaned

    def save(self, commit=True):
        if "qualification_name" in self.fields:
            name = self.cleaned_data["qualification_name"]
            wanted = {
                "owner_id": self.instance.study.owner_id,
                "name": name,
                "valid_days": self.cleaned_data["valid_days"],
            }
            self.instance.qualification = Qualification.objects.get_or_create(**wanted)[0] if name else None
        return super().save(commit)

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
        section.settings = protocol.settings_of_new_section()
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
