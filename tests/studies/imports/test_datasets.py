"""Parquet, and folders of datasets: what they hold, and what is refused."""

import json
import sys
from contextlib import ExitStack
from dataclasses import replace

import pytest

from studies.imports.tables.columns import Options
from studies.imports.tables.run import import_stimuli_file, open_file
from studies.models import Study
from studies.stimuli.rows import TableLimits, read_rows, text_of_table
from tests.studies.imports import datasets
from tests.studies.imports.files import zipped

pytestmark = pytest.mark.django_db
OPTIONS = Options(creates_systems=True, proposes_columns=True)


def imported(tmp_path, name: str, data: bytes, options=OPTIONS):
    path = tmp_path / name
    path.write_bytes(data)
    study = Study.objects.create(title="tool")
    return study, import_stimuli_file(study, path, by=None, options=options)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.parquet", datasets.parquet()[:-9], "is damaged or cut off"),
        ("t.parquet", datasets.parquet([{"question": "Q?", "picture": b"\x89PNG"}]), "has bytes, such as an image"),
        ("set.zip", zipped({"README.md": datasets.CARD}), "has no table"),
        ("set.zip", zipped({"README.md": datasets.CARD, "data-00000-of-00001.arrow": b"x"}), "saved with save_to_disk"),
        (
            "set.zip",
            zipped(
                {
                    "README.md": datasets.CARD,
                    "data/train-00000-of-00001.parquet": b"",
                    "data/test-00000-of-00001.parquet": b"",
                }
            ),
            "several splits: “test”, “train”",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_name(tmp_path, name, data, message):
    study, report = imported(tmp_path, name, data)
    assert message in " | ".join(map(str, report.problems)) and not study.prompts.exists(), list(report.problems)


def test_parquet_is_a_small_table_too():
    text = text_of_table("t.parquet", datasets.parquet(), 10**6)
    assert [json.loads(line)["model"] for line in text.splitlines()] == ["ada", "bo"] * 3


def test_a_packed_table_needs_no_card(tmp_path):
    study, report = imported(tmp_path, "t.zip", zipped({"table.parquet": datasets.parquet()}))
    assert report.is_written and study.systems.count() == 2


def test_a_person_chooses_one_of_several_splits(tmp_path):
    files = {
        f"data/{split}-00000-of-00001.parquet": datasets.parquet(datasets.TABLE[:n])
        for split, n in (("train", 2), ("test", 4))
    }
    path = tmp_path / "set.zip"
    path.write_bytes(zipped({"README.md": datasets.CARD, **files}))
    study = Study.objects.create(title="tool")
    options = Options(creates_systems=True, proposes_columns=True)
    report = import_stimuli_file(study, path, by=None, options=options)
    assert report.problems.sheets == ("test", "train") and not study.prompts.exists()
    report = import_stimuli_file(study, path, by=None, options=replace(options, sheet="train"))
    assert report.is_written and study.prompts.count() == 1
    assert any("with the split “train”" in finding.text for finding in report.findings)


def test_parquet_needs_a_package(tmp_path, monkeypatch):
    data = datasets.parquet()
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    study, report = imported(tmp_path, "t.parquet", data)
    assert "needs the package pyarrow" in str(report.problems.first[0]) and not study.prompts.exists()


def test_parquet_has_the_values_of_json(tmp_path):
    from datetime import UTC, datetime
    from decimal import Decimal

    row = {
        "prompt_key": "p1",
        "prompt_text": "Q?",
        "outputs": {"ada": "A."},
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "n": Decimal("1.50"),
        "gap": None,
    }
    with ExitStack() as stack:
        path = tmp_path / "t.parquet"
        path.write_bytes(datasets.parquet([row | {"gap": float("nan")}]))
        (read,) = open_file(path, path.name, "", stack)[1]
    assert read.values == row | {"at": "2026-01-02T00:00:00+00:00", "n": "1.50"}


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
def test_parquet_that_grows_is_refused(compression):
    data = datasets.parquet(
        [{"question": "a" * 900_000} for _ in range(20)], compression=compression, use_dictionary=compression != "none"
    )
    rows = read_rows("t.parquet", data, limits=TableLimits(bytes=5_000_000))
    assert len(list(rows)) <= 5 and "has more than 5,000,000 bytes" in str(rows.problems.first[0])
