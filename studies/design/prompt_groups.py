"""Group batches by the prompts that they share."""

from collections.abc import Hashable, Mapping, Set


def group_batches_by_shared_prompts(prompts: Mapping[int, Set[Hashable]]) -> dict[int, int]:
    """Return the group of each batch, from 0. Batches are in one group if a chain of shared prompts connects them.

    So groups share no prompt and are independent samples of prompts. Batches that share nine of ten prompts are not. Give the
    group of a prompt in place of a prompt that belongs to one: batches that share a document are not independent either.

    >>> group_batches_by_shared_prompts({1: {10, 11}, 2: {11, 12}, 3: {13}, 4: {12, 14}})
    {1: 0, 2: 0, 3: 1, 4: 0}
    """
    parents: dict[Hashable, Hashable] = {}

    def root_of(prompt: Hashable) -> Hashable:
        while (parent := parents.setdefault(prompt, prompt)) != prompt:
            parents[prompt] = prompt = parents[parent]
        return prompt

    for shared in prompts.values():
        first, *others = shared
        for other in others:
            parents[root_of(other)] = root_of(first)
    codes: dict[Hashable, int] = {}
    return {batch: codes.setdefault(root_of(next(iter(shared))), len(codes)) for batch, shared in prompts.items()}
