"""Claims of people whom a panel knows."""

from annotators.places import assign
from studies.models import Study


def outcome(study, person):
    return assign.claim_batch(Study.objects.get(pk=study.pk), assign.get_or_create_annotator("panel", person)).outcome
