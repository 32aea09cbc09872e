"""Rounds of boards with the same draws in every run."""

import random

import pytest


def _repeat_draws():
    """Rounds draw with secret seeds, and numbers in tests must not differ between runs."""
    rng = random.Random(7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studies.services.copying.new_seed", lambda: rng.getrandbits(62))
        yield


# Each test begins anew, and so do the boards that a module's tests share.
_draws_of_a_test = pytest.fixture(autouse=True)(_repeat_draws)
_draws_of_shared_boards = pytest.fixture(autouse=True, scope="module")(_repeat_draws)
