"""One small study for each protocol, its pages as full as those of the papers and of campaigns; and what is sent on such a page."""

import re
from collections.abc import Callable, Iterator

from tests.robots import Form, Page

from .study import text_of

# What a page shows of the stimuli: texts of outputs and prompts, which no page can make shorter.
STIMULI = re.compile(rb'<div class="words[^>]*>(.*?)</div>', re.DOTALL)


def _of_length(study):
    """Texts of about 110 words."""
    from studies.models import Output

    outputs = list(Output.objects.filter(system__study=study).select_related("system").order_by("pk"))
    for n, output in enumerate(outputs):
        output.text = text_of(output.system.name, n)
    Output.objects.bulk_update(outputs, ["text"], batch_size=200)
    return study


def _with(adds: str, systems: int) -> Callable:
    def build(m: int, target_n: int):
        from tests import builders

        names = tuple(f"system-{n}" for n in range(systems))
        study = builders.draft_study(systems=names, prompts=m * target_n + 4, target_n=target_n, instructions="")
        getattr(builders, adds)(study, position=1, m=m)
        return _of_length(study)

    return build


def _humanlike(m: int, target_n: int):
    from tests.builders import humanlike_draft

    study = humanlike_draft(domains=("news",), instructions="", target_n=target_n, m=m, texts=m + 2)
    return _of_length(study)


def _survey(m: int, target_n: int):
    from tests.builders import COMMENT, SCREENING, add_survey, draft_study

    study = draft_study(systems=("alpha",), prompts=1, target_n=target_n, instructions="")
    points = {"kind": "likert", "labels": ["not at all", "a little", "somewhat", "much", "very much"]}
    asked = [{"key": f"q{n}", "text": f"How much do you like stories of kind {n}?", "scale": points} for n in range(6)]
    add_survey(study, position=1, questions=[SCREENING, *asked, COMMENT])
    return study


# By slug: how a draft is made, of m prompts and for so many annotators. Five writers for SPA, five outputs to rank.
CASES: dict[str, Callable] = {
    "humanlike": _humanlike,
    "marks": _with("add_marks", 2),
    "ranking": _with("add_ranking", 5),
    "rating": _with("add_rating", 2),
    "relative": _with("add_relative", 2),
    "spa": _with("add_spa", 5),
    "survey": _survey,
    "two_choice": _with("add_choice", 2),
}


def sent_on(page: Page) -> dict[str, str] | None:
    """What somebody sends who takes the first that is offered, finds no error and types the lowest number; None on the last page."""
    form = next((form for form in page.forms if "go" in dict(form.buttons)), None)
    return None if form is None else {"go": "1"} | dict(_filled(form))


def _filled(form: Form) -> Iterator[tuple[str, str]]:
    for name, values in form.fields.items():
        kind = form.kinds[name]
        if not name.startswith("s") or name == "save" or name.endswith((".skip", ".words")):
            continue
        if kind == "textarea":
            yield name, "It goes on for a while and then it ends well."
        elif kind == "text":
            yield name, "1"
        elif kind in ("radio", "checkbox"):
            yield name, values[0]


def bytes_beside_stimuli(page: bytes) -> int:
    return len(page) - sum(map(len, STIMULI.findall(page)))
