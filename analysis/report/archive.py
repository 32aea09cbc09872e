"""Stream the archive of a study: one zip with everything that a reader needs to recompute its results.

The same study gives the same bytes. Only the current member is in memory, and no temporary file is written. The README comes
last, because it has the hashes of all other members.
"""

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from analysis.data.blinding import check_outcomes_visible
from analysis.data.codings import codings_of
from analysis.data.export_codebook import build_export_codebook, build_export_codebook_markdown
from analysis.data.exports import TABLES, ExportDigest, ExportStream, csv_blocks, jsonl_blocks_with_summary_line
from analysis.data.flat_rows import COUNTED_ORIGINS, Selection, stimulus_text
from analysis.data.frames import ORIGINS
from analysis.models import AnalysisRun, Figure
from studies.access import Action, check_draw_is_readable, check_permission_or_404
from studies.design.serialization import (
    OUTPUT_FIELDS,
    canonical_json,
    frozen_design_mismatch_text,
    serialize_design,
    sha256_of,
)
from studies.models import Design, Output, Prompt, Study
from studies.stimuli.images import image_path

from .archive_rows import row_members
from .build import version_and_source_hash

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that zip allows; a constant date keeps the bytes the same


class _Pipe:
    """A write-only buffer between zipfile and the stream. It cannot seek, so zipfile writes sizes after each member's data."""

    def __init__(self):
        self._written: list[bytes] = []
        self._size = 0

    def write(self, data) -> int:
        self._written.append(bytes(data))
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> bytes:
        data = b"".join(self._written)
        self._written.clear()
        return data


def archive_stream(study: Study, *, by) -> ExportStream:
    """Return the archive as a stream from one snapshot of the database. Raises PermissionDenied while outcomes are hidden."""
    check_permission_or_404(by, Action.EXPORT, study)
    check_outcomes_visible(study, COUNTED_ORIGINS)
    check_draw_is_readable(by, study)
    return ExportStream(lambda: archive_blocks(study))


def archive_origins(study: Study) -> tuple[str, ...]:
    """Return the origins of the archived answers: those of people, and every other origin that an analysis used."""
    analysed = AnalysisRun.objects.filter(study=study).values_list("parameters__origins", flat=True)
    archived = {*COUNTED_ORIGINS, *(origin for origins in analysed for origin in origins or ())}
    return tuple(origin for origin in ORIGINS if origin in archived)


def archive_blocks(study: Study) -> Iterator[bytes]:
    """Yield the archive in blocks. Must be called inside a snapshot."""
    study = Study.objects.get(pk=study.pk)
    yield from zip_blocks(_members(study), lambda hashes: {"README.md": _readme(study, hashes).encode()})


def zip_blocks(
    members: Iterable[tuple[str, Iterator[bytes]]],
    last_members: Callable[[list[tuple[str, str, int]]], Mapping[str, bytes]] = lambda hashes: {},
) -> Iterator[bytes]:
    """Yield a zip in blocks. ``last_members``: files about the name, hash and size of each file before them."""
    pipe = _Pipe()
    hashes: list[tuple[str, str, int]] = []
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, blocks in members:
            tally = ExportDigest()
            with archive.open(_entry(name), "w", force_zip64=True) as member:
                for block in blocks:
                    member.write(tally.count_and_hash(block))
                    if ready := pipe.take():
                        yield ready
            hashes.append((name, tally.sha256, tally.size))
        for name, content in last_members(hashes).items():
            with archive.open(_entry(name), "w") as member:
                member.write(content)
    yield pipe.take()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    entry.create_system = 3  # the same bytes on every operating system
    return entry


def _members(study: Study) -> Iterator[tuple[str, Iterator[bytes]]]:
    counted = Selection(study, archive_origins(study))
    yield "design.json", iter([_design(study).encode()])
    for design in Design.objects.filter(study=study).order_by("version"):
        yield f"design-versions/{design.version}.json", iter([design.canonical.encode()])
    yield "codebook.json", iter([_pretty_json(build_export_codebook(study))])
    yield "codebook.md", iter([build_export_codebook_markdown(study).encode()])
    yield "stimuli/prompts.jsonl", _lines(_prompts(study))
    yield "stimuli/outputs.jsonl", _lines(_outputs(study))
    if not study.stimuli_source:
        for name in _images(study):
            yield f"stimuli/images/{name}", iter([image_path(Path(settings.MEDIA_ROOT), name).read_bytes()])
    yield "responses.jsonl", jsonl_blocks_with_summary_line("responses", counted)
    yield "responses.csv", csv_blocks("responses", counted)
    yield "assignments.jsonl", jsonl_blocks_with_summary_line("assignments", counted)
    yield "assignments.csv", csv_blocks("assignments", counted)
    yield "items.jsonl", jsonl_blocks_with_summary_line("items", counted)
    yield "items.csv", csv_blocks("items", counted)
    if codings_of(counted).exists():
        yield "codings.jsonl", jsonl_blocks_with_summary_line("codings", counted)
        yield "codings.csv", csv_blocks("codings", counted)
    if AnalysisRun.objects.filter(study=study).exists() and not TABLES["headline"].find_problem(study):
        yield "headline.csv", csv_blocks("headline", counted)
        yield "headline.R", iter([_script("headline.R").encode()])
        yield "notebook.ipynb", iter([_notebook()])
    yield from row_members(study, archive_origins(study))
    for run in AnalysisRun.objects.filter(study=study).order_by("number").select_related("by").iterator(chunk_size=1):
        yield f"analyses/{run.number}.json", iter([_pretty_json(_analysis(run))])
        for figure in Figure.objects.filter(run=run).order_by("name").iterator(chunk_size=1):
            yield f"analyses/{run.number}/{file_name(figure.name)}.svg", iter([figure.svg.encode()])
            yield f"analyses/{run.number}/{file_name(figure.name)}.pdf", iter([bytes(figure.pdf)])


def _script(name: str) -> str:
    return (settings.DATA / "templates" / "scripts" / name).read_text(encoding="utf-8")


def _notebook() -> bytes:
    """Return a notebook that loads the answers and computes the headline again. Its cells are in a script."""
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": cell.strip().splitlines(keepends=True),
        }
        for number, cell in enumerate(_script("notebook.py").split("# %%"), 1)
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return _pretty_json({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})


def _design(study: Study) -> str:
    latest = Design.objects.filter(study=study).order_by("version").last()
    return latest.canonical if latest else canonical_json(serialize_design(study))


def _pretty_json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def _lines(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    for row in rows:
        yield (json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _prompts(study: Study) -> Iterator[dict[str, Any]]:
    """Yield the prompts. One that is alone has the same line as before there were groups."""
    rows = Prompt.objects.filter(study=study).order_by("key")
    names = ("key", "text", "source", "media", "domain", "language", "attributes", "group")
    for row in rows.values(*names).iterator(chunk_size=500):
        if not row["group"]:
            del row["group"]
        yield row | {name: stimulus_text(study, row[name]) for name in ("text", "source")}


def _images(study: Study) -> list[str]:
    """Return the names of the images that prompts and outputs show and that are on the disk."""
    rows = (Prompt.objects.filter(study=study), Output.objects.filter(system__study=study))
    names = {name for found in rows for name in found.exclude(media="").values_list("media", flat=True)}
    return sorted(name for name in names if image_path(Path(settings.MEDIA_ROOT), name).is_file())


def recipe(study: Study) -> list[str]:
    """Return lines that say how to get the texts of a study whose exports have hashes of them."""
    if not study.stimuli_source:
        return []
    return [
        "Prompts and outputs may not be passed on, so there are hashes in their place: “sha256:” and the SHA-256 of the text in UTF-8.",
        f"Get the texts here: {study.stimuli_source}",
        "Find a prompt by its key, and an output by prompt, system and sample. It is the right one if its hash is the same.",
        "",
    ]


def _outputs(study: Study) -> Iterator[dict[str, Any]]:
    rows = Output.objects.filter(system__study=study).order_by("system__name", "prompt__key", "sample")
    for row in rows.values(*OUTPUT_FIELDS).iterator(chunk_size=500):
        if not row["warning"]:
            del row["warning"]
        yield row | {name: stimulus_text(study, row[name]) for name in ("text", "alt", "original")}


def _analysis(run: AnalysisRun) -> dict[str, Any]:
    return {
        "number": run.number, "at": run.at.isoformat(), "parameters": run.parameters, "responses_n": run.responses_n,
        "responses_sha256": run.responses_sha256, "design_sha256s": run.design_sha256s, "code_version": run.code_version,
        "seed": run.seed, "result": run.result, "result_sha256": run.result_sha256,
    }  # fmt: skip


def file_name(name: str) -> str:
    """Return a file name for a figure. It cannot point outside its folder."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name) or "figure"


def _readme(study: Study, hashes: list[tuple[str, str, int]]) -> str:
    text, origins = _design(study), archive_origins(study)
    lines = [
        f"# {' '.join(study.title.split())}",
        "",
        f"Study {study.code}, {study.state}. Made by {version_and_source_hash()}.",
        "",
        f"Design sha256: {sha256_of(text)}",
        *([f"Warning: {warning}"] if (warning := frozen_design_mismatch_text(study)) else []),
        "",
        f"Origins {', '.join(origins[:-1])} and {origins[-1]}; withdrawn annotators are not included. codebook.md explains every column.",
        "In CSV, texts that a spreadsheet would run as formulas begin with an apostrophe; the JSON lines are unchanged.",
        "Each analysis used the answers of its date. Annotators may have withdrawn since then.",
        "",
        *recipe(study),
        "| file | bytes | sha256 |",
        "| --- | --- | --- |",
        *(f"| {name} | {size} | {digest} |" for name, digest, size in hashes),
    ]
    return "\n".join(lines) + "\n"
