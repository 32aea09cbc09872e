"""The same answers given here, and imported into a study of the same design, say the same."""

import csv

import pytest

from analysis.report.build import build_report
from annotators.imports import import_answers_and_close_draft
from annotators.models import PageVisit, Response
from studies.models import Exposure, Question, Study
from studies.services import lifecycle
from tests.analysis.protocols.numbers import numbers
from tests.builders import add_choice, add_marks, add_ranking, add_rating, add_relative, add_spa, draft_study, launched
from tests.players import play

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]


def drafted(**columns):
    study = draft_study(prompts=200, target_n=10, instructions="", annotators_per_batch=2, **columns)
    spa = add_spa(study, position=1, m=2)
    add_rating(study, position=2, reuses=spa, m=2)
    add_rating(study, position=3, m=3)
    for position, add in enumerate((add_relative, add_ranking, add_choice), 4):
        study.contrasts.all().delete()
        options = {"stopping": "none", "strategy": "any", "allows_tie": True} if add is add_choice else {}
        add(study, position=position, m=6 if add in (add_relative, add_choice) else 3, **options)
    study.contrasts.all().delete()
    add_marks(study, position=7, m=3)
    Question.objects.filter(section__study=study, section__protocol__in=["rating", "relative", "two_choice"]).update(
        skip_reasons=[{"key": "cannot_judge", "label": "I cannot judge"}]
    )
    return study


def as_file(study, path):
    """Every answer as a row of a file, as a laboratory would keep them: what was shown under which letter, and what was said."""
    systems = dict(Exposure.objects.filter(item__study=study).values_list("pk", "output__system__name"))
    letters = {}
    for visit in PageVisit.objects.filter(assignment__study=study):
        for _, item, exposures in visit.shown.get("items", []):
            letters.setdefault((visit.assignment_id, item), {}).update(
                {label: systems[exposure] for label, exposure in exposures}
            )
    rows = []
    order = ("assignment", "question__section__position", "position", "pk")
    given = Response.objects.filter(assignment__study=study).select_related("question__section", "item__prompt")
    for one in given.order_by(*order):
        row = {
            "annotator": f"w{one.assignment_id}",
            "section": one.question.section.position,
            "question": one.question.key,
            "prompt_key": one.item.prompt.key if one.item else "",
            "system": systems.get(one.exposure_id, ""),
            "value": "" if one.value is None else one.value,
            "chosen": systems.get(one.chosen_id, ""),
            "choice": one.choice,
            "text": one.text,
            "skip_reason": one.skip_reason,
            "part": one.part,
            "position": one.position,
            "time": one.received_at.isoformat(),
        }
        if one.question.section.protocol == "ranking":
            row |= {
                "value": one.text,
                "text": "",
            }  # the number that was typed; what it means beside the others is computed again
        if one.item_id:
            row |= {f"shown:{label}": system for label, system in letters[one.assignment_id, one.item_id].items()}
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.slow
def test_every_protocol_whose_answers_can_be_imported(tmp_path):
    study = launched(drafted())
    for n in range(10):
        play(study, n)
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    there = drafted(consent="", contact="")
    report = import_answers_and_close_draft(there, as_file(study, tmp_path / "answers.csv"), by=None)
    assert report.is_written, [str(one) for one in report.problems][:20]
    live, imported = (numbers(build_report(Study.objects.get(pk=one.pk), {"resamples": 99})) for one in (study, there))
    assert live.keys() == imported.keys() and len(live) > 100
    for key, told in live.items():
        if key[0] == "choice.times":  # a file has no work time
            continue
        assert imported[key] == pytest.approx(told, rel=1e-5, abs=1e-7, nan_ok=True), key
