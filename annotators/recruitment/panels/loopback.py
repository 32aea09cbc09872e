"""An HTTP server on this machine that answers in its own thread.

It imports no model, because a rehearsal starts it before the settings.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LoopbackServer:
    """A local server.

    ``url`` is its address. ``handle(handler)`` answers each request, of any method, and must write the response.
    """

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        raise NotImplementedError

    def __enter__(self):
        answering = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

            def do_GET(self):
                answering.handle(self)

            do_POST = do_PATCH = do_GET

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        return self

    def __exit__(self, *exception_info):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
