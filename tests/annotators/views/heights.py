"""How high the pages of every protocol are on a small phone, and how much of that is text to be judged."""

from collections.abc import Callable

from studies.models import Output, Prompt, Question, Section, Study
from tests.browsing import STORY
from tests.builders import (
    COMMENT,
    add_choice,
    add_marks,
    add_ranking,
    add_relative,
    add_section,
    add_spa,
    add_survey,
    draft_study,
    humanlike_draft,
)

SMALL_PHONE = {"width": 375, "height": 667}
WORDS_80, SHORT = STORY[:430], "The train came to a halt. Nobody spoke at first."
# Pixels of the whole page, of the texts that are read on it, and down to the end of its button.
HEIGHTS = """() => {
  // Phones do not show it, but this browser's finger can hover.
  document.querySelector("label.keys")?.remove();
  const sum = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility())
    .reduce((all, one) => all + one.getBoundingClientRect().height, 0);
  const go = document.querySelector("[name=go]");
  return {
    page: Math.round(document.body.scrollHeight),
    read: Math.round(sum(".exposure :is(.words, .picture), .prompt :is(.words, .picture)")),
    send: go && go.checkVisibility() ? Math.round(go.getBoundingClientRect().bottom + scrollY) : null,
  };
}"""
# Text of less than 16 px, and what is pressed and lower than 44 px (24 px in marks). Links within a sentence may be lower.
TOO_SMALL = """() => {
  const isThere = (one) => one.checkVisibility() && !one.closest(".heard, .wide-only, option") && one.getClientRects().length;
  const name = (one, size) => `${size} px: ${one.outerHTML.slice(0, 100)}`;
  const wrong = [];
  for (const one of document.body.querySelectorAll("*")) {
    const isText = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const size = parseFloat(getComputedStyle(one).fontSize);
    if (isText && isThere(one) && !one.matches("script, noscript, option") && size < 16) wrong.push(name(one, size));
  }
  for (const one of document.querySelectorAll("a, button, summary, label.point, select, input[type=text], textarea")) {
    const { height, width } = one.getBoundingClientRect(), least = one.matches(".nr") ? 24 : 44;
    if (isThere(one) && !one.closest("p a, .jump-in") && Math.min(height, width) < least - 0.5) wrong.push(name(one, `${width} x ${height}`));
  }
  return wrong;
}"""
# At most half of what was there before the pages were made for phones, in pixels; and where Send has to end.
MOST = {
    "two choices s1.p1": (513, None),
    "two choices, two lines s1.p1": (523, 667),  # the window's own height
    "relative s1.p1": (531, None),
    "best-worst, 4 texts s1.p1": (800, None),
    "ranking, 5 texts s1.p1": (859, None),
    "rating, 3 texts, 2 x 5 points s1.p1": (1350, 1911),
    "rating, 3 texts, 7 points s1.p1": (1061, 1622),
    "rating, 3 texts, 11 points s1.p1": (1359, 1920),
    "rating, 3 texts, 2 sliders s1.p1": (977, None),  # the page has 0.55 of its height, not half
    "marks s1.p1": (590, None),
    "SPA, 5 systems x 4 prompts s1.read": (567, None),
    "SPA, 5 systems x 4 prompts s1.ask": (1658, None),
    "human or machine s1.p1": (451, None),
    "human or machine s1.p1f": (517, None),
    "survey s1": (924, None),
}


def _draft(
    systems: int, text: str = WORDS_80, prompt: str = "You wake on a train that has stopped in the dark."
) -> Study:
    names = ("alpha", "beta", "gamma", "delta", "epsilon")[:systems]
    draft = draft_study(systems=names, prompts=6, target_n=2, instructions="")
    Output.objects.filter(system__study=draft).update(text=text)
    Prompt.objects.filter(study=draft).update(text=prompt)
    return draft


def rating(systems: int, *scales: dict, text: str = WORDS_80) -> Study:
    draft = _draft(systems, text)
    section = Section.objects.create(study=draft, position=1, protocol="rating", m=1, settings={"noun": "story"})
    for position, scale in enumerate(scales, 1):
        Question.objects.create(
            section=section, position=position, key=f"q{position}", text="How fluent is it?", scale=scale
        )
    return draft


FIVE = {"kind": "likert", "labels": ["very bad", "bad", "middling", "good", "very good"]}
SEVEN = {"kind": "likert", "minimum": 1, "maximum": 7, "low": "not at all", "high": "very much"}
ELEVEN = {"kind": "likert", "minimum": 0, "maximum": 10, "low": "not at all", "high": "very much"}
SLIDER = {"kind": "continuous", "minimum": 0, "maximum": 100}


def _with(systems: int, add: Callable, text: str = WORDS_80, **options) -> Study:
    draft = _draft(systems, text)
    add(draft, position=1, m=options.pop("m", 1), **options)
    return draft


def _spa() -> Study:
    draft = _draft(5)
    add_spa(draft, position=1, m=4)
    return draft


def _survey() -> Study:
    draft = _draft(1)
    options = [{"key": key, "label": key} for key in ("never", "sometimes", "often")]
    asked = [
        {"key": f"q{n}", "text": "How often do you read?", "scale": {"kind": "choice", "options": options}}
        for n in range(3)
    ]
    add_survey(draft, position=1, questions=[*asked, {"key": "q5", "text": "And why?", "scale": FIVE}, COMMENT])
    return draft


def _humanlike() -> Study:
    draft = humanlike_draft(domains=("news",), instructions="", target_n=2, m=1, texts=6)
    Output.objects.filter(system__study=draft).update(text=WORDS_80)
    return draft


STUDIES: dict[str, Callable[[], Study]] = {
    "two choices": lambda: _with(2, add_choice),
    "two choices, two lines": lambda: _with(2, add_choice, SHORT),
    "relative": lambda: _with(2, add_relative),
    "best-worst, 4 texts": lambda: _with(4, lambda draft, **options: add_section(draft, "best_worst", **options)),
    "ranking, 5 texts": lambda: _with(5, add_ranking),
    "rating, 3 texts, 2 x 5 points": lambda: rating(3, FIVE, FIVE),
    "rating, 3 texts, 7 points": lambda: rating(3, SEVEN),
    "rating, 3 texts, 11 points": lambda: rating(3, ELEVEN),
    "rating, 3 texts, 2 sliders": lambda: rating(3, SLIDER, SLIDER),
    "marks": lambda: _with(2, add_marks, STORY[:840]),
    "SPA, 5 systems x 4 prompts": _spa,
    "human or machine": _humanlike,
    "survey": _survey,
}
