"""Say what the planned comparisons can be about with the prompts that annotators will see, and warn about too few of them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from analysis.stats.planning.closed_forms import quick_plan
from analysis.stats.planning.inputs import FEWEST_PROMPTS, StudySize, Target, Variation
from studies.models import Contrast, Section
from studies.protocols import REGISTRY, Problem

from ..prompt_groups import group_batches_by_shared_prompts

# Comparisons with the same text are named up to this number.
MOST_NAMES = 6


@dataclass(slots=True)
class SectionPrompts:
    """The prompts that the batches read so far show in one section, and how many batches and items show what.

    ``groups``: the groups of prompts that belong to one. Results count a group once, in place of its prompts.
    """

    groups: Mapping[int, str] = field(default_factory=dict)
    by_system: dict[int, set[int | None]] = field(default_factory=dict)
    sets: set[frozenset[int | None]] = field(default_factory=set)
    n_batches: int = 0
    n_items: Counter[frozenset[int]] = field(default_factory=Counter)
    by_systems: dict[frozenset[int], set[int | None]] = field(default_factory=dict)

    def add_batch(self, items: Iterable[tuple[int | None, frozenset[int]]]) -> None:
        """Add the items of a batch, each as its prompt and the ids of its systems."""
        items = list(items)
        self.sets.add(frozenset(prompt for prompt, _ in items))
        self.n_batches += 1
        for prompt, systems in items:
            self.n_items[systems] += 1
            self.by_systems.setdefault(systems, set()).add(prompt)
            for system in systems:
                self.by_system.setdefault(system, set()).add(prompt)

    def count_batch_groups_sharing_no_prompt(self) -> int:
        """Return the largest number of groups of batches that share no prompt with each other."""
        sets = dict(enumerate(self._counted(prompts - {None}) for prompts in self.sets))
        return len(set(group_batches_by_shared_prompts({n: shown for n, shown in sets.items() if shown}).values()))

    def count_prompts_of_compared_systems(self, contrast: Contrast) -> int:
        """Return how many prompts show one of the compared systems, or, in a comparison without systems, any system."""
        systems = [contrast.x_id, contrast.y_id] if contrast.x_id and contrast.y_id else list(self.by_system)
        return len(self._counted(set().union(*(self.by_system.get(system, set()) for system in systems))))

    def _counted(self, prompts: Iterable[int | None]) -> set[int | str | None]:
        """Return the prompts, with the group in place of those that belong to one."""
        return {prompt if prompt is None else self.groups.get(prompt, prompt) for prompt in prompts}

    def count_text(self, n: int) -> str:
        """Return a number of prompts in words, or of groups if the prompts have groups."""
        noun, rest = ("group", " of prompts") if self.groups else ("prompt", "")
        return f"{n} {noun}{'' if n == 1 else 's'}{rest}"

    def prompts_that_compare(self, x: int, y: int) -> set[int | None]:
        """Return the prompts whose items show both systems, or each of them in an item of its own."""
        both, only_x, only_y = set[int | None](), set[int | None](), set[int | None]()
        for systems, prompts in self.by_systems.items():
            if x in systems or y in systems:
                (both if {x, y} <= systems else only_x if x in systems else only_y).update(prompts)
        return both | only_x & only_y

    def count_differences(self, contrast: Contrast) -> float:
        """Return how many items show both compared systems. Two items that show one system each count as one."""
        if not (contrast.x_id and contrast.y_id):
            return self.n_items.total()
        both, only_x, only_y = 0, 0, 0
        for systems, n in self.n_items.items():
            shows_x, shows_y = contrast.x_id in systems, contrast.y_id in systems
            both += n * (shows_x and shows_y)
            only_x += n * (shows_x and not shows_y)
            only_y += n * (shows_y and not shows_x)
        return both + (2 * only_x * only_y / (only_x + only_y) if only_x and only_y else 0)


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
                        f"{where}: with {shown.count_text(n)} the result is about exactly these. Add prompts to reach "
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


def describe_populations(
    sections_by_contrast: Mapping[Contrast, Collection[Section]],
    prompts_by_section: Mapping[int, SectionPrompts],
    n_read: int,
    n_wanted: int,
) -> list[str]:
    """Return a paragraph for each thing that planned comparisons can be about, with the names of these comparisons.

    ``n_read`` of the ``n_wanted`` batches were read, so the batches will show at least the prompts that were counted.
    """
    names: dict[tuple[int, str], list[str]] = {}
    for contrast, sections in sections_by_contrast.items():
        for section in sections:
            shown = prompts_by_section[section.pk]
            if not shown.count_differences(contrast):
                continue
            text = _describe_population(contrast, section, shown, n_read, n_wanted)
            names.setdefault((section.position, text), []).append(str(contrast))
    return [f"Section {position}, {_join_names(those)}: {text}" for (position, text), those in names.items()]


def _join_names(names: list[str]) -> str:
    if len(names) <= MOST_NAMES:
        return "; ".join(names)
    return f"{'; '.join(names[: MOST_NAMES - 1])}; and {len(names) - MOST_NAMES + 1} more"


def _describe_population(
    contrast: Contrast, section: Section, shown: SectionPrompts, n_read: int, n_wanted: int
) -> str:
    at_least = "at least " if n_read < n_wanted else ""
    protocol = REGISTRY[section.protocol]
    if protocol.has_directed_questions:
        sets = shown.count_batch_groups_sharing_no_prompt()
        if sets < FEWEST_PROMPTS:
            found = (
                "all batches share prompts" if sets == 1 else f"the batches form only {sets} sets that share no prompt"
            )
            return (
                f"{found}, so the result is about exactly these prompts. Five sets or more that share no prompt would let it be about "
                "prompts like these."
            )
        return (
            f"the batches form {at_least}{sets} sets that share no prompt, so the result can be about people and prompts like these. "
            "More sets make its interval narrower."
        )
    prompts = shown.count_prompts_of_compared_systems(contrast)
    people = round(shown.n_batches * section.study.annotators_per_batch * n_wanted / n_read)
    seen = f"{at_least}{shown.count_text(prompts)} and {people} {'person' if people == 1 else 'people'}"
    if not protocol.can_be_about_new_prompts(section):
        return f"{seen}. The stopping rule counts people, so the result is about exactly these prompts."
    if prompts < FEWEST_PROMPTS:
        return (
            f"{seen}. The result is about exactly these prompts. Five prompts or more would let it be about prompts like these; "
            "the more, the narrower its interval."
        )
    differences = shown.count_differences(contrast) * section.study.annotators_per_batch * n_wanted / n_read
    variation = _variation(section)
    width = _interval_width(people, prompts, differences, variation)
    if contrast.population == Contrast.Population.PEOPLE:
        for_people = _interval_width(people, prompts, differences, variation, population="people")
        wider = _percent(width / for_people - 1)
        price = f"an interval about {wider}\u00a0% wider" if wider else "an interval of nearly the same width"
        return (
            f"{seen}. The result is about exactly these prompts, as declared. They would also support a result about prompts like these, "
            f"with {price}."
        )
    more_people = _interval_width(2 * people, prompts, 2 * differences, variation) / width
    if differences < 2 * prompts:
        return (
            f"{seen}. The result can be about people and prompts like these. With {2 * people} people who each answer as much, its "
            f"interval would be {_narrower(more_people)}."
        )
    more_prompts = _interval_width(people, 2 * prompts, differences, variation) / width
    return (
        f"{seen}. The result can be about people and prompts like these. With {shown.count_text(2 * prompts)} and as many answers, its interval would "
        f"be {_narrower(more_prompts)}; with {2 * people} people who each answer as much, {_narrower(more_people)}."
    )


def _variation(section: Section) -> Variation:
    """Return how much people and prompts vary: as in the chosen plan of the study's size, or as usual."""
    plan = section.study.size_plan
    return Variation(**plan.inputs["variation"]) if plan else Variation()


def _interval_width(
    people: int, prompts: int, differences: float, variation: Variation, population: str = "people_and_prompts"
) -> float:
    """Return the expected half-width of the interval of a choice between two systems.

    Only ratios of such widths are shown. They are nearly those of other protocols.
    """
    answering = max(1, min(people, round(differences)))
    each = max(1, round(differences / answering))
    # More prompts than answers cannot be seen, and nobody answers twice about a prompt.
    prompts = min(prompts, answering * each)
    size = StudySize(protocol="two_choice", people=answering, prompts=prompts, prompts_each=min(each, prompts))
    return quick_plan(size, Target(population=population), variation).half_width


def _narrower(ratio: float) -> str:
    return f"about {percent}\u00a0% narrower" if (percent := _percent(1 - ratio)) else "hardly narrower"


def _percent(share: float) -> int:
    """Return a rough percentage: the assumed variances are not known to the nearest percent."""
    return 5 * round(20 * share)
