"""Parse the form with which a program uploads a file of outputs."""

from analysis.api.parsers import StrictMultiPartParser
from analysis.api.renderers import StrictJSONParser
from boards.services.submissions import MAX_FILE_BYTES
from studies.imports.tables.uploads import MAX_BYTES as MAX_ARCHIVE_BYTES

# A form has a few short fields beside its file.
MAX_FORM_BYTES = MAX_FILE_BYTES + 2**20
MAX_IMAGES_FORM_BYTES = MAX_ARCHIVE_BYTES + 2**20


class SubmissionFormParser(StrictMultiPartParser):
    """Parse multipart/form-data within the size limit of a submission."""

    def max_bytes(self, view):
        board = getattr(view, "board", None)
        return MAX_IMAGES_FORM_BYTES if board is not None and board.takes_images else MAX_FORM_BYTES


PARSERS = (StrictJSONParser, SubmissionFormParser)
