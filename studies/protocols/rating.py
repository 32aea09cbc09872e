"""Outcome-level absolute assessment: each output gets a rating, on points (Likert) or between two ends, and perhaps a reason in words.

Source: the standard protocol, Ethayarajh and Jurafsky, sections 2 to 4.
"""

from django import forms

from . import EstimandDirection, Problem, Protocol, ProtocolCard, question_fields, register
from .base.fields import explanation_field, layout_field, noun_field, shortest_scale_length
from .base.known_answers import KnownAnswerSettings
from .base.pairs import draw_items_of_sets


class RatingSettings(KnownAnswerSettings):
    scores = forms.ChoiceField(
        choices=[
            ("points", "unchanged: 1 to k, or from end to end"),
            ("unit", "as parts of the scale: 0 to 1, five points as 0, .25, .5, .75, 1"),
        ],
        initial="points",
        label="points in the report",
    )
    shown = forms.ChoiceField(
        choices=[
            ("all", "the outputs of all systems, on one page"),
            ("one", "the output of one system; the systems take turns"),
        ],
        initial="all",
        label="shown of a prompt",
        help_text="With one output, an annotator meets each prompt once, and the comparisons are between pages.",
    )
    labels = forms.ChoiceField(
        choices=[
            ("random", "random letters for each prompt (a section that reuses another inherits its letters)"),
            (
                "fixed",
                "the same letters for all annotators, in the order of the systems' names (as in Ethayarajh and Jurafsky 2022)",
            ),
        ],
        initial="random",
        label="letters",
    )
    layout = layout_field()
    noun = noun_field()
    explanation = explanation_field("How to use the scale.", rows=6)


def one_system_sets(systems):
    """Return the sets of a page that shows one output: one set for each system."""
    return tuple((system,) for system in systems)


@register
class Rating(Protocol):
    slug = "rating"
    asks_about_single_outputs = True
    heds_response = 2
    comparable_answers = "points"
    label = "Rating of each output (Likert or continuous)"
    help = "Annotators rate each output separately."
    settings_form = RatingSettings
    default_scale_kind = "likert"
    comparison_scope = ""
    placeholder_help = "{label} becomes the letter of the output asked about."
    source = "Ethayarajh and Jurafsky 2022, sections 2 to 4"
    card = ProtocolCard(
        order=2,
        name="How good is it?",
        tells="How good people find each output on five points in words, by one criterion or several.",
        not_when="Not if the systems are nearly alike: people then give the same point to both, and a choice finds more.",
        instructions="Each page has a prompt and a few {noun}s. Rate each of them by itself, with all the points that the page offers. Use the "
        "same standard on every page.",
        most_criteria=6,
        fewest_systems=1,
        answers_each=1,
        headline="rating",
        example_m=6,
    )

    def estimands(self, section):
        return {
            "superiority": "P(x rated above y) + P(equal) / 2",
            "difference": "mean rating of x minus mean rating of y",
            "utility": "EEU of x minus EEU of y, between a maximal and a minimal reference",
        }

    def estimand_scale_length(self, estimand, questions):
        # Without an estimand, a margin belongs to the probability. A utility is a part of the distance between the references.
        return shortest_scale_length(questions) if estimand == "difference" else 1.0

    def direction(self, estimand, questions):
        lower_better = {bool((question.scale or {}).get("is_lower_better")) for question in questions}
        if len(lower_better) > 1 or (estimand == "utility" and True in lower_better):
            return None  # the maximal reference of a utility has the highest ratings
        return EstimandDirection(0.0 if estimand in ("difference", "utility") else 0.5, True in lower_better)

    def questions_about(self, criteria, noun):
        return [
            {
                "key": one.key,
                "criterion": one.label,
                "text": one.question or one.how.format(it=f"{noun} {{label}}"),
                "scale": one.scale,
            }
            for one in criteria
        ]

    def turn_sets(self, section, systems):
        return one_system_sets(systems) if self.cleaned_settings(section)["shown"] == "one" else ()

    def draw(self, section, pool, rng):
        if self.cleaned_settings(section)["shown"] == "one":
            return draw_items_of_sets(one_system_sets(pool.systems), section.m, pool, rng)
        return super().draw(section, pool, rng)

    def problems(self, section):
        questions = list(section.questions.all())
        for question in questions:
            if (question.scale or {}).get("kind") not in ("likert", "continuous", "text"):
                yield Problem(
                    f"Question {question.key} must have a scale of points or a number between two ends. A reason may have words.",
                    "questions",
                )
            if question.x_id:
                yield Problem(
                    f"Question {question.key} rates one output, so it cannot name two systems. Leave x and y empty.",
                    "questions",
                )
        if questions and all((question.scale or {}).get("kind") == "text" for question in questions):
            yield Problem("All questions ask for words. Add one with points or a number between two ends.", "questions")
        if section.m < 1:
            yield Problem("Annotators must see at least one prompt. Set m to 1 or more.", "m")
        yield from self._reference_problems(section)

    def _reference_problems(self, section):
        planted = set(section.study.systems.values_list("reference", flat=True)) & {"maximal", "minimal"}
        if len(planted) == 1:
            present, lacking = ("maximal", "minimal") if "maximal" in planted else ("minimal", "maximal")
            yield Problem(
                f"There is a {present} reference but no {lacking} one. Without both, the report gives mean ratings and no utilities.",
                "systems",
                False,
                "one_end",
            )
        if len(planted) == 2 and any((q.scale or {}).get("kind") == "likert" for q in section.questions.all()):
            yield Problem(
                "Utilities need a number between two ends: points do not measure the distance between two outputs.",
                "questions",
                False,
                "ends_on_points",
            )
        if len(planted) < 2:
            for contrast in section.study.contrasts.filter(estimand="utility").select_related("x", "y", "section"):
                if contrast.section_id in (None, section.pk):
                    yield Problem(
                        f"{contrast} is about utilities, which need a maximal and a minimal reference. Mark them under Systems.",
                        "contrasts",
                    )

    def count_answers(self, section, outputs_per_item):
        return len(section.questions.all()) * sum(outputs_per_item)

    def page_fields(self, page):
        return {
            slot: ask
            for item in page.items
            for label, exposure_id in item.exposures
            for question in page.questions
            for slot, ask in question_fields(page, question, item, label, exposure_id).items()
        }
