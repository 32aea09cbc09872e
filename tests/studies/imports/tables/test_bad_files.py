"""A bad file ends in a report that names row and column, and nothing is written."""

import json

import pytest

from tests.studies.imports.files import (
    BAD_FILES,
    GOOD,
    HEAD,
    long,
    rows_of,
    sound,
    table,
    texts,
)


@pytest.mark.parametrize(
    ("data", "name", "row", "said"), [case[1:] for case in BAD_FILES], ids=[case[0] for case in BAD_FILES]
)
def test_a_bad_file_ends_in_a_report_and_writes_nothing(study, put, data, name, row, said):
    before = rows_of(study)
    report = put(data, name)
    assert said in " ".join(map(str, report.problems)), [str(problem) for problem in report.problems]
    assert any(problem.row == row or (row and f"line {row}" in problem.text) for problem in report.problems), list(
        report.problems
    )
    assert rows_of(study) == before
    json.dumps(report.as_json(), ensure_ascii=False).encode()  # a page can show it


@pytest.mark.parametrize(
    "data",
    [
        GOOD.encode("utf-8-sig"),
        GOOD.encode("utf-16"),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace(",", ";").encode(),
        GOOD.replace(",", "\t").encode(),
        GOOD[:-1].encode(),
        GOOD.replace("prompt_key", " Prompt_KEY ").encode(),
        (GOOD + "\n\n").encode(),
        GOOD.replace("One.", '"One."').encode(),
    ],
)
def test_a_table_is_taken_however_it_was_saved(study, put, data):
    sound(put(data))
    assert texts(study) == {("ada", "p1", 0): "One."}


def test_every_problem_is_counted_and_the_first_hundred_kept(study, put):
    report = put(table([long(f"p{n}", "ada", "") for n in range(250)]))
    assert (report.problems.count, len(report.problems), report.more_problems) == (250, 100, 150)


def test_ids_keep_their_digits(study, put):
    sound(put(b'{"prompt_key": 12345678901234567890, "prompt_text": "P", "outputs": {"ada": "x"}}\n', "t.jsonl"))
    sound(put((HEAD + "007,P,ada,y\n").encode()))
    assert set(study.prompts.values_list("key", flat=True)) == {"12345678901234567890", "007"}
