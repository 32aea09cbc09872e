"""Import answers that were given elsewhere, as assignments and responses of origin ``imported``.

Docs: reference/import-formats.

A study with imported answers is frozen and closed. The answers refer to its Design, and no annotator can come to it.
"""

from .columns import Options
from .mapping import checked_options, options_with_roles, role_labels
from .run import import_answers_and_close_draft, reason_answers_not_importable

__all__ = [
    "Options",
    "checked_options",
    "import_answers_and_close_draft",
    "options_with_roles",
    "reason_answers_not_importable",
    "role_labels",
]
