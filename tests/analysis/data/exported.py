"""Exports are read back for tests as rows."""

import csv
import io
import json

from analysis.data.exports import BLOCK_MAKERS, TABLES
from annotators.models import Response

ODD = (
    "a,b", 'a"b', "a\nb", "a\r\nb", "a\rb", '"', ",", "\n", "\r", " x ", "NULL", "\\.", "\\N", "'", "\u2028", "\ufeff", "\u202e", "e\u0301",
    "😀", "\x01\x02", "\x7f", "<script>", "${7*7}", "x" * 100_000, "٣", "\\", "\\n", "\t",
)  # fmt: skip
# The columns of the tables that are stored rows. Other tables are tested with the metrics.
STORED = {name: table.columns for name, table in TABLES.items() if table.is_streamed}
HOSTILE = ("=1+1", "+1", "-1", "@x", "\tx", "\rx")


def export(name, form, selection, **options) -> bytes:
    return b"".join(BLOCK_MAKERS[form](name, selection, **options))


def csv_rows(data: bytes) -> list[dict]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True))


def json_rows(data: bytes) -> list[dict]:
    return [json.loads(line) for line in data.decode().split("\n")[:-2]]


def add_text(study, text, slot="s9.q9") -> Response:
    """An answer in words that no form let pass."""
    first = Response.objects.filter(assignment__study=study).order_by("pk").first()
    return Response.objects.create(assignment=first.assignment, question=first.question, slot=slot, text=text)
