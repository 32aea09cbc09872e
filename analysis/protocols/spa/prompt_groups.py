"""Which annotators read some of the same prompts: the second kind of clusters of stated chances."""

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from .answers import SectionAnswers

if TYPE_CHECKING:
    import numpy as np


def read_prompt_groups(answers: SectionAnswers) -> "tuple[np.ndarray | None, int]":
    """Return the group of each annotator's batch, and the number of annotators whose prompts are not known.

    There are no groups if the prompts of some annotator are not known, for example because only stated chances were imported.
    """
    import numpy as np

    from studies.models import Placement

    section = answers.section
    placements = Placement.objects.filter(batch__study=section.study, item__section=section.reuses_id or section.pk)
    numbers = answers.people["batch"].tolist()
    prompts: dict[int, set[int]] = {number: set() for number in numbers}
    for number, prompt in placements.values_list("batch__number", "item__prompt"):
        if number in prompts:
            prompts[number].add(prompt)
    n_unknown = sum(not prompts[number] for number in numbers)
    if n_unknown:
        return None, n_unknown
    groups = group_batches_by_shared_prompts(prompts)
    return np.array([groups[number] for number in numbers], dtype=np.int64), 0


def group_batches_by_shared_prompts(prompts: Mapping[int, Set[int]]) -> dict[int, int]:
    """Return the group of each batch, from 0. Batches are in one group if a chain of shared prompts connects them.

    So groups share no prompt and are independent samples of prompts. Batches that share nine of ten prompts are not.

    >>> group_batches_by_shared_prompts({1: {10, 11}, 2: {11, 12}, 3: {13}, 4: {12, 14}})
    {1: 0, 2: 0, 3: 1, 4: 0}
    """
    parents: dict[int, int] = {}

    def root_of(prompt: int) -> int:
        while (parent := parents.setdefault(prompt, prompt)) != prompt:
            parents[prompt] = prompt = parents[parent]
        return prompt

    for shared in prompts.values():
        first, *others = sorted(shared)
        for other in others:
            parents[root_of(other)] = root_of(first)
    codes: dict[int, int] = {}
    return {batch: codes.setdefault(root_of(min(shared)), len(codes)) for batch, shared in prompts.items()}
