"""Best-worst scaling (MaxDiff): annotators choose the best and the worst of a few outputs of a prompt.

Two choices among four outputs decide five of their six pairs, so the task is easier than a ranking. It also works with
more systems than people can rank, because each page shows only a few of them, drawn at random.
"""

from django import forms
from django.db.models import Count

from studies.language import gettext

from . import (
    REGISTRY,
    DrawnItem,
    EstimandDirection,
    ExampleStudy,
    PageField,
    Problem,
    Protocol,
    ProtocolCard,
    arms_of,
    register,
)
from .base.fields import ExposureChoiceField, explanation_field, layout_field, letters_field, noun_field
from .base.pairs import EXTREME_REFERENCES, ShownCounts

BEST, WORST = "best", "worst"
STRENGTH = "strength"
# With two outputs the best determines the worst. More than seven are too many to keep in mind.
MIN_SET_SIZE, MAX_SET_SIZE = 3, 7


class BestWorstSettings(forms.Form):
    set_size = forms.IntegerField(
        min_value=MIN_SET_SIZE,
        max_value=MAX_SET_SIZE,
        initial=4,
        label="outputs shown at once",
        help_text="Number of systems on a page, drawn at random. If the study has fewer systems, a page shows all of them.",
    )
    labels = letters_field()
    layout = layout_field()
    noun = noun_field()
    explanation = explanation_field("What makes one better than another.")


def get_set_size(section) -> int:
    """Return how many outputs a page shows. If the setting is unreadable (the checklist reports it), return the default."""
    size = section.settings.get("set_size")
    return (
        size
        if isinstance(size, int) and MIN_SET_SIZE <= size <= MAX_SET_SIZE
        else BestWorstSettings.base_fields["set_size"].initial
    )


@register
class BestWorst(Protocol):
    slug = "best_worst"
    label = "Best and worst of a few outputs"
    help = "Annotators see a few outputs of a prompt and choose the best one and the worst one."
    settings_form = BestWorstSettings
    default_scale_kind = "output"
    practice_answers = "choice"
    # Other systems link two strengths, so the two systems need not appear on one page.
    comparison_scope = "batch"
    questions = (
        {"key": BEST, "text": "Which one is the best?", "scale": {"kind": "output"}},
        {"key": WORST, "text": "Which one is the worst?", "scale": {"kind": "output"}},
    )
    sample = ExampleStudy(systems=4)
    card = ProtocolCard(
        order=4,
        name="Which is best, which is worst?",
        tells="How strong many systems are, from the best and the worst of a few outputs.",
        not_when="Not with two systems: a choice says the same in half the time.",
        instructions="Each page has a prompt and a few {noun}s. Read them all. Then choose the one that is {most} and the one that is {least}.",
        fewest_systems=3,
        n_outputs=4,
        answers=2,
        headline="ranking",
        example_m=6,
    )
    source = "Finn and Louviere 1992; Kiritchenko and Mohammad 2017"
    column_meanings = {
        "chosen_system": f"Question {BEST}: the system of the best output. Question {WORST}: that of the worst.",
        "label": "The letter of the chosen output.",
    }

    def estimands(self, section):
        return {STRENGTH: "the strength of x minus that of y, in log-odds"}

    def direction(self, estimand, questions):
        return EstimandDirection(null=0.0)

    def answer_keys(self, section, question):
        return ()

    # The design

    def questions_about(self, criteria, noun):
        return [
            question
            | {"criterion": one.label, "text": f"Which one is {one.most if question['key'] == BEST else one.least}?"}
            for question in self.questions
            for one in criteria
        ]

    def draw(self, section, pool, rng):
        """Draw a few systems for each prompt, all equally often in a batch."""
        size = min(get_set_size(section), len(pool.systems))
        items = []
        counts = ShownCounts()
        for prompt in pool.prompts[: section.m]:
            if pool.is_balanced:
                systems = counts.pick_and_count_systems(pool.systems, size, rng)
            else:
                systems = [pool.systems[place] for place in sorted(rng.sample(range(len(pool.systems)), size))]
            outputs = tuple(rng.choice(pool.outputs[prompt, system]) for system in systems)
            items.append(DrawnItem(prompt, outputs))
        return items

    def problems(self, section):
        yield from _question_problems(section)
        systems = section.study.systems.judged()
        if len(systems) < MIN_SET_SIZE:
            yield Problem(
                f"Best and worst need outputs of at least {MIN_SET_SIZE} systems, but the study has {len(systems)}. "
                "Add a system, or use the protocol two choices.",
                "systems",
            )
        ends = [system.name for system in systems if system.reference in EXTREME_REFERENCES]
        if ends:
            yield Problem(
                f"{', '.join(sorted(ends))} would always be chosen, because of the maximal or minimal reference. "
                "Remove the mark, or leave the system out.",
                "systems",
            )
        for arm in arms_of(section):
            if 0 < len(arm.systems.all()) < MIN_SET_SIZE <= len(systems):
                yield Problem(
                    f"Arm {arm.name} shows the outputs of fewer than {MIN_SET_SIZE} systems. Give it another system.",
                    "arms",
                )
        if section.m < 1:
            yield Problem("Annotators must see at least one prompt. Set m to 1 or more.", "m")
        source = section.reuses if section.reuses_id else section
        n_small = (
            source.design_items.annotate(n=Count("exposures")).filter(n__lt=MIN_SET_SIZE).count() if source.pk else 0
        )
        if n_small:
            yield Problem(
                f"{n_small} ready-made items have fewer than {MIN_SET_SIZE} outputs. Give each of them at least {MIN_SET_SIZE}.",
                "batches",
            )
        elif section.reuses_id and not REGISTRY[source.protocol].shows_every_system:
            yield Problem(
                "The section whose items are reused shows one output at a time. Reuse another section's items, or give this "
                "section its own.",
                "reuses",
            )

    # An annotator's page

    def page_fields(self, page):
        return {
            page.slot(question, item): PageField(
                ExposureChoiceField(question.required, item.exposures),
                question.id,
                answer_column="chosen",
                item_id=item.id,
                position=item.position,
                text=question.text,
                help=question.help,
            )
            for item in page.items
            for question in page.questions
        }

    def complete_data_and_find_errors(self, page, data):
        """Require two different outputs as best and worst. Both are answered, or neither."""
        questions = {question.key: question for question in page.section.questions}
        errors: dict[str, str] = {}
        if not {BEST, WORST} <= questions.keys():
            return errors  # a draft's preview; the checklist reports what is missing
        for item in page.items:
            slots = [page.slot(questions[key], item) for key in (BEST, WORST)]
            if not all(slot in data for slot in slots):
                continue  # the field has refused one of them already
            chosen = [data[slot] for slot in slots]
            if chosen.count(None) == 1:
                message = gettext("Please choose the best one and the worst one, or neither.")
                errors[slots[chosen.index(None)]] = message
            elif chosen[0] is not None and chosen[0] == chosen[1]:
                letter = next(label for label, exposure in item.exposures if exposure == chosen[0])
                message = gettext(
                    "%(letter)s cannot be the best and the worst. Please choose another one here or above."
                )
                errors[slots[1]] = message % {"letter": letter}
        return errors

    def robot_answers(self, page_fields, robot):
        """Perceive each output of a prompt once. Return the one that the robot likes most and the one that it likes least."""
        items: dict[int, list[str]] = {}
        for slot, ask in page_fields.items():
            items.setdefault(ask.item_id, []).append(slot)
        sent: dict[str, str] = {}
        for slots in items.values():
            liked = sorted((robot.liking(exposure), label) for label, exposure in page_fields[slots[0]].field.exposures)
            sent |= dict(zip(slots, (liked[-1][1], liked[0][1]), strict=True))
        return sent


def _question_problems(section):
    questions = {question.key: question for question in section.questions.all()}
    for key in (BEST, WORST):
        if key not in questions:
            yield Problem(
                f"The question with the key “{key}” is missing. Add one that asks which output is the {key}.",
                "questions",
            )
    for key, question in questions.items():
        if key not in (BEST, WORST):
            yield Problem(
                f"Question {key} is neither “{BEST}” nor “{WORST}”. Ask about another criterion in a section of its own.",
                "questions",
            )
        if (question.scale or {}).get("kind") != "output":
            yield Problem(f"Question {key} must have the scale “one of the outputs shown”.", "questions")
        if question.x_id:
            yield Problem(
                f"Question {key} is about all outputs of a page, so it cannot name two systems. Leave x and y empty.",
                "questions",
            )
        if question.skip_reasons:
            yield Problem(
                f"Question {key} has reasons to skip, but a best without a worst says too little. Remove them and make both questions optional.",
                "questions",
            )
    if len({question.criterion for question in questions.values()}) > 1:
        yield Problem("Best and worst have two different criteria. Give both questions the same one.", "questions")
    if len({question.required for question in questions.values()}) > 1:
        yield Problem(
            "Only one of the two questions is required. Make both required, or neither.",
            "questions",
        )
