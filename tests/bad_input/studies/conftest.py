"""The owner of a draft, and drafts whose forms get bad input."""

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
    return builders.spa_draft(
        owner=owner,
        with_surveys=False,
        with_rating=False,
        prompts=5,
        rules=[("incoherent", {"tau": 1.1}), ("too_fast", {"share": 0.5})],
    )


@pytest.fixture
def small(owner):
    """A draft without a section: its page is drawn in no time."""
    return builders.draft_study(owner=owner, systems=("alpha", "beta"), prompts=2)
