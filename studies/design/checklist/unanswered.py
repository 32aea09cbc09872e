"""Warn about a target that leaves prompts, or pairs of outputs, without any answer."""

from collections.abc import Collection, Iterator, Mapping
from math import ceil

from studies.design.draw import BatchDraw
from studies.models import Batch, Contrast, Section, Study
from studies.protocols import REGISTRY, Problem

from .populations import SectionPrompts


def unanswered_prompt_problems(
    drawing: BatchDraw,
    sections_by_contrast: Mapping[Contrast, Collection[Section]],
    prompts_by_section: Mapping[int, SectionPrompts],
    n_read: int,
    n_wanted: int,
) -> Iterator[Problem]:
    """Yield a warning for each section with prompts, or pairs of a planned comparison, that the target shows to nobody.

    The first ``n_read`` of the ``n_wanted`` batches were read. Later batches show at most as many new prompts, so a warning
    is never wrong about a balanced drawing. Independent samples leave prompts out on purpose.
    """
    study = drawing.study
    if study.coverage == Study.Coverage.INDEPENDENT or not study.target_n:
        return
    for section in drawing.sections:
        shown = prompts_by_section.get(section.pk)
        if shown is None or not shown.n_batches or section.reuses_id:
            continue
        found = []
        for words, available, answered in _compared(drawing, section, sections_by_contrast, shown):
            expected = min(len(available), round(len(answered & available) * n_wanted / n_read))
            if 0 < expected < len(available):
                found.append((expected / len(available), words, expected, len(available)))
        if found:
            share, words, expected, n_available = min(found)
            yield Problem(
                f"Section {section.position}: a target of {study.target_n} leaves {n_available - expected} of {n_available} "
                f"{words} without answers. Raise the target to {ceil(study.target_n / share - 1e-9)}, or use fewer prompts.",
                "target_n",
                False,
                f"without_answers:{section.position}",
            )


def _compared(
    drawing: BatchDraw,
    section: Section,
    sections_by_contrast: Mapping[Contrast, Collection[Section]],
    shown: SectionPrompts,
) -> Iterator[tuple[str, set[int | None], set[int | None]]]:
    """Yield what a section could compare: its name, the prompts that could be shown for it, and those that are."""
    protocol = REGISTRY[section.protocol]
    arms = [arm.pk for arm in drawing.arms if section in drawing.sections_with_own_items(arm.pk)]
    of_any = set[int | None]().union(*(drawing.prompts[arm] for arm in arms))
    yield "prompts", of_any, set[int | None]().union(*shown.by_system.values())
    if protocol.has_directed_questions:
        return  # one answer is about all that a person read
    for contrast, sections in sections_by_contrast.items():
        x, y = contrast.x_id, contrast.y_id
        if x and y and section in sections:
            both = set[int | None]().union(
                *(drawing.prompts[arm] for arm in arms if {x, y} <= set(drawing.systems[arm]))
            )
            yield f"pairs of {contrast.x} and {contrast.y}", both, shown.prompts_that_compare(x, y)


def ready_made_batch_problems(study: Study, n_wanted: int) -> Iterator[Problem]:
    """Yield a warning if the target opens fewer batches than the study has."""
    n_batches = study.batches.filter(origin=Batch.Origin.IMPORTED).count()
    if study.target_n and n_wanted < n_batches:
        yield Problem(
            f"A target of {study.target_n} leaves {n_batches - n_wanted} of {n_batches} ready-made batches without answers. "
            f"Raise the target to {n_batches * study.annotators_per_batch}, or import fewer batches.",
            "target_n",
            False,
            "batches_without_answers",
        )
