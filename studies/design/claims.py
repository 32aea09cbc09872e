"""Say before the launch what the report will claim about comparisons with a margin, and on which condition."""

from collections import Counter

from studies.models import Contrast, Section, Study
from studies.protocols import EstimandDirection

from .margins import concerned_sections


def planned_claim_sentences(study: Study) -> list[str]:
    """Return a sentence for each comparison that claims "not worse" or "better by more than the margin", in each live section."""
    contrasts = list(study.contrasts.select_related("x", "y"))
    in_family = Counter(contrast.family or contrast.role for contrast in contrasts)
    sections = [
        (section, list(section.questions.all()))
        for section in study.sections.filter(purpose=Section.Purpose.LIVE).prefetch_related("questions")
    ]
    sentences = []
    for contrast in contrasts:
        if contrast.hypothesis == Contrast.Hypothesis.DIFFERENCE:
            continue
        own_sections = [pair for pair in sections if contrast.section_id in (None, pair[0].pk)]
        for section, protocol, questions in concerned_sections(contrast.estimand, contrast.criterion, own_sections):
            direction = protocol.direction(contrast.estimand, questions)
            if direction is not None:
                is_alone = in_family[contrast.family or contrast.role] == 1
                sentences.append(_sentence(contrast, direction, section.position, is_alone))
    return sentences


def _sentence(contrast: Contrast, direction: EstimandDirection, position: int, is_alone: bool) -> str:
    margin = contrast.margin or 0.0
    is_not_worse = contrast.hypothesis == Contrast.Hypothesis.NONINFERIORITY
    claim = f"{contrast.x} is {'not worse' if is_not_worse else 'better'} than {contrast.y} by more than {_size(margin, direction)}"
    about = f" on {contrast.criterion}" if contrast.criterion else ""
    is_limit_below = is_not_worse != direction.is_lower_better
    limit = _value(direction.null + (-margin if is_limit_below else margin), direction)
    side = "below" if direction.is_lower_better else "above"
    interval = f"{100 * (1 - contrast.level):g} % {'' if is_alone else 'simultaneous '}interval"
    return f"Section {position}: the report will claim “{claim}{about}” if the whole {interval} is {side} {limit}."


def _is_probability(direction: EstimandDirection) -> bool:
    return direction.null == 0.5


def _value(value: float, direction: EstimandDirection) -> str:
    return f"{100 * value:.6g} %" if _is_probability(direction) else f"{value:.6g}".replace("-", "−")


def _size(margin: float, direction: EstimandDirection) -> str:
    return f"{100 * margin:.6g} percentage points" if _is_probability(direction) else f"{margin:.6g}"
