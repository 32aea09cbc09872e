"""The answers of one study, brought into another of the same design as a file."""

import csv
from pathlib import Path

from django.conf import settings

from annotators.imports import import_answers_and_close_draft
from annotators.models import PageVisit, Response
from studies.models import Exposure, Study
from tests.builders import (
    launched,
    user,
)

from .drafts import STRENGTHS, titled, without_marks
from .people import People, closed


def as_file(study: Study, path: Path) -> Path:
    """Every answer of a study as a row of a file, as a laboratory would keep it."""
    systems = dict(Exposure.objects.filter(item__study=study).values_list("pk", "output__system__name"))
    letters: dict[tuple[int, int], dict[str, str]] = {}
    for visit in PageVisit.objects.filter(assignment__study=study):
        for _, item, shown in visit.shown.get("items", []):
            letters.setdefault((visit.assignment_id, item), {}).update({label: systems[pk] for label, pk in shown})
    rows = []
    order = ("assignment", "question__section__position", "position", "pk")
    for one in (
        Response.objects.filter(assignment__study=study)
        .select_related("question__section", "item__prompt")
        .order_by(*order)
    ):
        is_rank = (
            one.question.section.protocol == "ranking"
        )  # what was typed; what it means beside the others is computed again
        row = {
            "annotator": f"w{one.assignment_id}",
            "section": one.question.section.position,
            "question": one.question.key,
            "prompt_key": one.item.prompt.key if one.item else "",
            "system": systems.get(one.exposure_id, ""),
            "value": one.text if is_rank else "" if one.value is None else one.value,
            "text": "" if is_rank else one.text,
            "chosen": systems.get(one.chosen_id, ""),
            "choice": one.choice,
            "skip_reason": one.skip_reason,
            "part": one.part,
            "position": one.position,
            "time": one.received_at.isoformat(),
        }
        rows.append(row | {f"shown:{k}": v for k, v in letters.get((one.assignment_id, one.item_id), {}).items()})
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def imported() -> Study:
    """The answers of another study of the same design, brought in as a file."""
    study = launched(without_marks(**titled("given elsewhere", target_n=8)))
    People(study, STRENGTHS).come(*range(8))
    path = as_file(closed(study), Path(settings.MEDIA_ROOT) / "answers.csv")
    there = without_marks(**titled("imported", target_n=8, consent="", contact=""))
    report = import_answers_and_close_draft(there, path, by=user("olga"))
    path.unlink()
    assert report.is_written, [str(one) for one in report.problems][:20]
    return Study.objects.get(pk=there.pk)
