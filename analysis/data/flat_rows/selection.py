"""Select the rows to read, and give annotators and assignments pseudonyms for exports."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from annotators.counting import PEOPLES_ORIGINS, Use, select
from annotators.models import Assignment, Response
from annotators.models.crypto import keyed_hash
from studies.models import Study

COUNTED_ORIGINS = tuple(map(str, PEOPLES_ORIGINS))


@dataclass(frozen=True, slots=True)
class Selection:
    """The study and origins of the rows to read. Rows of withdrawn annotators are included only if ``withdrawn``."""

    study: Study
    origins: tuple[str, ...] = COUNTED_ORIGINS
    withdrawn: bool = False

    @property
    def use(self) -> Use:
        return Use.RECORD if self.withdrawn else Use.ROWS

    @property
    def assignments(self) -> QuerySet:
        return select(self.use, Assignment.objects.filter(study=self.study), self.origins)

    @property
    def responses(self) -> QuerySet:
        return select(self.use, Response.objects.filter(assignment__study=self.study), self.origins)


def annotator_pseudonym(study: Study, code: Any) -> str:
    """Return an annotator's pseudonym within one study. Reports show its first characters."""
    return keyed_hash("frame", str(study.code), str(code))[:16]


def assignment_pseudonym(code: str) -> str:
    """Return the pseudonym of an assignment. The code itself gives access to the annotator's pages, so it is never exported."""
    return keyed_hash("assignment", code)[:16]
