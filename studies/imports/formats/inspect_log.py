"""Logs of Inspect: a JSON object, or an archive (.eval) with a file for each sample. https://inspect.aisi.org.uk/eval-logs.html"""

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from studies.stimuli.lines import UnreadableFile

from .conversations import conversation, is_messages, text_of

NAME = "a log of Inspect"
EXTENSION = ".eval"
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, ValueError, TypeError, AttributeError, LookupError, EOFError, NotImplementedError, RuntimeError, OSError,
)  # fmt: skip


def is_file(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("eval"), Mapping) and isinstance(value.get("samples"), list)


def rows_of_file(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for sample in value["samples"]:
        yield _row(sample, value["eval"])


def _row(sample: Mapping[str, Any], evaluation: Mapping[str, Any]) -> dict[str, Any]:
    asked, output = sample.get("input"), sample.get("output") or {}
    choices = output.get("choices") or [{}]
    message = choices[0].get("message") or {}
    return {
        "prompt_key": str(sample.get("id", "")),
        "prompt_text": conversation(asked) if is_messages(asked) else text_of(asked),
        "system": evaluation.get("model") or output.get("model") or "",
        # Inspect counts epochs from 1, heval counts the outputs of a system for a prompt from 0.
        "sample": max(0, int(sample.get("epoch") or 1) - 1),
        "text": text_of(message.get("content", output.get("completion", ""))),
        "domain": str(evaluation.get("task") or "")[:50],
    }


def objects_of_archive(stream: BinaryIO, max_bytes: int) -> list[dict[str, Any]]:
    """Return the rows of an archive. Raise UnreadableFile if it is no log, or has no samples."""
    try:
        with zipfile.ZipFile(stream) as archive:
            if sum(info.file_size for info in archive.infolist()) > max_bytes:
                raise UnreadableFile(
                    None, f"The log has more than {max_bytes:,} bytes when unpacked. Export a part of it."
                )
            names = [name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")]
            start = next((name for name in ("header.json", "_journal/start.json") if name in archive.namelist()), "")
            if not start or not names:
                raise UnreadableFile(
                    None, "The archive is no log of Inspect, or its samples were not stored. Choose another file."
                )
            evaluation = json.loads(archive.read(start)).get("eval") or {}
            return [_row(json.loads(archive.read(name)), evaluation) for name in sorted(names, key=_sample_order)]
    except _DAMAGE as error:
        raise UnreadableFile(
            None, "The log is damaged, or packed in a way that heval cannot read. Export it as JSON."
        ) from error


def _sample_order(name: str) -> tuple[int, str]:
    return len(name), name
