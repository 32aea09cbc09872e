"""Tables as programs write them: corpora without quoting, exports of spreadsheets and surveys, JSON of any layout, packed files."""

import csv
import gzip
import io
import json
import zipfile

import pytest

from studies.stimuli import rows as rows_module
from studies.stimuli.columns import Columns
from studies.stimuli.dialects import are_cells_quoted
from studies.stimuli.numbers import NumberRefused, parse_number, parse_whole_number
from studies.stimuli.rows import TableLimits, read_rows
from tests.studies.stimuli.reading import only_problem, read, sound
from tests.studies.stimuli.workbooks import workbook

AB = [{"a": "1", "b": "2"}]


def tsv(*rows: tuple[str, ...]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


# Cells that begin with a quote, each whole as it is in a corpus.
QUOTED = ['"Yes', '"Ja," sagte er.', '"Go!" "Now!"', '"', '""', '"one" and two', '"A whole sentence."']


@pytest.mark.parametrize("cell", QUOTED)
@pytest.mark.parametrize("name", ["x.tsv", "x.txt", "x.csv"])
def test_quotes_of_a_corpus_are_characters_of_the_text(name, cell):
    data = tsv(("id", "text", "more"), ("1", cell, "plain"), ("2", "second", 'a "word"'), ("3", "third", "x"))
    rows = read_rows(name, data.encode())
    assert [row.values for row in rows] == [
        {"id": "1", "text": cell, "more": "plain"},
        {"id": "2", "text": "second", "more": 'a "word"'},
        {"id": "3", "text": "third", "more": "x"},
    ]
    assert not rows.problems and rows.notes == [
        "Quotes in this tab-separated file do not enclose cells. They were read as characters of the text."
    ]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("cell", [*QUOTED, "a\tb", "two\nlines", 'both\t"of"\nthem', "plain"])
def test_quotes_of_a_spreadsheet_enclose_cells(quoting, cell):
    out = io.StringIO(newline="")
    csv.writer(out, dialect="excel-tab", quoting=quoting).writerows([["id", "text"], [1, cell], [2, "second"]])
    rows = read_rows("x.tsv", out.getvalue().encode())
    assert [row.values for row in rows] == [{"id": "1", "text": cell}, {"id": "2", "text": "second"}]
    assert not rows.problems and not rows.notes


def test_no_line_of_a_long_corpus_is_lost():
    rows = [(str(n), f'"{n} begins' if n % 3 else f"text {n}", "end") for n in range(30_000)]
    found = sound("x.tsv", tsv(("id", "text", "more"), *rows))
    assert [(row["id"], row["text"], row["more"]) for row in found] == rows


def test_a_file_that_neither_reading_fits_names_the_rows():
    _, problems = read("x.tsv", tsv(("a", "b"), ('"1', "2"), ("3",), ("4", "5")))
    assert [problem.row for problem in problems] == [3]
    assert are_cells_quoted(["a\tb\n", '"1\n', '2"\t3\n']) and not are_cells_quoted(["a\tb\n", '"1\n', "2\t3\n"])


@pytest.mark.parametrize("line", ["sep=;", "SEP=;", '"sep=;"', "\ufeffsep=;"])
def test_the_first_line_of_excel_names_the_delimiter(line):
    assert sound("x.csv", f"{line}\r\na;b\r\n1;2\r\n") == AB
    assert only_problem("x.csv", f"{line}\na;b\n1;2;3\n").row == 2


def test_row_numbers_of_pandas_are_no_column():
    for header in (",a,b", "Unnamed: 0,a,b", "Unnamed: 0,a,b,Unnamed: 3"):
        end = "," if header.count(",") == 3 else ""
        rows = read_rows("x.csv", f"{header}\n0,1,2{end}\n".encode())
        assert rows.columns == ("a", "b") and [row.values for row in rows] == AB
        assert rows.notes == ["A column without a name has only row numbers or is empty. It was left out."]


def test_the_questions_of_a_survey_export_are_no_answers():
    labels = '"{""ImportId"":""QID1""}","{""ImportId"":""QID2""}"'
    rows = read_rows("x.csv", f"Q1,Q2\nHow good?,Why?\n{labels}\n4,nice\n".encode())
    assert [(row.number, row.values) for row in rows] == [(4, {"Q1": "4", "Q2": "nice"})]
    assert rows.notes == ["Rows 2 and 3 name the questions of a survey, and were left out."]


def test_a_table_of_one_column_may_repeat_its_header():
    assert sound("x.csv", "text\ntext\n") == [{"text": "text"}]


OBJECTS = [{"a": 1, "b": 'x "]} y'}, {"a": 2, "b": "\u2028{["}, {"a": 3, "b": {"c": [1, "\\"]}}]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "wrap", [lambda rows: rows, lambda rows: {"data": rows}, lambda rows: {"n": 3, "rows": rows, "x": ["y"]}]
)
@pytest.mark.parametrize("name", ["x.json", "x.jsonl", "x.txt", "x.csv"])
def test_a_list_of_objects_is_read_in_any_layout(name, wrap, indent):
    text = json.dumps(wrap(OBJECTS), indent=indent, ensure_ascii=False)
    # In JSON lines, an object on one line is a row, whatever it has inside.
    is_row = name == "x.jsonl" and text.startswith("{") and indent is None
    assert sound(name, text) == ([wrap(OBJECTS)] if is_row else OBJECTS)


def test_objects_of_several_lines_may_follow_each_other():
    data = "\n".join(json.dumps(one, indent=1) for one in OBJECTS)
    assert sound("x.jsonl", data) == OBJECTS
    assert sound("x.json", json.dumps(OBJECTS[0], indent=1)) == OBJECTS[:1]
    assert sound("x.json", json.dumps(OBJECTS[2], indent=1)) == OBJECTS[2:]


def test_one_object_whose_keys_are_columns_is_a_row():
    """A row may hold lists of objects of its own, such as the turns of a dialogue."""
    row = {"prompt": "p", "turns": [{"role": "user"}]}
    assert sound("x.jsonl", json.dumps(row), columns=Columns(optional=["prompt"])) == [row]


@pytest.mark.parametrize("cut", [1, 2, 7, 500_000, 1_000_003])
def test_pieces_of_a_list_may_end_anywhere(cut):
    """A list is read in pieces; a string or an escape may lie across their border."""
    rows = [{"a": n, "b": 'x\\" {' * (n % 50)} for n in range(9_000)]
    data = json.dumps(rows).encode()
    assert len(data) > 600_000 and sound("x.json", b" " * (cut % 300) + data) == rows


def test_a_bad_element_of_a_list_is_refused_by_its_number():
    values, problems = read("x.json", '[{"a": 1}, {"a": 1, "a": 2}, {"a": NaN}, {"a": 4}]')
    assert values == [{"a": 1}, {"a": 4}] and [problem.row for problem in problems] == [2, 3]
    limits = TableLimits(rows=2, row_characters=200_000)
    assert only_problem("x.json", '[{"a": "' + "x" * 300_000, limits=limits).text.startswith("has more than 200,000")
    _, problems = read("x.json", '[{"a":1},{"a":1},{"a":1}]', limits=limits)
    assert "more than 2 rows" in problems.first[0].text


def packed(**files: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, text in files.items():
            file.writestr(name.replace("_", "."), text)
    return out.getvalue()


def test_packed_tables_are_read():
    assert sound("x.csv.gz", gzip.compress(b"a,b\n1,2\n")) == AB
    assert sound("x.gz", gzip.compress(b"a,b\n1,2\n")) == AB
    assert sound("x.jsonl.gz", gzip.compress(b'{"a": "1", "b": "2"}\n')) == AB
    assert sound("x.zip", packed(t_tsv="a\tb\n1\t2\n")) == AB
    assert "contains 2 files" in only_problem("x.zip", packed(t_csv="a,b\n1,2\n", u_csv="a\n1\n")).text


def test_a_packed_table_is_limited_by_its_own_size():
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000)
    assert len(bomb) < 20_000
    values, problems = read("x.csv.gz", bomb, limits=TableLimits(bytes=1_000_000))
    assert "more than 1,000,000 bytes" in problems.first[0].text and len(values) < 300_000
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("t.csv", "a,b\n" + "1,2\n" * 1_000_000)
    assert "when unpacked" in only_problem("x.zip", zipped.getvalue(), limits=TableLimits(bytes=1_000_000)).text


def test_a_workbook_is_read_as_the_spreadsheet_shows_it():
    rows = [
        ["id", "text", "score"],
        [7, "=SUM(A1)", 0.5],
        [None, None, None],
        ["007", "two\nlines", True],
        [1e18, " edge ", None],
    ]
    read_ = read_rows("x.xlsx", workbook({"Sheet 1": rows, "Empty": []}))
    assert [(row.number, tuple(row.values.values())) for row in read_] == [
        (2, ("7", "=SUM(A1)", "0.5")),
        (4, ("007", "two\nlines", "true")),
        (5, ("1e+18", " edge ", "")),
    ]
    assert not read_.problems


def test_a_workbook_with_several_sheets_or_none_says_so():
    two = workbook({"May": [["a"], ["1"]], "June": [["a"], ["2"]]})
    assert "several sheets with content: “May”, “June”" in only_problem("x.xlsx", two).text
    assert "has no sheet with content" in only_problem("x.xlsx", workbook({"Empty": []})).text
    wide = workbook({"s": [["a", "b"], ["1", "2", "3"]]})
    assert only_problem("x.xlsx", wide).text.startswith("has 3 cells, the header has 2")
    assert "is cut off" in only_problem("x.xlsx", two[:-30]).text


@pytest.mark.parametrize(
    "text", ["4_0", "５", "١", "0,5", "1 000", "1.2.3", "nan", "inf", "0x1f", "", "one", "--1", "1e9999", "1e999"]
)
def test_what_only_a_program_reads_is_no_number(text):
    with pytest.raises(NumberRefused, match="is not a number"):
        parse_number(text)
    with pytest.raises(NumberRefused, match="whole number from 0 to 9"):
        parse_whole_number(text, 0, 9)


def test_numbers_are_read_as_programs_write_them():
    assert [parse_number(text) for text in ("1", "1.0", "-.5", "+2", "1e3", " 7 ", 3, 0.25)] == [
        1,
        1,
        -0.5,
        2,
        1000,
        7,
        3,
        0.25,
    ]
    assert [parse_whole_number(value, 0, 9) for value in ("3", "3.0", 4, 5.0)] == [3, 3, 4, 5]
    for value in (True, "2.5", "10", -1):
        with pytest.raises(NumberRefused, match="whole number"):
            parse_whole_number(value, 0, 9)


@pytest.mark.parametrize("mark", ["|", ", ", "; "])
def test_cells_are_separated_in_uncommon_ways(mark):
    rows = [["question", "ada", "bo"], ["Why?", '"Because, it is; so | so."', "No."]]
    text = "\n".join(mark.join(row) for row in rows)
    assert sound("x.csv", text) == [{"question": "Why?", "ada": "Because, it is; so | so.", "bo": "No."}]


def test_a_blank_is_kept_unless_the_header_has_it_too():
    assert sound("x.csv", "a,b\n1, two\n") == [{"a": "1", "b": " two"}]
    assert sound("x.csv", "a, b\n1, two\n") == [{"a": "1", "b": "two"}]


def test_quotes_with_a_backslash_are_read_if_nothing_else_fits():
    assert sound("x.csv", 'a,b\n"He said \\"hi\\", twice",2\n"x",3\n') == [
        {"a": 'He said "hi", twice', "b": "2"},
        {"a": "x", "b": "3"},
    ]
    # A backslash at the end of a quoted cell is a character.
    assert sound("x.csv", 'a,b\n"C:\\",2\n"x",3\n')[0]["a"] == "C:\\"
    assert "a quote in a cell" in only_problem("x.csv", 'a,b\n"He said "hi"",2\n').text


TABLE = [{"a": "x", "b": 1}, {"a": "y", "b": 2}]


@pytest.mark.parametrize(
    "value",
    [
        {"a": ["x", "y"], "b": [1, 2]},
        {"a": {"0": "x", "1": "y"}, "b": {"0": 1, "1": 2}},
        {"columns": ["a", "b"], "index": [0, 1], "data": [["x", 1], ["y", 2]]},
    ],
)
@pytest.mark.parametrize("known", [[], ["a", "b"]])
def test_an_object_of_columns_is_a_table(value, known):
    assert sound("x.json", json.dumps(value), columns=Columns(optional=known)) == TABLE


def test_an_object_of_objects_has_a_row_for_each_key():
    value = {"p1": {"a": "x"}, "p2": {"a": "y"}}
    assert sound("x.json", json.dumps(value, indent=1)) == [{"id": "p1", "a": "x"}, {"id": "p2", "a": "y"}]
    assert sound("x.json", json.dumps(value), columns=Columns(optional=["p1"])) == [value], "a row of two objects"
    assert sound("x.json", '{"a": ["x"], "b": ["y", "z"]}') == [{"a": ["x"], "b": ["y", "z"]}], (
        "columns have one length"
    )


def test_a_comma_after_each_object_of_json_lines_means_nothing():
    assert sound("x.jsonl", '{"a": 1},\n{"a": 2} ,\n'.replace(" ,", ",")) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("text", ["<html><table>", "<!DOCTYPE html>", "\ufeff<?xml version='1.0'?>", "\n <TABLE>"])
@pytest.mark.parametrize("name", ["x.xls", "x.csv", "x.txt"])
def test_a_web_page_with_the_name_of_a_workbook_is_named(name, text):
    assert "is a web page or XML, not a table" in only_problem(name, text).text


@pytest.mark.parametrize("name", ["a.zip", "a.xlsx", "a.csv"])
def test_a_member_without_a_name_is_a_member(name):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("a.csv", "a,b\n1,2\n")
        nameless = zipfile.ZipInfo("x")
        nameless.filename = ""
        file.writestr(nameless, "text")
    assert "contains 2 files" in only_problem(name, out.getvalue()).text


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1}]' + " " * 3_000_000,
        '[{"a": 1}, ' + " " * 3_000_000 + '{"a": 1}]',
        '[{"a": "' + "word " * 600_000 + '"}]',
        '[{"a": ' + " " * 3_000_000 + "1}]",
        '[{"a": "' + "word " * 600_000,
    ],
)
def test_a_long_value_is_searched_a_few_times_and_not_once_for_each_piece_of_the_file(text, monkeypatch):
    class Counted:
        searched = 0

        def search(self, buffer, position):
            found = token.search(buffer, position)
            self.searched += (found.end() if found else len(buffer)) - position
            return found

    token, counted = rows_module._TOKEN, Counted()
    monkeypatch.setattr(rows_module, "_TOKEN", counted)
    pieces = (text[n : n + 60_000] for n in range(0, len(text), 60_000))
    try:
        found = list(rows_module.json_elements(pieces, 8_000_000, is_list=True))
    except rows_module.UnreadableFile as refused:
        assert text.endswith("word ") and "the file ends inside of this row" in str(refused)
    else:
        assert [json.loads(one).keys() for one in found] == [{"a"}] * text.count("{")
    assert counted.searched < 5 * len(text)
