"""Disjoint pools: who may not take part in a study is kept out at its panel too, by a list of the panel's.

The constraint in ``assign`` is the guard. The list only spares people a way that ends at a closed door, and the panel a place.
"""

from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from annotators.models import Annotator, Assignment, PanelBar, PanelIdentity, PanelOrder, Recruitment
from annotators.models.crypto import keyed_hash
from annotators.places.assign import REVIVABLE_REASONS
from annotators.recruitment.channels import REGISTRY
from studies.models import Study

from .orders import create_order

# People in one order. Some panels take each by a request of its own, about two a second.
PEOPLE_PER_ORDER = 50
RETRY_AFTER = timedelta(hours=1)


def blocklist_name(study: Study) -> str:
    """The name of the list, at every panel; '' where nobody is kept out.

    Studies of one exclusion group share theirs. Where others than they are kept out too, or people may come again, a study has its own.
    The name tells nothing: workers can read it.
    """
    keeps_origin_out = bool(study.clone_of_id and study.keeps_origin_out)
    is_once = study.batches_per_annotator == 1
    if study.exclusion_group and is_once and not keeps_origin_out:
        return f"heval-{keyed_hash('list of group', study.exclusion_group)[:24]}"
    if is_once or keeps_origin_out or study.exclusion_group:
        return f"heval-{keyed_hash('list of study', str(study.code))[:24]}"
    return ""


def blocklist_names(recruitment: Recruitment) -> list[str]:
    """The lists whose people shall not see what is published now."""
    name = blocklist_name(recruitment.study) if REGISTRY[recruitment.channel].has_blocklist else ""
    return [name] if name else []


def blocked_annotators(recruitment: Recruitment) -> QuerySet[Annotator]:
    """Who may not take part by this link, as far as its panel knows them: the people of ``has_taken_part_elsewhere``, and those who have
    begun here. Who gave their place back, or let it lapse, may come again."""
    study = recruitment.study
    came = Assignment.objects.filter(annotator=OuterRef("pk")).exclude(origin=Assignment.Origin.TEST)
    came = came.exclude(released_reason=Assignment.Released.FULL)
    barring = Q(pk=None)
    if study.clone_of_id and study.keeps_origin_out:
        barring |= Q(study=study.clone_of_id)
    if study.exclusion_group:
        barring |= Q(study__exclusion_group=study.exclusion_group) & ~Q(study=study.pk)
    if study.batches_per_annotator == 1:
        may_return = Q(released_reason__in=REVIVABLE_REASONS, submitted_at=None)
        barring |= Q(study=study.pk) & ~may_return
    known = PanelIdentity.objects.filter(annotator=OuterRef("pk"), ciphertext__isnull=False)
    return Annotator.objects.filter(Exists(came.filter(barring)), Exists(known), pool=recruitment.pool)


def annotators_to_block(recruitment: Recruitment) -> QuerySet[Annotator]:
    """Who is to be kept out and stands in no order yet; those of a refused order again after an hour."""
    ordered = PanelBar.objects.filter(annotator=OuterRef("pk"), order__recruitment=recruitment)
    waits = Q(order__state=PanelOrder.State.REFUSED, order__ended_at__lt=Now() - RETRY_AFTER)
    return blocked_annotators(recruitment).filter(~Exists(ordered.exclude(waits)))


def order_blocks(recruitment: Recruitment, *, by) -> int:
    """Order that they are put on the list, many in one order. Gives how many. Again it orders nobody twice."""
    if not (lists := blocklist_names(recruitment)):
        return 0
    with transaction.atomic():
        # One after the other: whoever joined an order that somebody else has sent already would never be listed.
        Recruitment.objects.select_for_update(of=("self",), no_key=True).get(pk=recruitment.pk)
        pks = list(annotators_to_block(recruitment).order_by("pk").values_list("pk", flat=True))
        before = PanelOrder.objects.filter(recruitment=recruitment, operation="bar").count() if pks else 0
        for n, start in enumerate(range(0, len(pks), PEOPLE_PER_ORDER), before + 1):
            order = create_order(recruitment, "bar", f"bar-{recruitment.pk}-{n}", by=by, list=lists[0])
            PanelBar.objects.bulk_create(
                PanelBar(order=order, annotator_id=pk) for pk in pks[start : start + PEOPLE_PER_ORDER]
            )
    return len(pks)


def update_blocklist(recruitment: Recruitment) -> int:
    """The same while people come, where something was published from here: what was made at the panel by hand carries no list of ours."""
    published = PanelOrder.objects.filter(recruitment=recruitment, operation="publish")
    is_published = published.exclude(state__in=[PanelOrder.State.REFUSED, PanelOrder.State.CANCELLED]).exists()
    return order_blocks(recruitment, by=None) if is_published else 0


def blocklist_status(recruitment: Recruitment) -> dict[str, int]:
    """How many people are on the panel's list by our orders, and how many orders of that were refused or are unclear."""
    ours = PanelOrder.objects.filter(recruitment=recruitment, operation="bar")
    done = PanelBar.objects.filter(order__in=ours, order__state=PanelOrder.State.DONE)
    return {
        "listed": done.values("annotator").distinct().count(),
        "doubtful": ours.filter(state__in=["refused", "unclear"]).count(),
    }
