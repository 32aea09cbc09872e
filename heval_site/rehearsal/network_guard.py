"""Nothing of a rehearsal leaves this machine: this process opens no connection but to itself.

An audit hook, because Python asks it before each connection, whoever wants one, and no code can take it away again.
"""

import sys
from ipaddress import ip_address

# What somebody tried, for the report: a rehearsal that wanted to go out has found a fault.
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
        if address is None:  # a message on a connection that stands
            return
        host = address[0] if isinstance(address, tuple) else f"the socket {address!r}"
    else:
        return
    if not is_loopback(host):
        refused_hosts.append(str(host))
        raise ConnectionBlocked(f"A rehearsal reaches nothing but this machine: {host} is refused.")


def block_outgoing_connections() -> None:
    """For the rest of this process's life."""
    sys.addaudithook(_audit_hook)
