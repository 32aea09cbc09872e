"""Show the truth about a practice item, only after its question was answered and only on the feedback page.

Feedback is built from stored answers, so an annotator who has not answered sees nothing, whatever address they open.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from annotators.counting import UNSEEN
from annotators.models import Assignment, Response
from studies.models import Expected
from studies.protocols import REGISTRY, Page, PageItem, PageQuestion
from studies.protocols.base.fields import Field
from studies.protocols.base.test_questions import practice_answer

from .presentation import render_cached_markdown

# Quotations of an explanation are marked in the text. Quotations under three characters would match everywhere.
QUOTED_TEXT = re.compile(r"“([^”]{3,300})”|\"([^\"]{3,300})\"")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text. It is marked if the explanation quotes it."""

    text: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class PracticeFeedback:
    """The answer to one practice item, the truth and the explanation.

    ``question`` is the question with the text that it is about. ``quotes`` are the texts that the explanation quotes.
    """

    position: int
    question: str
    said: str
    truth: str
    is_right: bool
    explanation: str
    quotes: tuple[str, ...]


def get_practice_feedback(assignment: Assignment, page: Page) -> tuple[PracticeFeedback, ...]:
    """Return the feedback on the items of a feedback page, for the questions that this annotator has answered."""
    items = {item.id: item for item in page.items}
    questions = {question.id: question for question in page.questions}
    answers: dict[tuple[int | None, int], dict[int | None, Response]] = {}
    for answer in Response.objects.filter(assignment=assignment, item__in=items, question__in=questions):
        answers.setdefault((answer.item_id, answer.question_id), {})[answer.exposure_id] = answer
    expected = Expected.objects.filter(item__in=items, question__in=questions, item__section__purpose="training")
    feedback = []
    for row in expected.order_by("item__number", "question__position"):
        given = answers.get((row.item_id, row.question_id), {})
        found = given.get(row.about_id) if row.about_id else next(iter(given.values()), None)
        if found is not None:
            feedback.append(_build_feedback(page, questions[row.question_id], items[row.item_id], row, found))
    return tuple(feedback)


def _build_feedback(
    page: Page, question: PageQuestion, item: PageItem, expected: Expected, answer: Response
) -> PracticeFeedback:
    labels = {exposure: label for label, exposure in item.exposures}
    protocol = REGISTRY[page.step]
    truth: str | tuple[float, float]
    if expected.exposure_id or expected.low is None or expected.high is None:
        truth = labels[expected.exposure_id or 0]
    else:
        truth = (expected.low, expected.high)
    is_right = practice_answer(expected, question.scale).is_right(
        value=None if answer.value is None else float(answer.value),
        exposure=answer.exposure_id,
        chosen=answer.chosen_id,
        choice=answer.choice,
    )
    quotes = tuple(match[1] or match[2] for match in QUOTED_TEXT.finditer(expected.explanation))
    asked = protocol.page_fields(page)[answer.slot]
    return PracticeFeedback(
        item.position,
        _question_text(page, question, labels, answer, asked.text),
        _answer_text(page, question, labels, answer, asked.field),
        protocol.expected_answer_text(page, question, truth),
        bool(is_right),
        render_cached_markdown(expected.explanation) if expected.explanation else "",
        quotes,
    )


def _question_text(page: Page, question: PageQuestion, labels: dict[int, str], answer: Response, text: str) -> str:
    """Return the question as it was asked. A question about one of several texts names that text."""
    about = answer.exposure_id
    has_points = REGISTRY[page.step].practice_answers == "points"
    if about is None or not has_points or len(labels) == 1 or "{label}" in question.text:
        return text
    return f"{_noun(page)} {labels[about]}: {text}"


def _noun(page: Page) -> str:
    return str(page.section.settings.get("noun") or "text").capitalize()


def _answer_text(page: Page, question: PageQuestion, labels: dict[int, str], answer: Response, asked: Field) -> str:
    if answer.skip_reason:
        unseen = {UNSEEN: "I cannot see this image"}
        return (unseen | dict(question.skip_reasons)).get(answer.skip_reason, "")
    if answer.chosen_id:
        return f"{_noun(page)} {labels.get(answer.chosen_id, '')}".strip()
    if answer.choice:
        return getattr(asked, "tie", "") or answer.choice
    if answer.value is None or question.scale.kind == "number":
        return answer.text
    # The field knows the letters that the page put into the words of its points.
    labels_by_value = {point.key: point.label for point in getattr(asked, "points", question.scale.points)}
    value = f"{answer.value.normalize():f}"
    return labels_by_value.get(value) or value


def split_at_quotes(text: str, quotes: Sequence[str]) -> tuple[TextPart, ...]:
    """Split the text at the beginning and end of each quotation.

    Without a quotation, return the whole text as one part.
    """
    matches = [quote for quote in quotes if quote in text]
    if not matches:
        return (TextPart(text),)
    pattern = "|".join(re.escape(quote) for quote in sorted(matches, key=len, reverse=True))
    return tuple(TextPart(part, part in matches) for part in re.split(f"({pattern})", text) if part)
