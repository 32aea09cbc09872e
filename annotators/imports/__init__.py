"""Import answers that were given elsewhere, as assignments and responses of origin ``imported``.

Docs: reference/import-formats.

A study with imported answers is frozen and closed. The answers refer to its Design, and no annotator can come to it.
"""

from .options import Options
from .run import import_answers, reason_answers_not_importable

__all__ = ["Options", "import_answers", "reason_answers_not_importable"]
