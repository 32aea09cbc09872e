"""Answers that were given elsewhere, as assignments and responses of origin ``imported``. docs: reference/import-formats.

A study that holds them is frozen and closed: they refer to its Design, nobody is sent to it, and no monitor of a running study
ever sees them.
"""

from .options import Options
from .run import import_answers, reason_not_importable

__all__ = ["Options", "import_answers", "reason_not_importable"]
