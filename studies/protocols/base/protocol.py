"""The class Protocol: the contract that every protocol fulfils."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

from studies.language import format_list, gettext

from .fields import Robot, parse_scale, values_of_new_row
from .known_answers import ExpectedAnswer, parse_practice_answers
from .pages import Page, PageField, PageItem, PageQuestion, PageSection

if TYPE_CHECKING:
    from django import forms


# A problem: something missing or unwise in the definition of a study.


@dataclass(frozen=True, slots=True)
class Problem:
    """Something missing (blocking) or unwise (a researcher acknowledges it by name) in a study's definition."""

    text: str
    field: str = ""
    is_blocking: bool = True
    name: str = ""

    @property
    def key(self) -> str:
        """The key that an acknowledgement names."""
        return self.name or self.text


# Records for drawing the items of a batch: what a protocol draws from, and what it returns.


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item of a future batch: outputs in the order of their numbers, or ``item``, an item made in the draft."""

    prompt: int | None = None
    outputs: tuple[int, ...] = ()
    kind: str = "live"
    item: int | None = None


@dataclass(frozen=True, slots=True)
class StimulusPool:
    """What a batch may draw from.

    ``prompts``: ids in the order of this pass. ``systems``: ids by name. ``outputs``: samples by prompt and system.
    ``turns`` (balanced coverage): the place of each prompt in the first pass and the number of this pass, both from 0. A
    protocol that shows a part of a prompt's outputs uses them to take turns. ``sources``: if the protocol shows one output
    per prompt, the systems from which the output at each place is taken. ``is_balanced``: the batch shows systems equally
    often, as far as possible. Studies that were launched before this was done draw each item by itself.
    """

    prompts: Sequence[int]
    systems: Sequence[int]
    outputs: Mapping[tuple[int, int], tuple[int, ...]]
    turns: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    sources: Sequence[tuple[int, ...]] = ()
    is_balanced: bool = False


class UnfillableBatch(Exception):
    """Not enough is left to fill a batch. The message names what is missing; ``field`` is the part of the study that lacks it."""

    def __init__(self, text: str = "There is not enough left for one batch.", field: str = "prompts"):
        super().__init__(text)
        self.field = field


@dataclass(slots=True)
class ShownSystems:
    """The ids of systems and arms that the batches read so far show in one section.

    ``arms``: the systems that each arm shows. ``items``: the systems of each item. ``batches``: the systems of all items of
    a batch in the section.
    """

    systems: set[int] = field(default_factory=set)
    arms: dict[int, set[int]] = field(default_factory=dict)
    items: set[frozenset[int]] = field(default_factory=set)
    batches: set[frozenset[int]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class EstimandDirection:
    """Where x is better: above ``null``, the value without a difference, or below it."""

    null: float
    is_lower_better: bool = False

    @property
    def better_sign(self) -> str:
        """Return the expected sign of a comparison in which x is better."""
        return "<" if self.is_lower_better else ">"


@dataclass(frozen=True, slots=True)
class ExampleStudy:
    """What an example study of a protocol needs in addition to the protocol's own attributes.

    Tests of blinding, page costs and robots use an example study of every protocol. Its pages should therefore show as much
    as the pages of real campaigns.

    ``questions`` (columns of Question): needed if the protocol has no ``questions`` and a plain question of its
    ``default_scale_kind`` is not enough. ``settings``: needed if the defaults are not enough. ``has_human_system``:
    whether one system is a human author.
    """

    systems: int = 2
    has_human_system: bool = False
    questions: Sequence[Mapping[str, Any]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolCard:
    """How the page Question of a new study offers a protocol.

    ``name`` is a question of researchers, ``tells`` what its answer says, ``not_when`` when another card is better.
    ``instructions`` are a model text for annotators. ``most_criteria``: 0 if the protocol has its own question.
    ``estimand``: of the only comparison, which names no system, if systems are not compared with each other. ``n_outputs``: shown
    at once, 0 for those of all systems. ``answers``: to an item; ``answers_each``: to each output of an item, about one criterion.
    ``headline`` and ``example_m`` are for the costs of an example: what the plan calls such answers
    (``analysis.stats.planning.inputs.HEADLINES``), and items of one person. ``takes_turns``: an item shows one of the pairs.
    """

    order: int
    name: str
    tells: str
    not_when: str
    instructions: str
    most_criteria: int = 1
    fewest_systems: int = 2
    estimand: str = ""
    n_outputs: int = 0
    answers: int = 0
    answers_each: int = 0
    fewest_items: int = 1
    headline: str = ""
    example_m: int = 8
    takes_turns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTexts:
    """What the texts of a draft allow. ``complete``: prompts with an output of every system. ``by_people``, ``by_machines``: prompts
    with an output of such a system. ``words_*``: means of one text."""

    systems: int
    humans: int
    prompts: int
    complete: int
    by_people: int
    by_machines: int
    is_plain: bool
    words_of_prompt: float
    words_of_output: float


class Protocol:
    """The definition of a protocol. Only ``slug``, ``label`` and ``page_fields`` are required. ``analysis.protocols`` analyses
    its answers."""

    slug = ""
    label = ""
    help = ""
    settings_form: "type[forms.Form] | None" = None
    # "section": one permutation of labels for all items of the section; "item": one for each item.
    labels = "item"
    # How HEDS 3.0 numbers the form of the response (question 4.3.8); 3: relative quality.
    heds_response = 3
    # A protocol that shows no items (survey) has m = 0.
    has_items = True
    # The researcher's word for the items of an annotator, which m counts.
    item_noun = "prompts"
    # Help beside the question fields: which placeholders in a question's text become letters.
    placeholder_help = ""
    # What columns of exported answers mean here, if it differs from their general meaning (analysis.data.flat_rows).
    column_meanings: Mapping[str, str] = {}
    # Whether a question may have an output rewritten: each page shows a single one.
    takes_rewrites = False
    # Whether a question may be about two systems, x and y.
    has_directed_questions = False
    # Whether a tick asks its questions about two systems in both directions.
    can_ask_both_directions = False
    # Whether an item holds an output of every system. If so, prompts that lack an output are not shown.
    shows_every_system = True
    # Where two systems must appear together to be compared: in one "item", in an item with no other system (a "pair"), in
    # one "batch", or nowhere (""). With "" outputs are judged one by one, and different annotators may judge two systems.
    comparison_scope = "item"
    # How two annotators' answers to a question about an item are compared: as a "choice", as "points" for an output, as
    # "points_toward_first" (for the output that the annotator saw first), or not by models of annotators ("").
    comparable_answers = ""
    # The kind of scale (studies.protocols.base.fields.SCALE_KINDS) of a new question.
    default_scale_kind = "percent"
    # The questions of a new section: columns of Question.
    questions: Sequence[Mapping[str, Any]] = ()
    # The question after the work whether annotators used AI tools: columns of Question. Empty: sections of this protocol ask about texts.
    ai_tools_question: Mapping[str, Any] = {}
    # What an example study needs.
    sample = ExampleStudy()
    # The paper and section that the protocol implements.
    source = ""
    # Its card on the page Question of a new study, or None.
    card: ProtocolCard | None = None

    @property
    def template(self) -> str:
        return f"protocols/{self.slug}.html"

    def size_in_words(self, section) -> str:
        """Return the number of a section's items for readers, who know sections by it: "with 8 prompts"."""
        return f"with {section.m} {self.item_noun if section.m != 1 else self.item_noun.removesuffix('s')}"

    def raw_settings(self, section) -> dict[str, Any]:
        """Return a section's settings as data for its form: stored values, or what a missing key means (the field's ``initial``)."""
        if self.settings_form is None:
            return {}
        fields = self.settings_form.base_fields
        return {name: section.settings.get(name, field.initial) for name, field in fields.items()}

    def settings_of_new_section(self) -> dict[str, Any]:
        """Return what a new section stores, see ``values_of_new_row``."""
        return values_of_new_row(self.settings_form)

    def cleaned_settings(self, section) -> dict[str, Any]:
        """Return a section's cleaned settings. A missing or unreadable setting has its initial value (the checklist reports it)."""
        if self.settings_form is None:
            return {}
        return _clean_settings(self.settings_form, json.dumps(self.raw_settings(section), sort_keys=True, default=str))

    def reason_not_offered(self, texts: DraftTexts) -> str:
        """Return why the protocol's card cannot be chosen for these texts, and what to do. Return '' if it can."""
        fewest = self.card.fewest_systems if self.card else 0
        if texts.systems < fewest:
            return (
                f"It needs outputs of {fewest} systems, and the study has {texts.systems}. Add a file with another one."
            )
        if self.shows_every_system and not texts.complete:
            return "No prompt has an output of every system. Add a file with the missing outputs."
        return ""

    def most_items(self, texts: DraftTexts) -> int:
        """Return how many items one person can get of these texts."""
        return min(100, texts.complete if self.shows_every_system else texts.prompts)

    def questions_about(self, criteria: Sequence[Any], noun: str) -> Sequence[Mapping[str, Any]]:
        """Return the columns of the questions that ask about these criteria (``studies.design.criteria.Criterion``)."""
        return self.questions

    def settings_about(self, criteria: Sequence[Any], has_baseline: bool) -> dict[str, Any]:
        """Return what a new section about these criteria stores. ``has_baseline``: all systems are compared with one of them."""
        explanation = "\n".join(f"{'- ' * (len(criteria) > 1)}**{one.name}**: {one.definition}" for one in criteria)
        return self.settings_of_new_section() | ({"explanation": explanation} if criteria else {})

    def problems(self, section) -> Iterable[Problem]:
        """Yield what is missing or unwise in a section's definition."""
        return ()

    def drawing_problems(self, section, drawing) -> Iterable[Problem]:
        """Yield what the arms and their outputs lack for the section, if batches are drawn from the design.

        ``drawing`` holds the arms, their systems and the outputs (``studies.design.draw.BatchDraw``).
        """
        return ()

    def answer_keys(self, section, question) -> tuple[str, ...]:
        """Return the keys that an answer may store as its choice. The result is empty without a list."""
        try:
            return tuple(option.key for option in parse_scale(question.scale).options)
        except (ValueError, TypeError, KeyError):
            return ()  # the checklist reports the scale

    def estimands(self, section) -> Mapping[str, str]:
        """Return the estimands that a Contrast may name, with descriptions. The first is the default."""
        return {}

    def default_estimand(self, section) -> str:
        """Return the estimand of a Contrast that names none: the first of ``estimands``, or '' without any."""
        return next(iter(self.estimands(section)), "")

    def can_be_about_new_prompts(self, section) -> bool:
        """Return whether a result may hold for prompts like these. If not, it is about exactly the prompts shown."""
        return True

    def estimand_scale_length(self, estimand: str, questions: Sequence[Any]) -> float | None:
        """Return the length of the scale that an estimand ('' for the default) is on, or None if it has no ends.

        Margins of planned comparisons are checked against it. ``questions``: the section's questions that a comparison concerns.
        """
        return None

    def direction(self, estimand: str, questions: Sequence[Any]) -> EstimandDirection | None:
        """Return where x is better on an estimand ('' for the default), or None if the protocol cannot know it.

        Without a direction, no comparison can claim "not worse" or "better by more than the margin". ``questions``: as above.
        """
        return None

    def candidate_systems_by_place(
        self, section, systems: Sequence[int], human_systems: frozenset[int], rng: Random
    ) -> Sequence[tuple[int, ...]]:
        """Return the source systems of each of the m places, if an item shows one output. Otherwise return nothing.

        ``systems`` are the arm's systems. ``human_systems`` are those of them that are human authors.
        """
        return ()

    def turn_sets(self, section, systems: Sequence[int]) -> Sequence[tuple[int, ...]]:
        """Return the sets of systems that the items of a prompt show in turns. Nothing: the protocol has no turns.

        If it returns sets, ``draw`` must show of each prompt the set whose number is the sum of its two ``pool.turns``, modulo
        the number of sets.
        """
        return ()

    def draw(self, section, pool: StimulusPool, rng: Random) -> list[DrawnItem]:
        """Return the section's items of one batch: the first m prompts of the pool, each with one output of every system.

        If a system has several samples of a prompt, one is drawn. Items made in the draft are drawn elsewhere.
        """
        return [
            DrawnItem(prompt, tuple(rng.choice(pool.outputs[prompt, system]) for system in pool.systems))
            for prompt in pool.prompts[: section.m]
        ]

    def order_questions(
        self, questions: Sequence[Any], settings: Mapping[str, Any], rng: Random, is_balanced: bool = True
    ) -> list[Any]:
        """Return the questions in the order for one annotator: as listed, or shuffled if the section's settings say so.

        ``is_balanced``: the order treats systems alike, as far as possible. It is false for studies that were launched before
        this was done.
        """
        if settings.get("question_order") == "random":
            return rng.sample(questions, len(questions))
        return list(questions)

    def pages(self, section: PageSection, items: Sequence[PageItem], answers: Mapping[str, Any]) -> list[Page]:
        """Return the section's pages that the answers so far determine. By default, one page per item."""
        return [Page(f"s{section.position}.p{item.position}", section, (item,), section.questions) for item in items]

    # Whether each question about an item is about one of its outputs. If not, it is about all outputs of the item.
    asks_about_single_outputs = False

    def page_fields(self, page: Page) -> dict[str, PageField]:
        """Return the form fields of a page, by slot."""
        raise NotImplementedError

    def complete_data_and_find_errors(self, page: Page, data: dict[str, Any]) -> dict[str, str]:
        """Check rules across fields and return {slot: message}. ``data`` holds the cleaned values and may be extended (mid-ranks).

        This is called even if a field was refused. A refused slot is not in ``data`` and keeps its own message. An empty slot
        is None in ``data``.
        """
        return {}

    def count_answers(self, section, outputs_per_item: Sequence[int]) -> int:
        """Return how many answers an annotator gives in a section, for the checklist. ``outputs_per_item`` gives the number of
        outputs of each item."""
        return len(section.questions.all()) * (len(outputs_per_item) if self.has_items else 1)

    def reason_not_answerable(self, section, contrast, shown_systems: ShownSystems) -> str:
        """Return why the section cannot answer a planned comparison, and what to do. Return '' if it can."""
        if not contrast.x_id:
            return "the section compares systems and this comparison names none: choose two systems"
        if contrast.criterion and contrast.criterion not in {
            question.criterion for question in section.questions.all()
        }:
            return f"no question asks about the criterion “{contrast.criterion}”: add one, or remove the criterion"
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

    @property
    def practice_answers(self) -> str:
        """Return how the expected answers of practice items are found: they are entered, as a "choice" of an output, as "points" for
        an output or as "points_toward_first"; or they follow from the "authors"; or the protocol has no practice items ("").
        """
        return self.comparable_answers

    def expected_practice_answers(
        self, section, outputs: Sequence[tuple[str, bool]], given: Mapping[str, str]
    ) -> Mapping[str, ExpectedAnswer]:
        """Return the expected answers to a practice item, by question key: a range, or the place of an output.

        ``outputs``: (name of the system, whether it is a human author), the one that ranges are about first. ``given``: what the
        researcher entered, by question key. Raise ValueError with the reason if they cannot form a practice item.
        """
        return parse_practice_answers(self, section, len(outputs), given)

    def expected_answer_text(self, page: Page, question: PageQuestion, expected: tuple[float, float] | str) -> str:
        """Return the expected answer of a practice item in words: a range on the question's scale, or the label of an output."""
        if isinstance(expected, str):
            answer = expected
        else:
            low, high = expected
            if question.scale.kind == "likert":
                points = [point for point in question.scale.points if low <= float(point.key) <= high]
                answer = format_list([point.label or point.key for point in points], "or")
            elif low == high:
                answer = f"{low:g}"
            else:
                return gettext("The answer is from %(low)s to %(high)s.") % {"low": f"{low:g}", "high": f"{high:g}"}
        # Translators: the right answer to a practice question: a letter, a number, or the words of an answer
        return gettext("The answer is %(answer)s.") % {"answer": answer}

    def robot_answers(self, page_fields: Mapping[str, PageField], robot: Robot) -> Mapping[str, str]:
        """Return what a robot sends from a page, by input name. The other fields use their own ``robot_answer``.

        Override this if ``complete_data_and_find_errors`` has rules across fields, or if the report must recover what the robots perceive.
        """
        return {}

    def is_item_settled(self, section, labels: Sequence[Any]) -> bool:
        """Return whether the answers to an item and question, in the order given, decide it."""
        return True

    def may_need_top_ups(self, section) -> bool:
        """Return whether an item may need more answers than its batches have places (see ``is_item_settled``)."""
        return False

    def is_for_one_annotator(self, section) -> bool:
        """Return whether a single annotator answers all batches."""
        return False

    def annotators_needed_per_batch(self, section) -> int | None:
        """Return how many annotators must receive each batch, or None if the study may choose."""
        return None

    def most_places(self, section) -> int | None:
        """Return the largest target for which there are items enough, or None if items may be shown again and again."""
        return None

    def stops_by_bets(self, section) -> bool:
        """Return whether anytime-valid bets decide the comparisons after every annotator, so that the report analyses nothing else."""
        return False

    def has_stopping_rule(self, section) -> bool:
        """Return whether a rule of the section may end the study before it reaches its target."""
        return False


@lru_cache(maxsize=1024)
def _clean_settings(settings_form: "type[forms.Form]", settings_json: str) -> dict[str, Any]:
    form = settings_form(data=json.loads(settings_json))
    form.full_clean()  # refused values are not in cleaned_data
    return {name: field.initial for name, field in settings_form.base_fields.items()} | form.cleaned_data


def arms_of(section) -> list:
    """Return the arms that see a section, with their systems prefetched."""
    section_arms = list(section.arms.prefetch_related("systems"))
    return section_arms or list(section.study.arms.prefetch_related("systems"))
