"""A study that collects, its owner, and the owner's browser."""

import pytest

from tests import builders
from tests.admin_pages import logged_in


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


@pytest.fixture
def study(owner):
    return builders.spa_study(owner, with_rating=False, target_n=4)
