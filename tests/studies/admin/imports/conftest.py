"""A draft, and a browser of its editor."""

import pytest

from tests.builders import draft_study, user


@pytest.fixture
def study(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    return draft_study(owner=user(), prompts=2)


@pytest.fixture
def editor(client, study):
    client.force_login(user())
    return client
