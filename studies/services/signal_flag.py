"""Something that is wished for from the handler of a signal."""

import time

POLL_SECONDS = 0.2


class SignalFlag:
    """What threading.Event is, without its lock: the line that a signal interrupts may hold it, and the signal's own handler would
    wait for it for ever. Whoever waits looks every fifth of a second."""

    def __init__(self) -> None:
        self._is_there = False

    def set(self) -> None:
        self._is_there = True

    def clear(self) -> None:
        self._is_there = False

    def is_set(self) -> bool:
        return self._is_there

    def wait(self, seconds: float) -> bool:
        """Until it is there, or so many seconds are over. Gives whether it is there."""
        end = time.monotonic() + seconds
        while not self._is_there and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, POLL_SECONDS))
        return self._is_there
