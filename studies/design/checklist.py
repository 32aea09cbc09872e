"""What a draft still needs before its launch: one list of problems and warnings, each with the page that repairs it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Count, Q
from django.db.models.functions import Length

from studies import signals
from studies.design.draw import SHORTAGE_ADVICE, ArmSharesRefused, BatchDraw, build_arm_block, has_own_prompts
from studies.design.workload import low_pay_text
from studies.models import Arm, ArmSystem, Batch, Item, Output, Placement, Question, Section, Study, System
from studies.protocols import REGISTRY, Problem, UnfillableBatch, arms_of
from studies.protocols.base.fields import parse_scale

from .checklist_sizes import (
    barring_problems,
    contrast_problems,
    exclusion_rule_problems,
    read_trial_batches,
    sharing_problems,
    trial_batch_problems,
    uncompared_system_problems,
)
from .subjects import numbered_name, read_words_of_sections
from .translations import translation_problems

# Check the test before the work: it has enough questions with a right answer for its pass mark.


def pass_mark_problems(section) -> Iterator[Problem]:
    """Yield the faults of a section with a pass mark."""
    protocol = REGISTRY.get(section.protocol)
    if section.pass_mark is None or protocol is None:
        return
    where = f"Section {numbered_name(section)}"
    if protocol.has_items:
        n_known, n_asked = _fewest_practice_items_and_answers(section)
    else:
        n_known = sum(_has_right_answer(question) for question in section.questions.all())
        if n_known < len(section.questions.all()):
            yield Problem(
                f"{where} is a test, but a question has no right answer. Mark exactly one answer of each question as right.",
                "questions",
            )
        n_asked = min(section.m or n_known, n_known)
    if n_asked < section.pass_mark:
        yield Problem(
            f"{where} is a test with {n_asked} known answers, but its pass mark is {section.pass_mark}. Lower the pass mark, or add known answers.",
            "sections",
        )
    elif n_known < 2 * (section.m or n_known):
        yield Problem(
            f"{where} is a test whose second attempt repeats the first in another order. Add known answers for a second set.",
            "sections",
            False,
            "test_repeats",
        )


def _fewest_practice_items_and_answers(section) -> tuple[int, int]:
    """Return how many practice items with an expected answer the arm with the fewest has, and the fewest answers of one attempt.

    The batches of an arm show no items with other systems. An item has an answer for each question with an expected one.
    """
    items: dict[int, tuple[str, set[int]]] = {}
    rows = section.items.filter(kind=Item.Kind.PRACTICE, expected__isnull=False)
    for pk, domain, system in rows.values_list("pk", "prompt__domain", "exposures__output__system"):
        items.setdefault(pk, (domain, set()))[1].add(system)
    n_answers = dict(rows.annotate(n=Count("expected", distinct=True)).values_list("pk", "n"))
    counts = []
    for arm in arms_of(section):
        shown = {system.pk for system in arm.systems.all()}
        answers = sorted(
            n_answers[pk]
            for pk, (domain, systems) in items.items()
            if (not arm.domain or domain in ("", arm.domain)) and (not shown or systems <= shown)
        )
        counts.append((len(answers), sum(answers[: section.m])))
    return min(counts, default=(0, 0))


def required_qualification_problems(study: Study) -> Iterator[Problem]:
    """Yield why nobody could have the qualification that people need to take part, or why nobody has it yet."""
    if not (name := study.required_qualification):
        return
    tests = Section.objects.filter(qualification__name=name, qualification__owner=study.owner_id)
    tests = tests.exclude(study=study.pk)
    if study.clone_of_id and study.keeps_origin_out:
        tests = tests.exclude(study=study.clone_of_id)
    if study.exclusion_group:
        tests = tests.exclude(study__exclusion_group=study.exclusion_group)
    if not tests.exists():
        yield Problem(
            f"Nobody can have the qualification “{name}”. Name it at the test of another study of the owner whose people may take part here.",
            "required_qualification",
        )
    elif not tests.exclude(study__state=Study.State.DRAFT).exists():
        yield Problem(
            f"Nobody has the qualification “{name}” yet, because only drafts have its test. Launch one of them first.",
            "required_qualification",
            False,
            "nobody_is_qualified_yet",
        )


def _has_right_answer(question) -> bool:
    try:
        scale = parse_scale(question.scale)
    except (ValueError, TypeError, KeyError):
        return False  # the checks of sections report the scale
    return scale.kind == "choice" and bool(scale.right_key) and question.required


# Check the sections of a study: their questions, their settings and the needs of their protocols.


def section_problems(section) -> Iterator[Problem]:
    yield from section_config_problems(section)
    protocol = REGISTRY.get(section.protocol)
    where = f"Section {numbered_name(section)}"
    if protocol is None:
        return
    if section.reuses_id and section.reuses.position >= section.position:
        yield Problem(f"{where} must come after the section that it reuses.", "sections")
    if section.reuses_id and (others := set(section.reuses.arms.all())):
        shown = set(section.arms.all())
        if not shown or shown - others:
            yield Problem(
                f"{where} asks about the items of a section that some of its arms do not see. Choose the same arms, or reuse no section.",
                "sections",
            )
    if (
        section.reuses_id
        and section.purpose == Section.Purpose.LIVE
        and section.reuses.items.filter(kind="practice").exists()
    ):
        yield Problem(
            f"{where} repeats practice items, whose truth is shown, so none of its answers would count. Choose a live section.",
            "sections",
        )
    yield from pass_mark_problems(section)
    yield from _bare_scale_problems(section)
    yield from _rewrite_problems(section, protocol)
    for problem in protocol.problems(section):
        yield _prefix_with_section(problem, section)


def _bare_scale_problems(section) -> Iterator[Problem]:
    """Yield the scales whose ends have no words. Drafts of the pages of a new study must have them; others, as rounds of boards, may go on."""
    for question in section.questions.all() if section.purpose == Section.Purpose.LIVE else ():
        try:
            scale = parse_scale(question.scale)
        except (ValueError, TypeError, KeyError):
            continue  # another check reports the scale
        ends = (scale.points[0].label, scale.points[-1].label) if scale.kind == "likert" else (scale.low, scale.high)
        if scale.kind in ("likert", "continuous") and not all(ends):
            yield Problem(
                f"Section {numbered_name(section)}, question {question.key}: the ends of the scale have no words, so annotators use it "
                "differently. Add words to both.",
                "questions",
                section.study.guide is not None,
                f"scale_without_words:{section.position}:{question.key}",
            )


def _rewrite_problems(section, protocol) -> Iterator[Problem]:
    """Yield why outputs cannot be rewritten: more than one question, several outputs on a page, images, or texts above the limit."""
    where = f"Section {numbered_name(section)}"
    asked = [
        one for one in section.questions.all() if isinstance(one.scale, dict) and one.scale.get("kind") == "rewrite"
    ]
    if not asked:
        return
    if not protocol.takes_rewrites:
        usable = " or ".join(f"“{one.label}”" for one in REGISTRY.values() if one.takes_rewrites)
        yield Problem(
            f"{where}, question {asked[0].key}: a text is rewritten on a page that shows no other. Choose another kind of answer, or {usable}.",
            "questions",
        )
    if len(asked) > 1:
        yield Problem(
            f"{where} has {len(asked)} questions that have the same text rewritten. Keep one of them.", "questions"
        )
    try:
        most = parse_scale(asked[0].scale).maximum_length
    except (ValueError, TypeError, KeyError):
        return  # another check reports the scale
    if section.study.stimuli_source:
        yield Problem(
            f"{where}, question {asked[0].key}: rewrites keep words of texts that may not be passed on. Pass no export or archive on, or "
            "remove the question.",
            "questions",
            False,
            f"rewrites_of_texts_not_passed_on:{section.position}",
        )
    outputs = Output.objects.filter(system__study=section.study).annotate(length=Length("text"))
    outputs = outputs.select_related("system", "prompt").order_by("prompt__key", "system__name")
    without = outputs.filter(text="")
    if first := without.first():
        yield Problem(
            f"{where}, question {asked[0].key}: {without.count()} outputs have no text to rewrite. Remove the question, or these outputs. "
            f"The first: {first.system.name} for prompt {first.prompt.key}.",
            "questions",
        )
    long = outputs.filter(length__gt=most)
    if first := long.first():
        yield Problem(
            f"{where}, question {asked[0].key}: {long.count()} outputs have more than {most} characters. Raise the question’s maximum. The first: "
            f"{first.system.name} for prompt {first.prompt.key}.",
            "questions",
        )


def _prefix_with_section(problem: Problem, section) -> Problem:
    """Return a protocol's problem with its section in front."""
    return Problem(
        f"Section {numbered_name(section)}: {problem.text}",
        problem.field,
        problem.is_blocking,
        f"{problem.name}:{section.position}" if problem.name else "",
    )


def drawing_problems(sections, drawing: BatchDraw) -> Iterator[Problem]:
    """Yield the protocols' problems with the arms and their outputs, if batches are drawn from the design."""
    for section in sections:
        if section.protocol in REGISTRY:
            for problem in REGISTRY[section.protocol].drawing_problems(section, drawing):
                yield _prefix_with_section(problem, section)


def section_config_problems(section) -> Iterator[Problem]:
    """Yield what makes a section unreadable: its protocol, its questions' scales or its settings."""
    protocol = REGISTRY.get(section.protocol)
    where = f"Section {numbered_name(section)}"
    if protocol is None:
        yield Problem(f"{where}: the protocol {section.protocol} is not installed. Choose another one.", "sections")
        return
    questions = list(section.questions.all())
    if not questions:
        yield Problem(f"{where} has no question. Add one.", "questions")
    for question in questions:
        try:
            parse_scale(question.scale)
        except (ValueError, TypeError, KeyError) as error:
            yield Problem(f"{where}, question {question.key}: {error}", "questions")
    if protocol.settings_form is not None:
        form = protocol.settings_form(data=protocol.raw_settings(section))
        for name, errors in form.errors.items():
            yield Problem(
                f"{where}, {form[name].label if name in form.fields else name}: {' '.join(map(str, errors))}",
                "sections",
            )


# Check the attention checks of a study: each says which answer to give, and exactly that answer is marked as right.


# The second wrong answer ends an assignment, so a single check can never do so.
MIN_CHECKS = 2


def attention_problems(sections, arms) -> Iterator[Problem]:
    """Yield the faults of attention checks, and options that are marked as right where no answer is checked.

    ``arms``: those of the study, for sections that all arms see.
    """
    n_checks_by_arm: dict[str, int] = {}
    for section in sections:
        protocol = REGISTRY.get(section.protocol)
        is_check = section.purpose == Section.Purpose.ATTENTION
        for question in section.questions.all():
            yield from _question_problems(section, question, is_check)
        if not is_check or protocol is None:
            continue
        if protocol.has_items:
            yield Problem(
                f"Section {numbered_name(section)} holds attention checks, which show no items. Choose the protocol survey.",
                "sections",
            )
        for arm in section.arms.all() or arms:
            n_checks_by_arm[arm.name] = n_checks_by_arm.get(arm.name, 0) + len(section.questions.all())
    few = sorted(arm for arm, n in n_checks_by_arm.items() if n < MIN_CHECKS)
    if few:
        yield Problem(
            f"Only one attention check is asked in arm {few[0]}, but only the second wrong answer counts. Add another check.",
            "sections",
            False,
            "one_attention_check",
        )


def _question_problems(section: Section, question, is_check: bool) -> Iterator[Problem]:
    where = f"Section {numbered_name(section)}, question {question.key}"
    try:
        scale = parse_scale(question.scale)
    except (ValueError, TypeError, KeyError):
        return  # the checks of sections report the scale
    if not is_check:
        if section.pass_mark is None and any(option.is_right for option in scale.options):
            yield Problem(
                f"{where}: an answer is marked as right, but only attention checks and tests have one. Remove the mark.",
                "questions",
            )
        return
    if scale.kind != "choice" or not scale.right_key:
        yield Problem(
            f"{where} is an attention check. Give it several answers to choose from, and mark exactly one as right.",
            "questions",
        )
    if not question.required or question.skip_reasons:
        yield Problem(
            f"{where} is an attention check. Make it required, and remove its reasons to skip.",
            "questions",
        )
    if any(option.screens_out for option in scale.options):
        yield Problem(
            f"{where} is an attention check. Remove the mark “screens out”: one mistake must not end the visit.",
            "questions",
        )


# Check the stimuli of a study: are there enough systems, prompts and outputs?


def stimuli_problems(study: Study, sections, drawing: BatchDraw | None) -> Iterator[Problem]:
    with_items = [
        s for s in sections if s.protocol in REGISTRY and REGISTRY[s.protocol].has_items and s.reuses_id is None and s.m
    ]
    if not with_items:
        return
    systems = study.systems.judged().count()
    if systems < 2:
        yield Problem(
            f"The study has {'only 1 system' if systems else 'no systems'}, so nothing can be compared. Import outputs of two systems.",
            "systems",
            systems == 0,
            "one_system",
        )
    yield from _test_source_problems(study)
    # A protocol that shows one output per prompt has other needs and checks them itself.
    full_sections = [
        section
        for section in with_items
        if REGISTRY[section.protocol].shows_every_system and not has_own_prompts(section)
    ]
    if full_sections and drawing is not None:
        yield from _coverage_problems(study, full_sections, drawing)
    if drawing is None and (n_repeated := _count_prompts_twice_in_batch(study)):
        yield Problem(
            f"{n_repeated} prompts occur twice in a ready-made batch.", "batches", False, "prompt_twice_in_batch"
        )
    alone = study.prompts.filter(group="").exclude(source="").order_by()
    shared = alone.values("source").annotate(n=Count("pk")).filter(n__gt=1).values_list("n", flat=True)
    if shared:
        yield Problem(
            f"{sum(shared)} prompts share their source with another one, but count as independent. Import the file again with equal "
            "source texts as groups.",
            "prompts",
            False,
            "shared_sources",
        )
    empty = Output.objects.filter(system__study=study, is_empty=True).count()
    if empty:
        yield Problem(
            f"{empty} outputs are empty. Annotators will read that the system gave no text.",
            "outputs",
            False,
            "empty_outputs",
        )


def _test_source_problems(study: Study) -> Iterator[Problem]:
    """Yield where a source of texts for test questions is used as if it were a system under evaluation."""
    for system in study.systems.filter(reference=System.Reference.TEST):
        uses = {
            "an arm": ArmSystem.objects.filter(system=system),
            "a comparison": study.contrasts.filter(Q(x=system) | Q(y=system)),
            "a question": Question.objects.filter(Q(x=system) | Q(y=system)),
        }
        for use, rows in uses.items():
            if rows.exists():
                yield Problem(
                    f"{system} holds texts of test questions only, but {use} names it. Remove it there.", "systems"
                )


def _count_prompts_twice_in_batch(study: Study) -> int:
    """Return how often a ready-made batch holds several items of one prompt."""
    prompts = Placement.objects.filter(batch__study=study, batch__origin=Batch.Origin.IMPORTED).values(
        "batch", "item__prompt"
    )
    return prompts.annotate(n=Count("pk")).filter(n__gt=1).count()


def _coverage_problems(study: Study, sections, plan: BatchDraw) -> Iterator[Problem]:
    """Check that each arm has enough prompts with an output of every system that the arm shows."""
    positions = {section.position for section in sections}
    keys = dict(study.prompts.values_list("pk", "key"))
    arms_by_need: dict[tuple, list] = {}
    for arm in plan.arms:
        n_needed = sum(section.m for section in plan.sections_with_own_items(arm.pk) if section.position in positions)
        arms_by_need.setdefault((tuple(plan.systems[arm.pk]), arm.domain, n_needed), []).append(arm)
    for (_, _, n_needed), arms in arms_by_need.items():
        names = ", ".join(arm.name for arm in arms)
        where, arm_text, shown_text, key_suffix = (
            (f"Arm {names}: ", f" of arm {names}", " that the arm shows", f":{arms[0].name}")
            if len(arms_by_need) > 1
            else ("", "", "", "")
        )
        all_prompts, usable = plan.prompts_by_arm[arms[0].pk], plan.prompts[arms[0].pk]
        lacking = sorted(keys[prompt] for prompt in set(all_prompts) - set(usable))
        if lacking and n_needed:
            yield Problem(
                f"{where}{len(lacking)} of {len(all_prompts)} prompts lack the output of a system and are not shown: {', '.join(lacking[:5])}"
                f"{' …' if len(lacking) > 5 else ''}.",
                "outputs",
                False,
                f"outputs_missing{key_suffix}",
            )
        if len(usable) < n_needed:
            yield Problem(
                f"A batch{arm_text} needs {n_needed} prompts with an output of every system{shown_text}; there {'is' if len(usable) == 1 else 'are'} "
                f"{len(usable)}. {SHORTAGE_ADVICE['prompts']}",
                "prompts",
            )


# Check the arms of a study: their shares and their minutes.


def arm_problems(study: Study, arms: list[Arm]) -> Iterator[Problem]:
    try:
        build_arm_block(arms)
    except ArmSharesRefused as refused:
        yield Problem(str(refused), "arms")
    else:
        places = sum(arm.wanted or 0 for arm in arms)
        if places and study.target_n and places != study.target_n:
            yield Problem(
                f"The arms have {places} places in total, but the target is {study.target_n}. Arms are filled in these proportions.",
                "arms",
                False,
                "arms_and_target_differ",
            )
    longest = max((arm.minutes or 0 for arm in arms), default=0)
    if study.minutes and longest > study.minutes:
        yield Problem(
            f"An arm takes {longest} minutes, but the study declares {study.minutes}. The study's minutes decide how long places are held.",
            "minutes",
            False,
            "arm_takes_longer",
        )


# Check the texts for annotators: nothing is left to be filled in.


# A place in a model text that a researcher fills in, such as "[… the institution]".
MARK = re.compile(r"\[(?:…|\.\.\.)[^\]\n]*\]")
_TEXTS = ("public_title", "purpose", "instructions", "consent", "debriefing", "contact")


def unfilled_text_problems(study: Study) -> Iterator[Problem]:
    """Yield the texts with such places. Drafts of the pages of a new study must have none; others, as rounds of boards, may go on."""
    for name in _TEXTS:
        if marks := MARK.findall(getattr(study, name)):
            label = {"public_title": "title"}.get(name, name)
            yield Problem(
                f"The {label} still has {len(marks)} place{'s' if len(marks) > 1 else ''} to fill in, such as {marks[0]}. Replace it.",
                name,
                study.guide is not None,
                f"unfilled:{name}",
            )


# The checklist names what is missing or unwise in a draft.


@dataclass(frozen=True, slots=True)
class DesignCheck:
    """What is missing (blocking) or unwise in a draft, and what its planned comparisons can be about.

    ``populations`` is empty while the design cannot be drawn.
    """

    problems: list[Problem]
    populations: list[str]


def find_design_problems(study: Study) -> list[Problem]:
    """Return what is missing (blocking) or unwise in a draft. Each problem is linked to its field."""
    return check_design(study).problems


def check_design(study: Study) -> DesignCheck:
    """Check a draft, and draw batches on trial if nothing before them is missing."""
    has_own_batches = study.batches.filter(origin=Batch.Origin.IMPORTED).exists()
    # Reading the design for the draw is most of the work, so all checks share it.
    drawing = None if has_own_batches else BatchDraw(study)
    problems = list(_problems_before_drawing(study, drawing))
    # Batches can be checked only if the design can be drawn.
    if any(problem.is_blocking for problem in problems):
        return DesignCheck(problems, [])
    try:
        trial = read_trial_batches(study, drawing)
    except UnfillableBatch as spent:
        return DesignCheck([*problems, Problem(str(spent), spent.field)], [])
    return DesignCheck([*problems, *trial_batch_problems(study, trial, drawing)], trial.describe_populations())


def find_analysis_blockers(study: Study) -> Iterator[Problem]:
    """Yield what makes answers impossible to analyse, wherever they were collected. Recruiting, pay and drawing are not checked."""
    sections = _named_sections(study)
    if not study.arms.exists():
        yield Problem("The study has no arm. Add one.", "arms")
    if not any(section.purpose == "live" for section in sections):
        yield Problem("The study has no live section, so it would measure nothing. Add one.", "sections")
    for section in sections:
        yield from section_config_problems(section)
    yield from (problem for problem in contrast_problems(study, sections) if problem.is_blocking)
    yield from exclusion_rule_problems(study, sections)


def _named_sections(study: Study) -> list[Section]:
    sections = list(study.sections.select_related("reuses").prefetch_related("questions", "arms"))
    read_words_of_sections(sections)
    return sections


def _problems_before_drawing(study: Study, drawing: BatchDraw | None) -> Iterator[Problem]:
    """Yield the problems that can be found without drawing a batch. ``drawing`` is None if the study has ready-made batches."""
    sections = _named_sections(study)
    if not study.public_title.strip():
        yield Problem("Add a title: annotators read it at the top of each page.", "public_title")
    if not study.consent.strip():
        yield Problem("There is no consent text.", "consent", False, "no_consent")
    if not study.contact.strip():
        yield Problem("There is no contact for annotators. Add an address that they can write to.", "contact")
    yield from unfilled_text_problems(study)
    yield from translation_problems(study)
    if not study.target_n:
        yield Problem("There is no target. Enter how many annotators the study needs.", "target_n")
    if study.reward is None:
        yield Problem("There is no reward. Enter an amount, or 0 for volunteers.", "reward", False, "no_reward")
    if low_pay := low_pay_text(study):
        yield Problem(low_pay, "reward", False, "low_pay")
    if not study.minutes:
        yield Problem("The duration is missing. Enter the declared minutes.", "minutes")
    arms = sorted(study.arms.all(), key=lambda arm: arm.name)
    if not arms:
        yield Problem("The study has no arm. Add one.", "arms")
    yield from arm_problems(study, arms)
    if not any(section.purpose == "live" for section in sections):
        yield Problem("The study has no live section, so it would measure nothing. Add one.", "sections")
    for section in sections:
        yield from section_problems(section)
    yield from attention_problems(sections, arms)
    if drawing is not None:
        yield from drawing_problems(sections, drawing)
        yield from uncompared_system_problems(study, drawing)
    yield from stimuli_problems(study, sections, drawing)
    yield from contrast_problems(study, sections)
    yield from exclusion_rule_problems(study, sections)
    yield from barring_problems(study)
    yield from required_qualification_problems(study)
    yield from sharing_problems(study)
    if study.batches_per_annotator > 1:
        yield Problem(
            "Annotators may take several batches. They do not get a batch with a prompt that they have already seen.",
            "batches_per_annotator",
            False,
            "several_batches",
        )
    for _, problems in signals.checking_draft.send(Study, study=study):
        yield from problems
