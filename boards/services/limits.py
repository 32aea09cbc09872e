"""Limits for each team, so that no team takes a board."""

from datetime import timedelta

from django.db.models import Sum
from django.utils import timezone

from boards.models import Board, Team
from studies.services.lifecycle import ActionRefused

from .samples import waiting_submissions

DAY = timedelta(days=1)


class TooManyToday(ActionRefused):
    """The limit of a day is reached. ``retry_after``: the seconds until the team may send the next submission."""

    def __init__(self, text: str, retry_after: int):
        super().__init__(text)
        self.retry_after = retry_after


def refuse_over_limits(board: Board, team: Team, n_bytes: int = 0) -> None:
    """Raise ActionRefused if the team may send no other submission, or none of this size, now."""
    n_waiting = waiting_submissions(board).filter(team=team).count()
    if n_waiting >= board.max_waiting_per_team:
        raise ActionRefused(
            f"This team has {n_waiting} waiting submissions, and the board allows {board.max_waiting_per_team}. "
            "Wait until a round has scored one, or withdraw one."
        )
    own = board.submissions.filter(team=team)
    n_stored = (own.aggregate(n=Sum("n_bytes"))["n"] or 0) + n_bytes
    if n_stored > board.max_megabytes_per_team * 2**20:
        raise ActionRefused(
            f"The files of this team would have {n_stored / 2**20:,.1f} MB, and the board allows "
            f"{board.max_megabytes_per_team:,} MB. Ask the board's owner to raise the limit."
        )
    now = timezone.now()
    recent = own.filter(received_at__gt=now - DAY).order_by("-received_at").values_list("received_at", flat=True)
    times = list(recent[: board.max_daily_per_team])
    if len(times) == board.max_daily_per_team:
        again = times[-1] + DAY
        raise TooManyToday(
            f"This team sent {len(times)} submissions within 24 hours, as many as the board allows. "
            f"Send the next one after {again:%Y-%m-%d %H:%M} UTC.",
            int((again - now).total_seconds()) + 1,
        )
