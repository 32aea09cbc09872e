"""The lines of the forms: what a page says of a field, a row or a file that it does not accept."""

from tests.messages import known_answers, panels
from tests.messages.forms import (
    barrings,
    calibrated,
    channels,
    coding,
    families,
    files,
    links,
    qualification,
    rules,
    studies,
    texts,
    work,
)
from tests.messages.lines import together

LINES = together(
    studies.LINES,
    families.LINES,
    rules.LINES,
    texts.LINES,
    links.LINES,
    channels.LINES,
    files.LINES,
    work.LINES,
    barrings.LINES,
    calibrated.LINES,
    coding.LINES,
    known_answers.FORMS,
    panels.FORMS,
    qualification.LINES,
)
