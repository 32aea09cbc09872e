"""Rows are read however a table was saved, and what is no table is refused with its row."""

import csv
import gzip
import io
import json

import pytest

from studies.stimuli.columns import Columns
from studies.stimuli.rows import MAX_LISTED_PROBLEMS, TableLimits, TableProblem, TableProblems, read_rows
from tests.studies.stimuli.reading import only_problem, read, sound

AB = [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n1,2\n",
        b"a,b\n1,2",
        b"a,b\r\n1,2\r\n",
        b"a,b\r1,2\r",
        b"a,b\r\n1,2\n",
        b"\xef\xbb\xbfa,b\n1,2\n",
        "a,b\n1,2\n".encode("utf-16"),
        b"\xff\xfe" + "a,b\n1,2\n".encode("utf-16-le"),
        b"\xfe\xff" + "a,b\n1,2\n".encode("utf-16-be"),
        b"a;b\n1;2\n",
        b"a\tb\n1\t2\n",
        b'"a","b"\n"1","2"\n',
        b" a , b \n1,2\n",
        b"\n\na,b\n\n1,2\n\n",
        b"a,b\n1,2\n,\n  ,\n",
    ],
)
def test_a_table_is_read_however_it_was_saved(data):
    assert sound("x.csv", data) == AB


@pytest.mark.parametrize(
    "cell",
    [
        *(
            "NA",
            "None",
            "null",
            "nan",
            "",
            " ",
            "0",
            "False",
            "true",
            "007",
            "-0",
            "1e5",
            "3.0",
            "12345678901234567890",
        ),
        *("=SUM(A1)", "+1", "-1", "@x", "\ttab", "'quoted", "a,b", "a;b", 'say ""x""', "line\nbreak", "line\r\nbreak"),
        *(
            "\u2028",
            "\u2029",
            "\u0085",
            "\x0c",
            "\x1c",
            "\u200b",
            "\u0301\u0302",
            "\u202eabc",
            "\u05e9\u05dc\u05d5\u05dd",
        ),
        *(
            "\U0001f469\u200d\U0001f469\u200d\U0001f467",
            "Z\u0351\u0352\u0353",
            "<b onclick=x>",
            "**bold**",
            "$\\frac{1}{2}$",
        ),
        *(
            "{{ x }}{% y %}",
            "\u201csmart\u201d",
            "\u6587\u5b57",
            " edge blanks ",
            "../x",
            "CON",
            "\\u0000",
            "x" * 100_000,
        ),
    ],
)
def test_every_cell_stays_the_text_it_is(cell):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
    writer.writerows([["id", "text"], ["7", cell]])
    assert sound("x.csv", stream.getvalue()) == [{"id": "7", "text": cell}]
    assert sound("x.csv", stream.getvalue().encode("utf-16")) == [{"id": "7", "text": cell}]
    line = json.dumps({"id": "7", "text": cell}, ensure_ascii=False)
    assert sound("x.jsonl", line) == [{"id": "7", "text": cell}]


@pytest.mark.parametrize(
    ("name", "data", "row", "text"),
    [
        ("x.csv", b"", None, "The file is empty"),
        ("x.csv", b"\xef\xbb\xbf", None, "only blank lines"),
        ("x.csv", b"\n \n\n", None, "only blank lines"),
        ("x.csv", b"a,b\n", None, "no row below the header"),
        ("x.csv", b"a,b\n1\n", 2, "has 1 cell, the header has 2"),
        (
            "x.csv",
            b"a,b\n1,2,3\n",
            2,
            "has 3 cells, the header has 2; put a text that contains the delimiter in quotes",
        ),
        ("x.csv", b"a,b\n1,2,\n", 2, "has 3 cells"),
        ("x.csv", b"a,,b\n1,2,3\n", 2, "column 2 has no name in the header, and “2” in this row. Name the column"),
        ("x.csv", b"a,b,\xe2\x80\x8b\n1,2,3\n", 2, "column 3 has no name"),
        ("x.csv", b",a,b\n0,1,2\nx,3,4\n", 3, "column 1 has no name in the header, and “x” in this row"),
        ("x.csv", b"a,Unnamed: 1\n1,\n2,3\n", 3, "column 2 has no name"),
        ("x.csv", b"a,b\n1,2\na,b\n", 3, "repeats the header. Remove this row."),
        (
            "x.csv",
            b"Results of May\na,b\n1,2\n",
            1,
            "has one cell, “Results of May”, and row 2 has 2. Remove the lines above",
        ),
        ("x.csv", b"Results,,\na,b,c\n1,2,3\n", 1, "has one cell, “Results”"),
        ("x.csv", b"a,b,a\n1,2,3\n", 1, "columns 1 and 3 have the same name"),
        ("x.csv", b"Text,b, text \n1,2,3\n", 1, "columns 1 and 3 have the same name"),
        ("x.csv", "r\u00e9,re\u0301\n1,2\n".encode(), 1, "columns 1 and 2 have the same name"),
        ("x.csv", b'a,b\n"1,2\n3,4\n', 2, "a quote is opened and never closed (the row begins in line 2)"),
        ("x.csv", b'a,"b\n1,2\n', 1, "a quote is opened and never closed"),
        ("x.csv", b'a,b\n"1"x,2\n', 2, "a quote in a cell is not doubled"),
        ("x.csv", b'a,b\n"he said "hi"",2\n', 2, "a quote in a cell is not doubled"),
        ("x.csv", b"a,b\n1,\xff\n", 2, "line 2: byte 0xFF is not UTF-8"),
        ("x.csv", b"a,b\n1,2\n3,caf\xe9\n", 3, "line 3: byte 0xE9 is not UTF-8, the file may be Windows-1252"),
        ("x.csv", "a,b\n1,\u201chi\u201d\n".encode("cp1252"), 2, "line 2: byte 0x93 is not UTF-8"),
        ("x.csv", "a,b\n1,\u65e5\u672c\n".encode("shift-jis"), 2, "line 2: byte 0x93 is not UTF-8"),
        ("x.csv", b"a,b\n1,\xc0\xaf\n", 2, "line 2: byte 0xC0 is not UTF-8, it begins an overlong character"),
        ("x.csv", b"a,b\n1,\xed\xa0\xbd\xed\xb8\x80\n", 2, "CESU-8"),
        ("x.csv", b"a,b\n1,\xe6\x96", 2, "line 2: byte 0xE6 is not UTF-8"),
        ("x.csv", b"a,b\r1,2\r3,\xe9\r", 3, "line 3: byte 0xE9"),
        ("x.csv", "a,b\n1,2\n".encode("utf-16-le"), None, "UTF-16 without a byte order mark"),
        ("x.csv", "a,b\n1,2\n".encode("utf-16-be"), None, "UTF-16 without a byte order mark"),
        ("x.csv", "a,b\n1,2\n".encode("utf-32"), None, "UTF-32"),
        ("x.csv", b"\xff\xfea\0,\0b\0\n\0\x00\xd8x\0\n\0", 2, "line 2: byte 0x00 is not UTF-16"),
        ("x.csv", gzip.compress(gzip.compress(b"a,b\n1,2\n", mtime=0), mtime=0), None, "compressed twice"),
        ("x.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], None, "is damaged, or cut off. Send it again."),
        ("x.csv", b"PK\x03\x04rest", None, "is not a zip archive or workbook, or is cut off"),
        ("x.xls", b"\xd0\xcf\x11\xe0rest", None, "is a workbook that cannot be read"),
        ("x.jsonl", b"PAR1rest", None, "Parquet"),
        ("x.docx", b"a,b\n1,2\n", None, "is not a table. Use one of these file types: .csv, .tsv, .txt, .jsonl"),
        ("x.jsonl", b"", None, "The file is empty"),
        ("x.jsonl", b"\n\n \n", None, "only blank lines"),
        ("x.json", b'[{"a": 1}, {"a": 2}', 3, "the file ends inside of this row. It may be cut off"),
        ("x.json", b'[{"a": 1}, {"a": ', 2, "the file ends inside of this row"),
        ("x.json", b'[{"a": 1}, 3, {"a": 2}]', 2, "is not an object, but “3”"),
        ("x.json", b'[{"a": 1}, "x"]', 2, 'is the text "x", not an object'),
        ("x.json", b'[{"a": 1} {"a": 2}]', 2, "a comma before this row is missing"),
        ("x.json", b'[{"a": 1},]', 2, "one too many is after row 1"),
        ("x.json", b'[{"a": 1}]\n[{"a": 2}]', None, "after its last row"),
        ("x.json", b'{"x": [{"a": 1}], "y": [{"b": 1}]}', None, "several lists of objects: “x”, “y”"),
        ("x.jsonl", b'{"a": 1}\n{"a": 2};\n', 2, "is not JSON at character 9: Extra data"),
        ("x.jsonl", b'{"a": 1}\n{"a": 2,}\n', 2, "is not JSON at character"),
        ("x.jsonl", b'{"a": 1}\n{"a": 2', 2, "is not JSON at character"),
        ("x.jsonl", b'{"a": 1}\n3\n', 2, "is not an object"),
        ("x.jsonl", b'{"a": 1}\n"x"\n', 2, "is not an object"),
        ("x.jsonl", b'{"a": 1}\nnull\n', 2, "is not an object"),
        ("x.jsonl", b'{"a": 1}\n[1]\n', 2, "is not an object"),
        ("x.jsonl", b'{"a": NaN}\n', 1, "contains NaN, which is not a number"),
        ("x.jsonl", b'{"a": -Infinity}\n', 1, "contains -Infinity"),
        ("x.jsonl", b'{"a": 1e400}\n', 1, "contains 1e400, which is too large"),
        ("x.jsonl", b'{"a": ' + b"9" * 5000 + b"}\n", 1, "an integer of 5,000 digits"),
        ("x.jsonl", b'{"a": 007}\n', 1, "is not JSON"),
        ("x.jsonl", b'{"a": 1, "a": 2}\n', 1, "has the key “a” more than once"),
        ("x.jsonl", b'{"a": {"b": 1, "b": 1}}\n', 1, "has the key “b” more than once"),
        ("x.jsonl", b'{"a": 1, " A": 2}\n', 1, "differ only in case or blanks"),
        ("x.jsonl", b'{"": 1}\n', 1, "a key without a name"),
        ("x.jsonl", b'{"a": "\\ud800"}\n', 1, "half of a surrogate pair (\\ud800)"),
        ("x.jsonl", b'{"\\udfff": "a"}\n', 1, "half of a surrogate pair"),
        ("x.jsonl", b'{"a": ["x", {"b": "\\uDC00"}]}\n', 1, "half of a surrogate pair"),
        ("x.jsonl", b'{"a": "\\u0000"}\n', 1, "contains a NUL character"),
        ("x.jsonl", b'{"a": "\0"}\n', 1, "is not JSON"),
        ("x.jsonl", b'{"a": ' + b"[" * 32 + b"]" * 32 + b"}\n", 1, "nested more than 32 levels"),
        ("x.jsonl", b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", 1, "nested more than 32 levels"),
        ("x.jsonl", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 1, "nested more than 32 levels"),
        ("x.jsonl", b"[" * 100_000, 1, "the file ends inside of this row"),
        ("x.jsonl", b'{"a": "\xff"}\n', None, "line 1: byte 0xFF is not UTF-8"),
    ],
)
def test_what_is_no_table_is_refused_with_its_row(name, data, row, text):
    problem = only_problem(name, data)
    assert text in problem.text
    assert problem.row == row


def test_a_nul_in_a_cell_is_named_with_row_and_column():
    values, problems = read("x.csv", b"a,b\n1,2\n3,x\0y\n5,6\n")
    assert values == [{"a": "1", "b": "2"}, {"a": "5", "b": "6"}]
    assert list(problems) == [TableProblem(3, "b", "contains a NUL character.")]
    assert str(problems.first[0]) == "row 3, column “b”: contains a NUL character."
    assert "the name of column 2 contains a NUL" in only_problem("x.csv", b"a,b\0\n1,2\n").text


def test_an_unclosed_quote_far_down_names_its_row():
    data = "a,b\n" + "1,2\n" * 99_997 + '3,"4\n5,6\n'
    values, problems = read("x.csv", data)
    assert len(values) == 99_997
    assert [problem.row for problem in problems] == [99_999]
    assert "a quote is opened and never closed (the row begins in line 99999)" in problems.first[0].text


def test_an_unclosed_quote_at_the_top_of_a_large_file_does_not_swallow_it():
    data = 'a,b\n"1,2\n' + "some text,more\n" * 700_000
    problem = only_problem("x.csv", data)
    assert problem.row == 2
    assert "check for a quote that is never closed" in problem.text


def test_good_rows_are_read_past_bad_ones():
    values, problems = read("x.csv", "a,b\n1,2\n3\n4,5\n6,7,8\n9,10\n")
    assert [each["a"] for each in values] == ["1", "4", "9"]
    assert [problem.row for problem in problems] == [3, 5]
    values, problems = read("x.jsonl", '{"a": 1}\nx\n\n{"a": 2}\n3\n')
    assert values == [{"a": 1}, {"a": 2}]
    assert [problem.row for problem in problems] == [2, 5]


def test_rows_are_numbered_as_a_spreadsheet_shows_them():
    rows = read_rows("x.csv", b'a,b\n"x\ny",1\n\nz,2\n')
    assert [row.number for row in rows] == [2, 4]
    assert [row.number for row in read_rows("x.jsonl", b'\n{"a": 1}\n\n{"a": 2}')] == [2, 4]


def test_the_first_hundred_problems_are_kept_and_all_are_counted():
    _, problems = read("x.csv", "a,b\n" + "1\n" * 1_000)
    assert (len(problems.first), problems.count) == (MAX_LISTED_PROBLEMS, 1_000)
    assert problems.first[-1].row == 101


def test_the_problems_of_an_importer_join_those_of_the_reader():
    problems = TableProblems()
    problems.add(2, "system", "is unknown.")
    rows = read_rows("x.csv", b"a,b\n1\n", problems=problems)
    assert list(rows) == [] and rows.problems is problems
    assert [problem.row for problem in problems] == [2, 2]
    assert problems and not TableProblems()


@pytest.mark.parametrize(
    ("data", "delimiter"),
    [
        ("a,b;c\n1,2\n", ","),
        ("a;b,c;d\n1;2;3\n", ";"),
        ('"a,x,y";b\n1;2\n', ";"),
        ('"a\n,,,";b\n1;2\n', ";"),
        ("a\tb,c\n1\t2\n", ","),
        ("one\n1\n", ","),
    ],
)
def test_the_delimiter_is_the_one_most_used_in_the_header(data, delimiter):
    header = next(csv.reader(io.StringIO(data, newline=""), delimiter=delimiter))
    assert read_rows("x.csv", data.encode()).columns == tuple(header)


def test_a_tsv_is_split_at_tabs_alone():
    assert sound("x.tsv", "a,x\tb\n1\t2\n") == [{"a,x": "1", "b": "2"}]


def test_known_names_are_recognised_in_any_case_and_others_kept():
    values = sound("x.csv", " SYSTEM ,Prompt,Genre\na,b,c\n", columns=Columns(optional=["system", "prompt"]))
    assert values == [{"system": "a", "prompt": "b", "Genre": "c"}]
    assert sound("x.jsonl", '{"System": 1, "Genre": 2}', columns=Columns(optional=["system"])) == [
        {"system": 1, "Genre": 2}
    ]


def test_a_missing_column_is_named_beside_those_found():
    problem = only_problem("x.csv", "a,b\n1,2\n", columns=Columns(["system", "text"]))
    assert problem.text == "no column system or text; the columns found are: a, b."
    values, problems = read("x.jsonl", '{"a": 1}\n{"b": 1}\n', columns=Columns(["a"]))
    assert values == [{"a": 1}]
    assert list(problems) == [TableProblem(2, "a", "is missing.")]


def test_a_file_without_header_is_noticed_by_the_missing_columns():
    assert (
        "the columns found are: gpt, p1" in only_problem("x.csv", "gpt,p1\ngpt,p2\n", columns=Columns(["system"])).text
    )


def test_json_values_keep_their_kind():
    line = '{"n": 12345678901234567890, "f": 1.5, "t": true, "z": null, "l": [1], "s": "007", "e": "\\ud83d\\ude00"}'
    expected = {"n": 12345678901234567890, "f": 1.5, "t": True, "z": None, "l": [1], "s": "007", "e": "\U0001f600"}
    assert sound("x.ndjson", line) == [expected]
    assert sound("x.jsonl", '{"a": "\\\\ud800 as text"}') == [{"a": "\\ud800 as text"}]
    assert sound("x.jsonl", '{"a": ' + "[" * 31 + "]" * 31 + "}")[0]["a"]
    assert sound("x.jsonl", '{"a": "' + "[" * 1000 + '"}')[0]["a"] == "[" * 1000


@pytest.mark.parametrize(
    ("name", "data", "limits", "text"),
    [
        ("x.csv", "a\n1\n2\n3\n", TableLimits(rows=2), "more than 2 rows"),
        ("x.jsonl", '{"a":1}\n' * 3, TableLimits(rows=2), "more than 2 rows"),
        ("x.csv", "a\n" + "1\n" * 99, TableLimits(bytes=50), "more than 50 bytes"),
        ("x.csv", "a,b,c\n1,2,3\n", TableLimits(columns=2), "the header has 3 columns. At most 2 are allowed"),
        ("x.jsonl", '{"a":1,"b":2,"c":3}', TableLimits(columns=2), "has 3 keys. At most 2 are allowed"),
        ("x.csv", "a,b\n1," + "x" * 11, TableLimits(cell_characters=10), "has 11 characters. At most 10 are allowed"),
        (
            "x.jsonl",
            '{"a": "' + "x" * 11 + '"}',
            TableLimits(cell_characters=10),
            "has 11 characters. At most 10 are allowed",
        ),
        (
            "x.jsonl",
            '{"a": "' + "x" * 600_000 + '"}',
            TableLimits(row_characters=500_000),
            "more than 500,000 characters",
        ),
        ("x.csv", "a\n" + "x" * 600_000, TableLimits(row_characters=500_000), "more than 500,000 characters"),
        ("x.csv", "a\n" + "x" * 10_000_000, None, "line 2 has more than 8,000,000 characters"),
        ("x.csv", "a\n" + "x" * 2_000_000, None, "has 2,000,000 characters. At most 1,000,000 are allowed"),
    ],
)
def test_every_limit_is_a_problem_that_names_it(name, data, limits, text):
    assert text in only_problem(name, data, limits=limits).text


def test_a_cell_beyond_the_limit_keeps_its_row_out():
    values, problems = read("x.csv", "a,b\n1,2\n3,xxxxxxxxxxx\n", limits=TableLimits(cell_characters=10))
    assert values == [{"a": "1", "b": "2"}]
    assert list(problems) == [TableProblem(3, "b", "has 11 characters. At most 10 are allowed.")]


@pytest.mark.parametrize(("name", "head", "row"), [("x.csv", "a\n", "1234567\n"), ("x.jsonl", "", '{"a": 1}\n')])
def test_the_limit_of_a_row_is_no_limit_of_the_file(name, head, row):
    assert len(sound(name, head + row * 50, limits=TableLimits(row_characters=20))) == 50


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_title_is_recognised_whatever_separates_the_cells_below(delimiter):
    rows = [["key", "text", "system"], ["p1", "One; two, three", "ada"]]
    table = "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    found = read_rows("a.csv", f"Results of May\n{table}\n".encode())
    assert not list(found) and "Remove the lines above the header" in str(found.problems.first[0])
    texts = read_rows("a.csv", b"prompt\nWhat; and when?\nWho; and why?\n")
    assert [row.values["prompt"] for row in texts] == ["What; and when?", "Who; and why?"]
