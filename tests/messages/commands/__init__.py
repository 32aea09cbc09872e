"""The lines of what commands, the start of a site and a rehearsal refuse."""

from tests.messages.lines import together

from . import commands, start, studies, submit

LINES = together(commands.LINES, start.LINES, studies.LINES, submit.LINES)
