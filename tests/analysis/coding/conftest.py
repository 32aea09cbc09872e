"""A study with explanations, and its coders."""

import random

import pytest

from studies.models import Study
from tests.analysis.coding.coded import WORDS, people
from tests.builders import humanlike_draft, launched, user
from tests.players import submitted


@pytest.fixture(scope="module")
def stored_study(module_transaction) -> int:
    study = humanlike_draft(conditions=("none", "examples"), domains=("news",), target_n=8, owner=user("olga"), m=4)
    study = launched(study)
    for n in range(8):
        submitted(study, f"w{n}", rng=random.Random(n), comment=f"{WORDS}, number {n}")
    return study.pk


@pytest.fixture
def study(stored_study, db):
    return Study.objects.get(pk=stored_study)


@pytest.fixture
def coders(study):
    return people(study, "carl", "cora")
