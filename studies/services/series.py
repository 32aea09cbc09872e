"""Series of studies: rounds of one board, whose annotators are judged together.

The app of boards registers its rounds, so that the apps below it need not know boards.
"""

from collections.abc import Callable

from django.db.models import Q, QuerySet

from studies.models import Study

_finders: list[Callable[[Study], QuerySet[Study]]] = []


def register_series(finder: Callable[[Study], QuerySet[Study]]) -> None:
    """Register a function that returns the studies of a study's series, itself included; none if it is in no series."""
    _finders.append(finder)


def is_in_series(study: Study) -> bool:
    return any(finder(study).exists() for finder in _finders)


def studies_judged_together(study: Study) -> QuerySet[Study]:
    """Return the studies whose answers to test questions say who reads: those of the study's series, or the study alone."""
    judged = Q(pk=study.pk)
    for finder in _finders:
        judged |= Q(pk__in=finder(study).values("pk"))
    return Study.objects.filter(judged)
