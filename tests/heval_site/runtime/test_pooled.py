"""After an outage of PostgreSQL, the pool of connections connects again at once."""

import pytest
from psycopg_pool.base import AttemptWithBackoff

pytestmark = [pytest.mark.only_on("postgresql"), pytest.mark.postgres]


def test_the_pool_tries_again_at_short_intervals_however_long_the_server_was_away():
    """A growing pause would outlast the outage."""
    attempt, now = AttemptWithBackoff(timeout=300), 1000.0
    for _ in range(200):
        attempt.update_delay(now)
        assert 0 < attempt.delay < 1
        now += attempt.delay
