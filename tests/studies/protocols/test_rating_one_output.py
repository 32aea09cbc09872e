"""Ratings with one output per page: the systems take turns, and each output is shown equally often."""

from collections import Counter

import pytest

from studies.models import Exposure, Placement
from studies.services import lifecycle
from tests.boards.builders import rating_template
from tests.builders import user

pytestmark = pytest.mark.django_db


def launched(coverage="balanced", target=12):
    study = rating_template(user(), systems=("alpha", "beta", "gamma"), prompts=12, m=6)
    type(study).objects.filter(pk=study.pk).update(target_n=target, coverage=coverage)
    study.refresh_from_db()
    warnings = [one.key for one in lifecycle.blocking_or_unacknowledged_problems(study) if not one.is_blocking]
    return lifecycle.launch(study, study.owner, warnings)


def test_every_output_is_shown_equally_often():
    study = launched()
    items = Exposure.objects.filter(item__study=study)
    assert set(Counter(items.values_list("item", flat=True)).values()) == {1}
    shown = Counter(
        Placement.objects.filter(batch__study=study).values_list(
            "item__exposures__output__system__name", "item__prompt__key"
        )
    )
    assert len(shown) == 36
    assert set(shown.values()) == {2}


def test_every_annotator_meets_the_systems_equally_often_and_no_prompt_twice():
    study = launched()
    for batch in study.batches.all():
        rows = list(batch.placements.values_list("item__exposures__output__system__name", "item__prompt__key"))
        assert Counter(system for system, _ in rows) == {"alpha": 2, "beta": 2, "gamma": 2}
        assert len({prompt for _, prompt in rows}) == 6


def test_independent_batches_are_balanced_within_themselves():
    study = launched(coverage="independent", target=5)
    for batch in study.batches.all():
        systems = batch.placements.values_list("item__exposures__output__system__name", flat=True)
        assert Counter(systems) == {"alpha": 2, "beta": 2, "gamma": 2}
