"""Rounds of boards with the same draws in every run."""

import random

import pytest


@pytest.fixture(autouse=True)
def _draws_are_repeated(monkeypatch):
    """Rounds draw with secret seeds, and numbers in tests must not differ between runs."""
    rng = random.Random(7)
    monkeypatch.setattr("studies.services.copying.new_seed", lambda: rng.getrandbits(62))
