"""Check the attention checks of a study: each says which answer to give, and exactly that answer is marked as right."""

from collections.abc import Iterator

from studies.models import Section
from studies.protocols import REGISTRY, Problem
from studies.protocols.base.scales import parse_scale

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
                f"Section {section.position} holds attention checks, which show no items. Choose the protocol survey.",
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
    where = f"Section {section.position}, question {question.key}"
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
