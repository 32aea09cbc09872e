"""The form that uploads scores of metrics and judges."""

from typing import Any

from django import forms

from analysis.metrics.files import ScoresFileSettings, question_names
from analysis.metrics.store import MetricDescription
from analysis.models import Metric
from studies.admin.forms.cleaning import CleanTextMixin
from studies.models import Study


class ScoresForm(CleanTextMixin, forms.Form):
    """A file of scores and what a person says about the metric or judge that made them."""

    file = forms.FileField(
        label="File",
        help_text="CSV or JSON lines. Columns “system” and “prompt”, and a column for each metric or judge, named like it. Verdicts on pairs have “first” and “second” in the place of “system”.",
        error_messages={
            "required": "No file was chosen. Choose the file with the scores.",
            "empty": "The file is empty. Choose the file with the scores.",
        },
    )
    kind = forms.ChoiceField(label="Kind", choices=Metric.Kind.choices, initial=Metric.Kind.METRIC)
    version = forms.CharField(
        label="Version",
        max_length=200,
        help_text="The version of the metric's program, or the full name of the judge's model.",
        error_messages={"required": "The version is missing. Enter the version of the program or model."},
    )
    question = forms.ChoiceField(
        label="Question",
        required=False,
        help_text="The question that the scores are about, if the file has no column “question”.",
    )
    prompt = forms.CharField(
        label="Prompt of the judge, or settings of the metric",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Another prompt or setting is another version.",
    )
    family = forms.CharField(
        label="Maker of the judge's model",
        required=False,
        max_length=100,
        help_text="Used to warn where a judged system has the same maker.",
    )
    is_lower_better = forms.BooleanField(label="Lower is better", required=False)
    scale_low = forms.FloatField(
        label="Lowest point of the scale", required=False, help_text="Of a judge who answers on a scale."
    )
    scale_high = forms.FloatField(label="Highest point of the scale", required=False)
    is_partial = forms.BooleanField(
        label="The file covers a part of the outputs",
        required=False,
        help_text="Otherwise a file that leaves out outputs is refused.",
    )

    def __init__(self, study: Study, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        names = [(name, name) for name in question_names(study)]
        self.fields["question"].choices = [("", "the output as a whole"), *names]  # type: ignore[attr-defined]  # a choice field

    @property
    def file_settings(self) -> ScoresFileSettings:
        cleaned = self.cleaned_data
        return ScoresFileSettings(
            question=cleaned["question"],
            scale_low=cleaned["scale_low"],
            scale_high=cleaned["scale_high"],
            is_partial=cleaned["is_partial"],
        )

    @property
    def description(self) -> MetricDescription:
        cleaned = self.cleaned_data
        return MetricDescription(
            cleaned["kind"],
            cleaned["version"],
            {"prompt": cleaned["prompt"]} if cleaned["prompt"] else {},
            cleaned["family"],
            cleaned["is_lower_better"],
            cleaned["scale_low"],
            cleaned["scale_high"],
        )
