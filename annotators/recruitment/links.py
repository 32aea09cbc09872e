"""Return whether people may start by a link now, and the reason if not."""

from enum import StrEnum

from django.utils import timezone

from annotators.models import Recruitment
from studies.models import Study


class LinkState(StrEnum):
    """OPEN, or the first other state that applies. PAUSED comes last: it applies if only the pause blocks people."""

    UNPUBLISHED = "unpublished"
    CLOSED = "closed"  # the study is closed or closing
    STOPPED = "stopped"
    ENDED = "ended"  # the link's closing time has passed
    NOT_YET = "not yet"
    PAUSED = "paused"
    OPEN = "open"

    @property
    def is_over(self) -> bool:
        """Return whether the link accepts no new people unless a researcher changes something."""
        return self in (LinkState.CLOSED, LinkState.STOPPED, LinkState.ENDED)


def recruitment_link_state(study: Study, recruitment: Recruitment) -> LinkState:
    """Return whether people may start by the link now. ``study``: the recruitment's study, which callers already have."""
    now = timezone.now()
    if study.state in (Study.State.DRAFT, Study.State.LAUNCHING):
        return LinkState.UNPUBLISHED
    if study.state not in Study.RUNNING:
        return LinkState.CLOSED
    if recruitment.stopped_at:
        return LinkState.STOPPED
    if recruitment.closes_at and now > recruitment.closes_at:
        return LinkState.ENDED
    if recruitment.opens_at and now < recruitment.opens_at:
        return LinkState.NOT_YET
    return LinkState.PAUSED if study.state == Study.State.PAUSED else LinkState.OPEN
