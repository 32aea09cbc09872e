"""The checklist names what is missing or unwise in a draft."""

from collections.abc import Iterator
from dataclasses import dataclass

from studies import signals
from studies.design.draw import BatchDraw
from studies.models import Batch, Study
from studies.protocols import Problem, UnfillableBatch

from .arms import arm_problems
from .attention import attention_problems
from .batches import read_trial_batches, trial_batch_problems
from .plan import barring_problems, contrast_problems, exclusion_rule_problems
from .sections import drawing_problems, section_config_problems, section_problems
from .stimuli import stimuli_problems


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
    sections = list(study.sections.select_related("reuses").prefetch_related("questions", "arms"))
    if not study.arms.exists():
        yield Problem("The study has no arm. Add one.", "arms")
    if not any(section.purpose == "live" for section in sections):
        yield Problem("The study has no live section, so it would measure nothing. Add one.", "sections")
    for section in sections:
        yield from section_config_problems(section)
    yield from (problem for problem in contrast_problems(study, sections) if problem.is_blocking)
    yield from exclusion_rule_problems(study, sections)


def _problems_before_drawing(study: Study, drawing: BatchDraw | None) -> Iterator[Problem]:
    """Yield the problems that can be found without drawing a batch. ``drawing`` is None if the study has ready-made batches."""
    sections = list(study.sections.select_related("reuses").prefetch_related("questions", "arms"))
    if not study.public_title.strip():
        yield Problem("Add a title: annotators read it at the top of each page.", "public_title")
    if not study.consent.strip():
        yield Problem("There is no consent text.", "consent", False, "no_consent")
    if not study.contact.strip():
        yield Problem("There is no contact for annotators. Add an address that they can write to.", "contact")
    if not study.target_n:
        yield Problem("There is no target. Enter how many annotators the study needs.", "target_n")
    if study.reward is None:
        yield Problem("There is no reward. Enter an amount, or 0 for volunteers.", "reward", False, "no_reward")
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
    yield from stimuli_problems(study, sections, drawing)
    yield from contrast_problems(study, sections)
    yield from exclusion_rule_problems(study, sections)
    yield from barring_problems(study)
    if study.batches_per_annotator > 1:
        yield Problem(
            "Annotators may take several batches. They do not get a batch with a prompt that they have already seen.",
            "batches_per_annotator",
            False,
            "several_batches",
        )
    for _, problems in signals.checking_draft.send(Study, study=study):
        yield from problems
