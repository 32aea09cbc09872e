"""Separate pools: people who may not take part in a study are also blocked at its panel, by a list there.

The constraint in ``assign`` is the actual guard. The list only avoids useless visits and wasted places.
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

from .orders import get_or_create_order

# People per order. Some panels take one request per person, about two per second.
PEOPLE_PER_ORDER = 50
RETRY_AFTER = timedelta(hours=1)


def blocklist_name(study: Study) -> str:
    """Return the name of the list at every panel; '' if no one is excluded.

    Studies of one exclusion group share a list. A study has its own list if it also excludes other studies, or if
    people may come again. Workers can read the name, so it reveals nothing.
    """
    keeps_origin_out = bool(study.clone_of_id and study.keeps_origin_out)
    is_once = study.batches_per_annotator == 1
    if study.exclusion_group and is_once and not keeps_origin_out:
        return f"heval-{keyed_hash('list of group', study.exclusion_group)[:24]}"
    if is_once or keeps_origin_out or study.exclusion_group:
        return f"heval-{keyed_hash('list of study', str(study.code))[:24]}"
    return ""


def blocklist_names(recruitment: Recruitment) -> list[str]:
    """Return the lists of people who must not see a task published now."""
    name = blocklist_name(recruitment.study) if REGISTRY[recruitment.channel].has_blocklist else ""
    return [name] if name else []


def barred_annotators_with_panel_id(recruitment: Recruitment) -> QuerySet[Annotator]:
    """Return the people who may not take part by this link, as known to its panel.

    These are the people of ``is_kept_out_by_other_study`` and those who have started here. People who returned their
    place or let it expire may come again.
    """
    study = recruitment.study
    arrivals = Assignment.objects.filter(annotator=OuterRef("pk")).exclude(origin=Assignment.Origin.TEST)
    arrivals = arrivals.exclude(released_reason=Assignment.Released.FULL)
    barring = Q(pk=None)
    if study.clone_of_id and study.keeps_origin_out:
        barring |= Q(study=study.clone_of_id)
    if study.exclusion_group:
        barring |= Q(study__exclusion_group=study.exclusion_group) & ~Q(study=study.pk)
    if study.batches_per_annotator == 1:
        may_return = Q(released_reason__in=REVIVABLE_REASONS, submitted_at=None)
        barring |= Q(study=study.pk) & ~may_return
    identities = PanelIdentity.objects.filter(annotator=OuterRef("pk"), ciphertext__isnull=False)
    return Annotator.objects.filter(Exists(arrivals.filter(barring)), Exists(identities), pool=recruitment.pool)


def annotators_to_block_at_panel(recruitment: Recruitment) -> QuerySet[Annotator]:
    """Return people to block who are in no order yet, and those of a refused order after one hour."""
    ordered = PanelBar.objects.filter(annotator=OuterRef("pk"), order__recruitment=recruitment)
    is_waiting = Q(order__state=PanelOrder.State.REFUSED, order__ended_at__lt=Now() - RETRY_AFTER)
    return barred_annotators_with_panel_id(recruitment).filter(~Exists(ordered.exclude(is_waiting)))


def order_blocklist_additions(recruitment: Recruitment, *, by) -> int:
    """Order that these people are added to the list, many per order. Return how many. Idempotent."""
    if not (lists := blocklist_names(recruitment)):
        return 0
    with transaction.atomic():
        # Run one at a time: a person added to an order that was already sent would never be listed.
        Recruitment.objects.select_for_update(of=("self",), no_key=True).get(pk=recruitment.pk)
        pks = list(annotators_to_block_at_panel(recruitment).order_by("pk").values_list("pk", flat=True))
        n_earlier = PanelOrder.objects.filter(recruitment=recruitment, operation="bar").count() if pks else 0
        for n, start in enumerate(range(0, len(pks), PEOPLE_PER_ORDER), n_earlier + 1):
            order = get_or_create_order(recruitment, "bar", f"bar-{recruitment.pk}-{n}", by=by, list=lists[0])
            PanelBar.objects.bulk_create(
                PanelBar(order=order, annotator_id=pk) for pk in pks[start : start + PEOPLE_PER_ORDER]
            )
    return len(pks)


def order_blocklist_additions_if_published(recruitment: Recruitment) -> int:
    """Update the list while people come, if heval published the task.

    Tasks made by hand at the panel do not use heval's list.
    """
    published = PanelOrder.objects.filter(recruitment=recruitment, operation="publish")
    is_published = published.exclude(state__in=[PanelOrder.State.REFUSED, PanelOrder.State.CANCELLED]).exists()
    return order_blocklist_additions(recruitment, by=None) if is_published else 0


def count_listed_people_and_doubtful_orders(recruitment: Recruitment) -> dict[str, int]:
    """Return how many people heval put on the panel's list, and how many of these orders were refused or are unclear."""
    orders = PanelOrder.objects.filter(recruitment=recruitment, operation="bar")
    carried_out = PanelBar.objects.filter(order__in=orders, order__state=PanelOrder.State.DONE)
    return {
        "listed": carried_out.values("annotator").distinct().count(),
        "doubtful": orders.filter(state__in=["refused", "unclear"]).count(),
    }
