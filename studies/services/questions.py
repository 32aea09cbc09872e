"""Generate directed questions about pairs of systems, in one or both directions, and the contrasts that they test."""

from collections.abc import Iterable
from itertools import combinations, pairwise

from django.db.models import Max
from django.utils.text import slugify

from studies.models import Contrast, Question, Section, System
from studies.protocols import REGISTRY
from studies.protocols.base.pairs import order_systems

from . import drafts

Pair = tuple[System, System]
PAIR_CHOICES = {
    "neighbours": "neighbouring systems, in the order given below",
    "all": "all pairs",
    "planned": "the pairs of the planned comparisons",
}
DEFAULT_TEXT = "Based on what you have read, what is the chance that {noun} {{x}} is better than {noun} {{y}}?"


def select_system_pairs(section: Section, pair_choice: str, system_order_text: str = "") -> list[Pair]:
    """Return each pair (x, y) once, by one of PAIR_CHOICES. ``system_order_text``: names, one per line; the other systems follow by name."""
    if pair_choice == "planned":
        planned = section.study.contrasts.filter(x__isnull=False).select_related("x", "y").order_by("pk")
        once = {
            frozenset((contrast.x_id, contrast.y_id)): (contrast.x, contrast.y)
            for contrast in reversed(planned)
            if _applies_to(contrast, section)
        }
        return list(reversed(once.values()))
    by_id = {
        system.pk: system for system in section.study.systems.judged().exclude(reference__in=System.EXTREME_REFERENCES)
    }
    systems = [by_id[pk] for pk in order_systems({pk: system.name for pk, system in by_id.items()}, system_order_text)]
    return list({"neighbours": pairwise, "all": lambda rows: combinations(rows, 2)}[pair_choice](systems))


def _applies_to(contrast: Contrast, section: Section) -> bool:
    return contrast.section_id in (None, section.pk)


def asks_both_directions(section: Section) -> bool:
    """Return whether the section's settings ask for both directions of a pair."""
    return REGISTRY[section.protocol].raw_settings(section).get("naming") == "both"


def default_question_text(section: Section) -> str:
    """Return the default text of a question, with the section's noun."""
    return DEFAULT_TEXT.format(noun=REGISTRY[section.protocol].raw_settings(section).get("noun") or "writer")


def add_missing_questions(
    section: Section,
    pairs: Iterable[Pair],
    text: str,
    *,
    by,
    criterion: str = "",
    both_directions: bool | None = None,
    with_contrasts: bool = False,
) -> tuple[int, int]:
    """Add the missing questions of these pairs and, if ``with_contrasts``, the missing contrasts. Return both counts.

    Two questions are the same if x, y and criterion are equal. Two contrasts are also the same if they are reversed.
    """
    pairs = list(pairs)
    both_directions = asks_both_directions(section) if both_directions is None else both_directions
    with drafts.locked_draft(section.study_id, by) as study:
        n_questions = _write_questions(section, pairs, text, criterion, both_directions)
        planned = _write_contrasts(section, pairs, criterion) if with_contrasts else 0
        if n_questions or planned:
            drafts.record_edit_and_raise_version(
                study, by, wrote=f"questions of section {section.position}", n=n_questions, comparisons=planned
            )
    return n_questions, planned


def _write_questions(section: Section, pairs: list[Pair], text: str, criterion: str, both: bool) -> int:
    directed = [pair for x, y in pairs for pair in ([(x, y), (y, x)] if both else [(x, y)])]
    existing = {(q.x_id, q.y_id, q.criterion) for q in section.questions.all()}
    keys = set(section.questions.values_list("key", flat=True))
    position = section.questions.aggregate(last=Max("position"))["last"] or 0
    questions = []
    for x, y in directed:
        if (x.pk, y.pk, criterion) in existing:
            continue
        position += 1
        questions.append(
            Question(
                section=section,
                position=position,
                key=_free_key(x, y, criterion, keys),
                x=x,
                y=y,
                text=text,
                criterion=criterion,
                scale={"kind": "percent"},
            )
        )
    Question.objects.bulk_create(questions)
    return len(questions)


def _write_contrasts(section: Section, pairs: list[Pair], criterion: str) -> int:
    planned = section.study.contrasts.filter(x__isnull=False, criterion=criterion)
    existing = {frozenset((row.x_id, row.y_id)) for row in planned if _applies_to(row, section)}
    missing = [(x, y) for x, y in pairs if frozenset((x.pk, y.pk)) not in existing]
    # Batches usually share prompts, so stated chances cannot show what holds for prompts like these.
    population = Contrast.Population.PEOPLE
    Contrast.objects.bulk_create(
        Contrast(study=section.study, x=x, y=y, criterion=criterion, population=population) for x, y in missing
    )
    return len(missing)


def _free_key(x: System, y: System, criterion: str, keys: set[str]) -> str:
    stem = slugify("-".join(filter(None, (x.name, y.name, criterion))))[:44] or "pair"
    number, key = 1, stem
    while key in keys:
        number += 1
        key = f"{stem}-{number}"
    keys.add(key)
    return key
