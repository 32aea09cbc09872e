"""Read the text of an uploaded file: as a stream, decoded strictly. Each error names its line."""

import codecs
import re
from collections.abc import Iterator
from typing import Protocol

_CHUNK = 256 * 1024
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)")
_SIGNATURES = (
    (b"\x1f\x8b", "is compressed twice: unpack it first"),
    (b"PK\x03\x04", "is a zip archive or a workbook inside of another archive: unpack it first"),
    (b"PK\x05\x06", "is an empty zip archive"),
    (b"\xd0\xcf\x11\xe0", "is an old workbook inside of an archive: unpack it first"),
    (b"SQLite format 3", "is a database"),
    (b"%PDF", "is a PDF"),
)
# Some programs give such files the name of a workbook.
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|table|\?xml)\b", re.IGNORECASE)


class UnreadableFile(Exception):
    """The rest of a file cannot be read. `row` is None if records are not counted."""

    def __init__(self, row: int | None, text: str) -> None:
        super().__init__(text)
        self.row, self.text = row, text


class SeveralSheets(UnreadableFile):
    """A workbook of which a person must choose a sheet."""

    def __init__(self, text: str, sheets: tuple[str, ...]) -> None:
        super().__init__(None, text)
        self.sheets = sheets


class RowRefused(Exception):
    """A row cannot be read. The message says why, and what to do."""

    def __init__(self, column: str | None, text: str) -> None:
        super().__init__(text)
        self.column, self.text = column, text


class BinaryReader(Protocol):
    """The part of a binary stream that is used here."""

    def read(self, size: int, /) -> bytes: ...


class LineReader:
    """The lines of a file with their original line ends. Only \\n, \\r\\n and \\r end a line.

    `str.splitlines` would also break at U+2028, U+0085 and form feeds, which are characters of a text. A reader of
    records with several lines sets `record_characters` to 0 at the start of each record. It limits how much text an
    unclosed quote can include.
    """

    def __init__(self, stream: BinaryReader, max_bytes: int, max_record_characters: int) -> None:
        self.number = 0
        self.record_characters = 0
        self.has_nul = False
        self._max_bytes = max_bytes
        self.max_characters = max_record_characters
        self._stream = stream
        self._n_bytes = 0
        self._start = stream.read(_CHUNK)
        self.beginning = self._start.decode("utf-8-sig", "replace")
        self._decoder, self._encoding = _decoder(self._start)
        self._lines = self._split(self._start)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        self.record_characters += len(line)
        if self.record_characters > self.max_characters:
            raise UnreadableFile(
                None,
                f"a row has more than {self.max_characters:,} characters in line {self.number}; "
                "check for a quote that is never closed.",
            )
        return line

    def chunks(self) -> Iterator[str]:
        """Return the text in pieces, for a reader that does not need lines. Use either this or the lines."""
        chunk = self._start
        while True:
            self._count(chunk)
            text, refused = self._decoded(chunk)
            self.number += text.count("\n")
            if text:
                yield text
            if refused:
                raise UnreadableFile(None, f"line {self.number + 1}: {refused}")
            if not chunk:
                return
            chunk = self._stream.read(_CHUNK)

    def _split(self, chunk: bytes) -> Iterator[str]:
        pending: list[str] = []
        n_pending = 0
        while True:
            self._count(chunk)
            text, refused = self._decoded(chunk)
            self.has_nul = self.has_nul or "\0" in text
            if pending and pending[-1].endswith("\r"):
                text, pending, n_pending = "".join(pending) + text, [], 0
            # A \r at the end of a chunk may be the first half of \r\n: wait for the next chunk.
            is_open = bool(chunk) and not refused and text.endswith("\r")
            stop = len(text) - 1 if is_open else len(text)
            end = max(text.rfind("\n", 0, stop), text.rfind("\r", 0, stop)) + 1
            for match in _LINE.finditer(text, 0, end):
                yield "".join(pending) + match.group()
                pending, n_pending = [], 0
            if end < len(text):
                pending.append(text[end:])
                n_pending += len(text) - end
            if refused:
                raise UnreadableFile(None, f"line {self.number + 1}: {refused}")
            if n_pending > self.max_characters:
                raise UnreadableFile(None, f"line {self.number + 1} has more than {self.max_characters:,} characters.")
            if not chunk:
                break
            chunk = self._stream.read(_CHUNK)
        if pending:
            yield "".join(pending)

    def _count(self, chunk: bytes) -> None:
        self._n_bytes += len(chunk)
        if self._n_bytes > self._max_bytes:
            raise UnreadableFile(None, f"the file has more than {self._max_bytes:,} bytes. Split it.")

    def _decoded(self, chunk: bytes) -> tuple[str, str]:
        try:
            return self._decoder.decode(chunk, final=not chunk), ""
        except UnicodeDecodeError as error:
            # Return the text before the bad byte, so that its line can be counted.
            before = error.object[: error.start].decode(error.encoding, "ignore")
            bad = f"byte 0x{error.object[error.start]:02X} is not {self._encoding}"
            return before, f"{bad}{_likely_cause(error.object, error.start)}. Save the file as “CSV UTF-8”."


def _decoder(start: bytes) -> tuple[codecs.IncrementalDecoder, str]:
    if not start:
        raise UnreadableFile(None, "The file is empty.")
    if _MARKUP.match(start):
        raise UnreadableFile(
            None, "The file is a web page or XML, not a table. Open it in a spreadsheet, and save it as CSV or XLSX."
        )
    for signature, meaning in _SIGNATURES:
        if start.startswith(signature):
            raise UnreadableFile(None, f"The file {meaning}.")
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise UnreadableFile(None, "The file is UTF-32. Save it as “CSV UTF-8”.")
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return codecs.getincrementaldecoder("utf-16")("strict"), "UTF-16"
    sample = start[:4096]
    if sample.count(0) * 4 > len(sample):
        raise UnreadableFile(
            None, "The file looks like UTF-16 without a byte order mark, or is not a text. Save it as “CSV UTF-8”."
        )
    return codecs.getincrementaldecoder("utf-8-sig")("strict"), "UTF-8"


def _likely_cause(data: bytes, at: int) -> str:
    following = data[at + 1] if at + 1 < len(data) else 0
    if data[at] == 0xED and following >= 0xA0:
        return ", it begins half of a surrogate pair (CESU-8)"
    if data[at] in (0xC0, 0xC1) or (data[at] == 0xE0 and 0x80 <= following < 0xA0):
        return ", it begins an overlong character"
    return ", the file may be Windows-1252, Latin-1 or Shift-JIS"
