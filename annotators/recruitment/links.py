"""Links: whether people may start by one now, with the reason if not, and copies for the clone of a study."""

from collections.abc import Collection, Iterator
from decimal import Decimal
from enum import StrEnum

from django.db.models import Exists, OuterRef
from django.utils import timezone

from annotators.models import OutcomePay, PanelSecret, Recruitment, RecruitmentArm
from studies.models import Arm, Section, Study
from studies.protocols import Problem

from .channels import OUTCOMES, REGISTRY, UNKNOWN_PEOPLE

Outcome = OutcomePay.Outcome


class LinkState(StrEnum):
    """OPEN, or the first other state that applies. PAUSED comes last: it applies if only the pause blocks people."""

    UNPUBLISHED = "unpublished"
    CLOSED = "closed"  # the study is closed or closing
    STOPPED = "stopped"
    ENDED = "ended"  # the link's closing time has passed
    # The link pays and does not say what an early end pays, or nobody can be known to have the required qualification.
    INCOMPLETE = "incomplete"
    NOT_YET = "not yet"
    PAUSED = "paused"
    OPEN = "open"

    @property
    def is_over(self) -> bool:
        """Return whether the link accepts no new people unless a researcher changes something."""
        return self in (LinkState.CLOSED, LinkState.STOPPED, LinkState.ENDED)


def recruitment_link_state(
    study: Study, recruitment: Recruitment, ruled_outcomes: Collection[str] | None = None
) -> LinkState:
    """Return whether people may start by the link now.

    ``study``: the recruitment's study, which callers already have. ``ruled_outcomes``: as for outcomes_missing_required_pay_rule.
    """
    now = timezone.now()
    if study.state in (Study.State.DRAFT, Study.State.LAUNCHING):
        return LinkState.UNPUBLISHED
    if study.state not in Study.RUNNING:
        return LinkState.CLOSED
    if recruitment.stopped_at:
        return LinkState.STOPPED
    if recruitment.closes_at and now > recruitment.closes_at:
        return LinkState.ENDED
    channel = REGISTRY.get(recruitment.channel)
    if study.required_qualification and channel and not channel.knows_people_again:
        return LinkState.INCOMPLETE
    if recruitment.pk and outcomes_missing_required_pay_rule(recruitment, ruled_outcomes):
        return LinkState.INCOMPLETE
    if recruitment.opens_at and now < recruitment.opens_at:
        return LinkState.NOT_YET
    return LinkState.PAUSED if study.state == Study.State.PAUSED else LinkState.OPEN


# What a link must promise before people may come by it.


def sorted_arm_rewards(recruitment: Recruitment, assumed_link_reward: Decimal | None) -> list[Decimal]:
    """Return the pay of each arm if the link paid ``assumed_link_reward`` (None: arm and study decide), the lowest first."""
    study, own = recruitment.study, RecruitmentArm.objects.filter(recruitment=recruitment.pk, arm=OuterRef("pk"))
    arms = list(Arm.objects.filter(study=study).annotate(is_own=Exists(own)).values_list("reward", "is_own"))
    chosen = [reward for reward, is_own in arms if is_own] or [reward for reward, _ in arms]
    rewards = [
        next((value for value in (assumed_link_reward, reward, study.reward) if value is not None), Decimal(0))
        for reward in chosen
    ]
    return sorted(rewards) or [Decimal(0)]


def possible_early_ends(recruitment: Recruitment) -> list[Outcome]:
    """Return the early ends that people of this link can meet in its study."""
    sections = list(Section.objects.filter(study=recruitment.study_id).values_list("purpose", "pass_mark"))
    purposes = {purpose for purpose, _ in sections}
    channel = REGISTRY.get(recruitment.channel)
    possible = {
        Outcome.SCREENED_OUT: Section.Purpose.SCREENING in purposes or any(mark for _, mark in sections),
        Outcome.FAILED_CHECKS: Section.Purpose.ATTENTION in purposes,
        # A person who opens a link that names nobody has not worked yet.
        Outcome.FULL: channel is None or channel.identifies_people,
    }
    return [outcome for outcome in Outcome if possible.get(outcome, True)]


def possible_outcomes(recruitment: Recruitment) -> list[str]:
    """Return the ways in which a visit by this link can end. The panel needs a code or an address for each of them."""
    possible = possible_early_ends(recruitment)
    impossible = {str(outcome) for outcome in Outcome if outcome not in possible}
    if not recruitment.study.consent:
        impossible.add("no_consent")
    return [outcome for outcome in OUTCOMES if outcome not in impossible]


def outcomes_missing_required_pay_rule(
    recruitment: Recruitment, ruled_outcomes: Collection[str] | None = None
) -> list[Outcome]:
    """Return the early ends without a pay rule, for a link that pays. ``ruled_outcomes``: those with one, if they were read before."""
    ruled = ruled_outcomes
    if ruled is None:
        ruled = set(OutcomePay.objects.filter(recruitment=recruitment.pk).values_list("outcome", flat=True))
    missing = [outcome for outcome in Outcome if outcome not in ruled]
    missing = missing and [outcome for outcome in possible_early_ends(recruitment) if outcome not in ruled]
    return missing if missing and sorted_arm_rewards(recruitment, recruitment.reward)[-1] else []


def find_link_problems(study: Study, **signal_kwargs: object) -> Iterator[Problem]:
    """Yield the links by which nobody could take part in a study that asks for a qualification, for the checklist."""
    for recruitment in (
        study.recruitments.filter(stopped_at=None).order_by("pk") if study.required_qualification else ()
    ):
        channel = REGISTRY.get(recruitment.channel)
        if channel and not channel.knows_people_again:
            yield Problem(f"{recruitment}: {UNKNOWN_PEOPLE}", "required_qualification")


# Copy the links of a study to a clone of it.


_COPIED = ("channel", "pool", "settings", "reward", "currency", "is_for_experts")


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
