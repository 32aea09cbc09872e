"""The groups of prompts of an import: those that the file names, those by equal sources, and those that heval proposes."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from .columns import PromptCells
from .existing import PromptState, text_digest
from .names import DistinctNames
from .options import SOURCE, Options

PROPOSED = "groups_proposed"  # the kind of a finding; its example is the value of ``Options.groups_by`` that accepts it


class PromptGroups:
    """Note the group of each prompt of a file once, and propose groups if the file seems to have some."""

    def __init__(self, options: Options, known: Iterable[PromptState]):
        self.options = options
        known = list(known)
        self._names = DistinctNames({state.group for state in known} - {""})
        self._taken = {state.group for state in known}
        self._by_source = {state.source: state.group for state in known if state.source and state.group}
        self._proposed: dict[str, Counter[str | bytes]] = {}

    def with_group(self, cells: PromptCells) -> PromptCells:
        """Return the prompt with the group of its source, if the options ask for it. Equal sources have a group with a number."""
        if self.options.groups_by != SOURCE or not cells.source or cells.group:
            return cells
        digest = text_digest(cells.source)
        if digest not in self._by_source:
            names = (f"source {number}" for number in count(len(self._by_source) + 1))
            self._by_source[digest] = name = next(name for name in names if name not in self._taken)
            self._taken.add(name)
        return replace(cells, group=self._by_source[digest])

    def find_lookalike(self, group: str) -> str:
        """Take the group. Return another group that looks the same, or '' if there is none."""
        return self._names.add_and_find_lookalike(group) if group else ""

    def note(self, cells: PromptCells) -> None:
        """Count a prompt for the proposals. Call it once for each prompt of the file."""
        proposed: dict[str, str | bytes] = dict(cells.proposed_groups)
        if cells.source and not cells.group:
            proposed[SOURCE] = text_digest(cells.source)
        for name, value in proposed.items():
            self._proposed.setdefault(name, Counter())[value] += 1

    def findings(self, prompts: Iterable[PromptState]) -> Iterator[tuple[str, str, list[str], int]]:
        """Yield (kind, text, examples, number): the groups that the study would have, or what may be groups."""
        groups = Counter(state.group for state in prompts)
        n_alone = groups.pop("", 0)
        if groups:
            yield (
                "groups",
                f"Groups of prompts: {len(groups):,}, with {groups.total():,} prompts; prompts without a group: {n_alone:,}. Results count groups "
                "in place of prompts.",
                [],
                len(groups),
            )
            return
        for name, values in self._proposed.items():
            # One value for all prompts, or another one for each, says nothing about which prompts belong together.
            if not 1 < len(values) < values.total():
                continue
            what = "Equal source texts" if name == SOURCE else f"The column “{name}”"
            yield (
                PROPOSED,
                f"{what} may say which prompts belong together: {len(values):,} groups of {values.total():,} prompts. Choose this if prompts of "
                "a group resemble each other.",
                [name],
                len(values),
            )
