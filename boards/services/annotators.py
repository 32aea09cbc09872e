"""What answers to test questions in all rounds of a board say about its annotators."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from analysis.data.flat_rows import annotator_pseudonym
from analysis.models import AnnotatorScreening
from annotators.counting import PEOPLES_ORIGINS, Use, select
from annotators.models import Assignment
from annotators.places.barrings import active_barrings
from boards.models import Board, BoardRound
from studies.models import Study


def studies_of_board(study: Study) -> QuerySet[Study]:
    """Return the studies of all rounds of the board that this study is a round of; none for other studies."""
    own = BoardRound.objects.filter(study=study.pk)
    return Study.objects.filter(board_round__board__in=own.values("board"), board_round__cancelled_at=None)


@dataclass(frozen=True, slots=True)
class BoardAnnotator:
    """A person on a board. ``annotator``: the pseudonym in the newest of ``rounds``, whose study is ``study``."""

    annotator: str
    study: Study
    rounds: tuple[int, ...]
    right: Sequence[int]
    counted: Sequence[int]
    posteriors: Sequence[float | None]
    is_flagged: bool | None
    is_failed: bool | None
    is_barred: bool

    @property
    def probability(self) -> float | None:
        return max((chance for chance in self.posteriors if chance is not None), default=None)


@dataclass(frozen=True, slots=True)
class BoardScreening:
    """The newest screening of a round, which pools the rounds. ``pooled``: the numbers of these with their counted answers."""

    screening: AnnotatorScreening
    round: BoardRound
    pooled: list[dict[str, int]]
    people: list[BoardAnnotator]


def read_board_screening(board: Board) -> BoardScreening | None:
    """Return the newest screening of the board's rounds, most probably inattentive people first. People who withdrew are left out."""
    rounds = {one.study_id: one for one in board.rounds.select_related("study")}
    screenings = AnnotatorScreening.objects.filter(study__in=rounds).select_related("study").order_by("-pk")
    screening = screenings.filter(origin__in=PEOPLES_ORIGINS).first() or screenings.first()
    if screening is None:
        return None
    work = select(Use.RESULTS, Assignment.objects.filter(study__in=rounds, batch__isnull=False), [screening.origin])
    studies: dict[int, set[int]] = {}
    codes: dict[int, UUID] = {}
    for person, code, study in work.order_by().values_list("annotator", "annotator__code", "study").distinct():
        codes[person] = code
        studies.setdefault(person, set()).add(study)
    persons = {annotator_pseudonym(screening.study, code): person for person, code in codes.items()}
    barred = set(active_barrings(screening.study).values_list("annotator", flat=True))
    people = []
    for judged in screening.result.get("people") or screening.result["rows"]:
        person = persons.get(judged["annotator"], 0)
        if not person:
            continue
        own = sorted((rounds[study] for study in studies[person]), key=lambda one: one.number)
        newest = own[-1].study
        people.append(
            BoardAnnotator(
                annotator_pseudonym(newest, codes[person]),
                newest,
                tuple(one.number for one in own),
                **{name: judged[name] for name in ("right", "counted", "posteriors", "is_flagged", "is_failed")},
                is_barred=person in barred,
            )
        )
    numbers_by_code = {str(one.study.code): one.number for one in rounds.values()}
    pooled = [
        {"round": numbers_by_code[row["study"]], "answers": row["answers"], "annotators": row["annotators"]}
        for row in screening.result.get("pooled", ())
    ]
    people.sort(key=lambda one: (one.probability is None, -(one.probability or 0), one.annotator))
    return BoardScreening(screening, rounds[screening.study_id], sorted(pooled, key=lambda row: row["round"]), people)
