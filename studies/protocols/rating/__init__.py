"""Outcome-level absolute assessment: each output gets a rating, on points (Likert) or between two ends.

Source: the standard protocol, Ethayarajh and Jurafsky, sections 2 to 4.
"""

from django import forms

from .. import Problem, Protocol, question_asks, register


class RatingSettings(forms.Form):
    labels = forms.ChoiceField(
        choices=[
            ("random", "random letters for each prompt (a section that reuses another inherits its letters)"),
            ("fixed", "the same letters for everybody, in the order of the systems' names (as in the paper)"),
        ],
        initial="random",
    )
    layout = forms.ChoiceField(
        choices=[("side", "side by side"), ("one", "one under the other")], initial="side", label="first layout"
    )
    noun = forms.CharField(
        max_length=30, initial="text", help_text="What a labelled output is called: text, summary, image."
    )
    explanation = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 6}), required=False, help_text="How to use the scale. Markdown."
    )


@register
class Rating(Protocol):
    slug = "rating"
    label = "Rating of each output (Likert or continuous)"
    help = "Each output is rated by itself. {label} in a question becomes the letter of the output."
    settings_form = RatingSettings
    question_kind = "likert"
    source = "Ethayarajh and Jurafsky 2022, sections 2 to 4"

    def estimands(self, section):
        return {
            "difference": "mean rating of x minus mean rating of y",
            "superiority": "P(x rated above y) + P(equal) / 2",
        }

    def problems(self, section):
        for question in section.questions.all():
            if (question.scale or {}).get("kind") not in ("likert", "continuous"):
                yield Problem(f"Question {question.key} must be asked on points or between two ends.", "questions")
            if question.x_id:
                yield Problem(f"Question {question.key} rates one output: it cannot name two systems.", "questions")
        if section.m < 1:
            yield Problem("Annotators must see at least one prompt.", "m")

    def fields_asked(self, section, systems):
        return section.asked * section.m * systems

    def asks(self, page):
        return {
            slot: ask
            for item in page.items
            for label, exposure_id in item.exposures
            for question in page.questions
            for slot, ask in question_asks(page, question, item, label, exposure_id).items()
        }

    def analyse(self, frame, sections):
        from .analysis import analyse

        return analyse(frame, sections)
