"""Which claims a stopping rule counts. It judges a claim when it passes it, and never again.

A claim that the study's outcome-blind rules exclude by then is left out. So are claims of people who withdrew, and those that
ended because checks or a test were failed. All this says nothing about which system an annotator prefers, so the error rate of
the rule holds. What becomes known later could follow from a look at the outcomes, so the report shows it as a sensitivity
analysis only, and it can make no new crossing.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from analysis.exclusions.applied_rules import AppliedRule, excluding_rules
from annotators.counting import REFUSED_REASONS, Use, select
from annotators.models import Assignment
from studies.models import Study

WITHDRAWN = "withdrawn"
# Late answers of a released claim never enter the rule, so being late changes nothing for it.
NOT_FOR_UNITS = frozenset({"late"})


def database_now(study: Study) -> datetime:
    return Study.objects.filter(pk=study.pk).values_list(Now(), flat=True).get()


def reasons_against(claim: Mapping[str, Any], rules: Sequence[AppliedRule]) -> str:
    """Return why a claim does not count by what is known now, or ''. ``rules``: those of ``unit_rules``."""
    if claim["is_withdrawn"]:
        return WITHDRAWN
    if claim["released_reason"] in REFUSED_REASONS:
        return str(claim["released_reason"])
    return next((rule.slug for rule in rules if claim["pk"] in rule.failed_assignment_ids), "")


def unit_rules(applied_rules: list[AppliedRule]) -> list[AppliedRule]:
    """Return the rules that may remove a claim: those that exclude and are outcome-blind."""
    return [rule for rule in excluding_rules(applied_rules) if rule.slug not in NOT_FOR_UNITS]


def store_judgements(
    study: Study, passed: Collection[int], unjudged: Mapping[int, str], read_at: datetime | None
) -> bool:
    """Store what was decided about the passed claims. Return False if another check judged one of them meanwhile.

    ``unjudged``: the reasons, '' if the claim counts, of all claims that were not judged when they were read.
    """
    new = {pk: unjudged[pk] for pk in passed if pk in unjudged}
    with transaction.atomic():
        own = select(Use.SETTLED, Assignment.objects.filter(study=study, pk__in=new, judged_at=None))
        rows = list(own.select_for_update(no_key=True, of=("self",)).order_by("pk"))
        for row in rows:
            row.judged_at, row.judged_out = read_at, new[row.pk]
        Assignment.objects.bulk_update(rows, ["judged_at", "judged_out"], batch_size=500)
    return len(rows) == len(new)


def excluded_after_they_were_judged(study: Study, origins: Collection[str], kept: Collection[int]) -> int:
    """Return how many submitted claims counted when a stopping rule passed them, and are excluded now."""
    judged = Assignment.objects.filter(study=study, judged_at__isnull=False, judged_out="")
    counted = select(Use.SUBMITTED, judged, origins)
    return len(set(counted.values_list("pk", flat=True)) - set(kept))
