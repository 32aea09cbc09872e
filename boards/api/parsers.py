"""Parse the form with which a program uploads a file of outputs."""

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from rest_framework.exceptions import ParseError
from rest_framework.parsers import MultiPartParser

from analysis.api.renderers import BodyCompressed, BodyTooLarge, StrictJSONParser
from boards.services.submissions import MAX_FILE_BYTES
from studies.imports.tables.uploads import MAX_BYTES as MAX_ARCHIVE_BYTES

# A form has a few short fields beside its file.
MAX_FORM_BYTES = MAX_FILE_BYTES + 2**20
MAX_IMAGES_FORM_BYTES = MAX_ARCHIVE_BYTES + 2**20


class StrictMultiPartParser(MultiPartParser):
    """Parse multipart/form-data within the size limit of a submission."""

    def parse(self, stream, media_type=None, parser_context=None):
        meta = parser_context["request"].META
        if meta.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
            raise BodyCompressed
        board = getattr(parser_context["view"], "board", None)
        limit = MAX_IMAGES_FORM_BYTES if board is not None and board.takes_images else MAX_FORM_BYTES
        if int(meta.get("CONTENT_LENGTH") or 0) > limit:
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


PARSERS = (StrictJSONParser, StrictMultiPartParser)
