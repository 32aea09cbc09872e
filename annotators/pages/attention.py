"""Attention checks: instructed questions on some pages of the live sections. The second wrong answer ends the assignment.

A section with the purpose ``attention`` declares them. The assignment's seed decides which pages ask them.
"""

from collections.abc import Sequence

from annotators.models import Assignment, Response
from annotators.places.batch_plan import BatchPlan, get_batch_plan
from studies.design.seeds import seeded_random
from studies.protocols import Page, PageQuestion


def draw_checks_by_page(plan: BatchPlan, pages: Sequence[Page], seed: int) -> dict[str, tuple[PageQuestion, ...]]:
    """Return the attention checks of each page by page key, spread evenly over ``pages``, which must all be certain to come.

    The last page has a check only if there are no more pages than checks.
    """
    asking = [page for page in pages if page.questions]
    if not asking or not plan.checks:
        return {}
    rng = seeded_random(seed, "attention checks")
    checks = rng.sample(plan.checks, len(plan.checks))
    places = asking[:-1] if len(asking) > len(checks) else asking
    drawn: dict[str, tuple[PageQuestion, ...]] = {}
    for number, (pk, wording) in enumerate(checks):
        first = number * len(places) // len(checks)
        last = max(first, (number + 1) * len(places) // len(checks) - 1)
        page = places[rng.randint(first, last)]
        # Positions after those of the section's own questions, so that no two fields have the same name.
        position = len(page.section.questions) + number + 1
        question = PageQuestion(position, pk, wording.key, wording.text, wording.help, wording.scale)
        drawn[page.key] = (*drawn.get(page.key, ()), question)
    return drawn


def answered_checks(assignment: Assignment) -> list[tuple[Response, bool]]:
    """Return the stored answers to attention checks, each with whether it is right."""
    right_keys = {pk: wording.scale.right_key for pk, wording in get_batch_plan(assignment).checks}
    if not right_keys:
        return []
    stored = Response.objects.filter(assignment=assignment, question__in=right_keys, erased_at=None).order_by("pk")
    return [(response, response.choice == right_keys[response.question_id]) for response in stored]
