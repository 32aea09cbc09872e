"""Human or machine: who wrote this text? Annotators rate single texts on four points and then explain their answer.

Source: Clark et al. 2021, All That's 'Human' Is Not Gold: Evaluating Human Evaluation of Generated Text.
"""

from collections import Counter

from django import forms
from django.db.models import Count

from studies.language import gettext, gettext_noop

from . import DrawnItem, ExampleStudy, Page, PageField, Problem, Protocol, ProtocolCard, question_fields, register
from .base.fields import ExposureChoiceField, parse_scale
from .base.pages import shown_setting
from .base.pairs import ShownCounts

SOURCE, WHY, CHANGE = "source", "why", "change"
POINTS = (
    "Definitely human-written",
    "Possibly human-written",
    "Possibly machine-generated",
    "Definitely machine-generated",
)
PAIR_TEXT = gettext_noop("One of these texts was written by a machine. Which one?")


class HumanLikeSettings(forms.Form):
    mix = forms.ChoiceField(
        choices=[
            ("half", "half human texts, half machine texts; if m is odd, one more of either"),
            ("random", "each text human or machine at random"),
        ],
        initial="half",
        label="human and machine texts",
        help_text="What each annotator gets. Annotators do not see the shares.",
    )
    why_up_to = forms.IntegerField(
        min_value=0,
        max_value=19,
        initial=1,
        label="ask “why” up to point",
        help_text="Annotators who answer this point or a lower one get the question “why”; all others get “change”. "
        "1, as in Clark et al. 2021: only “definitely human-written”.",
    )
    prompt = forms.ChoiceField(
        choices=[("hidden", "hidden, as in Clark et al. 2021"), ("shown", "shown above its text")],
        initial="hidden",
        help_text="Show it only if human and machine texts answer the same prompts. Otherwise the prompt reveals the author.",
    )
    pair_text = forms.CharField(
        max_length=300,
        initial=PAIR_TEXT,
        label="words for a practice pair",
        help_text="Practice by comparison: the question about two texts side by side.",
    )
    noun = forms.CharField(max_length=30, initial="text", help_text="The word for an output: text, story, recipe.")
    explanation = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 6}),
        required=False,
        help_text="How to answer. Shown above each question. Markdown.",
    )


@register
class HumanLike(Protocol):
    slug = "humanlike"
    asks_about_single_outputs = True
    takes_rewrites = True
    heds_response = 7
    label = "Human or machine: who wrote this text?"
    help = (
        "Annotators see one text at a time and say on four points whether a person or a system wrote it, then why. "
        "A training section shows practice texts or pairs and gives the correct answer after each guess."
    )
    settings_form = HumanLikeSettings
    shows_every_system = False
    comparison_scope = ""
    item_noun = "texts"
    questions = (
        {
            "key": SOURCE,
            "text": "Who do you think wrote this text?",
            "scale": {"kind": "likert", "labels": list(POINTS)},
        },
        {"key": WHY, "text": "Why did you select this rating?", "scale": {"kind": "text"}},
        {"key": CHANGE, "text": "What would you change to make it seem more human-like?", "scale": {"kind": "text"}},
    )
    default_scale_kind = "likert"
    practice_answers = "authors"
    column_meanings = {
        "chosen_system": "Practice pairs only: the system whose text was the answer to the words for a practice pair.",
    }
    source = "Clark et al. 2021"
    sample = ExampleStudy(has_human_system=True)
    card = ProtocolCard(
        order=6,
        name="Human or machine?",
        tells="How often people see whether a person or a machine wrote a text, and what gives it away.",
        not_when="Not as a measure of quality: a text can be good and clearly machine-made. All machines count as one.",
        instructions="Some of the {noun}s that you read were written by people, the others by machines. Say of each who you think wrote it, "
        "and then why. Do not look the {noun}s up.",
        most_criteria=0,
        estimand="accuracy",
        n_outputs=1,
        answers=2,
        fewest_items=4,
        headline="humanlike",
        example_m=10,
    )

    def estimands(self, section):
        return {
            "sensitivity": "d': how far machine and human texts lie apart for annotators",
            "accuracy": "share of correct answers",
            "criterion": "the leaning to answer “human”",
        }

    def estimand_scale_length(self, estimand, questions):
        return 1.0 if estimand == "accuracy" else None  # d' and the criterion have no ends

    def problems(self, section):
        questions = {question.key: question for question in section.questions.all()}
        source_question = questions.get(SOURCE)
        if source_question is None:
            yield Problem(
                f"The question with the key “{SOURCE}” is missing. Add one that asks who wrote the text.", "questions"
            )
        elif not _has_two_sides(source_question.scale):
            yield Problem(
                f"Question {SOURCE} must have an even number of points, from human to machine: a middle point would be neither.",
                "questions",
            )
        if any(question.x_id for question in questions.values()):
            yield Problem("A question about one text cannot name two systems. Leave x and y empty.", "questions")
        if section.m < 1:
            yield Problem("Annotators must see at least one text. Set m to 1 or more.", "m")
        if section.purpose == "training":
            yield from _training_problems(section)
        elif section.purpose == "live":
            yield from _live_problems(section, questions)

    def reason_not_offered(self, texts):
        for n, kind in ((texts.humans, "by a person"), (texts.systems - texts.humans, "by a machine")):
            if not n:
                return f"It needs texts written {kind}. Add them, or say under Your file who is a person."
        return super().reason_not_offered(texts)

    def most_items(self, texts):
        # Half of the texts are human.
        return min(super().most_items(texts), 2 * min(texts.by_people, texts.by_machines))

    def drawing_problems(self, section, drawing):
        return _drawing_problems(section, drawing) if section.purpose == "live" else ()

    def count_answers(self, section, outputs_per_item):
        keys = {question.key for question in section.questions.all()}
        alone = len(keys) - ({WHY, CHANGE} <= keys)
        # Two texts side by side (practice) have one question: which one did a machine write?
        return sum(alone if outputs == 1 else 1 for outputs in outputs_per_item)

    def reason_not_answerable(self, section, contrast, shown_systems):
        if shown_systems.items and not any(len(item) == 1 for item in shown_systems.items):
            return (
                "annotators judge one text at a time and each item here shows several: give the section its own items"
            )
        human = {system.pk for system in section.study.systems.all() if system.is_human}
        # d' of an arm compares its own human and machine texts.
        usable = {arm for arm, systems in shown_systems.arms.items() if systems & human and systems - human}
        if not usable:
            return "no arm shows both human and machine texts: check the systems of the arms and the target"
        arms = [arm for arm in section.study.arms.prefetch_related("systems") if arm.pk in usable]
        everybody = {system.pk for system in section.study.systems.judged()}
        machines = {arm: frozenset({system.pk for system in arm.systems.all()} or everybody) - human for arm in arms}
        if contrast.x_id:
            if reason := super().reason_not_answerable(section, contrast, shown_systems):
                return reason
            if {contrast.x_id, contrast.y_id} & human:
                return (
                    "human texts are the baseline: compare two machine systems, or name none for a test against chance"
                )
            for system in (contrast.x, contrast.y):
                if frozenset({system.pk}) not in machines.values():
                    return (
                        f"an arm's machine systems are judged as one: give {system.name} its own arm with human texts"
                    )
            return ""
        if contrast.x_condition:
            conditions = {contrast.x_condition, contrast.y_condition}
            if not any(
                conditions <= {arm.condition for arm in arms if machines[arm] == own_machines}
                for own_machines in machines.values()
            ):
                return f"no machine system is shown under both conditions, {contrast.x_condition} and {contrast.y_condition}: give it an arm of each"
        return ""

    def candidate_systems_by_place(self, section, systems, human_systems, rng):
        human = tuple(system for system in systems if system in human_systems)
        others = tuple(system for system in systems if system not in human_systems)
        if not (human and others):
            return [human or others] * section.m
        if (section.settings or {}).get("mix") == "random":
            return [rng.choice((human, others)) for _ in range(section.m)]
        half, odd = divmod(section.m, 2)
        return [human] * half + [others] * half + ([rng.choice((human, others))] if odd else [])

    def draw(self, section, pool, rng):
        items = []
        counts = ShownCounts()
        for prompt, source in zip(pool.prompts, pool.sources, strict=True):
            candidates = [candidate for candidate in source if (prompt, candidate) in pool.outputs]
            system = (
                counts.pick_and_count_systems(candidates, 1, rng)[0] if pool.is_balanced else rng.choice(candidates)
            )
            items.append(DrawnItem(prompt, (rng.choice(pool.outputs[prompt, system]),)))
        return items

    def expected_practice_answers(self, section, outputs, given):
        source_question = next((question for question in section.questions.all() if question.key == SOURCE), None)
        if source_question is None or not _has_two_sides(source_question.scale):
            raise ValueError(f"First give the section the question “{SOURCE}” on points from human to machine.")
        low, cut, high = _scale_halves(source_question.scale)
        human = [is_human for _, is_human in outputs]
        if len(human) == 1:
            return {SOURCE: (low, cut) if human[0] else (cut + 1, high)}
        if len(human) != 2 or human[0] == human[1]:
            raise ValueError("Practice needs either one text, or a pair of a human text and a machine text.")
        return {SOURCE: human.index(False)}

    def expected_answer_text(self, page, question, expected):
        if isinstance(expected, str):
            # Translators: the letter of one of two texts
            return gettext("A machine wrote %(letter)s, a person wrote the other one.") % {"letter": expected}
        _, high = expected
        return (
            gettext("A person wrote this.")
            if high <= _last_human_point(question.scale)
            else gettext("A machine wrote this.")
        )

    def pages(self, section, items, answers):
        step = "judge" if section.settings.get("prompt", "hidden") == "hidden" else "judge with prompt"
        later = tuple(one for one in section.questions if one.key in (WHY, CHANGE) or one.scale.kind == "rewrite")
        first = tuple(question for question in section.questions if question not in later)
        pages = []
        for item in items:
            page = Page(f"s{section.position}.p{item.position}", section, (item,), first, step=step)
            pages.append(page)
            if later and len(item.exposures) == 1:
                follow_ups = _follow_up_questions(page, later, answers)
                if follow_ups:
                    answer_label = _chosen_point_label(page, answers)
                    pages.append(Page(f"{page.key}f", section, (item,), follow_ups, step="why", said=answer_label))
        return pages

    def page_fields(self, page):
        (item,) = page.items
        if len(item.exposures) > 1:
            return {
                page.slot(question, item): PageField(
                    ExposureChoiceField(exposures=item.exposures),
                    question.id,
                    answer_column="chosen",
                    item_id=item.id,
                    position=item.position,
                    text=shown_setting(page.section.settings.get("pair_text") or PAIR_TEXT, PAIR_TEXT),
                    help=question.help,
                )
                for question in page.questions
                if question.key == SOURCE
            }
        ((label, exposure),) = item.exposures
        return {
            slot: ask
            for question in page.questions
            for slot, ask in question_fields(page, question, item, label, exposure).items()
        }

    def robot_answers(self, page_fields, robot):
        """Perceive evidence for a machine: normal noise around minus the strength of the text's author."""
        sent = {}
        for slot, ask in page_fields.items():
            points = getattr(ask.field, "points", ())
            if not ask.exposure_id or len(points) < 2 or len(points) % 2:
                continue
            keys = sorted(int(point.key) for point in points)
            evidence = robot.middle - robot.strength(ask.exposure_id) + robot.rng.gauss(0, 1)
            point_index = len(keys) // 2 + (1 if evidence > 1 else 0 if evidence > 0 else -1 if evidence > -1 else -2)
            sent[slot] = str(keys[min(len(keys) - 1, max(0, point_index))])
        return sent


def _source_question_and_slot(page):
    """Return the question who wrote the text and its slot, or (None, "") if it is not asked."""
    source_question = next((question for question in page.questions if question.key == SOURCE), None)
    return (
        (source_question, page.slot(source_question, page.items[0], page.items[0].exposures[0][0]))
        if source_question
        else (None, "")
    )


def _chosen_point_label(page, answers) -> str:
    """Return the words of the point that the annotator chose, or '' if nothing is stored yet."""
    source_question, slot = _source_question_and_slot(page)
    value = answers.get(slot)
    if source_question is None or value is None:
        return ""
    labels = {point.key: point.label or point.key for point in source_question.scale.points}
    return labels.get(str(int(value)), "")


def _follow_up_questions(page, follow_ups, answers):
    """Return the follow-up questions: all before an answer is stored, none after "cannot say".

    A text is rewritten where people say what they would change.
    """
    source_question, slot = _source_question_and_slot(page)
    if source_question is None:
        return ()
    if slot not in answers:
        return follow_ups
    if answers[slot] is None:
        return ()
    is_human = answers[slot] <= page.section.settings.get("why_up_to", 1)
    return tuple(question for question in follow_ups if (question.key == WHY) is is_human)


def _has_two_sides(scale) -> bool:
    stored = scale or {}
    return stored.get("kind") == "likert" and len(_scale_or_default(stored).points) % 2 == 0


def _scale_or_default(stored):
    try:
        return parse_scale(stored)
    except (ValueError, TypeError, KeyError):
        return parse_scale({"kind": "likert", "maximum": 3})  # the checklist reports the fault


def _last_human_point(spec) -> int:
    """Return the last point of the human half."""
    return (spec.minimum + spec.maximum) // 2


def _scale_halves(scale) -> tuple[int, int, int]:
    spec = _scale_or_default(scale)
    return spec.minimum, _last_human_point(spec), spec.maximum


def _training_problems(section):
    items = list(section.items.filter(kind="practice").values_list("prompt__domain", flat=True))
    if not items:
        yield Problem("A training section needs practice items. Create them on the section's page.", "sections")
        return
    arms = list(section.arms.all()) or list(section.study.arms.all())
    for arm in arms:
        n = sum(not arm.domain or domain in ("", arm.domain) for domain in items)
        if n < section.m:
            yield Problem(
                f"Arm {arm.name} has {n} of {section.m} practice items{' of its domain' if arm.domain else ''}.",
                "sections",
                n == 0,
                f"few_practice_items:{arm.name}",
            )
        if arm.condition == "none":
            yield Problem(
                f"Arm {arm.name} gets training here, but its condition is “none”.",
                "arms",
                False,
                "training_without_condition",
            )
    positions = section.study.sections.filter(purpose="live").values_list("position", flat=True)
    # Between live sections, it is feedback during the task.
    if positions and section.position > max(positions):
        yield Problem(
            "This training section comes after the last live section, which is too late. Move it to the front.",
            "sections",
            False,
            "late_training",
        )


def _live_problems(section, questions):
    if WHY not in questions and CHANGE not in questions:
        yield Problem(
            f"No question “{WHY}” or “{CHANGE}” asks for reasons, so the report cannot show what annotators paid attention to.",
            "questions",
            False,
            "no_reasons",
        )
    if section.m and section.m < 4:
        yield Problem(
            "Each annotator judges fewer than 4 texts, so their accuracy says little. Raise m.", "m", False, "few_texts"
        )
    n_items = (
        section.design_items.annotate(n=Count("exposures")).filter(kind="live", n__gt=1).count() if section.pk else 0
    )
    if n_items:
        yield Problem(
            f"{n_items} ready-made items have several outputs, but annotators judge one text at a time. Give each output its own item.",
            "batches",
        )


def _drawing_problems(section, drawing):
    for arm in drawing.arms:
        if drawing.section_arms[section.pk] and arm.pk not in drawing.section_arms[section.pk]:
            continue
        systems = drawing.systems[arm.pk]
        for is_human, kind in ((True, "human"), (False, "machine")):
            own_systems = [system for system in systems if (system in drawing.human) == is_human]
            n = sum(
                any((prompt, system) in drawing.outputs for system in own_systems)
                for prompt in drawing.prompts_by_arm[arm.pk]
            )
            n_needed = -(-section.m // 2)
            if not own_systems:
                yield Problem(f"Arm {arm.name} has no {kind} system. It needs human and machine texts.", "systems")
            elif n < n_needed:
                yield Problem(f"Arm {arm.name} has {n} {kind} texts; a batch needs {n_needed}.", "outputs")
    cells = Counter((arm.domain, tuple(drawing.systems[arm.pk]), arm.condition) for arm in drawing.arms)
    if any(n > 1 for n in cells.values()):
        yield Problem(
            "Two arms have the same domain, systems and condition. The report combines them.",
            "arms",
            False,
            "cell_twice",
        )
