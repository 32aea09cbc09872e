"""What stand-ins for a panel's server on this machine share: they listen while a test is within them."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Loopback:
    """``url`` is where it listens. ``handle(handler)`` answers a request, of whatever method; it is silent unless it writes."""

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        raise NotImplementedError

    def __enter__(self):
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *words):
                pass

            def do_GET(self):
                fake.handle(self)

            do_POST = do_PATCH = do_GET

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        return self

    def __exit__(self, *broken):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
