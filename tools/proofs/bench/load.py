"""The clients of a measurement: closed loop, no think time. Standard library alone, one thread.

Each submission opens a connection, on which the page after it is asked for: people read for longer than a server keeps an idle
connection. Connections that stayed would belong to one of the server's processes for good, and how unevenly they fall would
decide who waits.

It must cost little beside what it measures: a page is searched with ``bytes.find`` for the names of its fields, not parsed.
Run as a process it takes a job as JSON on standard input and prints what it saw.
"""

import json
import selectors
import socket
import sys
import time
from collections import deque

RADIO = b'type="radio" name="'
HEAD = b"\r\n\r\n"


class Broken(Exception):
    """The connection ended within an answer."""


def whole(buffer: bytes) -> bool:
    """Whether an HTTP answer has arrived to its end."""
    at = buffer.find(HEAD)
    if at < 0:
        return False
    head = buffer[:at].lower()
    if b"transfer-encoding: chunked" in head:
        return buffer.endswith(b"0\r\n\r\n")
    start = head.find(b"content-length:")
    if start < 0:
        return True
    length = head[start + 15 :].partition(b"\r\n")[0]
    return len(buffer) >= at + 4 + int(length)


def location_of(buffer: bytes) -> str:
    start = buffer.find(b"\nLocation: ") + 11
    return buffer[start : buffer.find(b"\r", start)].decode() if start > 10 else ""


def answers_in(page: bytes) -> bytes:
    """A form that picks the first point offered under each name."""
    sent, at, last = [b"active=3&go=1"], 0, b""
    while (at := page.find(RADIO, at)) >= 0:
        at += len(RADIO)
        stop = page.find(b'"', at)
        name = page[at:stop]
        if name != last:
            start = page.find(b'value="', stop) + 7
            sent.append(name + b"=" + page[start : page.find(b'"', start)])
            last = name
    return b"&".join(sent)


class Client:
    """One annotator, always with one request on its way."""

    def __init__(self, load: "Load", path: str):
        self.load, self.path = load, path
        self.connect()

    def connect(self) -> None:
        self.socket = socket.create_connection(self.load.at)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.load.selector.register(self.socket, selectors.EVENT_READ, self)

    def leave(self) -> None:
        self.load.selector.unregister(self.socket)
        self.socket.close()

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        if method == "POST":
            self.leave()
            self.connect()
        self.method, self.asked, self.body, self.buffer = method, path, body, b""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.load.host}\r\n"
        if method == "POST":
            head += f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n"
        self.socket.sendall(head.encode() + HEAD[:2] + body)

    def begin(self) -> None:
        """The next cycle or claim, if there is time and work left."""
        load = self.load
        if time.perf_counter() >= load.deadline or load.begun >= load.most:
            load.left.append(self.path)
            load.finish(self)
            return
        load.begun += 1
        self.began = time.perf_counter()
        if load.kind == "claim":
            self.send("POST", load.paths.popleft(), b"agree=1&start=1")
        else:
            self.send("GET", self.path)

    def arrived(self) -> None:
        try:
            more = self.socket.recv(262_144)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        if not more:
            self.broken()
            return
        self.buffer += more
        if whole(self.buffer):
            self.understood(int(self.buffer[9:12]))

    def broken(self) -> None:
        """A server may close an idle connection; within an answer that is an error. Either way the request is sent again."""
        load = self.load
        if self.buffer:
            load.errors.append("broken connection")
        load.reconnects += 1
        self.leave()
        self.connect()
        self.send(self.method, self.asked, self.body)

    def understood(self, status: int) -> None:
        load = self.load
        if status == 200 and self.method == "GET":
            load.bytes += len(self.buffer)
            load.gets += 1
            self.send("POST", self.asked, answers_in(self.buffer))
        elif status == 302 and self.method == "GET":
            # Not at a page yet (an assignment's own address), or this assignment has ended.
            self.go_on(location_of(self.buffer))
            if self.path:
                self.send("GET", self.path)
        elif status == 302:
            load.milliseconds.append((time.perf_counter() - self.began) * 1000)
            where = location_of(self.buffer)
            if load.kind == "claim":
                load.left.append(where)
                if load.begun >= load.most or time.perf_counter() >= load.deadline:
                    load.finish(self)
                else:
                    self.begin()
            else:
                self.go_on(where)
                if self.path:
                    self.begin()
        else:
            load.errors.append(f"{self.method} {status}")
            if load.kind == "claim" or len(load.errors) > 100:
                load.finish(self)
            else:
                self.go_on("/done/")
                if self.path:
                    self.begin()

    def go_on(self, where: str) -> None:
        """To the page named; behind the last one, to another assignment, or home where there is none."""
        self.path = where
        if where.endswith("/done/"):
            self.path = self.load.paths.popleft() if self.load.paths else ""
            if not self.path:
                self.load.spent += 1
                self.load.finish(self)


class Load:
    def __init__(self, port: int, kind: str, paths: list[str], clients: int, seconds: float = 600, most: int = 10**9):
        self.at, self.host, self.kind = ("127.0.0.1", port), f"127.0.0.1:{port}", kind
        self.paths, self.clients, self.seconds, self.most = deque(paths), clients, seconds, most
        self.selector = selectors.DefaultSelector()
        self.begun = self.bytes = self.gets = self.reconnects = self.spent = 0
        self.errors: list[str] = []
        self.milliseconds: list[float] = []
        self.left: list[str] = []
        self.open = 0

    def finish(self, client: Client) -> None:
        client.leave()
        self.open -= 1

    def run(self) -> dict:
        cycling = self.kind != "claim"
        clients = [Client(self, self.paths.popleft() if cycling else "") for _ in range(self.clients)]
        self.open = len(clients)
        began = time.perf_counter()
        self.deadline = began + self.seconds
        for client in clients:
            client.begin()
        while self.open:
            for key, _ in self.selector.select(1):
                if self.open:
                    key.data.arrived()
        wall = time.perf_counter() - began
        done = sorted(self.milliseconds)
        return {
            "done": len(done),
            "wall": wall,
            "errors": len(self.errors),
            "error_words": sorted(set(self.errors))[:5],
            "p50": done[len(done) // 2] if done else None,
            "p95": done[int(len(done) * 0.95)] if done else None,
            "page_bytes": self.bytes // self.gets if self.gets else None,
            "reconnects": self.reconnects,
            "spent": self.spent,
            "load_cpu": time.process_time(),
            "left": self.left + list(self.paths),
        }


if __name__ == "__main__":
    json.dump(Load(**json.load(sys.stdin)).run(), sys.stdout)
