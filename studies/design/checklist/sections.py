"""Check the sections of a study: their questions, their settings and the needs of their protocols."""

from collections.abc import Iterator

from studies.design.draw import BatchDraw
from studies.protocols import REGISTRY, Problem
from studies.protocols.base.scales import parse_scale

from .qualification import test_problems


def section_problems(section) -> Iterator[Problem]:
    yield from section_config_problems(section)
    protocol = REGISTRY.get(section.protocol)
    where = f"Section {section.position}"
    if protocol is None:
        return
    if section.reuses_id and section.reuses.position >= section.position:
        yield Problem(f"{where} must come after the section that it reuses.", "sections")
    yield from test_problems(section)
    for problem in protocol.problems(section):
        yield _prefix_with_section(problem, section)


def _prefix_with_section(problem: Problem, section) -> Problem:
    """Return a protocol's problem with its section in front."""
    return Problem(
        f"Section {section.position}: {problem.text}",
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
    where = f"Section {section.position}"
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
