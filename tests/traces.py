"""Where a text can be found again: in every table of the database, in every file that is kept, and in every usual spelling of it."""

import base64
import hashlib
import html
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

from django.apps import apps
from django.db import connection


def spellings(needle: str) -> dict[str, bytes]:
    """How a text may be written, by the name of the encoding."""
    raw = needle.encode()
    texts = {
        "as it is": needle,
        "percent": quote(needle, safe=""),
        "percent, in small letters": re.sub("%..", lambda found: found[0].lower(), quote(needle, safe="")),
        "percent, for a form": quote_plus(needle),
        "percent, slashes kept": quote(needle),
        "percent, twice": quote(quote(needle, safe=""), safe=""),
        "JSON": json.dumps(needle)[1:-1],
        "JSON, as it is": json.dumps(needle, ensure_ascii=False)[1:-1],
        "JSON, of everything": "".join(f"\\u{ord(c):04x}" for c in needle),
        "JSON in JSON": json.dumps(json.dumps(needle))[3:-3],
        "HTML": html.escape(needle),
        "HTML, decimal": "".join(f"&#{ord(c)};" for c in needle),
        "HTML, hex": "".join(f"&#x{ord(c):x};" for c in needle),
        "Python": repr(needle)[1:-1],
        "CSV": needle.replace('"', '""'),
        "other case": needle.swapcase(),
        "lower": needle.lower(),
        "upper": needle.upper(),
        "hex": raw.hex(),
        "hex, in capitals": raw.hex().upper(),
        "reversed": needle[::-1],
    }
    found = {name: text.encode() for name, text in texts.items()} | {"UTF-16": needle.encode("utf-16-le")}
    for shift in range(3):
        # What three bytes of a text become depends on where it begins in the whole.
        padded = base64.b64encode(b"\0" * shift + raw + b"\0" * ((-shift - len(raw)) % 3))
        core = padded[[0, 2, 3][shift] : len(padded) - (4 if (shift + len(raw)) % 3 else 0)]
        found[f"base64, from {shift}"] = core
        found[f"base64 of addresses, from {shift}"] = core.translate(bytes.maketrans(b"+/", b"-_"))
    return {name: text for name, text in found.items() if len(text) >= 5}


def is_contained_in(text: bytes, blob: bytes) -> bool:
    """A run of digits counts only by itself: longer numbers hold it by chance."""
    if text not in blob:
        return False
    return not text.isdigit() or bool(re.search(rb"(?<![0-9A-Za-z])" + text + rb"(?![0-9A-Za-z])", blob))


class Hunt:
    """Looks for some texts, each by a name, in whatever it is given."""

    def __init__(self, needles: dict[str, str]):
        self.texts: dict[bytes, str] = {}
        for what, needle in needles.items():
            for how, text in spellings(needle).items():
                self.texts.setdefault(text, f"{what} ({how})")
        self._clean: set[bytes] = set()

    def within(self, blob: bytes) -> list[str]:
        digest = hashlib.sha256(blob).digest()
        if digest in self._clean:
            return []
        found = [what for text, what in self.texts.items() if is_contained_in(text, blob)]
        if not found:
            self._clean.add(digest)
        return found

    def database(self) -> dict[str, list[str]]:
        """What was found, by "table.column"."""
        found = {place: self.within(blob) for place, blob in columns()}
        return {place: what for place, what in found.items() if what}

    def files(self, folders: Iterable[Path]) -> dict[str, list[str]]:
        paths = [(folder, path) for folder in folders for path in sorted(folder.rglob("*"))]
        found = {}
        for folder, path in paths:
            name = str(path.relative_to(folder)).encode()
            found[str(path)] = self.within(name + b"\n" + (opened(path.read_bytes()) if path.is_file() else b""))
        return {path: what for path, what in found.items() if what}


def columns() -> Iterator[tuple[str, bytes]]:
    """Every column of every table that the database has, with all that is in it."""
    with connection.cursor() as cursor:
        tables = sorted(connection.introspection.table_names(cursor))
        missing = {model._meta.db_table for model in apps.get_models() if model._meta.managed} - set(tables)
        assert not missing, missing
        for table in tables:
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            names = [column[0] for column in cursor.description]
            cells: list[list[bytes]] = [[] for _ in names]
            for row in cursor:
                for kept, cell in zip(cells, row, strict=True):
                    if cell is not None:
                        kept.append(as_bytes(cell))
            for name, kept in zip(names, cells, strict=True):
                yield f"{table}.{name}", b"\n".join(kept)


def as_bytes(cell) -> bytes:
    if isinstance(cell, bytes | bytearray | memoryview):
        return opened(bytes(cell))
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False).encode()
    return str(cell).encode()


def opened(blob: bytes) -> bytes:
    """With what is packed in it: a compressed value, the members of an archive."""
    parts = [blob]
    if zipfile.is_zipfile(io.BytesIO(blob)):
        with zipfile.ZipFile(io.BytesIO(blob)) as packed:
            for member in packed.namelist():
                parts += [member.encode(), opened(packed.read(member))]
    for window in (15, 31):
        try:
            parts.append(zlib.decompressobj(window).decompress(blob))
        except zlib.error:
            continue
    return b"\n".join(parts)
