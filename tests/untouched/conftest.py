"""The owner of the studies whose forms are sent back, and a browser of theirs."""

import pytest

from tests import builders
from tests.admin_pages import logged_in


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)
