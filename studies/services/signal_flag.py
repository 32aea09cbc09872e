"""A flag that the handler of an operating system signal can set."""

import time

POLL_SECONDS = 0.2


class SignalFlag:
    """Like threading.Event, but without a lock. The line that a signal interrupts may hold the lock, and the signal's handler would
    wait for it forever. Waiting code polls the flag every fifth of a second."""

    def __init__(self) -> None:
        self._is_there = False

    def set(self) -> None:
        self._is_there = True

    def clear(self) -> None:
        self._is_there = False

    def is_set(self) -> bool:
        return self._is_there

    def wait(self, seconds: float) -> bool:
        """Wait until the flag is set, or for so long at most. Return whether it is set."""
        end = time.monotonic() + seconds
        while not self._is_there and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, POLL_SECONDS))
        return self._is_there
