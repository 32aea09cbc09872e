"""A cache for values that never change, limited by the sum of their sizes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any


class SizedLRUCache:
    """Least-recently-used cache. ``max_size`` limits the sum of the values' sizes. Safe to share between threads."""

    def __init__(self, max_size: int):
        self.most, self.size = max_size, 0
        self._values: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._lock = Lock()

    def get_or_make(self, key: Hashable, make_value: Callable[[], Any], size_of: Callable[[Any], int]) -> Any:
        """Return the value of this key; make it if it is not cached.

        Values above one hundredth of the limit are not cached.
        """
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][1]
        value = make_value()
        size = size_of(value)
        if size * 100 <= self.most:
            with self._lock:
                if key not in self._values:
                    self._values[key] = size, value
                    self.size += size
                while self.size > self.most:
                    self.size -= self._values.popitem(last=False)[1][0]
        return value

    def cache_clear(self) -> None:
        with self._lock:
            self._values.clear()
            self.size = 0
