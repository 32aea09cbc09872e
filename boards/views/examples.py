"""Example outputs: a few prompts with the outputs of all published systems, if the owner shows them."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from boards.models import BoardRound, SubmittedOutput
from studies.design.seeds import seeded_random
from studies.models import Output, Study

from .responses import board_response
from .stored import Shown, get_shown

SHOWN_PROMPTS = 5


@require_safe
def examples_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the outputs of all published systems for one of a few prompts, if the board shows examples."""
    shown = get_shown(request, slug)
    if not shown.board.shows_examples:
        raise Http404("This board shows no example outputs.")
    keys = example_keys(shown)
    asked = request.GET.get("prompt", "")
    number = int(asked) if asked.isdecimal() and 1 <= int(asked[:4]) <= len(keys) else 1
    is_collecting = BoardRound.objects.filter(board=shown.board, study__state__in=Study.COLLECTING_STATES).exists()
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
    texts = dict(submitted.values_list("submission__number", "text"))
    own = Output.objects.filter(system__study=board.template_id, prompt=prompt, sample=0)
    by_name = {name: (text, bool(media)) for name, text, media in own.values_list("system__name", "text", "media")}
    outputs = []
    for row in named:
        text, is_image = (
            by_name.get(row["name"], ("", False)) if row["is_reference"] else (texts.get(row["submission"], ""), False)
        )
        outputs.append({"name": row["name"], "text": text, "is_image": is_image})
    return {"prompt": prompt, "outputs": outputs}
