"""Parse the form with which a program uploads a file."""

from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from rest_framework.exceptions import ParseError
from rest_framework.parsers import MultiPartParser

from .renderers import BodyCompressed, BodyTooLarge


class StrictMultiPartParser(MultiPartParser):
    """Parse multipart/form-data within a size limit."""

    def max_bytes(self, view: Any) -> int:
        """Return the size of the largest form that the view accepts."""
        return int(view.max_form_bytes)

    def parse(self, stream, media_type=None, parser_context=None):
        meta = parser_context["request"].META
        if meta.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
            raise BodyCompressed
        if int(meta.get("CONTENT_LENGTH") or 0) > self.max_bytes(parser_context["view"]):
            raise BodyTooLarge
        try:
            return super().parse(stream, media_type, parser_context)
        except RequestDataTooBig:
            megabytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
            raise ParseError(f"The fields beside the file have more than {megabytes} MB. Shorten them.") from None
        except TooManyFieldsSent:
            raise ParseError("The form has too many fields. Send only the fields of this resource.") from None
        except (ParseError, UnicodeError):
            raise ParseError("The form is damaged or is not UTF-8. Send multipart/form-data as UTF-8.") from None
