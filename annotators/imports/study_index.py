"""The data that a file of answers is checked against: the study's questions, prompts and outputs, and earlier imports."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from annotators.models import Assignment, Response
from annotators.places.assign import hash_person_id
from studies.design.wording import QuestionWording, SectionWording, wording_of
from studies.models import Exposure, Output, Question, Study
from studies.protocols import REGISTRY, Protocol, StimulusPool, UnfillableBatch

# The id of the section that shows the item, its prompt, and its outputs in ascending order.
ItemKey = tuple[int, int, tuple[int, ...]]
# The columns of one answer: value, chosen output, choice, part, text, skip reason.
StoredAnswer = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StudyIndex:
    """Index of a study for checking rows of a file.

    An item is (section that shows it, prompt, outputs); an exposure is its output.
    """

    study: Study
    sections: dict[int, SectionWording]
    ids: dict[tuple[int, str], int]
    section_ids: dict[int, int]
    systems: dict[str, int]
    prompts: dict[str, int]
    outputs: dict[tuple[int, int], dict[int, int]]
    arms: dict[str, int]
    item_sizes: dict[int, int | None]
    texts: dict[int, str] = field(default_factory=dict)

    def protocol(self, section: SectionWording) -> Protocol:
        return REGISTRY[section.protocol]

    def questions_with_key(self, key: str) -> Iterator[tuple[SectionWording, QuestionWording]]:
        """Return the questions with this key, or all questions for ''."""
        for section in self.sections.values():
            for question in section.questions:
                if key in ("", question.key):
                    yield section, question

    def section_owning_items(self, section: SectionWording) -> SectionWording:
        """Return the section whose items this section shows."""
        return self.sections.get(section.reuses or section.position, section)

    def text_of(self, output: int) -> str:
        """Return an output's text. The first call reads those of all outputs; most files need none."""
        if not self.texts:
            rows = Output.objects.filter(system__study=self.study)
            self.texts.update(rows.values_list("pk", "text").iterator(2000))
        return self.texts[output]


def build_study_index(study: Study) -> StudyIndex:
    design = study.designs.order_by("version").last()
    wording = wording_of(study, design.pk if design else None)
    systems = dict(study.systems.values_list("name", "pk"))
    outputs: dict[tuple[int, int], dict[int, int]] = {}
    rows = Output.objects.filter(system__study=study).order_by("pk")
    for prompt, system, sample, pk in rows.values_list("prompt_id", "system_id", "sample", "pk").iterator(2000):
        outputs.setdefault((prompt, system), {})[sample] = pk
    sections = {section.position: section for section in wording.sections if section.protocol in REGISTRY}
    questions = Question.objects.filter(section__study=study).values_list("section__position", "key", "pk")
    return StudyIndex(
        study,
        sections,
        {(position, key): pk for position, key, pk in questions},
        dict(study.sections.values_list("position", "pk")),
        systems,
        dict(study.prompts.values_list("key", "pk")),
        outputs,
        dict(study.arms.values_list("name", "pk")),
        _item_sizes(study, systems),
    )


def _item_sizes(study: Study, systems: dict[str, int]) -> dict[int, int | None]:
    """Return the number of outputs per item by section; None if the protocol shows one output of any system."""
    sizes: dict[int, int | None] = {}
    names = sorted(systems.values())
    for section in study.sections.order_by("position"):
        protocol = REGISTRY.get(section.protocol)
        if protocol is None or not protocol.has_items:
            continue
        if not protocol.shows_every_system:
            sizes[section.position] = None
            continue
        section.m = section.m or 1
        pool = StimulusPool([0], names, {(0, system): (system,) for system in names})
        try:
            drawn = protocol.draw(section, pool, _FirstChoice())  # type: ignore[arg-type]  # it has what protocols use of a Random
        except UnfillableBatch:
            drawn = []
        sizes[section.position] = len(drawn[0].outputs) if drawn else len(names)
    return sizes


class _FirstChoice:
    """A random generator that always takes the first option.

    Only the number of drawn outputs is used, not the outputs.
    """

    def choice(self, options):
        return options[0]

    def randrange(self, n):
        return 0

    def sample(self, options, n):
        return list(options)[:n]


def natural_sort_key(key: str) -> list[tuple[int, int, str]]:
    """Return a sort key that compares numbers by their value, so that p2 comes before p10."""
    return [
        (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]+)", key)
        if part
    ]


@dataclass(slots=True)
class EarlierImports:
    """Earlier imports: annotators by keyed name, their stored answers, and the annotators who withdrew."""

    people: dict[str, int] = field(default_factory=dict)
    answers: dict[tuple[int, int, ItemKey | None, int | None], list[StoredAnswer]] = field(default_factory=dict)
    ordinals: dict[int, int] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)
    items: set[ItemKey] = field(default_factory=set)


ERASED_ANSWER: StoredAnswer = ("erased",)


def load_earlier_imports(study: Study) -> EarlierImports:
    """Return everything that was imported into the study before, and its items as (section, prompt, outputs)."""
    earlier = EarlierImports()
    outputs_by_item: dict[int, tuple[int, int, list[int]]] = {}
    exposures = Exposure.objects.filter(item__study=study).order_by("item_id", "output_id")
    for item, section, prompt, output in exposures.values_list(
        "item_id", "item__section_id", "item__prompt_id", "output_id"
    ).iterator(2000):
        outputs_by_item.setdefault(item, (section, prompt, []))[2].append(output)
    keys = {item: (section, prompt, tuple(outputs)) for item, (section, prompt, outputs) in outputs_by_item.items()}
    earlier.items = set(keys.values())
    imported = Assignment.objects.filter(study=study, origin=Assignment.Origin.IMPORTED)
    for person, key, ordinal, withdrawn in imported.values_list(
        "annotator_id", "annotator__external_id", "ordinal", "withdrawn_at"
    ):
        earlier.people[key] = person
        earlier.ordinals[person] = max(ordinal, earlier.ordinals.get(person, 0))
        if withdrawn:
            earlier.withdrawn.add(person)
    if not earlier.people:
        return earlier
    rows = Response.objects.filter(assignment__in=imported).values_list(
        "assignment__annotator_id", "question_id", "item_id", "exposure__output_id", "erased_at", "value", "chosen__output_id", "choice", "part", "text", "skip_reason",
    )  # fmt: skip
    for person, question, item, output, erased, *columns in rows.iterator(2000):
        question_key = (person, question, keys.get(item), output)
        earlier.answers.setdefault(question_key, []).append(ERASED_ANSWER if erased else tuple(columns))
    return earlier


def imported_person_hash(study: Study, name: str) -> str:
    """Return the keyed hash of a name in the file. The same name has another hash in another study."""
    return hash_person_id(import_pool_name(study), name)


def import_pool_name(study: Study) -> str:
    return f"imported-{study.code.hex[:24]}"
