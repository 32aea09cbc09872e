"""The form that draws the sample of a check, for the page and for REST."""

from typing import Any

from django import forms

from analysis.models import Metric
from studies.models import Question, Study

from .drawing import DrawSettings, judges_of, verdict_questions

MAX_OUTPUTS, MAX_PEOPLE = 20_000, 100


def _minimum(label: str) -> forms.FloatField:
    return forms.FloatField(
        label=label, required=False, min_value=0, max_value=0.99, help_text="From 0 to 1. Empty: not declared."
    )


class QuestionField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return obj.text


class DrawForm(forms.Form):
    judge = forms.ModelChoiceField(Metric.objects.none(), help_text="The version whose scores decide what is drawn.")
    question = QuestionField(
        Question.objects.none(), to_field_name="key", help_text="The question that people answer with no or yes."
    )
    threshold = forms.FloatField(
        required=False,
        label="“yes” from this score on",
        help_text="On the judge's own scale; up to this score if lower is better. Empty: the middle of the scale.",
    )
    n_test = forms.IntegerField(
        min_value=10,
        max_value=MAX_OUTPUTS,
        initial=150,
        label="outputs that decide",
        help_text="The test part. Do not look at it while you change the judge.",
    )
    n_development = forms.IntegerField(
        min_value=0,
        max_value=MAX_OUTPUTS,
        initial=50,
        label="outputs for changing the judge",
        help_text="The development part: its differences between people and the judge are listed. 0: none.",
    )
    people_per_output = forms.IntegerField(
        min_value=1,
        max_value=MAX_PEOPLE,
        initial=3,
        help_text="The alternative annotator test needs at least 3 people, each with 30 outputs.",
    )
    certainty_ratio = forms.FloatField(
        min_value=1,
        max_value=20,
        initial=1,
        label="unsure outputs are drawn this many times as often",
        help_text="1: all outputs have the same probability. Above 1: more outputs near the threshold, or with runs that differ.",
    )
    min_agreement = _minimum("lowest agreement")
    min_true_positive_rate = _minimum("lowest true-positive rate")
    min_true_negative_rate = _minimum("lowest true-negative rate")
    needs_alternative_test = forms.BooleanField(
        required=False,
        label="must pass the alternative annotator test",
        help_text="Against at least half of the people.",
    )
    epsilon = forms.FloatField(
        min_value=0,
        max_value=1,
        initial=0.1,
        label="how much better a person may be (epsilon)",
        help_text="For the alternative annotator test: .2 for experts, .15 for trained people, .1 for crowd workers.",
    )
    seed = forms.IntegerField(
        required=False, min_value=0, max_value=2**62, help_text="The same seed draws the same sample. Empty: a new one."
    )

    def __init__(self, study: Study, data=None):
        super().__init__(data)
        judge, question = self.fields["judge"], self.fields["question"]
        assert isinstance(judge, forms.ModelChoiceField) and isinstance(question, QuestionField)  # noqa: S101 - for the types
        judge.queryset = judges_of(study)
        keys = [one.pk for one in verdict_questions(study)]
        question.queryset = Question.objects.filter(pk__in=keys).select_related("section")
        for field in (judge, question):
            # One possible choice is chosen.
            if field.queryset is not None and field.queryset.count() == 1:
                field.empty_label = None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        minimums = [cleaned.get(name) for name in self.fields if name.startswith("min_")]
        if not self.errors and not cleaned.get("needs_alternative_test") and all(one is None for one in minimums):
            self.add_error("min_agreement", "Nothing says what is good enough. Enter a minimum, or choose the test.")
        return cleaned

    def settings(self) -> DrawSettings:
        return DrawSettings(**self.cleaned_data)
