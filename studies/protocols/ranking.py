"""Ranking: the outputs of a prompt get places, 1 the best; equally good ones may share a place.

What is typed need not be a gapless ranking (1, 3, 3 and 1, 2, 2 say the same): only its order counts. It is kept as typed, and
beside it the mid-rank that each output has, so that places of all prompts sum to the same.
"""

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from django import forms
from django.db.models import Count

from . import ExampleStudy, PageField, Problem, Protocol, arms_of, register
from .base.fields import Answer, WholeNumberField

SHARE = "share"
# More than this nobody holds in mind at once.
MAX_COMFORTABLE_SYSTEMS = 7


class RankingSettings(forms.Form):
    allows_ties = forms.BooleanField(required=False, initial=True, label="equally good ones may have the same place")
    labels = forms.ChoiceField(
        choices=[
            ("random", "random letters for each prompt"),
            ("fixed", "the same letters for everybody, in the order of the systems' names"),
        ],
        initial="random",
        label="letters",
    )
    layout = forms.ChoiceField(
        choices=[("side", "side by side"), ("one", "one under the other")], initial="side", label="first layout"
    )
    noun = forms.CharField(
        max_length=30, initial="text", help_text="What a labelled output is called: text, summary, image."
    )
    explanation = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}),
        required=False,
        help_text="What makes one better than another. Markdown.",
    )


def allows_ties(settings) -> bool:
    return settings.get("allows_ties", True) is not False


@dataclass(frozen=True, slots=True)
class RankField(WholeNumberField):
    """A place among the outputs of a prompt, kept as typed beside its number."""

    allows_ties: bool = True

    def clean(self, raw):
        number = WholeNumberField.clean(self, raw)
        return None if number is None else Answer(value=number, text=str(number))


@register
class Ranking(Protocol):
    slug = "ranking"
    label = "Ranking of a prompt's outputs, ties allowed"
    help = "All outputs of a prompt get places, 1 the best."
    settings_form = RankingSettings
    default_scale_kind = "number"
    placeholder_help = "{label} becomes the letter of the output asked about."
    questions = (
        {
            "key": "place",
            "text": "The place of {label}",
            "scale": {"kind": "number", "minimum": 1, "maximum": 26, "low": "the best"},
        },
    )
    sample = ExampleStudy(systems=5)

    def estimands(self, section):
        return {SHARE: "P(x ranked above y) + P(same place) / 2"}

    def problems(self, section):
        systems = section.study.systems.count()
        if systems < 2:
            yield Problem("There is nothing to rank: a prompt needs outputs of two systems at least.", "systems")
        elif systems > MAX_COMFORTABLE_SYSTEMS:
            yield Problem(
                f"{systems} outputs are ranked at once: nobody holds so many in mind, and the middle places are guesses.",
                "systems",
                False,
                "many_to_rank",
            )
        for question in section.questions.all():
            scale = question.scale or {}
            if scale.get("kind") != "number":
                yield Problem(f"Question {question.key} must be asked as a whole number: the place.", "questions")
            elif not (scale.get("minimum", 0) <= 1 and scale.get("maximum", 100) >= systems):
                yield Problem(
                    f"Question {question.key} must take numbers from 1 to {systems}: there are so many places.",
                    "questions",
                )
            if question.x_id:
                yield Problem(f"Question {question.key} ranks all outputs: it cannot name two systems.", "questions")
            if question.skip_reasons:
                yield Problem(
                    f"Question {question.key} offers ways not to answer: a place left out makes the others unreadable. "
                    "Let a whole prompt be left empty instead.",
                    "questions",
                )
        for arm in arms_of(section):
            if len(arm.systems.all()) == 1 and systems > 1:
                yield Problem(
                    f"Arm {arm.name} shows the outputs of one system: there is nothing to rank. Give it another system.",
                    "arms",
                )
        if section.m < 1:
            yield Problem("Annotators must see at least one prompt.", "m")
        alone = section.items.annotate(n=Count("exposures")).filter(n__lt=2).count() if section.pk else 0
        if alone:
            yield Problem(f"{alone} ready-made items hold one output: there is nothing to rank.", "batches")

    def count_answers(self, section, outputs_per_item):
        return section.asked * sum(outputs_per_item)

    def asks(self, page):
        return {
            page.slot(question, item, label): PageField(
                RankField(
                    question.required,
                    1,
                    len(item.exposures),
                    low=question.scale.low or "the best",
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

    def clean(self, page, data):
        """All outputs of a prompt or none; without ties where the section says so. Stored are mid-ranks, beside what was typed."""
        noun = str(page.section.settings.get("noun") or "text")
        errors: dict[str, str] = {}
        for item in page.items:
            for question in page.questions:
                slots = {page.slot(question, item, label): label for label, _ in item.exposures}
                typed = {slot: data[slot] for slot in slots if data.get(slot) is not None}
                if typed and len(typed) < len(slots):
                    errors |= dict.fromkeys(slots.keys() - typed.keys(), f"Please give every {noun} a place, or none.")
                counts = Counter(answer.value for answer in typed.values())
                if not allows_ties(page.section.settings):
                    for slot, answer in typed.items():
                        if counts[answer.value] > 1:
                            others = [slots[s] for s, a in typed.items() if a.value == answer.value and s != slot]
                            errors[slot] = (
                                f"{noun.capitalize()} {' and '.join(others)} has the same place. Please decide."
                            )
                for slot, answer in typed.items():
                    before = sum(n for value, n in counts.items() if value < answer.value)
                    data[slot] = Answer(value=before + (counts[answer.value] + 1) / Decimal(2), text=answer.text)
        return errors

    def plausible(self, page_fields, robot):
        """A robot ranks by what it perceives: strength and noise. Those that it cannot tell apart tie, where that is allowed."""
        ranked: dict[tuple, list[str]] = {}
        for slot, ask in page_fields.items():
            ranked.setdefault((ask.question_id, ask.item_id), []).append(slot)
        sent = {}
        for slots in ranked.values():
            seen = {slot: robot.strength(page_fields[slot].exposure_id) + robot.rng.gauss(0, 1) for slot in slots}
            best_first = sorted(slots, key=lambda slot: -seen[slot])
            place = 1
            for number, slot in enumerate(best_first, 1):
                above = best_first[number - 2]
                if number > 1 and not (page_fields[slot].field.allows_ties and seen[above] - seen[slot] < 0.1):
                    place = number
                sent[slot] = str(place)
        return sent
