"""Ranking: annotators give each output of a prompt a place, 1 for the best. Equally good outputs may share a place.

Only the order of the typed places counts, and gaps are allowed (1, 3, 3 and 1, 2, 2 mean the same). The typed places are
stored with the mid-rank of each output, so that the places of all prompts have the same sum.
"""

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from django import forms
from django.db.models import Count

from studies.language import format_list, gettext

from . import EstimandDirection, ExampleStudy, PageField, Problem, Protocol, ProtocolCard, arms_of, register
from .base.fields import Answer, WholeNumberField, explanation_field, layout_field, letters_field, noun_field

SHARE = "share"
# More outputs than this are too many to keep in mind.
MAX_COMFORTABLE_SYSTEMS = 7


class RankingSettings(forms.Form):
    allows_ties = forms.BooleanField(required=False, initial=True, label="equally good outputs may share a place")
    labels = letters_field()
    layout = layout_field()
    noun = noun_field()
    explanation = explanation_field("What makes one better than another.")


def allows_ties(settings) -> bool:
    return settings.get("allows_ties", True) is not False


@dataclass(frozen=True, slots=True)
class RankField(WholeNumberField):
    """A place among the outputs of a prompt. The typed text is stored with the number."""

    stores_typed_text: ClassVar = True
    allows_ties: bool = True

    def clean(self, raw):
        number = WholeNumberField.clean(self, raw)
        return None if number is None else Answer(value=number, text=str(number))


@register
class Ranking(Protocol):
    slug = "ranking"
    label = "Ranking of a prompt's outputs, ties allowed"
    help = "Annotators give each output of a prompt a place, 1 for the best."
    settings_form = RankingSettings
    default_scale_kind = "number"
    practice_answers = "points"
    placeholder_help = "{label} becomes the letter of the output asked about."
    questions = (
        {
            "key": "place",
            "text": "The place of {label}",
            "scale": {"kind": "number", "minimum": 1, "maximum": 26, "low": "the best"},
        },
    )
    column_meanings = {
        "value": "The mid-rank of the output among those of the prompt, from 1 for the best. Outputs with the same place share the mean "
        "of their ranks.",
        "text": "The place, as typed.",
    }
    sample = ExampleStudy(systems=5)
    card = ProtocolCard(
        order=5,
        name="In which order are they?",
        tells="How often each output of a prompt has a better place than another one.",
        not_when="Not with more than about seven systems: people guess the middle places.",
        instructions="Each page has a prompt and a few {noun}s. Read them all. Then give place 1 to the one that is {most}, place 2 to the "
        "next, and so on. Equally good ones may share a place.",
        answers_each=1,
        headline="ranking",
        example_m=6,
    )

    def estimands(self, section):
        return {SHARE: "P(x ranked above y) + P(same place) / 2"}

    def estimand_scale_length(self, estimand, questions):
        return 1.0  # a probability

    def direction(self, estimand, questions):
        return EstimandDirection(null=0.5)

    def questions_about(self, criteria, noun):
        return [question | {"criterion": one.label} for question in self.questions for one in criteria]

    def problems(self, section):
        systems = section.study.systems.judged().count()
        if systems < 2:
            yield Problem("A ranking needs outputs of at least two systems. Add a system.", "systems")
        elif systems > MAX_COMFORTABLE_SYSTEMS:
            yield Problem(
                f"A page ranks {systems} outputs at once. This is too many to keep in mind, so the middle places are guesses.",
                "systems",
                False,
                "many_to_rank",
            )
        for question in section.questions.all():
            scale = question.scale or {}
            if scale.get("kind") != "number":
                yield Problem(
                    f"Question {question.key} must have the scale “a whole number”, for the place.", "questions"
                )
            elif not (scale.get("minimum", 0) <= 1 and scale.get("maximum", 100) >= systems):
                yield Problem(
                    f"Question {question.key} must take numbers from 1 to {systems}, one for each place.",
                    "questions",
                )
            if question.x_id:
                yield Problem(
                    f"Question {question.key} ranks all outputs, so it cannot name two systems. Leave x and y empty.",
                    "questions",
                )
            if question.skip_reasons:
                yield Problem(
                    f"Question {question.key} has reasons to skip, but a missing place makes the others meaningless. "
                    "Remove them and make the question optional.",
                    "questions",
                )
        for arm in arms_of(section):
            if len(arm.systems.all()) == 1 and systems > 1:
                yield Problem(
                    f"Arm {arm.name} shows only one system, so there is nothing to rank. Give it another system.",
                    "arms",
                )
        if section.m < 1:
            yield Problem("Annotators must see at least one prompt. Set m to 1 or more.", "m")
        alone = section.design_items.annotate(n=Count("exposures")).filter(n__lt=2).count() if section.pk else 0
        if alone:
            yield Problem(f"{alone} ready-made items have only one output, so there is nothing to rank.", "batches")

    def count_answers(self, section, outputs_per_item):
        return len(section.questions.all()) * sum(outputs_per_item)

    def page_fields(self, page):
        return {
            page.slot(question, item, label): PageField(
                RankField(
                    question.required,
                    1,
                    len(item.exposures),
                    low=question.scale.low or gettext("the best"),
                    high=question.scale.high,
                    allows_ties=allows_ties(page.section.settings),
                ),
                question.id,
                item_id=item.id,
                exposure_id=exposure,
                label=label,
                position=item.position,
                text=question.text.replace("{label}", label),
                help=question.help,
            )
            for item in page.items
            for question in page.questions
            for label, exposure in item.exposures
        }

    def complete_data_and_find_errors(self, page, data):
        """Require places for all outputs of a prompt or for none, and refuse ties if the section does. Store mid-ranks with the typed text."""
        errors: dict[str, str] = {}
        for item in page.items:
            for question in page.questions:
                slots = {page.slot(question, item, label): label for label, _ in item.exposures}
                typed = {slot: data[slot] for slot in slots if data.get(slot) is not None}
                if typed and len(typed) < len(slots):
                    message = gettext("Please give each of them a place, or none.")
                    errors |= dict.fromkeys(slots.keys() - typed.keys(), message)
                counts = Counter(answer.value for answer in typed.values())
                if not allows_ties(page.section.settings):
                    for slot, answer in typed.items():
                        if counts[answer.value] > 1:
                            others = [slots[s] for s, a in typed.items() if a.value == answer.value and s != slot]
                            # Translators: the letters of other texts in a ranking, such as "B and C"
                            message = gettext("The same place as %(letters)s. Please decide.")
                            errors[slot] = message % {"letters": format_list(others)}
                for slot, answer in typed.items():
                    before = sum(n for value, n in counts.items() if value < answer.value)
                    data[slot] = Answer(value=before + (counts[answer.value] + 1) / Decimal(2), text=answer.text)
        return errors

    def robot_answers(self, page_fields, robot):
        """Rank outputs by perceived strength with noise. Outputs that the robot cannot tell apart tie, if ties are allowed."""
        ranked: dict[tuple, list[str]] = {}
        for slot, ask in page_fields.items():
            ranked.setdefault((ask.question_id, ask.item_id), []).append(slot)
        sent = {}
        for slots in ranked.values():
            perceived = {slot: robot.strength(page_fields[slot].exposure_id) + robot.rng.gauss(0, 1) for slot in slots}
            best_first = sorted(slots, key=lambda slot: -perceived[slot])
            rank = 1
            for number, slot in enumerate(best_first, 1):
                above = best_first[number - 2]
                if number > 1 and not (
                    page_fields[slot].field.allows_ties and perceived[above] - perceived[slot] < 0.1
                ):
                    rank = number
                sent[slot] = str(rank)
        return sent
