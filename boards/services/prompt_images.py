"""Prompts with images: one ZIP for teams, with the prompts as JSON lines and the images that they name."""

import json
import tempfile
import zipfile
from typing import IO

from django.conf import settings

from boards.models import Board
from studies.models import Prompt
from studies.stimuli.images import image_path

from .samples import keys_to_answer
from .status import prompts_to_answer


def _names_by_key(board: Board) -> dict[str, str]:
    """Return the stored images of the board's prompts. Prompts outside the subsample are not for teams."""
    keys = set(keys_to_answer(board))
    rows = Prompt.objects.filter(study=board.template_id).exclude(media="").values_list("key", "media")
    return {key: media for key, media in rows if key in keys}


def has_prompt_images(board: Board) -> bool:
    return bool(_names_by_key(board))


def prompts_with_images(board: Board) -> list[dict[str, str]]:
    """Return the prompts to answer. ``image``: the path in the ZIP of prompts, or empty."""
    names = _names_by_key(board)
    path_of = {key: f"images/{name}" for key, name in names.items()}
    return [row | {"image": path_of.get(row["prompt"], "")} for row in prompts_to_answer(board)]


def write_prompts_archive(board: Board) -> IO[bytes]:
    """Return an open temporary ZIP with ``prompts.jsonl`` and ``images/``."""
    rows = prompts_with_images(board)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("prompts.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        for name in sorted(set(_names_by_key(board).values())):
            archive.write(image_path(settings.MEDIA_ROOT, name), f"images/{name}")
    file.seek(0)
    return file
