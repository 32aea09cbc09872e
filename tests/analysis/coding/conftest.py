"""A study with explanations, and its coders."""

import random

import pytest

from tests.analysis.coding.coded import WORDS, people
from tests.builders import humanlike_draft, launched, user
from tests.players import submitted


@pytest.fixture
def study():
    study = humanlike_draft(conditions=("none", "examples"), domains=("news",), target_n=8, owner=user("olga"), m=4)
    study = launched(study)
    for n in range(8):
        submitted(study, f"w{n}", rng=random.Random(n), comment=f"{WORDS}, number {n}")
    return study


@pytest.fixture
def coders(study):
    return people(study, "carl", "cora")
