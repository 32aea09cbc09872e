"""Draw coding samples: random annotators of each arm, with one explanation or all explanations of each."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Max, QuerySet

from annotators.counting import Use, select
from annotators.models import Response
from studies.access import Action, allowed_active_member_users, check_permission_or_404
from studies.design.seeds import seeded_random
from studies.models import Study, audit
from studies.services.lifecycle import ActionRefused

from .codebook import Codebook
from .models import CodingItem, CodingSample, CodingSeat


def codable_explanation_responses(study: Study, origin: str) -> QuerySet[Response]:
    """Return the explanations in live sections of annotators who submitted and did not withdraw."""
    explanations = Response.objects.filter(
        assignment__study=study, question__section__purpose="live", item__isnull=False, erased_at=None
    )
    return select(Use.RESULTS, explanations, [origin]).exclude(text="")


@transaction.atomic
def draw_coding_sample(
    study: Study,
    *,
    kind: str,
    rule: str,
    codebook: Codebook,
    per_arm: int,
    coders: Sequence,
    by,
    origin: str = "live",
) -> CodingSample:
    """Draw a sample, with the items of all arms in random order. Raises ActionRefused, which says what is missing."""
    check_permission_or_404(by, Action.SAMPLE, study)
    study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
    if study.state == Study.State.DRAFT:
        raise ActionRefused("A draft has no answers to code. Launch the study first.")
    n_coders = 3 if rule == CodingSample.Rule.THIRD else 2
    if len(coders) != n_coders or len({coder.pk for coder in coders}) != n_coders:
        raise ActionRefused(
            f"This rule needs {'three' if n_coders == 3 else 'two'} different coders. Choose another person in each field."
        )
    members = set(allowed_active_member_users(Action.CODE, study).values_list("pk", flat=True))
    if strangers := [coder for coder in coders if coder.pk not in members]:
        raise ActionRefused(f"{strangers[0]} is not a coder, editor or owner of this study. Choose another coder.")
    explanations_by_arm: dict[str, dict[tuple[str, int], list[int]]] = {}
    rows = codable_explanation_responses(study, origin).values_list(
        "assignment__batch__arm__name", "assignment__code", "assignment_id", "pk"
    )
    for arm, code, assignment, response in rows:
        explanations_by_arm.setdefault(arm, {}).setdefault((code, assignment), []).append(response)
    if not explanations_by_arm:
        raise ActionRefused(
            "No submitted assignment of this origin has an explanation to code. Choose another origin under “answers of”."
        )
    number = (study.coding_samples.aggregate(last=Max("number"))["last"] or 0) + 1
    rng = seeded_random(study.seed, "coding", number)
    chosen: list[tuple[int, int | None]] = []
    for arm in sorted(explanations_by_arm):
        people = sorted(explanations_by_arm[arm])
        for person in rng.sample(people, min(per_arm, len(people))):
            sampled = (
                rng.choice(sorted(explanations_by_arm[arm][person])) if kind == CodingSample.Kind.EXPLANATIONS else None
            )
            chosen.append((person[1], sampled))
    rng.shuffle(chosen)
    sample = CodingSample.objects.create(
        study=study,
        number=number,
        kind=kind,
        rule=rule,
        codebook=codebook.as_json(),
        per_arm=per_arm,
        origin=origin,
        by=by,
    )
    CodingSeat.objects.bulk_create(CodingSeat(sample=sample, number=n, user=user) for n, user in enumerate(coders, 1))
    CodingItem.objects.bulk_create(
        CodingItem(sample=sample, number=n, assignment_id=assignment, response_id=response)
        for n, (assignment, response) in enumerate(chosen, 1)
    )
    audit.record("draw coding sample", study=study, by=by, number=number, kind=kind, rule=rule, items=len(chosen))
    return sample


def items_without_withdrawn_or_erased(sample: CodingSample) -> QuerySet[CodingItem]:
    """Return the items without withdrawn annotators and erased texts."""
    items = select(Use.ROWS, sample.items.all(), path="assignment")
    return items.exclude(response__erased_at__isnull=False)
