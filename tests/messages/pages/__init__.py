"""The lines of a study's pages: what stands beside the state, what is said after an act, and why an act is refused."""

from tests.messages import known_answers
from tests.messages.lines import together
from tests.messages.pages import annotators, study

LINES = together(study.LINES, annotators.LINES, known_answers.PAGES)
