"""The owner whose studies are asked for over REST."""

import pytest

from tests.builders import user


@pytest.fixture
def owner():
    return user("owner")
