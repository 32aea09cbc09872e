"""The texts that coders see: plain records without a link to a system, an arm or a person.

A coder of explanations sees only the explanation and the codebook. A reviewer of work also sees the judged text and the answers,
to decide whether the explanation fits them. The author of the text and the condition stay hidden.
"""

from dataclasses import dataclass

from annotators.models import Response
from studies.models import Exposure
from studies.protocols.base.scales import parse_scale

from .hints import HINT_LABELS, reviewer_hints_by_row
from .models import CodingItem, CodingSample
from .sampling import codable_explanation_responses


@dataclass(frozen=True, slots=True)
class ShownExplanation:
    """One explanation, with the judged text and the annotator's answers about it."""

    asked: str
    said: str
    text: str = ""
    answers: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def explanations_shown_to_coder(sample: CodingSample, item: CodingItem) -> tuple[ShownExplanation, ...]:
    """Return the explanations of one item."""
    if sample.kind == CodingSample.Kind.EXPLANATIONS:
        return (ShownExplanation("", item.response.text),)
    answers = list(
        Response.objects.filter(assignment=item.assignment, question__section__purpose="live", item__isnull=False)
        .select_related("question", "exposure__output")
        .order_by("item__number", "question__position", "pk")
    )
    written = [answer for answer in answers if answer.text and answer.erased_at is None]
    flags = reviewer_hints_by_response(sample, [answer.pk for answer in written])
    return tuple(
        ShownExplanation(
            answer.question.text,
            answer.text,
            answer.exposure.output.text if answer.exposure else "",
            tuple(
                _answer(other)
                for other in answers
                if other.value is not None and other.exposure_id == answer.exposure_id
            ),
            tuple(HINT_LABELS[flag] for flag in flags[answer.pk]),
        )
        for answer in written
    )


def _answer(response: Response) -> str:
    if response.value is None:
        return ""
    try:
        scale = parse_scale(response.question.scale)
    except (ValueError, TypeError, KeyError):
        return f"{response.value:f}"
    labels = {point.key: point.label for point in scale.points} if scale.kind == "likert" else {}
    value = f"{response.value.normalize():f}"
    return labels.get(value) or value


def reviewer_hints_by_response(sample: CodingSample, response_ids: list[int]) -> dict[int, tuple[str, ...]]:
    """Return the hints of these explanations (ids), compared with all explanations of the study."""
    hints = _all_hints(sample, set(response_ids))
    return {pk: flags for pk, _, flags in hints if pk in set(response_ids)}


def study_reviewer_hints_by_assignment(sample: CodingSample) -> dict[int, frozenset[str]]:
    """Return the hints of each assignment's explanations."""
    by_assignment: dict[int, set[str]] = {}
    for _, assignment, flags in _all_hints(sample):
        by_assignment.setdefault(assignment, set()).update(flags)
    return {assignment: frozenset(flags) for assignment, flags in by_assignment.items()}


def _all_hints(sample: CodingSample, explanation_ids: set[int] | None = None) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return (explanation, assignment, hints). Copied words are checked for the wanted explanations, or for all if None."""
    rows = list(
        codable_explanation_responses(sample.study, sample.origin)
        .order_by("pk")
        .values_list("pk", "assignment_id", "assignment__annotator", "exposure", "text")
    )
    ids = {exposure for pk, *_, exposure, _ in rows if exposure and (explanation_ids is None or pk in explanation_ids)}
    texts_by_exposure = {
        str(pk): [text] for pk, text in Exposure.objects.filter(pk__in=ids).values_list("pk", "output__text")
    }
    keyed = [(annotator, str(exposure or ""), text) for _, _, annotator, exposure, text in rows]
    flags = reviewer_hints_by_row(keyed, texts_by_exposure)
    return [(pk, assignment, row_flags) for (pk, assignment, *_), row_flags in zip(rows, flags, strict=True)]
