"""Example outputs: a few prompts with the outputs of all published systems, if the owner shows them."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from boards.models import BoardRound, SubmittedOutput
from studies.design.seeds import seeded_random
from studies.models import Output, Study
from studies.stimuli.images import MEDIA_TYPE, ImageRefused, image_path

from .responses import board_response, finish
from .stored import Shown, get_shown

SHOWN_PROMPTS = 5


@require_safe
def examples_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the outputs of all published systems for one of a few prompts, if the board shows examples."""
    shown = _get_shown_with_examples(request, slug)
    keys = example_keys(shown)
    asked = request.GET.get("prompt", "")
    number = int(asked) if asked.isdecimal() and 1 <= int(asked[:4]) <= len(keys) else 1
    is_collecting = _is_collecting(shown)
    context: dict[str, Any] = {
        "board": shown.board,
        "numbers": range(1, len(keys) + 1),
        "number": number,
        "is_collecting": is_collecting,
    }
    if not is_collecting:
        context |= _outputs(shown, keys[number - 1])
    html = render_to_string("boards/examples.html", context)
    return board_response(request, shown.board, html, changed_at=shown.changed_at)


@require_safe
def example_image(request: HttpRequest, slug: str, prompt: int, submission: int = 0) -> HttpResponse:
    """Return the image of an example, or of its prompt. Only what the page of examples shows now has an address."""
    shown = _get_shown_with_examples(request, slug)
    keys = example_keys(shown)
    if _is_collecting(shown) or not 1 <= prompt <= len(keys):
        raise Http404("This image does not exist.")
    media = _media(shown, keys[prompt - 1], submission)
    try:
        data = image_path(settings.MEDIA_ROOT, media or "").read_bytes()
    except (ImageRefused, OSError):
        raise Http404("This image does not exist.") from None
    return finish(request, shown.board, HttpResponse(data, content_type=MEDIA_TYPE), changed_at=shown.changed_at)


def _media(shown: Shown, key: str, submission: int) -> str | None:
    """Return the name of a stored image. ``submission``: 0 for the prompt's own image. A hidden submission has none."""
    prompts = shown.board.template.prompts.filter(key=key)
    if not submission:
        return prompts.values_list("media", flat=True).first()
    row = next((row for row in shown.rows if row["submission"] == submission and row["is_named"]), None)
    if row is None:
        return None
    if row["is_reference"]:
        own = Output.objects.filter(system__study=shown.board.template_id, prompt__in=prompts, sample=0)
        return own.filter(system__name=row["name"]).values_list("media", flat=True).first()
    sent = SubmittedOutput.objects.filter(submission__board=shown.board, submission__number=submission, prompt_key=key)
    return sent.values_list("media", flat=True).first()


def _get_shown_with_examples(request: HttpRequest, slug: str) -> Shown:
    shown = get_shown(request, slug)
    if not shown.board.shows_examples:
        raise Http404("This board shows no example outputs.")
    return shown


def _is_collecting(shown: Shown) -> bool:
    return BoardRound.objects.filter(board=shown.board, study__state__in=Study.COLLECTING_STATES).exists()


def example_keys(shown: Shown) -> list[str]:
    """Return the prompts that are shown: the same ones on each visit, drawn with the board's seed."""
    samples = [set(keys) for keys in shown.board.samples.values_list("keys", flat=True)]
    # All systems answered the prompts of all samples. After many renewals there may be none.
    keys = sorted(set.intersection(*samples) or samples[-1])
    return seeded_random(shown.board.seed, "board", "examples").sample(keys, min(SHOWN_PROMPTS, len(keys)))


def _outputs(shown: Shown, key: str) -> dict[str, Any]:
    """Return the prompt and the outputs of the systems of the snapshot that have a name."""
    board = shown.board
    prompt = board.template.prompts.get(key=key)
    named = [row for row in shown.rows if row["is_named"]]
    submitted = SubmittedOutput.objects.filter(submission__board=board, prompt_key=key)
    sent = {n: (text, bool(media)) for n, text, media in submitted.values_list("submission__number", "text", "media")}
    own = Output.objects.filter(system__study=board.template_id, prompt=prompt, sample=0)
    by_name = {name: (text, bool(media)) for name, text, media in own.values_list("system__name", "text", "media")}
    outputs = []
    for row in named:
        found, key_of_row = (by_name, row["name"]) if row["is_reference"] else (sent, row["submission"])
        text, is_image = found.get(key_of_row, ("", False))
        outputs.append({"name": row["name"], "number": row["submission"], "text": text, "is_image": is_image})
    return {"prompt": prompt, "outputs": outputs}
