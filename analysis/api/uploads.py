"""Rows that a program sends as JSON or as a form with a file. One reader checks both."""

import json
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.http import QueryDict
from rest_framework.exceptions import ParseError
from rest_framework.parsers import MultiPartParser

from studies.stimuli import texts

from .renderers import FieldError, refuse_compressed_or_too_large

# A form has a few short fields beside its file.
MAX_FIELDS_BYTES = 2**20


class StrictMultiPartParser(MultiPartParser):
    """Parse multipart/form-data within a size limit."""

    def max_bytes(self, view: Any) -> int:
        """Return the size of the largest form that the view accepts."""
        return view.max_file_bytes + MAX_FIELDS_BYTES

    def parse(self, stream, media_type=None, parser_context=None):
        refuse_compressed_or_too_large(parser_context["request"], self.max_bytes(parser_context["view"]))
        try:
            return super().parse(stream, media_type, parser_context)
        except RequestDataTooBig:
            megabytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
            raise ParseError(f"The fields beside the file have more than {megabytes} MB. Shorten them.") from None
        except TooManyFieldsSent:
            raise ParseError("The form has too many fields. Send only the fields of this resource.") from None
        except (ParseError, UnicodeError):
            raise ParseError("The form is damaged or is not UTF-8. Send multipart/form-data as UTF-8.") from None


def require_json_object(request) -> dict:
    if not isinstance(request.data, dict):
        raise ParseError("The body is not one JSON object. Send one object with the fields of this resource.")
    return request.data


def read_upload(request, rows_field: str, row_unit: str, max_bytes: int) -> tuple[dict[str, Any], str, bytes]:
    """Return the other fields of a request, and its file. Rows of a JSON body become the lines of a file."""
    if not isinstance(request.data, QueryDict):
        body = dict(require_json_object(request))
        rows = body.pop(rows_field, None)
        if not isinstance(rows, list):
            raise FieldError(rows_field, f"There are no {rows_field}. Send a list with one object per {row_unit}.")
        return body, f"{rows_field}.jsonl", json_lines(rows)
    file = request.FILES.get("file")
    if file is None:
        raise FieldError("file", f"The form has no file. Send the {rows_field} as a file named “file”.")
    return read_settings(request), file.name, file.read(max_bytes + 1)


def json_lines(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def read_settings(request) -> dict[str, Any]:
    """Return the other fields of a form with a file: one JSON object in its field ``settings``."""
    try:
        settings: Any = texts.loads(str(request.data.get("settings", "{}")))
    except texts.BadJson:
        settings = None
    if not isinstance(settings, dict):
        raise FieldError("settings", "This is not a JSON object. Send the other fields as one object.")
    return settings
