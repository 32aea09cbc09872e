"""System-level probabilistic assessment: what is the chance that x is better than y, after m exposures to both?

Source: Ethayarajh and Jurafsky, The Authenticity Gap in Human Evaluation, sections 5 and 6.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from django import forms

from studies.language import gettext_noop

from . import (
    DrawnItem,
    EstimandDirection,
    ExampleStudy,
    Page,
    Problem,
    Protocol,
    ProtocolCard,
    arms_of,
    question_fields,
    register,
)
from .base.fields import parse_scale
from .base.pairs import draw_balanced_positions

# The line break at the end is no part of the message.
DEFAULT_EXPLANATION = (
    gettext_noop("""\
Give each answer as a chance from 0 to 100.

- **100**: you are certain that the first named is the better one.
- **0**: you are certain that it is not.
- **50**: you cannot tell them apart at all.
- Anything between says how sure you are, and in which direction.

Nobody expects certainty from a handful of texts. You may be asked about the same two in both directions; this is no trap, \
please answer each question by itself.""")
    + "\n"
)


class SPASettings(forms.Form):
    """The settings of an SPA section."""

    labels = forms.ChoiceField(
        choices=[
            ("random", "random letters for each annotator"),
            (
                "fixed",
                "the same letters for all annotators, in the order of the systems' names (as in Ethayarajh and Jurafsky 2022)",
            ),
            ("continue", "random letters that continue from the previous section (A, B, then C, D …)"),
        ],
        initial="random",
        label="letters",
    )
    naming = forms.ChoiceField(
        choices=[("both", "ask both directions of each pair"), ("listed", "ask only the listed direction")],
        initial="both",
        label="directions",
    )
    question_order = forms.ChoiceField(
        choices=[
            ("random", "random for each annotator, with the two directions of a pair far apart"),
            ("listed", "as listed"),
        ],
        initial="random",
        label="order of the questions",
    )
    layout = forms.ChoiceField(
        choices=[("side", "all systems side by side"), ("one", "one prompt at a time")],
        initial="side",
        label="first layout",
    )
    prompts = forms.ChoiceField(
        choices=[
            ("shared", "the same prompts for all systems"),
            ("own", "each system has its own: m outputs of each are read, and a prompt shows one system"),
        ],
        initial="shared",
        label="prompts",
        help_text="With prompts of their own, systems need no output for the same prompt. Easy prompts then look like a good system.",
    )
    noun = forms.CharField(
        max_length=30, initial="writer", help_text="What a labelled column is called: writer, artist, system."
    )
    explanation = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 10}),
        initial=DEFAULT_EXPLANATION,
        required=False,
        help_text="What 0, 50 and 100 mean. Markdown.",
    )


@register
class SPA(Protocol):
    slug = "spa"
    label = "SPA: system-level probabilistic assessment"
    help = "Annotators read m outputs of every system, then give the chance that one is better than another."
    settings_form = SPASettings
    labels = "section"
    has_directed_questions = True
    can_ask_both_directions = True
    comparison_scope = "batch"
    placeholder_help = (
        "{x} and {y} become the letters of the two systems. Beside a chance, a question on points or a number from −k to k asks how much "
        "better {x} is; 0 is no difference."
    )
    source = "Ethayarajh and Jurafsky 2022, section 5"
    sample = ExampleStudy(systems=5)
    card = ProtocolCard(
        order=3,
        name="How often is it better overall?",
        tells="How likely people find it that one system is better than another, after they read a few outputs of both.",
        not_when="Not if you want to know which outputs are better: nobody judges a single one.",
        instructions="First you read a few texts of some writers, who have letters. Then you say how likely it is that one of them is better "
        "than another. Read all texts before you answer.",
        fewest_items=4,
        headline="spa",
        example_m=5,
    )

    def size_in_words(self, section):
        return f"after {section.m} example{'' if section.m == 1 else 's'}"

    def estimands(self, section):
        return {"preference": "P[x > y], mean over annotators"}

    def estimand_scale_length(self, estimand, questions):
        return 1.0  # a probability

    def direction(self, estimand, questions):
        return EstimandDirection(null=0.5)

    def questions_about(self, criteria, noun):
        return [
            {
                "key": one.key,
                "criterion": one.label,
                "text": one.question
                or f"Based on what you have read, what is the chance that the texts of {noun} {{x}} are {one.more} than those of {noun} {{y}}?",
                "help": one.definition,
                "scale": {"kind": "percent"},
            }
            for one in criteria
        ]

    def settings_about(self, criteria, has_baseline):
        return self.settings_of_new_section()

    def candidate_systems_by_place(self, section, systems, human_systems, rng):
        if self.cleaned_settings(section)["prompts"] != "own":
            return ()
        return [(system,) for system in systems if system not in _unnamed_references(section) for _ in range(section.m)]

    def drawing_problems(self, section, drawing):
        own = drawing.own_prompts(section) if self.cleaned_settings(section)["prompts"] == "own" else {}
        names = dict(section.study.systems.values_list("pk", "name"))
        for system in own.keys() - _unnamed_references(section):
            if len(own[system]) < section.m:
                yield Problem(
                    f"{names[system]} has {len(own[system])} prompts of its own and annotators read {section.m} of each system. Import more "
                    "outputs, or lower m.",
                    "prompts",
                )

    def draw(self, section, pool, rng):
        """Draw items without planted references, unless a question names them or another section reuses the items."""
        if pool.sources:
            return [
                DrawnItem(prompt, (rng.choice(pool.outputs[prompt, source[0]]),))
                for prompt, source in zip(pool.prompts, pool.sources, strict=True)
            ]
        left_out = set() if _is_reused(section) else _unnamed_references(section)
        return super().draw(section, replace(pool, systems=[pk for pk in pool.systems if pk not in left_out]), rng)

    def problems(self, section):
        questions = list(section.questions.all())
        if _is_reused(section) and _unnamed_references(section):
            yield Problem(
                "Annotators read maximal and minimal references here, although no question names them, because another section reuses these "
                "items. Give that section its own items.",
                "reuses",
                False,
                "references_read",
            )
        if self.cleaned_settings(section)["prompts"] == "own":
            if _is_reused(section):
                yield Problem(
                    "Another section reuses these items, but each shows one system only. Give that section its own items.",
                    "reuses",
                )
            yield Problem(
                "Systems have prompts of their own, so what prompts add no longer cancels out. If there are outputs for the same prompts, "
                "choose these.",
                "settings",
                False,
                "own_prompts",
            )
        if section.m < 4:
            yield Problem(
                "The section shows fewer than 4 prompts. Annotators are overconfident after one and unsure after two or three.",
                "m",
                False,
                "few_prompts",
            )
        if section.m < 1:
            yield Problem("Annotators must see at least one prompt. Set m to 1 or more.", "m")
        yield from self._unseen_problems(section, questions)
        directed_pairs = {(q.x_id, q.y_id, q.criterion, asks_for_size(q.scale)) for q in questions if q.x_id}
        for question in questions:
            if not question.x_id:
                yield Problem(f"Question {question.key} does not name two systems. Choose x and y.", "questions")
            elif "{x}" not in question.text or "{y}" not in question.text:
                yield Problem(
                    f"Question {question.key} must contain {{x}} and {{y}}, which become the labels.", "questions"
                )
        yield from _size_problems([question for question in questions if question.x_id])
        if any((y, x, *about) not in directed_pairs for x, y, *about in directed_pairs):
            yield Problem(
                "A pair is asked in one direction only, so a bias towards the first named system looks like a preference.",
                "questions",
                False,
                "one_naming_order",
            )

    def _unseen_problems(self, section, questions):
        """Yield the arms that do not show a system of a question: the question would have no letter for it."""
        for arm in arms_of(section):
            system_ids = {system.pk for system in arm.systems.all()}
            unseen = (
                {s.name for q in questions if q.x_id for s in (q.x, q.y) if s.pk not in system_ids}
                if system_ids
                else set()
            )
            if unseen:
                yield Problem(
                    f"Arm {arm.name} does not show {', '.join(sorted(unseen))}, but questions ask about it. Add the system to the arm, or "
                    "give the arm its own section.",
                    "arms",
                )

    def pages(self, section, items, answers):
        read = Page(f"s{section.position}.read", section, tuple(items), step="read")
        return [read, Page(f"s{section.position}.ask", section, tuple(items), section.questions, step="ask")]

    def count_answers(self, section, outputs_per_item):
        return len(section.questions.all()) if outputs_per_item else 0

    def reason_not_answerable(self, section, contrast, shown_systems):
        if reason := super().reason_not_answerable(section, contrast, shown_systems):
            return reason
        question_pairs = {(frozenset((q.x_id, q.y_id)), q.criterion) for q in section.questions.all()}
        pair = frozenset((contrast.x_id, contrast.y_id))
        if not any(pair == systems and contrast.criterion in ("", criterion) for systems, criterion in question_pairs):
            criterion_text = f" on {contrast.criterion}" if contrast.criterion else ""
            return f"no question asks about {contrast.x} and {contrast.y}{criterion_text}: add one"
        return ""

    def page_fields(self, page):
        return {slot: ask for question in page.questions for slot, ask in question_fields(page, question).items()}

    def order_questions(self, questions, settings, rng, is_balanced=True):
        """Shuffle the questions and keep the two directions of a pair apart, as far as a few swaps allow.

        In the first half, which asks each pair in one direction, each system is named first and second equally often. A question of
        size follows the chance of its pair.
        """
        if settings.get("question_order", "random") != "random":
            return list(questions)
        first: list[Any] = []
        second: list[Any] = []
        seen = set()
        sizes = [question for question in questions if question.x and question.scale.kind != "percent"]
        chances = [question for question in questions if question not in sizes] if sizes else questions
        shuffled = rng.sample(chances, len(chances))
        if is_balanced:
            shuffled = _first_directions_to_front(shuffled, rng)
        for question in shuffled:
            pair = (frozenset((question.x, question.y)), question.criterion)
            (second if pair in seen else first).append(question)
            seen.add(pair)
        # First one direction of every pair, then the other. The last pair of the first half must not begin the second half.
        if len(second) > 1 and first and frozenset((first[-1].x, first[-1].y)) == frozenset((second[0].x, second[0].y)):
            second.append(second.pop(0))
        return _with_sizes(first + second, sizes) if sizes else first + second


def asks_for_size(scale_json: Any) -> bool:
    """Return whether a question about two systems asks how much better the first is, and not for the chance that it is.

    Source: limitation 1 of the paper, which leaves the magnitude of a preference open.
    """
    return isinstance(scale_json, dict) and scale_json.get("kind", "percent") != "percent"


def _size_problems(questions: Sequence[Any]) -> Iterator[Problem]:
    """Yield why questions of size cannot be reported beside the chances: ``questions`` name two systems."""
    pairs = {(frozenset((q.x_id, q.y_id)), q.criterion) for q in questions if not asks_for_size(q.scale)}
    ranges = set()
    for question in questions:
        if not asks_for_size(question.scale):
            continue
        try:
            scale = parse_scale(question.scale)
        except (ValueError, TypeError, KeyError):
            continue  # the checklist reports it already
        if scale.kind not in ("likert", "continuous") or scale.minimum != -scale.maximum:
            yield Problem(
                f"Question {question.key} must have the scale “a chance from 0 to 100” or, for a size, points or numbers such as −3 to 3.",
                "questions",
            )
        elif (frozenset((question.x_id, question.y_id)), question.criterion) not in pairs:
            yield Problem(
                f"Question {question.key} asks how much better one of two systems is, and no question asks for the chance. Add that question: "
                "both are reported together.",
                "questions",
            )
        ranges.add(scale.maximum)
    if len(ranges) > 1:
        yield Problem("All questions about how much better a system is need the same scale. Correct them.", "questions")


def _with_sizes(chances: Sequence[Any], sizes: Sequence[Any]) -> list[Any]:
    """Put each question of size behind the chance of its pair: in its direction or, if that is not asked, in the other."""
    places = {(question.x, question.y, question.criterion): place for place, question in enumerate(chances)}

    def place_of(question: Any) -> int:
        x, y, criterion = question.x, question.y, question.criterion
        return places.get((x, y, criterion), places.get((y, x, criterion), len(places)))

    return sorted([*chances, *sizes], key=place_of)


def _first_directions_to_front(questions: Sequence[Any], rng: Random) -> list[Any]:
    """Move one direction of each pair before all second directions, such that systems are named first equally often."""
    both: dict[str, dict[frozenset, list[Any]]] = {}
    for question in questions:
        if question.x:
            both.setdefault(question.criterion, {}).setdefault(frozenset((question.x, question.y)), []).append(question)
    asked_later = []
    for pairs in both.values():
        directions = [two for two in pairs.values() if len(two) == 2]
        positions = draw_balanced_positions([(one.x, one.y) for one, _ in directions], rng)
        asked_later += [two[position_of_x == 0] for two, (position_of_x, _) in zip(directions, positions, strict=True)]
    later = {id(question) for question in asked_later}
    return sorted(questions, key=lambda question: id(question) in later)


def _unnamed_references(section) -> set[int]:
    """Return the maximal and minimal references that no question of the section names."""
    if not hasattr(section, "_unnamed_ends"):  # cached, because this runs for every batch
        systems = section.study.systems
        ends = set(systems.filter(reference__in=systems.model.EXTREME_REFERENCES).values_list("pk", flat=True))
        named_systems = {pk for pair in section.questions.values_list("x_id", "y_id") for pk in pair} if ends else set()
        section._unnamed_ends = ends - named_systems
    return section._unnamed_ends


def _is_reused(section) -> bool:
    if not hasattr(section, "_is_shown_again"):
        section._is_shown_again = bool(section.pk) and section.reused_by.exists()
    return section._is_shown_again
