"""A folder of a Hugging Face dataset, packed as a zip: tables of one split, in one or more parts. https://huggingface.co/docs/datasets"""

import re
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import PurePosixPath
from typing import BinaryIO

from studies.stimuli.columns import Columns
from studies.stimuli.containers import DAMAGE, LEFT_BY_SYSTEMS, Stream
from studies.stimuli.lines import SeveralSheets, UnreadableFile
from studies.stimuli.rows import Row, Rows, TableLimits, TableProblems, read_rows

CARDS = ("README.md", "dataset_info.json", "dataset_infos.json", "dataset_dict.json")
NOT_TABLES = (*CARDS, "state.json")
TABLES = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv")
# An archive with images is one of heval's own form, even if it has a README.
IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".gif")
_PART = re.compile(r"[-_.]?[0-9]+-of-[0-9]+$|[-_][0-9]{4,}$")


def rows_of_archive(
    file: BinaryIO, chosen: str, stack: ExitStack, columns: Columns, limits: TableLimits, problems: TableProblems
) -> Rows | None:
    """Return the rows of the chosen split, or of the only one; None if the archive is no folder of a dataset.

    Raise SeveralSheets if one must be chosen.
    """
    try:
        archive = zipfile.ZipFile(file)
    except DAMAGE:
        file.seek(0)
        return None  # the reader of archives says what is wrong
    names = [name for name in archive.namelist() if not name.endswith("/") and not LEFT_BY_SYSTEMS.search(name)]
    has_card = any(PurePosixPath(name).name in CARDS for name in names)
    if not has_card or any(name.lower().endswith(IMAGES) for name in names):
        file.seek(0)
        return None
    stack.enter_context(archive)
    tables = [name for name in names if name.lower().endswith(TABLES) and PurePosixPath(name).name not in NOT_TABLES]
    if not tables:
        hint = (
            " It was saved with save_to_disk; save it with to_parquet or to_json."
            if any(name.endswith(".arrow") for name in names)
            else ""
        )
        raise UnreadableFile(None, f"The folder of the dataset has no table ({', '.join(TABLES)}).{hint}")
    splits: dict[str, list[str]] = {}
    for name in sorted(tables):
        splits.setdefault(_split(name), []).append(name)
    if len(splits) > 1 and chosen not in splits:
        found = ", ".join(f"“{split}”" for split in list(splits)[:8])
        raise SeveralSheets(f"The dataset has several splits: {found}. Choose the one to import.", tuple(splits))
    split = chosen if chosen in splits else next(iter(splits))
    parts = splits[split]
    if sum(archive.getinfo(name).file_size for name in parts) > limits.bytes:
        raise UnreadableFile(
            None, f"The dataset has more than {limits.bytes:,} bytes when unpacked. Send a part of it."
        )
    notes = [f"The file was read as the folder of a dataset, with the split “{split}”."]
    first, *others = (_part_rows(archive, name, columns, limits, problems) for name in parts)
    return Rows(first.columns, _numbered(first, others), problems, first.is_json, [*notes, *first.notes])


def _split(name: str) -> str:
    """Return the name of a table's split, with the folders above it: data/train-00000-of-00002.parquet is train."""
    path = PurePosixPath(name)
    folders = [folder for folder in path.parts[:-1] if folder != "data"]
    # The first folder is the packed one, if all files are in it.
    return "/".join([*folders, _PART.sub("", path.stem)])


def _part_rows(
    archive: zipfile.ZipFile, name: str, columns: Columns, limits: TableLimits, problems: TableProblems
) -> Rows:
    try:
        stream = Stream(b"", archive.open(name), name)
    except DAMAGE as error:
        raise UnreadableFile(None, f"“{name}” is damaged in the archive. Pack the folder again.") from error
    return read_rows(name, stream, columns=columns, limits=limits, problems=problems)


def _numbered(first: Rows, others: list[Rows]) -> Iterator[Row]:
    """Yield the rows of all parts with the numbers that they would have in one file."""
    last = 0
    for part in (first, *others):
        before = last
        for row in part:
            last = before + row.number
            yield Row(last, row.values)
