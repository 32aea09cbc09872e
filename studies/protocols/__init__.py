"""The registry of evaluation protocols and their contract.

A protocol is one module in this package and one template, ``protocols/<slug>.html``; there is no list to edit. What a page is
rendered from are the frozen records below: nothing on them leads to a system, an arm or an item's kind.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from random import Random
from typing import Any

from .base.fields import Answer, Field
from .base.robots import Robot
from .base.scales import ScaleSpec, read_scale

REGISTRY: dict[str, "Protocol"] = {}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something missing (blocking) or unwise (to be acknowledged by name) in a study's definition."""

    text: str
    field: str = ""
    is_blocking: bool = True
    name: str = ""

    @property
    def key(self) -> str:
        """What an acknowledgement names."""
        return self.name or self.text


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item of a batch to be: outputs in the order of their numbers; or ``item``, one that was made in the draft."""

    prompt: int | None = None
    outputs: tuple[int, ...] = ()
    kind: str = "live"
    item: int | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """What a batch may draw from: prompts (ids, in the order of this pass), systems (ids, by name), samples by both, and the
    section's items made in draft.

    ``turns`` (balanced coverage): of each prompt its place in the first pass, and the number of this pass, both from 0: a protocol
    that shows parts of a prompt's outputs goes through them turn by turn. ``sources``: where the protocol shows one output of a
    prompt, the systems from which each place's is taken.
    """

    prompts: Sequence[int]
    systems: Sequence[int]
    outputs: Mapping[tuple[int, int], tuple[int, ...]]
    items: Sequence[tuple[int, str]] = ()
    turns: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    sources: Sequence[tuple[int, ...]] = ()


class PoolSpent(Exception):
    """There is not enough left for one batch. The message names what is missing; ``field`` is the part of the study that lacks it."""

    def __init__(self, text: str = "There is not enough left for one batch.", field: str = "prompts"):
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Ask:
    """One form field, and what its answer is about.

    ``stores``: the column for a plain cleaned value (value | chosen | choice | text); a field may also clean to an ``Answer``,
    stored as it is. ``choice`` and ``part`` are constants of the slot (an option of a multiple choice, a marked part).
    """

    field: Field
    question_id: int
    stores: str = "value"
    item_id: int | None = None
    exposure_id: int | None = None
    label: str = ""
    position: int | None = None
    choice: str = ""
    part: str = ""
    text: str = ""
    help: str = ""
    skip_reasons: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PageItem:
    """An item as this annotator sees it: (label, exposure id), in the order of the labels."""

    position: int
    id: int
    exposures: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """A question as this annotator reads it. ``label``: the labels of x and y, when it compares two systems."""

    position: int
    id: int
    key: str
    text: str
    help: str
    scale: ScaleSpec
    required: bool = True
    skip_reasons: tuple[tuple[str, str], ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class LaidSection:
    """A section as this annotator meets it. ``position`` counts the sections that they are shown."""

    position: int
    m: int
    settings: Mapping[str, Any]
    questions: tuple[PageQuestion, ...]

    def questions_by_key(self, *keys: str) -> list[PageQuestion]:
        by_key = {question.key: question for question in self.questions}
        return [by_key[key] for key in keys]


@dataclass(frozen=True, slots=True)
class Page:
    """One page. ``step`` tells the protocol's template which of its pages this is; ``said``: what this annotator answered before,
    in the words that they chose, where the page asks about it."""

    key: str
    section: LaidSection
    items: tuple[PageItem, ...] = ()
    questions: tuple[PageQuestion, ...] = ()
    step: str = ""
    said: str = ""

    def slot(
        self,
        question: PageQuestion,
        item: PageItem | None = None,
        label: str = "",
        option: int | None = None,
        part: int | None = None,
    ) -> str:
        """The name of a form field: counts of what is shown, which tell nothing."""
        name = f"s{self.section.position}.q{question.position}"
        if item is not None:
            name += f".i{item.position}"
        if label:
            name += f".{label}"
        if option is not None:
            name += f".o{option}"
        if part is not None:
            name += f".p{part}"
        return name


@dataclass(slots=True)
class Shown:
    """What the batches of a study show in one section, as far as they were looked at: ids of systems and of arms.

    ``arms``: the systems that each arm shows; ``items``: the systems of each item; ``batches``: the systems of all items that one
    batch shows in the section.
    """

    systems: set[int] = field(default_factory=set)
    arms: dict[int, set[int]] = field(default_factory=dict)
    items: set[frozenset[int]] = field(default_factory=set)
    batches: set[frozenset[int]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Sample:
    """What a small study of a protocol needs beside what the protocol says anyway. Blinding, the costs of pages and robots are tested
    on such a study of every protocol, so it should show as much on a page as campaigns do.

    ``questions`` (columns of Question): where the protocol has no ``questions`` of its own and one on a plain ``question_kind`` does
    not do. ``settings``: where the defaults do not do. ``has_human``: whether one of the systems is a human author.
    """

    systems: int = 2
    has_human: bool = False
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
    m_counts = "prompts"
    # What becomes a letter in the words of its questions, told beside their fields.
    letters_in_words = ""
    # Whether a question may be about two systems, x and y.
    names_systems = False
    # Whether an item holds an output of every system: prompts that lack one are then not shown.
    shows_every_system = True
    # Where two systems must be together to be compared: in one "item", in an item that holds no other (a "pair"), in one "batch",
    # or nowhere (""): outputs are judged by themselves, and those of two systems may be judged by different annotators.
    together_in = "item"
    # The kind of scale (studies.protocols.base.scales.KINDS) with which a new question begins.
    question_kind = "percent"
    # What a new section asks to begin with: columns of Question.
    questions: Sequence[Mapping[str, Any]] = ()
    # What a small study of it needs.
    sample = Sample()
    # The paper and section that it implements.
    source = ""

    @property
    def template(self) -> str:
        return f"protocols/{self.slug}.html"

    def problems(self, section) -> Iterable[Problem]:
        """What is missing or unwise in a section's definition."""
        return ()

    def drawing_problems(self, section, drawing) -> Iterable[Problem]:
        """What the arms and their outputs lack for the section. Asked where batches are drawn from the design; ``drawing`` holds the
        arms, their systems and the outputs (``studies.design.draw.Drawing``)."""
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

    def sources(self, section, systems: Sequence[int], human: frozenset[int], rng: Random) -> Sequence[tuple[int, ...]]:
        """The systems from which the output at each of the m places is taken, where an item shows one of them; else nothing.

        ``systems``: those of the arm, ``human`` those of them that are human authors.
        """
        return ()

    def draw(self, section, pool: Pool, rng: Random) -> list[DrawnItem]:
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

    def arranged(self, questions: Sequence[Any], settings: Mapping[str, Any], rng: Random) -> list[Any]:
        """The order in which one annotator is asked: as listed, or shuffled where the section's settings say so."""
        if settings.get("question_order") == "random":
            return rng.sample(questions, len(questions))
        return list(questions)

    def pages(self, section: LaidSection, items: Sequence[PageItem], answers: Mapping[str, Any]) -> list[Page]:
        """The section's pages as far as the answers given so far determine them: one an item."""
        return [Page(f"s{section.position}.p{item.position}", section, (item,), section.questions) for item in items]

    def asks(self, page: Page) -> dict[str, Ask]:
        """The form fields of a page, by slot."""
        raise NotImplementedError

    def clean(self, page: Page, data: dict[str, Any]) -> dict[str, str]:
        """Rules across fields: {slot: message}. ``data`` holds the cleaned values and may be completed (mid-ranks).

        Called whatever the fields said: a slot that its own field refused is not in ``data`` (one left empty is None there), and
        its own message stays.
        """
        return {}

    def fields_asked(self, section, shown: Sequence[int]) -> int:
        """How many answers a person gives in a section, for the checklist. ``section.asked`` counts its questions, ``shown`` holds for
        each of its items how many outputs it shows."""
        return section.asked * (len(shown) if self.has_items else 1)

    def cannot_answer(self, section, contrast, shown: Shown) -> str:
        """Why the section cannot answer a planned comparison when its batches show this, and what to do; '' where it can."""
        if not contrast.x_id:
            return "it compares systems, and this comparison names none: choose two systems"
        if contrast.criterion and contrast.criterion not in {
            question.criterion for question in section.questions.all()
        }:
            return f"no question asks about the criterion “{contrast.criterion}”: add one, or take the criterion away"
        missing = [system.name for system in (contrast.x, contrast.y) if system.pk not in shown.systems]
        if missing:
            return f"no batch shows {' or '.join(missing)}: check the systems of the arms, the prompts that have outputs, and the target"
        pair = frozenset((contrast.x_id, contrast.y_id))
        side_by_side = {
            "item": lambda: any(pair <= item for item in shown.items), "pair": lambda: pair in shown.items,
            "batch": lambda: any(pair <= batch for batch in shown.batches), "": lambda: True,
        }  # fmt: skip
        if not side_by_side[self.together_in]():
            return (
                f"this protocol compares outputs that one annotator sees together, and no batch shows {contrast.x} with {contrast.y}: give "
                "one arm both systems, or plan the comparison in a section that judges each output by itself (a rating)"
            )
        return ""

    def practice(self, section, outputs: Sequence[tuple[str, bool]]) -> Mapping[str, tuple[float, float] | int]:
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

    def plausible(self, asks: Mapping[str, Ask], robot: Robot) -> Mapping[str, str]:
        """What a robot sends from a page, by the names of its inputs. Fields left out are answered by their own ``plausible``.

        Write it where ``clean`` has rules across fields, which must hold for what is sent; or where what robots perceive shall come
        out of the report as it went in.
        """
        return {}

    def settled(self, section, labels: Sequence[Any]) -> bool:
        """Whether the answers to one item and question, in the order given, decide it."""
        return True

    def settles(self, section) -> bool:
        """Whether an item of the section may want more answers than its batches have places (see ``settled``)."""
        return False

    def is_for_one_annotator(self, section) -> bool:
        """Whether one and the same annotator answers all batches."""
        return False

    def stops(self, section) -> bool:
        """Whether the section has a rule that may end the study before its target is reached."""
        return False


def arms_of(section) -> list:
    """The arms that see a section, each with its systems read."""
    named = list(section.arms.prefetch_related("systems"))
    return named or list(section.study.arms.prefetch_related("systems"))


def question_asks(
    page: Page, question: PageQuestion, item: PageItem | None = None, label: str = "", exposure_id: int | None = None
) -> dict[str, Ask]:
    """The fields of one question about nothing, an item or an exposure: one, or one an option of a multiple choice."""
    about = {
        "question_id": question.id,
        "item_id": item.id if item else None,
        "exposure_id": exposure_id,
        "label": label or question.label,
        "position": item.position if item else question.position,
        "text": question.text.replace("{label}", label),
        "help": question.help,
    }
    if question.scale.kind == "multiple":
        return {
            page.slot(question, item, label, option=number): Ask(box, choice=option.key, **about)
            for number, (option, box) in enumerate(question.scale.option_fields(), 1)
        }
    offered = question.skip_reasons
    ask = Ask(question.scale.field(question.required), stores=question.scale.stores, skip_reasons=offered, **about)
    return {page.slot(question, item, label): ask}


def register(cls):
    """Class decorator: make a protocol known by its slug."""
    if not cls.slug or cls.slug in REGISTRY:
        raise ValueError(f"The protocol {cls.slug!r} has no slug or is registered twice.")
    REGISTRY[cls.slug] = cls()
    return cls


def load() -> None:
    """Import every module of this package. Called once, when the application is ready."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


def choices():
    return [(protocol.slug, protocol.label) for protocol in REGISTRY.values()]


__all__ = [
    "REGISTRY", "Answer", "Ask", "DrawnItem", "LaidSection", "Page", "PageItem", "PageQuestion", "Pool", "PoolSpent",
    "Problem", "Protocol", "Sample", "Shown", "arms_of", "choices", "load", "question_asks", "register",
]  # fmt: skip
