"""Rows are the same wherever the stream is torn, and no bytes make the reader raise."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.stimuli.rows import read_rows


class Drip(io.RawIOBase):
    """A stream that gives a few bytes at a time, as a socket does."""

    def __init__(self, data, step):
        self.data, self.step = data, step

    def read(self, size=-1):
        piece, self.data = self.data[: self.step], self.data[self.step :]
        return piece


@pytest.mark.parametrize("step", [1, 2, 3, 7])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lines_and_characters_may_be_torn_anywhere(step, encoding):
    data = 'a,b\r\n\u6587,"x\r\ny"\r\n\U0001f600,\u00e9\r'.encode(encoding)
    if step < 3 and encoding != "utf-8":
        step = 4  # a byte order mark comes whole from every stream in use
    rows = read_rows("x.csv", Drip(data, step))
    expected = [{"a": "\u6587", "b": "x\r\ny"}, {"a": "\U0001f600", "b": "\u00e9"}]
    assert [(row.number, dict(row.values)) for row in rows] == list(enumerate(expected, 2))
    assert list(rows.problems) == []


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_every_line_end_may_be_torn(step, end):
    rows = read_rows("x.csv", Drip(end.join(["a,b", "1,2", "3,4", "5,6"]).encode(), step))
    assert [(row.number, row.values["a"]) for row in rows] == [(2, "1"), (3, "3"), (4, "5")]


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.integers(4, 40),
)
def test_what_csv_writes_is_what_is_read(table, encoding, step):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *table])
    rows = read_rows("x.csv", Drip(stream.getvalue().encode(encoding), step))
    kept = [row for row in table if any(cell.strip() for cell in row)]
    assert [tuple(row.values.values()) for row in rows] == kept


@given(st.binary(max_size=200), st.sampled_from(["x.csv", "x.jsonl", "x.tsv"]))
def test_no_bytes_raise(data, name):
    rows = read_rows(name, data)
    assert len(list(rows)) >= 0
    assert isinstance(rows.problems.count, int)


@given(st.text(alphabet='ab,;\t"\r\n\0\ufeff{}[]:1\\u', max_size=60), st.sampled_from(["x.csv", "x.jsonl"]))
def test_no_text_raises(text, name):
    list(read_rows(name, text.encode()))
