"""What a coder is shown of an item: frozen records of words, with no way to a system, an arm or a person.

An explanation stands alone: the coder reads the words and the codebook. A reviewer of work must know what was answered about
which text, or could not say that an explanation does not fit it; who wrote the text and under which condition stay hidden.
"""

from dataclasses import dataclass

from annotators.models import Response
from studies.models import Exposure
from studies.protocols.base.scales import read_scale

from .hints import HINT_LABELS, hints_by_row
from .models import CodingItem, CodingSample
from .sampling import explanation_responses


@dataclass(frozen=True, slots=True)
class ShownExplanation:
    """One explanation with the text that it is about and the answers given beside it."""

    asked: str
    said: str
    text: str = ""
    answers: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def shown_explanations(sample: CodingSample, item: CodingItem) -> tuple[ShownExplanation, ...]:
    """The words of one item."""
    if sample.kind == CodingSample.Kind.EXPLANATIONS:
        return (ShownExplanation("", item.response.text),)
    mine = list(
        Response.objects.filter(assignment=item.assignment, question__section__purpose="live", item__isnull=False)
        .select_related("question", "exposure__output")
        .order_by("item__number", "question__position", "pk")
    )
    written = [answer for answer in mine if answer.text and answer.erased_at is None]
    flags = hints_by_response(sample, [answer.pk for answer in written])
    return tuple(
        ShownExplanation(
            answer.question.text,
            answer.text,
            answer.exposure.output.text if answer.exposure else "",
            tuple(
                _answer(other) for other in mine if other.value is not None and other.exposure_id == answer.exposure_id
            ),
            tuple(HINT_LABELS[flag] for flag in flags[answer.pk]),
        )
        for answer in written
    )


def _answer(response: Response) -> str:
    try:
        scale = read_scale(response.question.scale)
    except (ValueError, TypeError, KeyError):
        return f"{response.value:f}"
    words = {point.key: point.label for point in scale.points} if scale.kind == "likert" else {}
    value = f"{response.value.normalize():f}"
    return words.get(value) or value


def hints_by_response(sample: CodingSample, response_ids: list[int]) -> dict[int, tuple[str, ...]]:
    """The flags of these explanations (ids), seen among all explanations of the study."""
    found = _all_hints(sample, set(response_ids))
    return {pk: flags for pk, _, flags in found if pk in set(response_ids)}


def hints_by_assignment(sample: CodingSample) -> dict[int, frozenset[str]]:
    """What a program noticed of each annotator's explanations: assignment to flags."""
    found: dict[int, set[str]] = {}
    for _, assignment, flags in _all_hints(sample):
        found.setdefault(assignment, set()).update(flags)
    return {assignment: frozenset(flags) for assignment, flags in found.items()}


def _all_hints(sample: CodingSample, wanted: set[int] | None = None) -> list[tuple[int, int, tuple[str, ...]]]:
    """(explanation, assignment, flags). Texts are read, and copied words looked for, of the wanted ones or of all."""
    rows = list(
        explanation_responses(sample.study, sample.origin)
        .order_by("pk")
        .values_list("pk", "assignment_id", "assignment__annotator", "exposure", "text")
    )
    ids = {exposure for pk, *_, exposure, _ in rows if exposure and (wanted is None or pk in wanted)}
    shown = {str(pk): [text] for pk, text in Exposure.objects.filter(pk__in=ids).values_list("pk", "output__text")}
    keyed = [(annotator, str(exposure or ""), text) for _, _, annotator, exposure, text in rows]
    flags = hints_by_row(keyed, shown)
    return [(pk, assignment, one) for (pk, assignment, *_), one in zip(rows, flags, strict=True)]
