"""Which annotators read some of the same prompts: the second kind of clusters of stated chances."""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from studies.design.prompt_groups import group_batches_by_shared_prompts

from .answers import SectionAnswers

if TYPE_CHECKING:
    import numpy as np


def read_prompt_groups(answers: SectionAnswers) -> "tuple[np.ndarray | None, int]":
    """Return the group of each annotator's batch, and the number of annotators whose prompts are not known.

    There are no groups if the prompts of some annotator are not known, for example because only stated chances were imported.
    """
    import numpy as np

    numbers = answers.people["batch"].tolist()
    prompts = prompts_by_batch(answers.section, numbers)
    n_unknown = sum(not prompts[number] for number in numbers)
    if n_unknown:
        return None, n_unknown
    groups = group_batches_by_shared_prompts(prompts)
    return np.array([groups[number] for number in numbers], dtype=np.int64), 0


def prompts_by_batch(section: Any, numbers: Iterable[int]) -> dict[int, set[Hashable]]:
    """Return the prompts that are shown in these batches before the section's questions: of a prompt in a group, the group."""
    from studies.models import Placement

    placements = Placement.objects.filter(batch__study=section.study, item__section=section.reuses_id or section.pk)
    prompts: dict[int, set[Hashable]] = {number: set() for number in numbers}
    for number, prompt, group in placements.values_list("batch__number", "item__prompt", "item__prompt__group"):
        if number in prompts:
            prompts[number].add(group or prompt)
    return prompts
