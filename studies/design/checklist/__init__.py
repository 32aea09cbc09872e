"""The checklist says what is missing or unwise in a draft."""

from collections.abc import Iterator

from studies import signals
from studies.models import Study
from studies.protocols import Problem

from .arms import arm_problems
from .batches import batch_problems
from .plan import contrast_problems, rule_problems
from .sections import drawing_problems, section_config_problems, section_problems
from .stimuli import stimuli_problems


def find_problems(study: Study) -> Iterator[Problem]:
    """What is missing (blocking) or unwise in a draft. Each is named, and linked to the field it is about."""
    found = list(_problems_before_drawing(study))
    yield from found
    # What batches will show can only be said of a design that can be drawn.
    if not any(problem.is_blocking for problem in found):
        yield from batch_problems(study)


def find_analysis_blockers(study: Study) -> Iterator[Problem]:
    """What keeps answers from being understood, whoever gave them and wherever: nothing of recruiting, pay or drawing."""
    sections = list(study.sections.select_related("reuses").prefetch_related("questions", "arms"))
    if not study.arms.exists():
        yield Problem("There is no arm.", "arms")
    if not any(section.purpose == "live" for section in sections):
        yield Problem("There is no live section: nothing would be measured.", "sections")
    for section in sections:
        yield from section_config_problems(section)
    yield from (problem for problem in contrast_problems(study, sections) if problem.is_blocking)
    yield from rule_problems(study, sections)


def _problems_before_drawing(study: Study) -> Iterator[Problem]:
    """The problems that can be seen without drawing a batch."""
    sections = list(study.sections.select_related("reuses").prefetch_related("questions", "arms"))
    if not study.public_title.strip():
        yield Problem("Annotators need a title to read on top of their pages.", "public_title")
    if not study.consent.strip():
        yield Problem("There is no consent text.", "consent", False, "no_consent")
    if not study.contact.strip():
        yield Problem("Annotators have nobody to write to.", "contact")
    if not study.target_n:
        yield Problem("There is no target: say how many annotators the study wants.", "target_n")
    if study.reward is None:
        yield Problem("No reward is stated (0 for volunteers).", "reward", False, "no_reward")
    if not study.minutes:
        yield Problem("No duration is declared.", "minutes")
    if not study.arms.exists():
        yield Problem("There is no arm.", "arms")
    yield from arm_problems(study)
    if not any(section.purpose == "live" for section in sections):
        yield Problem("There is no live section: nothing would be measured.", "sections")
    for section in sections:
        yield from section_problems(section)
    yield from drawing_problems(study, sections)
    yield from stimuli_problems(study, sections)
    yield from contrast_problems(study, sections)
    yield from rule_problems(study, sections)
    if study.batches_per_annotator > 1:
        yield Problem(
            "Annotators may take several batches: a prompt may be offered to them again in another batch, which they are then not given.",
            "batches_per_annotator",
            False,
            "several_batches",
        )
    for _, found in signals.checking_draft.send(Study, study=study):
        yield from found
