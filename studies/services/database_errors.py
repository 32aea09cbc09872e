"""Tell a database that cannot be used from a fault of heval."""

from django.db import InterfaceError, OperationalError

READ_ONLY = "25006"  # a standby after a switch of servers
# PostgreSQL's classes of errors: no connection, no resources such as disk space, an operator's act, the system.
UNAVAILABLE_CLASSES = ("08", "53", "57", "58")


def is_database_unavailable_error(exception: BaseException | None) -> bool:
    """Return whether the database failed, is full or takes no writes, as opposed to a bug in heval."""
    while exception is not None:
        state = str(getattr(exception, "sqlstate", None) or "")
        if isinstance(exception, OperationalError | InterfaceError) or state == READ_ONLY:
            return True
        if state.startswith(UNAVAILABLE_CLASSES):
            return True
        exception = exception.__cause__
    return False
