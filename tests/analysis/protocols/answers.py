"""Answers for tests, written straight into the tables: exactly these values, and fast."""

from datetime import timedelta
from itertools import count

from django.utils import timezone

from annotators.models import Annotator, Assignment, Response
from annotators.pages.sequence import letter_label
from studies.models import Design, Placement, Question

_people = count()


def answer(study, n, percent=lambda person, x, y: 50, rating=lambda person, system: 3, seconds=1200, **columns):
    """Submitted assignments of ``n`` new people, one a batch: ``percent`` for each directed question (None: not answered),
    ``rating`` for each output of the first item of a section that rates."""
    design = Design.objects.filter(study=study).order_by("version").last()
    batches = list(study.batches.order_by("number")[:n])
    now = timezone.now()
    people = Annotator.objects.bulk_create(
        Annotator(pool="tests", external_id=f"{study.pk}-{next(_people)}") for _ in range(n)
    )
    made = Assignment.objects.bulk_create(
        Assignment(
            study=study,
            batch=batches[k % len(batches)],
            annotator=people[k],
            design=design,
            **{
                "started_at": now - timedelta(seconds=seconds),
                "submitted_at": now,
                "ordinal": 1,
                **columns,
            },
        )
        for k in range(n)
    )
    questions = list(Question.objects.filter(section__study=study).select_related("section", "x", "y"))
    exposures = {}
    placed = Placement.objects.filter(batch__in=batches).order_by("batch", "number", "item__exposures__number")
    for batch, item, exposure, number, system in placed.values_list(
        "batch", "item", "item__exposures", "item__exposures__number", "item__exposures__output__system__name"
    ):
        exposures.setdefault(batch, {}).setdefault(item, []).append((exposure, number, system))
    rows = []
    for k, assignment in enumerate(made):
        first = next(iter(exposures[assignment.batch_id].items()), None)
        for question in questions:
            common = {"assignment": assignment, "question": question}
            slot = f"s{question.section.position}.q{question.position}"
            if question.x_id:
                value = percent(k, question.x.name, question.y.name)
                if value is not None:
                    rows.append(Response(value=value, slot=slot, label="AB", position=question.position, **common))
            elif question.section.protocol == "rating" and first:
                for exposure, number, system in first[1]:
                    value = rating(k, system)
                    if value is not None:
                        letter = letter_label(number)
                        rows.append(
                            Response(
                                value=value,
                                slot=f"{slot}.i1.{letter}",
                                item_id=first[0],
                                exposure_id=exposure,
                                label=letter,
                                position=1,
                                **common,
                            )
                        )
    Response.objects.bulk_create(rows, batch_size=500)
    return made
