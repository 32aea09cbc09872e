"""Rows that a program sends as JSON or as a form with a file. One reader checks both."""

import json
from typing import Any

from django.http import QueryDict

from studies.stimuli import strict_json
from studies.stimuli.rows import TableProblems

from .base import require_json_object
from .renderers import MAX_ERRORS, RowErrors, row_error


def read_upload(request, rows_field: str, row_unit: str, max_bytes: int) -> tuple[dict[str, Any], str, bytes]:
    """Return the other fields of a request, and its file. Rows of a JSON body become the lines of a file."""
    if not isinstance(request.data, QueryDict):
        body = dict(require_json_object(request))
        rows = body.pop(rows_field, None)
        if not isinstance(rows, list):
            problem = f"There are no {rows_field}. Send a list with one object per {row_unit}."
            raise RowErrors([row_error(None, rows_field, problem)])
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return body, f"{rows_field}.jsonl", lines.encode()
    file = request.FILES.get("file")
    if file is None:
        problem = f"The form has no file. Send the {rows_field} as a file named “file”."
        raise RowErrors([row_error(None, "file", problem)])
    return read_settings(request), file.name, file.read(max_bytes + 1)


def read_settings(request) -> dict[str, Any]:
    """Return the other fields of a form with a file: one JSON object in its field ``settings``."""
    try:
        settings: Any = strict_json.loads(str(request.data.get("settings", "{}")))
    except strict_json.BadJson:
        settings = None
    if not isinstance(settings, dict):
        raise RowErrors(
            [row_error(None, "settings", "This is not a JSON object. Send the other fields as one object.")]
        )
    return settings


def row_errors(problems: TableProblems) -> list[dict[str, Any]]:
    """Return the problems of a file, as many as a response lists. The first place says if there are more."""
    listed = problems.first
    if problems.count > MAX_ERRORS:
        listed = listed[: MAX_ERRORS - 1]
    errors = [row_error(problem.row, problem.column, problem.text) for problem in listed]
    if more := problems.count - len(errors):
        errors.insert(0, row_error(None, None, f"There are {more:,} more errors. Correct these first."))
    return errors
