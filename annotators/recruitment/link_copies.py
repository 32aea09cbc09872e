"""Copy the links of a study to a clone of it."""

from annotators.models import OutcomePay, PanelSecret, Recruitment, RecruitmentArm
from studies.models import Study

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
