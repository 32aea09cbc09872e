"""Which answers count for what, by the facts about an assignment: its outcome, its origin and a withdrawal.

Every query of reports, metrics, boards, plans and exports that selects assignments or answers by these facts begins here, and a
test finds any other. Two facts need the answers themselves, so ``analysis`` adds them: exclusion rules
(``analysis.exclusions.screening``), and what a stopping rule has passed (``analysis.data.planned_labels``). Practice and test
questions are a part of the design: ``Section.purpose`` and ``Item.kind``.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, TypeVar, cast

from django.db.models import F, Model, Q, QuerySet

from studies.models import Item, Section

from .models import Assignment, Response

Origin = Assignment.Origin
# Origins of people's answers. Robots count only where no person has answered, and their numbers are marked as simulated.
PEOPLES_ORIGINS = (Origin.LIVE, Origin.IMPORTED)
SIMULATED = "Simulated: robots gave these answers. They say nothing about people."
# An assignment that ended for one of these reasons never counts: the work before the end was refused.
REFUSED_REASONS = frozenset({Assignment.Released.FAILED_CHECKS, Assignment.Released.SCREENED_OUT})

# The reason to skip of a question about an image that the annotator could not see.
UNSEEN = "unseen"

_Row = TypeVar("_Row", bound=Model)
# Until an import of answers is complete, its rows are those of a test run that has a job as source.
_COMPLETE = Q(source=None) | Q(origin__in=[origin for origin in Origin if origin != Origin.TEST])
_WITHDRAWN, _SUBMITTED = Q(withdrawn_at__isnull=False), Q(submitted_at__isnull=False)
_RELEASED = Q(released_at__isnull=False)


class Use(Enum):
    """What answers are used for, with the assignments that count for it."""

    # Stored rows: exports, and the frames that the exclusion rules see.
    ROWS = ~_WITHDRAWN
    # Numbers about systems and people: reports, metrics, judges, boards, pilots, coding, screening.
    RESULTS = ~_WITHDRAWN & _SUBMITTED
    # The same with the work of people who withdrew.
    SUBMITTED = _SUBMITTED
    # How far a study is: late work came after its place was given to somebody else.
    PROGRESS = ~_WITHDRAWN & _SUBMITTED & Q(is_late=False)
    # Submitted work that holds a place, and of it the places of the target that are filled: a replaced annotator fills none.
    HOLDING = _SUBMITTED & ~_RELEASED
    TARGET = _SUBMITTED & ~_RELEASED & Q(replaced_at=None)
    # Claims that a stopping rule may pass. What each of them says is decided when it is passed.
    SETTLED = Q(batch__isnull=False) & (_SUBMITTED | _RELEASED)
    # What a withdrawal took away. Reports count it and read none of it.
    WITHDRAWN = _WITHDRAWN
    # The record with everything that is stored, on request.
    RECORD = Q()


def select(
    use: Use, rows: "QuerySet[_Row]", origins: Iterable[str] | None = None, *, path: str = ""
) -> "QuerySet[_Row]":
    """Return the rows that count for a use: assignments, their answers, or other rows that lead to them by ``path``.

    ``origins`` None: all origins. Answers that are being imported count for nothing.
    """
    prefix = path and f"{path}__" if rows.model is not Response else "assignment__"
    chosen = None if origins is None else list(origins)
    of_origins = Q() if chosen is None else Q(origin__in=chosen)
    if chosen is None or Origin.TEST in chosen:
        of_origins &= _COMPLETE
    return rows.filter(_with_prefix(use.value & of_origins, prefix))


def about_what_counts(answers: "QuerySet[Response]") -> "QuerySet[Response]":
    """Return the answers to live questions about live items. The truth about no such item is shown, or known to heval."""
    return answers.filter(question__section__purpose=Section.Purpose.LIVE, item__kind=Item.Kind.LIVE)


def arrived_before(moment: str) -> Q:
    """Return the condition of answers that arrived before this moment of their assignment, if it has come."""
    return Q(**{f"assignment__{moment}": None}) | Q(received_at__lte=F(f"assignment__{moment}"))


def counted_origins(study) -> list[str]:
    """Return whose answers count in metrics, judges and boards: people's, or robots' if only robots answered."""
    found = set(
        select(Use.RESULTS, Assignment.objects.filter(study=study))
        .order_by()
        .values_list("origin", flat=True)
        .distinct()
    )
    return [origin for origin in PEOPLES_ORIGINS if origin in found] or [Origin.ROBOT]


def is_simulated(study) -> bool:
    """Return whether the numbers of metrics, judges and boards are those of robots."""
    robots = Assignment.objects.filter(study=study)
    return counted_origins(study) == [Origin.ROBOT] and select(Use.RESULTS, robots, [Origin.ROBOT]).exists()


def simulated_words(origins: Iterable[str]) -> str:
    """Return "simulated" or "partly simulated" if robots gave answers of these origins, else ''."""
    chosen = set(origins)
    if Origin.ROBOT not in chosen:
        return ""
    return "partly simulated" if chosen & set(PEOPLES_ORIGINS) else "simulated"


def _with_prefix(condition: Q, prefix: str) -> Q:
    children: list[Any] = []
    for child in condition.children:
        if isinstance(child, Q):
            children.append(_with_prefix(child, prefix))
        else:
            field, value = cast("tuple[str, Any]", child)
            children.append((f"{prefix}{field}", value))
    return Q(*children, _connector=condition.connector, _negated=condition.negated)
