"""Check the test before the work: it has enough questions with a right answer for its pass mark."""

from collections.abc import Iterator

from django.db.models import Count

from studies.models import Item
from studies.protocols import REGISTRY, Problem, arms_of
from studies.protocols.base.scales import parse_scale


def test_problems(section) -> Iterator[Problem]:
    """Yield the faults of a section with a pass mark."""
    protocol = REGISTRY.get(section.protocol)
    if section.pass_mark is None or protocol is None:
        return
    where = f"Section {section.position}"
    if protocol.has_items:
        n_known, n_asked = _fewest_practice_items_and_answers(section)
    else:
        n_known = sum(_has_right_answer(question) for question in section.questions.all())
        if n_known < len(section.questions.all()):
            yield Problem(
                f"{where} is a test, but a question has no right answer. Mark exactly one answer of each question as right.",
                "questions",
            )
        n_asked = min(section.m or n_known, n_known)
    if n_asked < section.pass_mark:
        yield Problem(
            f"{where} is a test with {n_asked} known answers, but its pass mark is {section.pass_mark}. Lower the pass mark, or add known answers.",
            "sections",
        )
    elif n_known < 2 * (section.m or n_known):
        yield Problem(
            f"{where} is a test whose second attempt repeats the first in another order. Add known answers for a second set.",
            "sections",
            False,
            "test_repeats",
        )


def _fewest_practice_items_and_answers(section) -> tuple[int, int]:
    """Return how many practice items with an expected answer the arm with the fewest has, and the fewest answers of one attempt.

    The batches of an arm show no items with other systems. An item has an answer for each question with an expected one.
    """
    items: dict[int, tuple[str, set[int]]] = {}
    rows = section.items.filter(kind=Item.Kind.PRACTICE, expected__isnull=False)
    for pk, domain, system in rows.values_list("pk", "prompt__domain", "exposures__output__system"):
        items.setdefault(pk, (domain, set()))[1].add(system)
    n_answers = dict(rows.annotate(n=Count("expected", distinct=True)).values_list("pk", "n"))
    counts = []
    for arm in arms_of(section):
        shown = {system.pk for system in arm.systems.all()}
        answers = sorted(
            n_answers[pk]
            for pk, (domain, systems) in items.items()
            if (not arm.domain or domain in ("", arm.domain)) and (not shown or systems <= shown)
        )
        counts.append((len(answers), sum(answers[: section.m])))
    return min(counts, default=(0, 0))


def _has_right_answer(question) -> bool:
    try:
        scale = parse_scale(question.scale)
    except (ValueError, TypeError, KeyError):
        return False  # the checks of sections report the scale
    return scale.kind == "choice" and bool(scale.right_key) and question.required
