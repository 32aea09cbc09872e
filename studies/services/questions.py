"""Generate directed questions about pairs of systems and the contrasts that they test, and the last question about AI tools."""

from collections.abc import Iterable
from itertools import combinations, pairwise

from django.db.models import F, Max
from django.utils.text import slugify

from studies.models import Contrast, Question, Section, Study, System
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


# The request not to use AI tools, and the last question whether somebody did.


AI_TOOLS_REQUEST = "Please do not use AI tools, such as chatbots, for your answers. We want to know what you think."
_ASIDE = 10_000  # a position that no section has


def find_ai_tools_question(study: Study) -> Question | None:
    """Return the question whether annotators used AI tools."""
    keys = [protocol.ai_tools_question["key"] for protocol in REGISTRY.values() if protocol.ai_tools_question]
    found = Question.objects.filter(section__study=study, section__purpose=Section.Purpose.LIVE, key__in=keys)
    return found.select_related("section").order_by("-section__position").first()


def ask_about_ai_tools(study: Study, by, is_asked: bool) -> None:
    """Add the question to a draft in a section at the end, move that section there, or remove it.

    If this changes anything, test runs are deleted.
    """
    question = find_ai_tools_question(study)
    last = study.sections.aggregate(last=Max("position"))["last"] or 0
    is_last = question is not None and question.section.position == last
    if is_asked == (question is not None) and (is_last or not is_asked):
        return
    with drafts.locked_draft(study.pk, by, deletes_test_runs=True) as draft:
        if question is None:
            protocol = next(one for one in REGISTRY.values() if one.ai_tools_question)
            section = Section.objects.create(study=draft, position=last + 1, protocol=protocol.slug, m=0)
            Question.objects.create(section=section, position=1, **protocol.ai_tools_question)
        elif is_asked:
            _move_to_end(question.section, last)
        elif question.section.questions.count() > 1:
            question.delete()
        else:
            _move_to_end(question.section, last)
            drafts.delete_section_and_test_runs(question.section, by)
        drafts.record_edit_and_raise_version(draft, by, asks_about_ai_tools=is_asked)


def _move_to_end(section: Section, last: int) -> None:
    position = section.position
    Section.objects.filter(pk=section.pk).update(position=_ASIDE)
    for later in section.study.sections.filter(position__gt=position, position__lt=_ASIDE).order_by("position"):
        Section.objects.filter(pk=later.pk).update(position=F("position") - 1)
    Section.objects.filter(pk=section.pk).update(position=last)
    section.position = last
