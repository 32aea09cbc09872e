"""The lines of the settings of exclusion rules."""

import csv

from tests.messages.lines import Shown


def unread_keys():
    """A key of an answer that is longer than a cell of a table may be."""
    from analysis.exclusions.rules.answers import AnswerSettings

    limit = csv.field_size_limit(100)
    try:
        form = AnswerSettings({"question": "q", "options": "x" * 200})
        return [Shown(text) for errors in form.errors.values() for text in errors]
    finally:
        csv.field_size_limit(limit)


def more_failed_than_counted():
    """The simple rule about test questions, with more failed than counted ones."""
    from analysis.exclusions.rules.checks import FailedTestsSettings

    form = FailedTestsSettings({"failed": 5, "counted": 4})
    return [Shown(text) for errors in form.errors.values() for text in errors]


FORMS = {
    "This is more than the counted": more_failed_than_counted,
    "The keys cannot be read": unread_keys,
}
