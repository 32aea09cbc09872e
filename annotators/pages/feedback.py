"""The truth about a practice item, told once its question was answered, and never elsewhere.

Whoever has not answered is told nothing, whatever address they ask for: the answer is read from what is stored.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from annotators.models import Assignment, Response
from studies.models import Expected
from studies.protocols import REGISTRY, Page, PageItem, PageQuestion

from .presentation import cached_markdown

# What an explanation quotes is marked in the text it speaks of. Shorter than this it would be found everywhere.
QUOTED_TEXT = re.compile(r"“([^”]{3,300})”|\"([^\"]{3,300})\"")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A stretch of a text, marked where the explanation quotes it."""

    text: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class PracticeFeedback:
    """What one practice item's answer was, what it should be, and why. ``quotes``: the words that the explanation quotes."""

    position: int
    said: str
    truth: str
    is_right: bool
    explanation: str
    quotes: tuple[str, ...]


def get_practice_feedback(assignment: Assignment, page: Page) -> tuple[PracticeFeedback, ...]:
    """The truth about the items of a feedback page, for the questions that this annotator has answered."""
    items = {item.id: item for item in page.items}
    questions = {question.id: question for question in page.questions}
    answers = {
        (answer.item_id, answer.question_id): answer
        for answer in Response.objects.filter(assignment=assignment, item__in=items, question__in=questions)
    }
    expected = Expected.objects.filter(item__in=items, question__in=questions, item__section__purpose="training")
    return tuple(
        _build_feedback(
            page, questions[row.question_id], items[row.item_id], row, answers[row.item_id, row.question_id]
        )
        for row in expected.order_by("item__number", "question__position")
        if (row.item_id, row.question_id) in answers
    )


def _build_feedback(
    page: Page, question: PageQuestion, item: PageItem, expected: Expected, answer: Response
) -> PracticeFeedback:
    labels = {exposure: label for label, exposure in item.exposures}
    protocol = REGISTRY[page.step]
    if expected.exposure_id:
        truth, is_right = labels[expected.exposure_id], answer.chosen_id == expected.exposure_id
    else:
        truth = (expected.low, expected.high)
        is_right = answer.value is not None and expected.low <= answer.value <= expected.high
    quotes = tuple(found[1] or found[2] for found in QUOTED_TEXT.finditer(expected.explanation))
    return PracticeFeedback(
        item.position,
        _answer_text(page, question, labels, answer),
        protocol.truth(page, question, truth),
        is_right,
        cached_markdown(expected.explanation) if expected.explanation else "",
        quotes,
    )


def _answer_text(page: Page, question: PageQuestion, labels: dict[int, str], answer: Response) -> str:
    if answer.skip_reason:
        return dict(question.skip_reasons).get(answer.skip_reason, "")
    if answer.chosen_id:
        return f"{str(page.section.settings.get('noun') or 'text').capitalize()} {labels.get(answer.chosen_id, '')}".strip()
    if answer.value is None:
        return answer.text
    words = {point.key: point.label for point in question.scale.points}
    value = f"{answer.value.normalize():f}"
    return words.get(value) or value


def split_at_quotes(text: str, quotes: Sequence[str]) -> tuple[TextPart, ...]:
    """The text cut where a quoted stretch of it begins and ends; whole where nothing of it is quoted."""
    found = [quote for quote in quotes if quote in text]
    if not found:
        return (TextPart(text),)
    pattern = "|".join(re.escape(quote) for quote in sorted(found, key=len, reverse=True))
    return tuple(TextPart(part, part in found) for part in re.split(f"({pattern})", text) if part)
