"""The class Protocol is the contract: it holds what every protocol says of itself."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any

from .drawing import DrawnItem, ShownSystems, StimulusPool
from .pages import Page, PageField, PageItem, PageQuestion, PageSection
from .problems import Problem
from .robots import Robot
from .scales import read_scale


@dataclass(frozen=True, slots=True)
class ExampleStudy:
    """What a small study of a protocol needs beside what the protocol says anyway. Blinding, the costs of pages and robots are tested
    on such a study of every protocol, so it should show as much on a page as campaigns do.

    ``questions`` (columns of Question): where the protocol has no ``questions`` of its own and one on a plain ``question_kind`` does
    not do. ``settings``: where the defaults do not do. ``has_human``: whether one of the systems is a human author.
    """

    systems: int = 2
    has_human_system: bool = False
    questions: Sequence[Mapping[str, Any]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


class Protocol:
    """What a protocol says of itself. Only ``slug``, ``label`` and ``asks`` must be given; what its answers
    say is told in ``analysis.protocols``."""

    slug = ""
    label = ""
    help = ""
    settings_form: type | None = None
    # "section": one permutation of labels for all items of the section; "item": one for each item.
    labels = "item"
    # A protocol that shows no items (survey) has m = 0.
    has_items = True
    # What a researcher calls the items of an annotator, which m counts.
    item_noun = "prompts"
    # What becomes a letter in the words of its questions, told beside their fields.
    placeholder_help = ""
    # Whether a question may be about two systems, x and y.
    has_directed_questions = False
    # Whether an item holds an output of every system: prompts that lack one are then not shown.
    shows_every_system = True
    # Where two systems must be together to be compared: in one "item", in an item that holds no other (a "pair"), in one "batch",
    # or nowhere (""): outputs are judged by themselves, and those of two systems may be judged by different annotators.
    comparison_scope = "item"
    # The kind of scale (studies.protocols.base.scales.SCALE_KINDS) with which a new question begins.
    default_scale_kind = "percent"
    # What a new section asks to begin with: columns of Question.
    questions: Sequence[Mapping[str, Any]] = ()
    # What a small study of it needs.
    sample = ExampleStudy()
    # The paper and section that it implements.
    source = ""

    @property
    def template(self) -> str:
        return f"protocols/{self.slug}.html"

    def raw_settings(self, section) -> dict[str, Any]:
        """A section's settings as its form takes them: what is stored, and the form's initial value of what is not."""
        if self.settings_form is None:
            return {}
        fields = self.settings_form.base_fields
        return {name: section.settings.get(name, field.initial) for name, field in fields.items()}

    def cleaned_settings(self, section) -> dict[str, Any]:
        """A section's settings, each with its initial value where it is not given or cannot be read (the checklist names that)."""
        if self.settings_form is None:
            return {}
        return _clean_settings(self.settings_form, json.dumps(self.raw_settings(section), sort_keys=True, default=str))

    def problems(self, section) -> Iterable[Problem]:
        """What is missing or unwise in a section's definition."""
        return ()

    def drawing_problems(self, section, drawing) -> Iterable[Problem]:
        """What the arms and their outputs lack for the section. Asked where batches are drawn from the design; ``drawing`` holds the
        arms, their systems and the outputs (``studies.design.draw.BatchDraw``)."""
        return ()

    def answer_keys(self, section, question) -> tuple[str, ...]:
        """The keys that an answer to the question may store as its choice; empty where nothing is chosen from a list."""
        try:
            return tuple(option.key for option in read_scale(question.scale).options)
        except (ValueError, TypeError, KeyError):
            return ()  # the checklist names the scale

    def estimands(self, section) -> Mapping[str, str]:
        """Keys that a Contrast may name, each with its words; the first is the default."""
        return {}

    def sources(
        self, section, systems: Sequence[int], human_systems: frozenset[int], rng: Random
    ) -> Sequence[tuple[int, ...]]:
        """The systems from which the output at each of the m places is taken, where an item shows one of them; else nothing.

        ``systems``: those of the arm, ``human`` those of them that are human authors.
        """
        return ()

    def draw(self, section, pool: StimulusPool, rng: Random) -> list[DrawnItem]:
        """The section's items of one batch: the first m prompts of the pool, each with one output of every system.

        Where a system has several samples of a prompt, one is drawn. A section with items made in the draft shows those.
        """
        if pool.items:
            return [
                DrawnItem(item=item, kind=kind)
                for item, kind in rng.sample(pool.items, min(section.m, len(pool.items)))
            ]
        return [
            DrawnItem(prompt, tuple(rng.choice(pool.outputs[prompt, system]) for system in pool.systems))
            for prompt in pool.prompts[: section.m]
        ]

    def order_questions(self, questions: Sequence[Any], settings: Mapping[str, Any], rng: Random) -> list[Any]:
        """The order in which one annotator is asked: as listed, or shuffled where the section's settings say so."""
        if settings.get("question_order") == "random":
            return rng.sample(questions, len(questions))
        return list(questions)

    def pages(self, section: PageSection, items: Sequence[PageItem], answers: Mapping[str, Any]) -> list[Page]:
        """The section's pages as far as the answers given so far determine them: one an item."""
        return [Page(f"s{section.position}.p{item.position}", section, (item,), section.questions) for item in items]

    def asks(self, page: Page) -> dict[str, PageField]:
        """The form fields of a page, by slot."""
        raise NotImplementedError

    def clean(self, page: Page, data: dict[str, Any]) -> dict[str, str]:
        """Rules across fields: {slot: message}. ``data`` holds the cleaned values and may be completed (mid-ranks).

        Called whatever the fields said: a slot that its own field refused is not in ``data`` (one left empty is None there), and
        its own message stays.
        """
        return {}

    def count_answers(self, section, outputs_per_item: Sequence[int]) -> int:
        """How many answers a person gives in a section, for the checklist. ``section.asked`` counts its questions, ``shown`` holds for
        each of its items how many outputs it shows."""
        return section.asked * (len(outputs_per_item) if self.has_items else 1)

    def reason_not_answerable(self, section, contrast, shown_systems: ShownSystems) -> str:
        """Why the section cannot answer a planned comparison when its batches show this, and what to do; '' where it can."""
        if not contrast.x_id:
            return "it compares systems, and this comparison names none: choose two systems"
        if contrast.criterion and contrast.criterion not in {
            question.criterion for question in section.questions.all()
        }:
            return f"no question asks about the criterion “{contrast.criterion}”: add one, or take the criterion away"
        missing = [system.name for system in (contrast.x, contrast.y) if system.pk not in shown_systems.systems]
        if missing:
            return f"no batch shows {' or '.join(missing)}: check the systems of the arms, the prompts that have outputs, and the target"
        pair = frozenset((contrast.x_id, contrast.y_id))
        side_by_side = {
            "item": lambda: any(pair <= item for item in shown_systems.items),
            "pair": lambda: pair in shown_systems.items,
            "batch": lambda: any(pair <= batch for batch in shown_systems.batches),
            "": lambda: True,
        }
        if not side_by_side[self.comparison_scope]():
            return (
                f"this protocol compares outputs that one annotator sees together, and no batch shows {contrast.x} with {contrast.y}: give "
                "one arm both systems, or plan the comparison in a section that judges each output by itself (a rating)"
            )
        return ""

    def expected_practice_answers(
        self, section, outputs: Sequence[tuple[str, bool]]
    ) -> Mapping[str, tuple[float, float] | int]:
        """What a practice item of these outputs should be answered, by the question's key: a range, or the place of an output.

        ``outputs``: (system's name, whether it is a human author) in the order of their numbers. Raises ValueError, saying what is
        wrong, for outputs that make no practice item; gives nothing where the protocol has none.
        """
        return {}

    def truth(self, page: Page, question: PageQuestion, expected: tuple[float, float] | str) -> str:
        """A practice item's expected answer in words: a range on the question's scale, or the label of an output."""
        noun = str(page.section.settings.get("noun") or "text").capitalize()
        if isinstance(expected, str):
            return f"{noun} {expected}"
        low, high = expected
        words = [point.label or point.key for point in question.scale.points if low <= float(point.key) <= high]
        return " or ".join(words) if question.scale.kind == "likert" else f"{low:g} to {high:g}"

    def plausible(self, page_fields: Mapping[str, PageField], robot: Robot) -> Mapping[str, str]:
        """What a robot sends from a page, by the names of its inputs. Fields left out are answered by their own ``plausible``.

        Write it where ``clean`` has rules across fields, which must hold for what is sent; or where what robots perceive shall come
        out of the report as it went in.
        """
        return {}

    def is_item_settled(self, section, labels: Sequence[Any]) -> bool:
        """Whether the answers to one item and question, in the order given, decide it."""
        return True

    def settles_items(self, section) -> bool:
        """Whether an item of the section may want more answers than its batches have places (see ``settled``)."""
        return False

    def is_for_one_annotator(self, section) -> bool:
        """Whether one and the same annotator answers all batches."""
        return False

    def has_stopping_rule(self, section) -> bool:
        """Whether the section has a rule that may end the study before its target is reached."""
        return False


@lru_cache(maxsize=1024)
def _clean_settings(settings_form: type, settings_json: str) -> dict[str, Any]:
    form = settings_form(data=json.loads(settings_json))
    form.full_clean()  # what is refused is not among the cleaned
    return {name: field.initial for name, field in settings_form.base_fields.items()} | form.cleaned_data


def arms_of(section) -> list:
    """The arms that see a section, each with its systems read."""
    named = list(section.arms.prefetch_related("systems"))
    return named or list(section.study.arms.prefetch_related("systems"))
