"""A worker of gunicorn whose threads only get requests that have arrived completely.

gunicorn's own threaded worker gives a thread to each new connection, so that a few slow or idle clients hold all threads.
Here the event loop collects the head and the form, which costs no thread, and closes connections that take too long. The
body of a large upload goes to a thread, and must arrive at a minimum speed.
"""

import errno
import re
import resource
import select
import selectors
import socket
import time
from functools import partial
from typing import Any

from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn, ThreadWorker

REQUEST_SECONDS = 20.0  # for a head and a form
MAX_HEAD_BYTES = 64 * 1024  # more than gunicorn accepts, which then refuses it
MAX_FORM_BYTES = 256 * 1024  # annotators' forms are far smaller
UPLOAD_BYTES_PER_SECOND = 32 * 1024
CONNECTIONS = 4000  # of each worker
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
WAITS_FOR_WORD = re.compile(rb"\r\nexpect:", re.IGNORECASE)  # the client sends its body after an answer to its head


def is_complete(received: bytearray) -> bool:
    """Return whether a thread can answer this without waiting, or must take over because it is too large."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return len(received) > MAX_HEAD_BYTES
    head = bytes(received[: end + 2])
    length = LENGTH.search(head)
    if not length or WAITS_FOR_WORD.search(head):
        return True
    n_bytes = int(length[1])
    return n_bytes > MAX_FORM_BYTES or len(received) >= end + 4 + n_bytes


def allow_many_connections() -> None:
    """Raise this process's limit of open files, which is often 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + 1000
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class PacedUnreader(SocketUnreader):
    """Read what the event loop left. If it arrives too slowly, the connection counts as ended."""

    def __init__(self, sock: socket.socket, received: bytes):
        super().__init__(sock)
        self.unread(received)
        self.deadline = time.monotonic() + REQUEST_SECONDS

    def chunk(self, size_hint: int | None = None) -> bytes:
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        if not poll.poll(max(0, self.deadline - time.monotonic()) * 1000):
            self.sock.shutdown(socket.SHUT_RD)
        data: bytes = super().chunk(size_hint)
        self.deadline += len(data) / UPLOAD_BYTES_PER_SECOND
        return data


class BufferingWorker(ThreadWorker):
    def accept(self, listener: socket.socket) -> None:
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                raise
            return
        self.nr_conns += 1
        self._collect(TConn(self.cfg, client, address, listener.getsockname()))

    def enqueue_req(self, conn: Any) -> None:
        """Collect a request whose beginning arrived together with the one before it."""
        self._collect(conn, conn.parser.unreader.take_buffered())

    def _collect(self, conn: Any, received: bytes = b"") -> None:
        """Let the event loop collect the next request of this connection."""
        conn.received = bytearray(received)
        if is_complete(conn.received):
            self._answer(conn)
            return
        conn.sock.setblocking(False)
        conn.timeout = time.monotonic() + REQUEST_SECONDS
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def on_client_socket_readable(self, conn: Any, client: socket.socket) -> None:
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._collect(conn)
        self.on_pending_socket_readable(conn, client)

    def on_pending_socket_readable(self, conn: Any, client: socket.socket) -> None:
        try:
            data = client.recv(MAX_HEAD_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        conn.received += data
        if data and not is_complete(conn.received):
            return
        self.poller.unregister(client)
        self.pending_conns.remove(conn)
        if not data:
            self.nr_conns -= 1
            conn.close()
            return
        self._answer(conn)

    def _answer(self, conn: Any) -> None:
        conn.data_ready = True
        conn.init()
        conn.parser.unreader = PacedUnreader(conn.sock, bytes(conn.received))
        super().enqueue_req(conn)

    def _cap_keepalive(self, deadline: float) -> None:
        """A worker that stops does not wait for connections that send nothing."""
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)
