"""Codings leave with the rest: as rows of exports, of the archive and of REST, under their rules, and in the hash that a report prints."""

import io
import json
import random
import zipfile

import pytest

from analysis.coding import samples
from analysis.coding.codebook import EXPLANATIONS_CODEBOOK
from analysis.data.codings import CODING_COLUMNS, coding_rows_sha256_and_count
from analysis.data.exports import csv_blocks, jsonl_blocks_with_summary_line
from analysis.data.flat_rows import Selection
from analysis.report.archive import archive_blocks
from analysis.report.build import build_report
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.models import Study
from studies.services import lifecycle
from tests.analysis.api.rest import api_of
from tests.analysis.coding.coded import people, sample_of
from tests.builders import humanlike_draft, launched, user
from tests.players import submitted

pytestmark = pytest.mark.django_db
FIRST, SECOND = EXPLANATIONS_CODEBOOK.keys[:2]


@pytest.fixture
def study():
    """Four annotators of two conditions, coded by two; the first coder thought again about the first item, the last was not coded."""
    study = launched(
        humanlike_draft(conditions=("none", "examples"), domains=("news",), target_n=4, owner=user("olga"), m=4)
    )
    for n in range(4):
        submitted(study, f"w{n}", rng=random.Random(n), comment=f"=It rambled, number {n}")
    sample = sample_of(study, people(study, "carl", "cora"))
    items = list(sample.items.order_by("number"))
    for item in items[:3]:
        samples.store_coding(item, user("carl"), [FIRST, SECOND], False, 0)
        samples.store_coding(item, user("cora"), [], True, 0)
    samples.store_coding(items[0], user("carl"), [SECOND], False, 1)
    return study


def closed(study) -> Study:
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return Study.objects.get(pk=study.pk)


def rows_of(study, **options) -> list[dict]:
    lines = b"".join(jsonl_blocks_with_summary_line("codings", Selection(study, **options))).decode().splitlines()
    return [json.loads(line) for line in lines[:-1]]


def test_every_coding_is_a_row_and_coders_are_seats(study):
    rows = rows_of(study)
    assert [(r["item"], r["coder"], r["revision"], r["is_current"], r["labels"], r["is_none"]) for r in rows[:3]] == [
        (1, 1, 1, False, f"{FIRST};{SECOND}", False),
        (1, 1, 2, True, SECOND, False),
        (1, 2, 1, True, None, True),
    ]
    assert len(rows) == 7 and {row["condition"] for row in rows} <= {"none", "examples"}
    text = b"".join(csv_blocks("codings", Selection(study))).decode()
    assert "carl" not in text + json.dumps(rows) and "rambled" not in text and "w0" not in text
    # With the assignment and the slot a row finds the explanation among the answers.
    answers = [
        json.loads(line)
        for line in b"".join(jsonl_blocks_with_summary_line("responses", Selection(study))).decode().splitlines()[:-1]
    ]
    by_place = {(row["assignment"], row["slot"]): row for row in answers}
    assert all(by_place[row["assignment"], row["slot"]]["text"].startswith("=It rambled") for row in rows)
    assert all(by_place[row["assignment"], row["slot"]]["annotator"] == row["annotator"] for row in rows)


def test_what_was_withdrawn_leaves_with_its_codings(study):
    withdraw_annotator_and_erase_texts(study.coding_samples.get().items.order_by("number").first().assignment)
    assert len(rows_of(study)) == 4
    # Asked for, they come without the person's name.
    everything = rows_of(study, withdrawn=True)
    assert [row["annotator"] is None for row in everything] == [True] * 3 + [False] * 4
    assert rows_of(study, origins=("robot",)) == []


@pytest.mark.slow
def test_the_report_prints_a_hash_of_the_codings_and_its_numbers_do_not_hang_on_it(study):
    study = closed(study)
    before = build_report(study, {"resamples": 99})
    assert (before["data"]["codings_n"], before["data"]["codings_sha256"]) == (
        7,
        coding_rows_sha256_and_count(Selection(study, ("live",)))[0],
    )
    item = study.coding_samples.get().items.order_by("number").last()
    samples.store_coding(item, user("carl"), [FIRST], False, 0)
    after = build_report(study, {"resamples": 99})
    assert after["data"]["codings_n"] == 8 and after["data"]["codings_sha256"] != before["data"]["codings_sha256"]
    assert (after["data"]["sha256"], after["seed"]) == (before["data"]["sha256"], before["seed"])


def test_the_archive_and_the_codebook_hold_them(study):
    file = io.BytesIO(b"".join(archive_blocks(closed(study))))
    with zipfile.ZipFile(file) as archive:
        lines = archive.read("codings.csv").decode().splitlines()
        book, words = json.loads(archive.read("codebook.json")), archive.read("codebook.md").decode()
        assert "| codings.jsonl |" in archive.read("README.md").decode()
    assert lines[0].split(",") == [column.name for column in CODING_COLUMNS] and len(lines) == 8
    assert [(one["sample"], one["rule"]) for one in book["samples"]] == [(1, "union")]
    assert f"| {FIRST} |" in words and "## Coding sample 1: explanations" in words


def test_rest_gives_them_by_pages_under_the_same_rules(study):
    reader = api_of(user("olga"))
    base = f"studies/{study.code}"
    for address in (f"{base}/codings/", f"{base}/exports/codings.csv", f"{base}/exports/codings.jsonl.sha256"):
        answer = reader.get(address)
        assert answer.status_code == 403 and "still collecting" in answer.json()["detail"]
    study = closed(study)
    first = reader.get(f"{base}/codings/?page_size=4").json()
    second = reader.get(first["next"].partition("/api/v1/")[2]).json()
    got = first["results"] + second["results"]
    key = ("sample", "item", "coder", "revision")
    assert sorted(got, key=lambda row: [row[name] for name in key]) == rows_of(study) and second["next"] is None
    for query in ("sample=2", "sample=x", "sample=0", "colour=red", "sample=1&sample=1", "origin=mars", "cursor=abc"):
        assert reader.get(f"{base}/codings/?{query}").status_code == 400, query
    assert reader.get(f"{base}/exports/codings.csv")["X-Heval-Rows"] == "7"
    # Whoever codes is kept blind: also to what the other coder said.
    coder = api_of(user("carl"))
    assert {coder.get(address).status_code for address in (f"{base}/codings/", f"{base}/exports/codings.csv")} == {403}
