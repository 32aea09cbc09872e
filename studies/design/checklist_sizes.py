"""What the checklist says about batches, the plan of sizes and who the results hold for."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby, islice
from math import ceil
from operator import itemgetter
from typing import Any

from analysis.stats.planning.closed_forms import quick_plan
from analysis.stats.planning.inputs import DEFAULT_HEADLINE, FEWEST_PROMPTS, StudySize, Target, Variation
from studies.design.comparisons import hypothesis_problem, too_wide_margin_problem
from studies.design.draw import MAX_BLOCK_SIZE, BatchDraw
from studies.design.subjects import numbered_name, read_words_of_sections
from studies.models import Batch, Contrast, Item, Placement, Section, Study
from studies.models.design import REGISTRY as RULES
from studies.models.design import TEST_QUESTION_RULES
from studies.protocols import REGISTRY, Problem, ShownSystems
from studies.protocols.base.pairs import EXTREME_REFERENCES

from .draw import group_batches_by_shared_prompts

# Say what the planned comparisons can be about with the prompts that annotators will see, and warn about too few of
# them.


# Comparisons with the same text are named up to this number.
MOST_NAMES = 6


@dataclass(slots=True)
class SectionPrompts:
    """The prompts that the batches read so far show in one section, and how many batches and items show what.

    ``groups``: the groups of prompts that belong to one. Results count a group once, in place of its prompts. ``group_noun``: what
    the study calls a group, if each prompt has one.
    """

    groups: Mapping[int, str] = field(default_factory=dict)
    group_noun: str = ""
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
        noun, rest = (
            (self.group_noun, "") if self.group_noun else ("group", " of prompts") if self.groups else ("prompt", "")
        )
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
            where = f"{contrast}, section {numbered_name(section)}"
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
    names: dict[tuple[str, str], list[str]] = {}
    for contrast, sections in sections_by_contrast.items():
        for section in sections:
            shown = prompts_by_section[section.pk]
            if not shown.count_differences(contrast):
                continue
            text = _describe_population(contrast, section, shown, n_read, n_wanted)
            name = f"{contrast} ({contrast.criterion})" if contrast.criterion else str(contrast)
            names.setdefault((numbered_name(section), text), []).append(name)
    return [f"Section {section}, {_join_names(those)}: {text}" for (section, text), those in names.items()]


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
    size = StudySize(protocol=DEFAULT_HEADLINE, people=answering, prompts=prompts, prompts_each=min(each, prompts))
    return quick_plan(size, Target(population=population), variation).half_width


def _narrower(ratio: float) -> str:
    return f"about {percent}\u00a0% narrower" if (percent := _percent(1 - ratio)) else "hardly narrower"


def _percent(share: float) -> int:
    """Return a rough percentage: the assumed variances are not known to the nearest percent."""
    return 5 * round(20 * share)


# Warn about a target that leaves prompts, or pairs of outputs, without any answer.


def unanswered_prompt_problems(
    drawing: BatchDraw,
    sections_by_contrast: Mapping[Contrast, Collection[Section]],
    prompts_by_section: Mapping[int, SectionPrompts],
    n_read: int,
    n_wanted: int,
    names: Mapping[int, str],
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
                f"Section {names[section.pk]}: a target of {study.target_n} leaves {n_available - expected} of {n_available} "
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


# The checklist looks at the batches that a launch would draw.


# The checklist draws at least this many trial batches if the target needs them. The launch draws all of them.
MIN_TRIAL_BATCHES = 200


@dataclass(frozen=True, slots=True)
class TrialBatches:
    """What the first ``n_read`` of the ``n_wanted`` batches show.

    ``unanswered`` has the comparisons that none of them answers, with their sections, and ``answered`` has the others.
    ``names``: of the live sections.
    """

    answered: dict[Contrast, list[Section]]
    unanswered: dict[Contrast, list[Section]]
    shown_by_section: dict[int, ShownSystems]
    prompts_by_section: dict[int, SectionPrompts]
    n_read: int
    n_wanted: int
    names: dict[int, str]

    def describe_populations(self) -> list[str]:
        return describe_populations(self.answered, self.prompts_by_section, self.n_read, self.n_wanted)


def read_trial_batches(study: Study, drawing: BatchDraw | None) -> TrialBatches:
    """Draw trial batches until every comparison can be answered, usually after a few of them. Nothing is stored.

    ``drawing`` is None if the study has ready-made batches. Raise UnfillableBatch if a batch cannot be filled.
    """
    live = [
        section
        for section in study.sections.select_related("reuses", "study").prefetch_related(
            "questions__x", "questions__y", "arms"
        )
        if section.purpose == "live"
    ]
    read_words_of_sections(live)
    contrasts = study.contrasts.select_related("x", "y", "section")
    estimating = {contrast: [section for section in live if _can_estimate(section, contrast)] for contrast in contrasts}
    pending = dict(estimating)
    shown_by_section = {section.pk: ShownSystems() for section in live}
    groups = drawing.groups if drawing else dict(study.prompts.exclude(group="").values_list("pk", "group"))
    noun = study.group_noun if groups and not study.prompts.filter(group="").exists() else ""
    prompts_by_section = {section.pk: SectionPrompts(groups, noun) for section in live}
    n_read = 0
    for arm, placed in _items_by_batch(study, drawing):
        if not pending and n_read >= MIN_TRIAL_BATCHES:
            break
        n_read += 1
        for section in live:
            arms = {section_arm.pk for section_arm in section.arms.all()}
            prompts_and_systems = placed.get(section.reuses_id or section.pk) if not arms or arm in arms else None
            if prompts_and_systems:
                prompts_by_section[section.pk].add_batch(prompts_and_systems)
                items = [systems for _, systems in prompts_and_systems]
                shown = shown_by_section[section.pk]
                shown.arms.setdefault(arm, set()).update(*items)
                shown.items |= set(items)
                shown.batches.add(frozenset().union(*items))
                shown.systems |= frozenset().union(*items)
        pending = {
            contrast: sections
            for contrast, sections in pending.items()
            if all(
                REGISTRY[section.protocol].reason_not_answerable(section, contrast, shown_by_section[section.pk])
                for section in sections
            )
        }
    answered = {contrast: sections for contrast, sections in estimating.items() if contrast not in pending}
    return TrialBatches(
        answered,
        pending,
        shown_by_section,
        prompts_by_section,
        n_read,
        max(n_read, batch_count_for_target(study)),
        {section.pk: numbered_name(section) for section in live},
    )


def trial_batch_problems(study: Study, trial: TrialBatches, drawing: BatchDraw | None) -> Iterator[Problem]:
    """Yield problems that only drawn batches show.

    These are planned comparisons that no batch can answer, those that want more prompts than are shown, and prompts that
    nobody answers about.
    """
    for contrast, sections in trial.unanswered.items():
        if not sections:
            yield Problem(
                f"The planned comparison {contrast} cannot be answered: its live sections compare nothing. Name another "
                "section, or none.",
                "contrasts",
                name=f"unanswered:{contrast}",
            )
            continue
        reasons = dict.fromkeys(
            REGISTRY[section.protocol].reason_not_answerable(section, contrast, trial.shown_by_section[section.pk])
            for section in sections
        )
        yield Problem(
            f"The planned comparison {contrast} cannot be answered: {'; '.join(reasons)}.",
            "contrasts",
            name=f"unanswered:{contrast}",
        )
    yield from population_problems(trial.answered, trial.prompts_by_section)
    if drawing is None:
        yield from ready_made_batch_problems(study, trial.n_wanted)
    else:
        yield from unanswered_prompt_problems(
            drawing, trial.answered, trial.prompts_by_section, trial.n_read, trial.n_wanted, trial.names
        )


def _can_estimate(section, contrast) -> bool:
    """Return whether a comparison is about this section and the section's protocol has its estimand."""
    protocol = REGISTRY[section.protocol]
    return contrast.section_id in (None, section.pk) and (
        contrast.estimand or protocol.default_estimand(section)
    ) in protocol.estimands(section)


def batch_count_for_target(study: Study) -> int:
    """Return how many batches the target needs. Without a target (a separate problem), count one block with every arm."""
    return -(-(study.target_n or MAX_BLOCK_SIZE) // study.annotators_per_batch)


def _items_by_batch(
    study: Study, drawing: BatchDraw | None
) -> Iterator[tuple[int, dict[int, list[tuple[int | None, frozenset[int]]]]]]:
    """Yield the arm of each batch that a launch would open, and by section the prompt and the systems of each live item.

    Raise UnfillableBatch if a batch cannot be filled.
    """
    count = batch_count_for_target(study)
    if drawing is None:
        own_batches = study.batches.filter(origin=Batch.Origin.IMPORTED)
        rows = (
            Placement.objects.filter(batch__in=own_batches, item__kind=Item.Kind.LIVE)
            .order_by("batch__number", "number")
            .values_list(
                "batch__number",
                "batch__arm_id",
                "item__section_id",
                "item_id",
                "item__prompt_id",
                "item__exposures__output__system_id",
            )
        )
        for (_, arm), batch_rows in islice(groupby(rows.iterator(2000), key=itemgetter(0, 1)), count):
            systems: dict[tuple[int, int, int], set[int]] = {}
            for _, _, section, item, prompt, system in batch_rows:
                systems.setdefault((section, item, prompt), set()).add(system)
            placed: dict[int, list[tuple[int | None, frozenset[int]]]] = {}
            for (section, _, prompt), system_ids in systems.items():
                placed.setdefault(section, []).append((prompt, frozenset(system_ids)))
            yield arm, placed
        return
    system_by_output = {output: system for (_, system), outputs in drawing.outputs.items() for output in outputs}
    for batch in islice(drawing.batches(), count):
        placed = {}
        for section, drawn in batch.items:
            if drawn.item is None and drawn.kind == Item.Kind.LIVE:
                systems_of_item = frozenset(system_by_output[output] for output in drawn.outputs)
                placed.setdefault(section, []).append((drawn.prompt, systems_of_item))
        yield batch.arm_id, placed


# Check the plan of the analysis: its comparisons and its exclusion rules.


def contrast_problems(study: Study, sections) -> Iterator[Problem]:
    contrasts = list(study.contrasts.select_related("x", "y", "section"))
    if not contrasts:
        yield Problem(
            "No comparison is planned, so all results will be exploratory.", "contrasts", False, "no_contrast"
        )
    if contrasts and not any(contrast.role == "primary" for contrast in contrasts):
        yield Problem("No planned comparison is primary.", "contrasts", False, "no_primary_contrast")
    live = [section for section in sections if section.purpose == "live" and section.protocol in REGISTRY]
    estimands = {key for section in live for key in REGISTRY[section.protocol].estimands(section)}
    for contrast in contrasts:
        if contrast.estimand and contrast.estimand not in estimands:
            yield Problem(f"No section estimates {contrast.estimand!r} (comparison {contrast}).", "contrasts")
        own_sections = [
            (section, list(section.questions.all())) for section in live if contrast.section_id in (None, section.pk)
        ]
        if too_wide := too_wide_margin_problem(contrast.margin, contrast.estimand, contrast.criterion, own_sections):
            yield replace(too_wide, text=f"{contrast}: {too_wide.text}")
        if contradiction := hypothesis_problem(
            contrast.hypothesis,
            margin=contrast.margin,
            has_systems=contrast.x_id is not None,
            expected=contrast.expected,
            estimand=contrast.estimand,
            criterion=contrast.criterion,
            sections=own_sections,
        ):
            yield replace(contradiction[1], text=f"{contrast}: {contradiction[1].text}")
        if contrast.expected == "~" and contrast.margin is None:
            yield Problem(
                f"{contrast} is expected to be equivalent but has no margin, so equivalence cannot be concluded. Enter a margin.",
                "contrasts",
                False,
                f"no_margin:{contrast.x}:{contrast.y}",
            )
    yield from _planned_twice(contrasts, live)
    directed = [section for section in live if any(q.x_id for q in section.questions.all())]
    question_pairs = {frozenset((q.x_id, q.y_id)) for section in directed for q in section.questions.all() if q.x_id}
    for contrast in contrasts:
        if directed and contrast.x_id and frozenset((contrast.x_id, contrast.y_id)) not in question_pairs:
            yield Problem(
                f"No question asks about {contrast.x} and {contrast.y}.",
                "contrasts",
                len(live) == len(directed),
                f"not_asked:{contrast}",
            )


def uncompared_system_problems(study: Study, drawing: BatchDraw) -> Iterator[Problem]:
    """Yield a warning about systems that people judge although no planned comparison is about them, if others are compared."""
    compared = {pk for pair in study.contrasts.values_list("x", "y") for pk in pair if pk}
    shown = {pk for systems in drawing.systems.values() for pk in systems}
    systems = study.systems.judged().exclude(reference__in=EXTREME_REFERENCES).filter(pk__in=shown - compared)
    if compared and (names := sorted(systems.values_list("name", flat=True))):
        yield Problem(
            f"People will judge {', '.join(names)}, but no planned comparison is about them. Remove systems under Your file, or plan "
            "comparisons under All settings.",
            "systems",
            False,
            "not_compared",
        )


def sharing_problems(study: Study) -> Iterator[Problem]:
    """Yield why answers cannot be given away as the study declares, because annotators do not agree to it."""
    if study.asks_to_share_preferences and not study.consent.strip():
        yield Problem(
            "Annotators are asked whether their preferences may be given away, but there is no consent text. Enter one.",
            "consent",
        )
    if study.joins_rounds and not study.consent.strip():
        yield Problem(
            "A person's answers in several rounds are joined, but no consent text says so. Enter a consent text.",
            "consent",
        )


def _planned_twice(contrasts: Collection[Contrast], live: Collection[Section]) -> Iterator[Problem]:
    """Yield a warning for two comparisons of one family that are about the same answers, perhaps in both directions."""
    for first, second in combinations(contrasts, 2):
        is_same = _what_is_compared(first) == _what_is_compared(second) and (
            first.criterion == second.criterion or "" in (first.criterion, second.criterion)
        )
        for section in live if is_same else ():
            default = REGISTRY[section.protocol].default_estimand(section)
            estimands = {first.estimand or default, second.estimand or default}
            criterion = first.criterion or second.criterion
            if (
                len(estimands) == 1
                and estimands <= set(REGISTRY[section.protocol].estimands(section))
                and {first.section_id, second.section_id} <= {None, section.pk}
                and (not criterion or any(question.criterion == criterion for question in section.questions.all()))
            ):
                # Stated chances about a pair are one comparison, in whichever direction it is planned.
                is_reversed = first.x_id != second.x_id and not REGISTRY[section.protocol].has_directed_questions
                yield Problem(
                    f"{first} and {second} are in one family and about the same answers"
                    f"{', in both directions, which count as two tests' if is_reversed else '. The report uses the more specific one'}. "
                    "Delete one of them.",
                    "contrasts",
                    False,
                    f"planned_twice:{first}:{second}",
                )
                break


def _what_is_compared(contrast: Contrast) -> tuple[Any, ...]:
    family = contrast.family or contrast.role
    pair = frozenset(((contrast.x_id, contrast.x_condition), (contrast.y_id, contrast.y_condition)))
    return pair, family


def barring_problems(study: Study) -> Iterator[Problem]:
    """Yield why flagged annotators cannot be kept from further batches as the study declares."""
    if not study.bars_flagged_annotators:
        return
    if not study.exclusion_rules.filter(rule__in=TEST_QUESTION_RULES).exists():
        yield Problem(
            "No rule says which annotators get no further batch. Declare a rule about test questions.",
            "exclusion_rules",
        )
    if not study.consent.strip():
        yield Problem(
            "Flagged annotators get no further batch, but no consent text says so. Enter a consent text.", "consent"
        )
    if study.batches_per_annotator == 1 and not study.exclusion_group:
        yield Problem(
            "Flagged annotators get no further batch, but every annotator gets only one.",
            "bars_flagged_annotators",
            False,
            "bars_nobody",
        )


def exclusion_rule_problems(study: Study, sections) -> Iterator[Problem]:
    """Yield problems of exclusion rules that name something that the study does not have, or that are not installed."""
    for row in study.exclusion_rules.all():
        rule = RULES.get(row.rule)
        if rule is None:
            yield Problem(
                f"The exclusion rule “{row.rule}” is not installed on this site. Delete it, or ask the operator to install it.",
                "exclusion_rules",
            )
            continue
        form = rule.bound_form(row.settings or {})
        if form is None:
            continue
        faults: list[str] = []
        if not form.is_valid():
            faults = [
                f"{form[name].label if name in form.fields else name}: {' '.join(errors)}"
                for name, errors in form.errors.items()
            ]
        elif rule.problems is not None:
            faults = list(rule.problems(sections, **form.cleaned_data))
        for fault in faults:
            yield Problem(
                f"Exclusion rule “{rule.name}”: {fault} Correct the rule's settings, or delete the rule.",
                "exclusion_rules",
            )
