"""What a file of answers stands on: the study's questions, prompts and outputs, read once, and what was imported before."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from annotators.models import Assignment, Response
from annotators.places.assign import hash_person_id
from studies.design.wording import QuestionWording, SectionWording, wording_of
from studies.models import Exposure, Output, Question, Study
from studies.protocols import REGISTRY, Protocol, StimulusPool, UnfillableBatch

# The section (by id) that shows it, its prompt, its outputs in ascending order.
ItemKey = tuple[int, int, tuple[int, ...]]
# Of one answer: value, output chosen, choice, part, text, skip reason.
StoredAnswer = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StudyIndex:
    """A study as rows of a file are held against it. Items are (section that shows them, prompt, outputs); an exposure is its output."""

    study: Study
    sections: dict[int, SectionWording]
    ids: dict[tuple[int, str], int]
    section_ids: dict[int, int]
    systems: dict[str, int]
    prompts: dict[str, int]
    outputs: dict[tuple[int, int], dict[int, int]]
    arms: dict[str, int]
    item_sizes: dict[int, int | None]

    def protocol(self, section: SectionWording) -> Protocol:
        return REGISTRY[section.protocol]

    def questions_with_key(self, key: str) -> Iterator[tuple[SectionWording, QuestionWording]]:
        """The questions of this key; '' for all."""
        for section in self.sections.values():
            for question in section.questions:
                if key in ("", question.key):
                    yield section, question

    def source(self, section: SectionWording) -> SectionWording:
        """The section whose items this one shows."""
        return self.sections.get(section.reuses or section.position, section)


def build_study_index(study: Study) -> StudyIndex:
    design = study.designs.order_by("version").last()
    words = wording_of(study, design.pk if design else None)
    systems = dict(study.systems.values_list("name", "pk"))
    outputs: dict[tuple[int, int], dict[int, int]] = {}
    rows = Output.objects.filter(system__study=study).order_by("pk")
    for prompt, system, sample, pk in rows.values_list("prompt_id", "system_id", "sample", "pk").iterator(2000):
        outputs.setdefault((prompt, system), {})[sample] = pk
    sections = {section.position: section for section in words.sections if section.protocol in REGISTRY}
    asked = Question.objects.filter(section__study=study).values_list("section__position", "key", "pk")
    return StudyIndex(
        study,
        sections,
        {(position, key): pk for position, key, pk in asked},
        dict(study.sections.values_list("position", "pk")),
        systems,
        dict(study.prompts.values_list("key", "pk")),
        outputs,
        dict(study.arms.values_list("name", "pk")),
        _item_sizes(study, systems),
    )


def _item_sizes(study: Study, systems: dict[str, int]) -> dict[int, int | None]:
    """How many outputs an item of each section holds; None where the protocol shows one, of any system."""
    found: dict[int, int | None] = {}
    names = sorted(systems.values())
    for section in study.sections.order_by("position"):
        protocol = REGISTRY.get(section.protocol)
        if protocol is None or not protocol.has_items:
            continue
        if not protocol.shows_every_system:
            found[section.position] = None
            continue
        section.m = section.m or 1
        pool = StimulusPool([0], names, {(0, system): (system,) for system in names})
        try:
            drawn = protocol.draw(section, pool, _FirstChoice())
        except UnfillableBatch:
            drawn = []
        found[section.position] = len(drawn[0].outputs) if drawn else len(names)
    return found


class _FirstChoice:
    """A draw whose outcome nobody uses: only the shape of what is drawn is asked for."""

    def choice(self, options):
        return options[0]

    def randrange(self, n):
        return 0

    def sample(self, options, n):
        return list(options)[:n]


def natural_sort_key(key: str) -> list[tuple[int, int, str]]:
    """Sorts p2 before p10: numbers within keys by their value."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"([0-9]+)", key) if part]


@dataclass(slots=True)
class EarlierImports:
    """What is stored of imported answers: of each annotator (by keyed name) what they said of what, and who is gone."""

    people: dict[str, int] = field(default_factory=dict)
    said: dict[tuple[int, int, ItemKey | None, int | None], list[StoredAnswer]] = field(default_factory=dict)
    ordinals: dict[int, int] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)
    items: set[ItemKey] = field(default_factory=set)


ERASED_ANSWER: StoredAnswer = ("erased",)


def load_earlier_imports(study: Study) -> EarlierImports:
    """Everything that was imported into the study before, and its items as (section, prompt, outputs)."""
    found = EarlierImports()
    shown: dict[int, tuple[int, int, list[int]]] = {}
    exposures = Exposure.objects.filter(item__study=study).order_by("item_id", "output_id")
    for item, section, prompt, output in exposures.values_list(
        "item_id", "item__section_id", "item__prompt_id", "output_id"
    ).iterator(2000):
        shown.setdefault(item, (section, prompt, []))[2].append(output)
    keys = {item: (section, prompt, tuple(outputs)) for item, (section, prompt, outputs) in shown.items()}
    found.items = set(keys.values())
    mine = Assignment.objects.filter(study=study, origin=Assignment.Origin.IMPORTED)
    for person, key, ordinal, withdrawn in mine.values_list(
        "annotator_id", "annotator__external_id", "ordinal", "withdrawn_at"
    ):
        found.people[key] = person
        found.ordinals[person] = max(ordinal, found.ordinals.get(person, 0))
        if withdrawn:
            found.withdrawn.add(person)
    if not found.people:
        return found
    rows = Response.objects.filter(assignment__in=mine).values_list(
        "assignment__annotator_id", "question_id", "item_id", "exposure__output_id", "erased_at", "value", "chosen__output_id", "choice", "part", "text", "skip_reason",
    )  # fmt: skip
    for person, question, item, output, erased, *said in rows.iterator(2000):
        place = (person, question, keys.get(item), output)
        found.said.setdefault(place, []).append(ERASED_ANSWER if erased else tuple(said))
    return found


def person_key(study: Study, name: str) -> str:
    """The keyed hash of a name in the file: names of one study say nothing of those of another."""
    return hash_person_id(pool_of(study), name)


def pool_of(study: Study) -> str:
    return f"imported-{study.code.hex[:24]}"
