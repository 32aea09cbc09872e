"""Parse the form, or the ZIP alone, with which a program uploads a file of outputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from rest_framework.parsers import BaseParser

from analysis.api.parsers import StrictMultiPartParser
from analysis.api.renderers import BodyCompressed, BodyTooLarge, StrictJSONParser
from boards.services.submissions import MAX_FILE_BYTES
from studies.imports.tables.uploads import MAX_BYTES as MAX_ARCHIVE_BYTES

ZIP = "application/zip"
CHUNK_BYTES = 2**16
# A form has a few short fields beside its file.
MAX_FORM_BYTES = MAX_FILE_BYTES + 2**20
MAX_IMAGES_FORM_BYTES = MAX_ARCHIVE_BYTES + 2**20


class SubmissionFormParser(StrictMultiPartParser):
    """Parse multipart/form-data within the size limit of a submission."""

    def max_bytes(self, view):
        board = getattr(view, "board", None)
        return MAX_IMAGES_FORM_BYTES if board is not None and board.takes_images else MAX_FORM_BYTES


@dataclass(frozen=True, slots=True)
class ZipBody:
    """A request whose body is a ZIP. Its fields are in the query."""

    stream: IO[bytes]

    def chunks(self) -> Iterator[bytes]:
        """Return the body in parts, as an uploaded file does. Raise BodyTooLarge behind the size limit."""
        n = 0
        while chunk := self.stream.read(CHUNK_BYTES):
            n += len(chunk)
            if n > MAX_ARCHIVE_BYTES:
                raise BodyTooLarge
            yield chunk


class ZipBodyParser(BaseParser):
    """Parse application/zip within the size limit. Nothing is read here, because an archive is too large for the memory."""

    media_type = ZIP

    def parse(self, stream, media_type=None, parser_context: Any = None):
        meta = parser_context["request"].META
        if meta.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
            raise BodyCompressed
        if int(meta.get("CONTENT_LENGTH") or 0) > MAX_ARCHIVE_BYTES:
            raise BodyTooLarge
        return ZipBody(stream)


PARSERS = (StrictJSONParser, SubmissionFormParser, ZipBodyParser)
