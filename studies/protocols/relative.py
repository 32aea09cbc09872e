"""Outcome-level relative assessment: annotators say on points how much better the first of two outputs is.

Source: the taxonomy of Ethayarajh and Jurafsky 2022, section 2, whose relative protocols compare outputs with one another or with a
reference.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from django import forms

from . import REGISTRY, EstimandDirection, PageField, Problem, Protocol, register
from .base.fields import (
    Option,
    ScalePointsField,
    explanation_field,
    noun_field,
    parse_scale,
    shortest_scale_length,
    source_field,
)
from .base.pages import output_name
from .base.pairs import PairSettings, draw_pair_items, in_balanced_order, pair_problems, shown_pairs

SCORE = "score"
FIRST_PLACEHOLDER, SECOND_PLACEHOLDER = "{first}", "{second}"
MIN_POINTS, MAX_POINTS = 3, 9


class RelativeSettings(PairSettings):
    source = source_field()
    noun = noun_field()
    explanation = explanation_field("Above the question on each page.")


@dataclass(frozen=True, slots=True)
class RelativeScaleField(ScalePointsField):
    """Points from "the first is much better" to "the second is much better", shown without numbers."""

    depends_on_page: ClassVar[bool] = True
    exposures: tuple[tuple[str, int], ...] = ()

    @property
    def template(self) -> str:
        return "protocols/relative/_points.html"


@register
class Relative(Protocol):
    slug = "relative"
    comparable_answers = "points_toward_first"
    label = "Relative scale: how much better one of two is"
    help = "Annotators see two outputs of a prompt, on random sides, and say on points which is better and by how much. One may be the reference."
    settings_form = RelativeSettings
    default_scale_kind = "likert"
    item_noun = "pairs"
    comparison_scope = "pair"
    placeholder_help = "In the words of the points, {first} and {second} become the two letters."
    questions = (
        {
            "key": "better",
            "text": "Which of the two is better, and by how much?",
            "scale": {
                "kind": "likert",
                "labels": [
                    f"{SECOND_PLACEHOLDER} is much better",
                    f"{SECOND_PLACEHOLDER} is better",
                    "They are about the same",
                    f"{FIRST_PLACEHOLDER} is better",
                    f"{FIRST_PLACEHOLDER} is much better",
                ],
            },
        },
    )
    column_meanings = {
        "system": "The system whose output was shown first. The answer compares it with the other output of the item, which the table "
        "of items names.",
        "label": "The letter of the output that was shown first.",
        "value": "The chosen point. Points above the middle say that the output shown first is better, points below it that the other is.",
    }
    source = "Ethayarajh and Jurafsky 2022, section 2"

    def estimands(self, section):
        return {SCORE: "mean points toward x, 0 where both are the same"}

    def estimand_scale_length(self, estimand, questions):
        return shortest_scale_length(questions)

    def direction(self, estimand, questions):
        return EstimandDirection(null=0.0)

    # The design

    def turn_sets(self, section, systems):
        return in_balanced_order(tuple(shown_pairs(section, self.cleaned_settings(section), systems)))

    def draw(self, section, pool, rng):
        pairs = shown_pairs(section, self.cleaned_settings(section), pool.systems)
        return draw_pair_items(pairs, section.m, pool, rng)

    def problems(self, section):
        for question in section.questions.all():
            if question.x_id:
                yield Problem(
                    f"Question {question.key} cannot name two systems, because sides are random. Leave x and y empty.",
                    "questions",
                )
            if fault := relative_scale_fault(question.scale):
                yield Problem(f"Question {question.key} {fault}", "questions")
        shown_protocol = REGISTRY.get(section.reuses.protocol) if section.reuses_id else None
        if shown_protocol is not None and not issubclass(shown_protocol.settings_form or forms.Form, PairSettings):
            yield Problem(
                "The section whose items are reused does not show pairs, so this section cannot reuse its items.",
                "reuses",
            )
        yield from pair_problems(section, self.cleaned_settings(section))

    # An annotator's page

    def page_fields(self, page):
        asks = {}
        for item in page.items:
            # The question is about the first output against the second, so the answer's row names the first.
            label, exposure_id = item.exposures[0]
            names = [output_name(page.section.settings, letter) for letter, _ in item.exposures]
            for question in page.questions:
                points = sorted(question.scale.points, key=lambda point: -int(point.key))
                field = RelativeScaleField(
                    question.required, tuple(_fill_placeholders(point, names) for point in points), item.exposures
                )
                asks[page.slot(question, item)] = PageField(
                    field,
                    question.id,
                    item_id=item.id,
                    exposure_id=exposure_id,
                    label=label,
                    position=item.position,
                    text=question.text,
                    help=question.help,
                    skip_reasons=question.skip_reasons,
                )
        return asks

    def robot_answers(self, page_fields, robot):
        """Perceive how far the first output is above the second, and return the answer in points."""
        sent = {}
        for slot, ask in page_fields.items():
            field = ask.field
            if not isinstance(field, RelativeScaleField) or len(field.exposures) != 2:
                continue
            first, second = (robot.strength(exposure) for _, exposure in field.exposures)
            points = sorted(int(point.key) for point in field.points)
            middle = points[len(points) // 2]
            sent[slot] = str(min(points[-1], max(points[0], middle + round(first - second + robot.rng.gauss(0, 1)))))
        return sent


def _fill_placeholders(point: Option, output_names: list[str]) -> Option:
    return replace(
        point,
        label=point.label.replace(FIRST_PLACEHOLDER, output_names[0]).replace(SECOND_PLACEHOLDER, output_names[-1]),
    )


def relative_scale_fault(scale_json: Any) -> str:
    """Return what a question's scale lacks to be a relative scale, or '' if nothing."""
    try:
        scale = parse_scale(scale_json)
    except (ValueError, TypeError, KeyError):
        return ""  # the checklist reports it already
    if scale.kind != "likert":
        return "must have a scale of points."
    points = sorted(scale.points, key=lambda point: int(point.key))
    if len(points) % 2 == 0 or not MIN_POINTS <= len(points) <= MAX_POINTS:
        return f"must have a middle point for “the same”: use an odd number of points, {MIN_POINTS} to {MAX_POINTS}."
    if not all(point.label for point in points):
        return "must have words for each point, because points are shown without numbers."
    if SECOND_PLACEHOLDER not in points[0].label or FIRST_PLACEHOLDER not in points[-1].label:
        return f"must contain {SECOND_PLACEHOLDER} in its first point and {FIRST_PLACEHOLDER} in its last, for the letters."
    return ""
