"""Limits per minute, counted in the cache that all processes share. Counts per process would not limit anything."""

import logging
import time

from django.core.cache import cache
from django.db import DatabaseError

logger = logging.getLogger("heval.limits")


def count_and_check_rate_limit(counter_to_increment: str, max_per_minute: int) -> bool:
    """Count one more ``counter_to_increment`` in this minute. Return whether the count is above ``max_per_minute``."""
    return count_in_this_minute(counter_to_increment) > max_per_minute


def count_in_this_minute(counter_to_increment: str) -> int:
    """Count one more ``counter_to_increment`` in this minute, and return the count. If the cache is down, nothing is counted: 0."""
    key = f"heval:{counter_to_increment}:{int(time.time() // 60)}"
    try:
        cache.add(key, 0, 120)
        return cache.incr(key)
    except ValueError:  # the counter was evicted between the two calls
        return 0
    except DatabaseError:
        raise
    except Exception:  # the cache's client may raise anything
        logger.warning("The cache is not available: %s is not counted.", counter_to_increment.partition(":")[0])
        return 0
