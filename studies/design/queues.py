"""Which prompts a batch gets in balanced coverage."""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from math import gcd
from random import Random

from studies.protocols import UnfillableBatch
from studies.protocols.base.balance import Shown, ShownCounts

from .seeds import seeded_random


def require_prompts(needed: int, left: int) -> None:
    """Raise UnfillableBatch if fewer prompts are left than are needed."""
    if left < needed:
        raise UnfillableBatch(
            f"{needed} more prompt{'' if needed == 1 else 's'} {'is' if needed == 1 else 'are'} needed and {left} "
            f"{'is' if left == 1 else 'are'} left"
        )


def _spread(members: Sequence[list[int]], rng: Random) -> list[int]:
    """Return the prompts in an order in which each group has about equal distances between its prompts."""
    at = {}
    for prompts in members:
        start = rng.random()
        at.update({prompt: (start + number) / len(prompts) for number, prompt in enumerate(prompts)})
    return sorted(at, key=at.__getitem__)


def _packed(members: Sequence[list[int]], size: int) -> list[int]:
    """Return the prompts such that each next ``size`` of them hold whole groups, as far as the groups fit.

    >>> _packed([[1, 2, 3], [4, 5], [6]], 4)
    [1, 2, 3, 6, 4, 5]
    """
    waiting, order, room = list(members), [], size
    while waiting:
        prompts = next((one for one in waiting if len(one) <= room), waiting[0])
        waiting.remove(prompts)
        order += prompts
        room = (room - len(prompts)) % size or size
    return order


class PromptQueue:
    """The prompts of one section and arm in balanced coverage. Each pass is a new shuffle of all prompts.

    A prompt that the batch already holds is skipped and stays in front for the next batch, so counts differ by at most
    one. ``turns`` gives, for each prompt taken, its place in the first pass and the pass in which it was last taken.

    ``groups``: the groups of prompts that belong together; other prompts are alone. A pass spreads each group evenly, so that a batch
    shows many groups. With ``whole_groups_of``, the size of a batch, a batch shows whole groups as far as they fit. Either way the
    prompts of a group have places in a row, so that a group shows all sets in turns.
    """

    def __init__(
        self,
        prompts: list[int],
        seed: int,
        *purpose: object,
        groups: Mapping[int, str] | None = None,
        whole_groups_of: int = 0,
    ):
        self.prompts, self.seed, self.purpose = prompts, seed, purpose
        self.groups = {prompt: groups[prompt] for prompt in prompts if prompt in groups} if groups else {}
        self.whole_groups_of = whole_groups_of
        self.queue: deque[tuple[int, int]] = deque()
        self.passes = 0
        self.places: dict[int, int] = {}
        self.turns: dict[int, tuple[int, int]] = {}

    def take(self, count: int, excluded: set[int]) -> list[int]:
        require_prompts(count, len(set(self.prompts) - excluded))
        taken: list[int] = []
        skipped: list[tuple[int, int]] = []
        while len(taken) < count:
            if not self.queue:
                self.queue.extend((prompt, self.passes) for prompt in self._next_pass())
                self.passes += 1
            prompt, number = self.queue.popleft()
            if prompt in excluded or prompt in taken:
                skipped.append((prompt, number))
            else:
                taken.append(prompt)
                self.turns[prompt] = self.places[prompt], number
        self.queue.extendleft(reversed(skipped))
        return taken

    def _next_pass(self) -> list[int]:
        rng = seeded_random(self.seed, *self.purpose, self.passes)
        order = rng.sample(self.prompts, len(self.prompts))
        if not self.groups:
            self.places = self.places or {prompt: position for position, prompt in enumerate(order)}
            return order
        by_group: dict[Hashable, list[int]] = {}
        for prompt in order:
            by_group.setdefault(self.groups.get(prompt, prompt), []).append(prompt)
        members = rng.sample(list(by_group.values()), len(by_group))
        self.places = self.places or {prompt: place for place, prompt in enumerate(chain.from_iterable(members))}
        return _packed(members, self.whole_groups_of) if self.whole_groups_of else _spread(members, rng)


class TurnQueue(PromptQueue):
    """The prompts of a section whose items show sets of systems in turns, such as pairs.

    Of the prompts that wait in a pass, a batch gets those whose turns show the sets and the systems equally often. The
    two numbers of a prompt's turn add up to the number of its set, modulo the number of sets.
    """

    def __init__(
        self,
        sets: Sequence[Shown],
        prompts: list[int],
        seed: int,
        *purpose: object,
        groups: Mapping[int, str] | None = None,
    ):
        super().__init__(prompts, seed, *purpose, groups=groups)
        self.sets = sets
        self.rng = seeded_random(seed, *purpose, "turns")
        self.waiting: dict[int, dict[Shown, list[int]]] = {}  # by pass and set

    def take(self, count: int, excluded: set[int]) -> list[int]:
        require_prompts(count, len(set(self.prompts) - excluded))
        counts = ShownCounts(self.sets)
        taken: list[int] = []
        while len(taken) < count:
            number, free = self._oldest_free(excluded | set(taken))
            n_left = {shown: len(prompts) for shown, prompts in free.items()}
            while n_left and len(taken) < count:
                shown = counts.pick_and_count(n_left, self.rng)
                n_left[shown] -= 1
                if not n_left[shown]:
                    del n_left[shown]
                prompt = free[shown].pop(0)
                self.waiting[number][shown].remove(prompt)
                self.turns[prompt] = self.sets.index(shown) - number, number
                taken.append(prompt)
        return taken

    def _oldest_free(self, excluded: set[int]) -> tuple[int, dict[Shown, list[int]]]:
        """Return the oldest pass in which prompts wait that are not excluded, and these prompts by set."""
        while True:
            for number, by_set in self.waiting.items():
                free = {
                    shown: [prompt for prompt in prompts if prompt not in excluded] for shown, prompts in by_set.items()
                }
                if free := {shown: prompts for shown, prompts in free.items() if prompts}:
                    return number, free
            self._open_pass()

    def _open_pass(self) -> None:
        self.waiting = {number: by_set for number, by_set in self.waiting.items() if any(by_set.values())}
        by_set = self.waiting[self.passes] = {shown: [] for shown in self.sets}
        # Each pass goes on where the last one ended, so that all sets are shown equally often over passes too. A step is
        # added whenever this would repeat a turn. So a prompt has had every set after as many passes as there are sets.
        n_sets, n_prompts = len(self.sets), len(self.prompts)
        shift = self.passes * n_prompts + self.passes * gcd(n_prompts, n_sets) // n_sets
        for prompt in self._next_pass():
            by_set[self.sets[(self.places[prompt] + shift) % n_sets]].append(prompt)
        self.passes += 1
