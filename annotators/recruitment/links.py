"""Links: whether people may start by one now, with the reason if not, and copies for the clone of a study."""

from enum import StrEnum

from django.utils import timezone

from annotators.models import OutcomePay, PanelSecret, Recruitment, RecruitmentArm
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


# Copy the links of a study to a clone of it.


_COPIED = ("channel", "pool", "settings", "reward", "currency")


def copy_links(study: Study, clone: Study) -> list[Recruitment]:
    """Copy the links of a study, with the pay that they promise and the credentials of their panels. Each copy has a new address.

    Call it in a transaction. Orders, submissions and other records of panels are not copied, and neither are times and numbers of people.
    """
    links = list(study.recruitments.filter(stopped_at=None).order_by("pk"))
    copies = [Recruitment(study=clone, **{name: getattr(link, name) for name in _COPIED}) for link in links]
    Recruitment.objects.bulk_create(copies)
    copy_of = {link.pk: copy for link, copy in zip(links, copies, strict=True)}
    arms = dict(clone.arms.values_list("name", "pk"))
    chosen_arms = RecruitmentArm.objects.filter(recruitment__in=copy_of).select_related("arm")
    RecruitmentArm.objects.bulk_create(
        RecruitmentArm(recruitment=copy_of[row.recruitment_id], arm_id=arms[row.arm.name]) for row in chosen_arms
    )
    OutcomePay.objects.bulk_create(
        OutcomePay(recruitment=copy_of[row.recruitment_id], outcome=row.outcome, rule=row.rule, amount=row.amount)
        for row in OutcomePay.objects.filter(recruitment__in=copy_of)
    )
    PanelSecret.objects.bulk_create(
        PanelSecret(recruitment=copy_of[row.recruitment_id], name=row.name, ciphertext=row.ciphertext)
        for row in PanelSecret.objects.filter(recruitment__in=copy_of)
    )
    return copies
