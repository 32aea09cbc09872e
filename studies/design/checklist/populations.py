"""Check whether the prompts that annotators will see can support what the planned comparisons are declared to be about."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from studies.models import Contrast, Section
from studies.protocols import REGISTRY, Problem

from ..prompt_groups import group_batches_by_shared_prompts

# With fewer prompts, no method is valid for prompts like these (analysis.stats.clusters.TOO_FEW_ITEMS).
FEWEST_PROMPTS = 5


@dataclass(slots=True)
class SectionPrompts:
    """The prompts that the batches read so far show in one section: by system, and as the set of each batch."""

    by_system: dict[int, set[int | None]] = field(default_factory=dict)
    sets: set[frozenset[int | None]] = field(default_factory=set)

    def add_batch(self, items: Iterable[tuple[int | None, frozenset[int]]]) -> None:
        """Add the items of a batch, each as its prompt and the ids of its systems."""
        items = list(items)
        self.sets.add(frozenset(prompt for prompt, _ in items))
        for prompt, systems in items:
            for system in systems:
                self.by_system.setdefault(system, set()).add(prompt)

    def count_batch_groups_sharing_no_prompt(self) -> int:
        """Return the largest number of groups of batches that share no prompt with each other."""
        sets = dict(enumerate({number for number in prompts if number is not None} for prompts in self.sets))
        return len(set(group_batches_by_shared_prompts({n: shown for n, shown in sets.items() if shown}).values()))

    def count_prompts_of_compared_systems(self, contrast: Contrast) -> int:
        """Return how many prompts show one of the compared systems, or, in a comparison without systems, any system."""
        systems = [contrast.x_id, contrast.y_id] if contrast.x_id and contrast.y_id else list(self.by_system)
        return len(set().union(*(self.by_system.get(system, set()) for system in systems)))


def population_problems(
    sections_by_contrast: Mapping[Contrast, Collection[Section]], prompts_by_section: Mapping[int, SectionPrompts]
) -> Iterator[Problem]:
    """Yield a warning for each comparison that is to be about prompts like these, in a section that shows too few of them."""
    for contrast, sections in sections_by_contrast.items():
        if contrast.population != Contrast.Population.PEOPLE_AND_PROMPTS:
            continue
        for section in sections:
            shown = prompts_by_section[section.pk]
            name = f"too_few_prompts_for_claim:{contrast}:{section.position}"
            where = f"{contrast}, section {section.position}"
            if not REGISTRY[section.protocol].has_directed_questions:
                if 0 < (n := shown.count_prompts_of_compared_systems(contrast)) < FEWEST_PROMPTS:
                    yield Problem(
                        f"{where}: with {n} prompt{'' if n == 1 else 's'} the result is about exactly these. Add prompts to reach "
                        "five, or choose “exactly these prompts”.",
                        "contrasts",
                        False,
                        name,
                    )
            elif 0 < (n := shown.count_batch_groups_sharing_no_prompt()) < FEWEST_PROMPTS:
                # Such answers concern all that a person read, so sets that share no prompt are counted and not prompts.
                yield Problem(
                    f"{where}: batches have {n} set{'' if n == 1 else 's'} that share{'s' if n == 1 else ''} no prompt, fewer than five. Add "
                    "prompts, or choose “exactly these prompts”.",
                    "contrasts",
                    False,
                    name,
                )
