"""The stand-in, and a link to it, for every test of SONA's channel."""

from decimal import Decimal

import pytest
from django.core.cache import cache

from annotators.recruitment.channels.sona import SonaService
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from tests.annotators.recruitment.channels.sona.stand_in import SECRETS, SETTINGS, SONA, FakeSona
from tests.builders import recruitment, spa_study, user


@pytest.fixture
def fake():
    with FakeSona() as fake:
        yield fake


@pytest.fixture
def door(fake, db, monkeypatch):
    """A SONA link whose token is kept, with the stand-in behind it."""
    cache.clear()
    study = spa_study(user("owner"), target_n=9, prompts=40, batches_per_annotator=3)
    made = recruitment(study, "sona", settings=SETTINGS, reward=Decimal(0))
    store_or_delete_secrets(made, SECRETS, by=None)
    monkeypatch.setattr(
        type(SONA),
        "service",
        lambda self, recruitment, secrets: (
            SonaService(*SETTINGS.values(), secrets["credit_token"], fake.url) if secrets else None
        ),
    )
    return made
