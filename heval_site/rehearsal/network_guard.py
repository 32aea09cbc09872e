"""Keep a rehearsal on this machine: this process may connect only to this machine.

This uses an audit hook, because Python calls it before each connection, and no code can remove it.
"""

import sys
from ipaddress import ip_address

# Attempted connections, for the report: if a rehearsal tries to go outside, this is a fault.
refused_hosts: list[str] = []


class ConnectionBlocked(OSError):
    pass


def is_loopback(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in (None, "", "localhost"):
        return True
    try:
        return ip_address(str(host)).is_loopback
    except ValueError:
        return False


def _audit_hook(event: str, arguments: tuple) -> None:
    if event == "socket.getaddrinfo" or event == "socket.gethostbyname":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"):
        address = arguments[1]
        if address is None:  # a message on an existing connection
            return
        host = address[0] if isinstance(address, tuple) else f"the socket {address!r}"
    else:
        return
    if not is_loopback(host):
        refused_hosts.append(str(host))
        raise ConnectionBlocked(f"A rehearsal may contact only this machine: {host} is refused.")


def block_outgoing_connections() -> None:
    """Block connections for the rest of this process's life."""
    sys.addaudithook(_audit_hook)
