"""How often something may happen in a minute, counted in the cache that all processes share: a count in each would be none."""

import logging
import time

from django.core.cache import cache
from django.db import DatabaseError

logger = logging.getLogger("heval.limits")


def is_rate_limited(name: str, max_per_minute: int) -> bool:
    """Count one more of ``name`` in this minute, and say whether that is more than ``limit``.

    A cache that is away closes nothing: nothing is counted then.
    """
    key = f"heval:{name}:{int(time.time() // 60)}"
    try:
        cache.add(key, 0, 120)
        return cache.incr(key) > max_per_minute
    except ValueError:  # the counter was evicted between the two calls
        return False
    except DatabaseError:
        raise
    except Exception:  # whatever the cache's client raises
        logger.warning("The cache is not there: %s is not counted.", name.partition(":")[0])
        return False
