"""A panel's own site as a worker sees it: a page that frames a study, and the place to which the last form goes.

It listens on this machine alone. Opened as ``localhost`` it frames ``127.0.0.1``, which a browser takes for another site.
"""

import threading
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit


class WorkerSite:
    def __init__(self):
        self.submitted: list[dict[str, str]] = []
        self.cookies: list[str] = []
        self.door = ""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                site.look(self, urlsplit(self.path))

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                site.take(self, dict(parse_qsl(body)))

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.origin = f"http://localhost:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler, words: str, status=200, **headers):
        handler.send_response(status)
        for name, value in ({"Content-Type": "text/html; charset=utf-8"} | headers).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(words.encode())

    def look(self, handler, address):
        """/task?… frames the study with these parameters and its own; /probe is framed, and tells whether cookies come back."""
        if address.path == "/task":
            ids = dict(parse_qsl(address.query)) | {"turkSubmitTo": self.origin}
            self.framing(handler, f"{self.door}?{urlencode(ids)}")
        elif address.path == "/probes":
            self.framing(handler, f"http://127.0.0.1:{self.port}/probe")
        elif address.path == "/probe":
            self.answer(handler, "", 302, Location="/seen", Set_Cookie="probe=1; SameSite=None; Secure")
        elif address.path == "/seen":
            self.cookies.append(handler.headers.get("Cookie", ""))
            self.answer(handler, "<p>Seen.</p>")
        else:
            self.answer(handler, "", 404)

    def framing(self, handler, address: str):
        frame = f'<iframe title="The task" src="{escape(address)}" width="1200" height="700"></iframe>'
        self.answer(handler, f"<!DOCTYPE html><html lang=en><title>Tasks</title><h1>A task</h1>{frame}")

    def take(self, handler, fields: dict[str, str]):
        """As the real one: the assignment's id alone is no submission, and an assignment is submitted once."""
        others = [name for name in fields if name != "assignmentId"]
        taken = {one["assignmentId"] for one in self.submitted}
        if not others or fields.get("assignmentId", "") in taken | {""}:
            return self.answer(handler, "<p>There was a problem submitting your results for this HIT.</p>", 400)
        self.submitted.append(fields)
        return self.answer(handler, "<p>The HIT has been successfully submitted.</p>")
