"""The lines of a study's pages: what stands beside the state, what is said after an act, and why an act is refused."""

from tests.messages import attention_checks, known_answers
from tests.messages.lines import together
from tests.messages.pages import annotators, study

LINES = together(study.LINES, annotators.LINES, attention_checks.PAGES, known_answers.PAGES)
