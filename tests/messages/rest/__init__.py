"""The lines of what REST refuses."""

from tests.messages.lines import together

from . import access, bodies, fields, parameters

LINES = together(access.LINES, bodies.LINES, fields.LINES, parameters.LINES)
