"""Rows of the annotators of a study, from the last stored screening. Pages and REST show the same numbers; neither computes any."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Max

from analysis.data.blinding import are_outcomes_hidden
from analysis.data.flat_rows.selection import annotator_pseudonym
from analysis.models import AnnotatorScreening
from annotators.counting import PEOPLES_ORIGINS, Use, select
from annotators.models import Assignment
from annotators.places.barrings import active_barrings
from studies.access import Action, filter_allowed
from studies.models import Study

from .barring import annotators_by_pseudonym

SORT_KEYS = (
    "annotator", "positive", "negative", "uncounted", "probability", "flagged", "failed", "barred", "agreement", "errors", "competence", "severity", "minutes", "labels",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OtherStudy:
    """The same person's work in another study that the viewer may see, with the pseudonym there.

    ``is_flagged``: by the last screening there; None if there is no screening.
    """

    title: str
    code: str
    annotator: str
    n_assignments: int
    is_flagged: bool | None


@dataclass(frozen=True, slots=True)
class AnnotatorRow:
    """What one screening says about an annotator. Pairs are about positive and negative questions. None: unknown.

    ``evidence``: of ``evidence_by_annotator``; empty while outcomes are hidden, and in screenings before it was computed.
    """

    annotator: str
    pk: int
    n_assignments: int
    right: tuple[int, int]
    counted: tuple[int, int]
    n_uncounted: int
    posteriors: tuple[float | None, float | None]
    is_flagged: bool | None
    is_failed: bool | None
    agreement: float | None
    agreement_n: int
    minutes: float | None
    labels: int
    share: float | None
    is_barred: bool = False
    evidence: Mapping[str, Any] = field(default_factory=dict)
    others: list[OtherStudy] = field(default_factory=list)

    @property
    def probability(self) -> float | None:
        """Return the larger of the two probabilities of being inattentive, which the cut-off applies to."""
        return max((chance for chance in self.posteriors if chance is not None), default=None)


@dataclass(frozen=True, slots=True)
class ScreenedStudy:
    """The last screening of a study's annotators, with the rows of those who did not withdraw since."""

    screening: AnnotatorScreening | None
    rows: list[AnnotatorRow]
    is_hidden: bool


def latest_screening(study: Study, origin: str) -> AnnotatorScreening | None:
    return AnnotatorScreening.objects.filter(study=study, origin=origin).select_related("by").order_by("-pk").first()


def read_screened_study(study: Study, origin: str) -> ScreenedStudy:
    """Return the last screening. Agreement is left out while outcomes are hidden."""
    is_hidden = are_outcomes_hidden(study, [origin])
    screening = latest_screening(study, origin)
    if screening is None:
        return ScreenedStudy(None, [], is_hidden)
    pks = annotators_by_pseudonym(study, Use.RESULTS, [origin])
    barred = frozenset(active_barrings(study).values_list("annotator", flat=True))
    rows = [
        _row(stored, pks[stored["annotator"]], is_hidden, barred)
        for stored in screening.result["rows"]
        if stored["annotator"] in pks
    ]
    return ScreenedStudy(screening, rows, is_hidden)


def _row(stored: Mapping[str, Any], pk: int, is_hidden: bool, barred: Container[int]) -> AnnotatorRow:
    agreement = None if is_hidden else stored["agreement"]
    return AnnotatorRow(
        annotator=stored["annotator"],
        pk=pk,
        n_assignments=stored["assignments"],
        right=tuple(stored["right"]),
        counted=tuple(stored["counted"]),
        n_uncounted=stored["n_uncounted"],
        posteriors=tuple(stored["posteriors"]),
        is_flagged=stored["is_flagged"],
        is_failed=stored["is_failed"],
        agreement=agreement["share"] if agreement else None,
        agreement_n=agreement["n"] if agreement else 0,
        minutes=stored["minutes"],
        labels=stored["labels"],
        share=stored["share"],
        is_barred=pk in barred,
        evidence={} if is_hidden else stored.get("evidence") or {},
    )


def _share_right(row: AnnotatorRow, place: int) -> float | None:
    return row.right[place] / row.counted[place] if row.counted[place] else None


_KEYS = {
    "annotator": lambda row: row.annotator,
    "positive": lambda row: _share_right(row, 0),
    "negative": lambda row: _share_right(row, 1),
    "uncounted": lambda row: row.n_uncounted,
    "probability": lambda row: row.probability,
    "flagged": lambda row: row.is_flagged,
    "failed": lambda row: row.is_failed,
    "barred": lambda row: row.is_barred,
    "agreement": lambda row: row.agreement,
    "errors": lambda row: row.evidence.get("error_rate"),
    "competence": lambda row: row.evidence.get("competence"),
    "severity": lambda row: row.evidence.get("severity"),
    "minutes": lambda row: row.minutes,
    "labels": lambda row: row.labels,
}


def sort_rows(rows: Iterable[AnnotatorRow], sort: str) -> list[AnnotatorRow]:
    """Sort by a key of ``SORT_KEYS``, downwards with a minus sign. Unknown values come last, and equal ones by pseudonym."""
    key = _KEYS[sort.removeprefix("-")]
    ordered = sorted(rows, key=lambda row: row.annotator)
    known = [row for row in ordered if key(row) is not None]
    known.sort(key=key, reverse=sort.startswith("-"))
    return known + [row for row in ordered if key(row) is None]


def add_other_studies(study: Study, rows: Sequence[AnnotatorRow], user, token=None) -> None:
    """Add to each row the work of the same person in other studies that the user may see.

    A person is the same only within one pool of annotators. Withdrawn work is left out.
    """
    by_pk = {row.pk: row for row in rows}
    people = Assignment.objects.filter(annotator__in=by_pk).exclude(study=study)
    work = select(Use.RESULTS, people, PEOPLES_ORIGINS)
    found = list(
        filter_allowed(user, work, Action.VIEW, token=token)
        .order_by("study")
        .values_list("annotator_id", "annotator__code", "study_id")
        .annotate(n=Count("pk"))
    )
    studies = Study.objects.in_bulk({study_pk for _, _, study_pk, _ in found})
    flagged = _flagged_by_study(studies)
    for annotator, code, study_pk, n in found:
        other = studies[study_pk]
        pseudonym = annotator_pseudonym(other, code)
        is_flagged = pseudonym in flagged[study_pk] if study_pk in flagged else None
        by_pk[annotator].others.append(OtherStudy(other.title, str(other.code), pseudonym, n, is_flagged))


def _flagged_by_study(study_pks: Iterable[int]) -> dict[int, frozenset[str]]:
    """Return the pseudonyms that the last screening of live answers flags, for the studies that have one."""
    last = AnnotatorScreening.objects.filter(study__in=study_pks, origin="live").order_by().values("study")
    newest = AnnotatorScreening.objects.filter(pk__in=last.annotate(newest=Max("pk")).values("newest"))
    return {pk: frozenset(names) for pk, names in newest.values_list("study_id", "result__flagged")}
