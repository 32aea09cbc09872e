"""Whether people may begin something by a link now, and why not."""

from enum import StrEnum

from django.utils import timezone

from annotators.models import Recruitment
from studies.models import Study


class LinkState(StrEnum):
    """OPEN, or the first of the others that applies. PAUSED is the last of them: nothing but the pause keeps people out."""

    UNPUBLISHED = "unpublished"
    CLOSED = "closed"  # the study is closed or closing
    STOPPED = "stopped"
    ENDED = "ended"  # the link's closing time has passed
    NOT_YET = "not yet"
    PAUSED = "paused"
    OPEN = "open"

    @property
    def is_over(self) -> bool:
        """Whether nobody new comes by this link unless a researcher changes something."""
        return self in (LinkState.CLOSED, LinkState.STOPPED, LinkState.ENDED)


def link_state(study: Study, recruitment: Recruitment) -> LinkState:
    """``study``: the recruitment's own, which callers have at hand."""
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
