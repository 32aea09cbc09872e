"""A selection says whose rows are read, and by which names people and assignments leave the site."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from annotators.models import Assignment, Response
from annotators.models.crypto import keyed_hash
from studies.models import Study

COUNTED_ORIGINS = ("live", "imported")


@dataclass(frozen=True, slots=True)
class Selection:
    """Whose rows are read. Rows of people who withdrew are left out unless asked for."""

    study: Study
    origins: tuple[str, ...] = COUNTED_ORIGINS
    withdrawn: bool = False

    @property
    def assignments(self) -> QuerySet:
        rows = Assignment.objects.filter(study=self.study, origin__in=self.origins)
        return rows if self.withdrawn else rows.filter(withdrawn_at=None)

    @property
    def responses(self) -> QuerySet:
        rows = Response.objects.filter(assignment__study=self.study, assignment__origin__in=self.origins)
        return rows if self.withdrawn else rows.filter(assignment__withdrawn_at=None)


def annotator_pseudonym(study: Study, code: Any) -> str:
    """An annotator's name within one study. The shorter one in reports is its beginning."""
    return keyed_hash("frame", str(study.code), str(code))[:16]


def assignment_pseudonym(code: str) -> str:
    """A name for an assignment: its code is what annotators come in with, and never leaves."""
    return keyed_hash("assignment", code)[:16]
