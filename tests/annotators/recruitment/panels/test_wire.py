"""Requests to a panel: what goes out, what is never followed, and what each way to fail means for an order."""

import logging
import socket

import pytest

from annotators.recruitment.panels import PanelBusy, RequestRefused, ResultUnclear, http_client
from annotators.recruitment.panels.http_client import PanelHttpClient
from annotators.recruitment.panels.loopback import LoopbackServer

SECRET = "s3cret-token"


class Panel(LoopbackServer):
    """Answers everything with ``status``, ``headers`` and ``body``, and keeps what it was asked."""

    def __init__(self, status=200, body=b"{}", **headers):
        self.status, self.body, self.headers, self.asked = status, body, headers, []

    def handle(self, handler):
        self.asked.append((handler.command, handler.path, dict(handler.headers)))
        handler.send_response(self.status)
        for name, value in self.headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(self.body)


def wire_to(panel) -> PanelHttpClient:
    return PanelHttpClient(panel.url, (), secret=SECRET, header="Authorization: Token ")


def test_what_goes_out_is_what_was_said_and_nothing_of_the_environment(monkeypatch, tmp_path):
    """No proxy, no password of a file, no cookie that an answer set, no packing."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with Panel(Set_Cookie="a=b") as panel:
        said = wire_to(panel)
        said.get_json("/a/?b=c%2Fd")
        said.send_json("POST", "/e/", {"f": 1})
    (got, ordered) = panel.asked
    assert got[:2] == ("GET", "/a/?b=c%2Fd") and ordered[:2] == ("POST", "/e/")
    for _, _, headers in panel.asked:
        assert headers["Authorization"] == f"Token {SECRET}" and headers["User-Agent"] == "heval"
        assert headers["Accept-Encoding"] == "identity" and "Cookie" not in headers
    assert ordered[2]["Content-Type"] == "application/json"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status):
    with Panel() as elsewhere, Panel(status, Location=elsewhere.url) as panel:
        with pytest.raises(RequestRefused, match="redirect"):
            wire_to(panel).get("/")
        assert len(panel.asked) == 1 and not elsewhere.asked


@pytest.mark.parametrize(("ask", "raised"), [("get", PanelBusy), ("order", ResultUnclear)])
def test_an_answer_that_is_too_large_is_not_read_to_its_end(monkeypatch, ask, raised):
    monkeypatch.setattr(http_client, "MAX_ANSWER_BYTES", 1000)
    with Panel(body=b"[" + b"1," * 500 + b"1]") as panel, pytest.raises(raised, match="too large"):
        wire_to(panel).get("/") if ask == "get" else wire_to(panel).send_order("POST", "/")


@pytest.mark.parametrize(("ask", "raised"), [("get", PanelBusy), ("order", ResultUnclear)])
def test_an_answer_that_does_not_come_in_time_leaves_an_order_open(monkeypatch, ask, raised):
    monkeypatch.setattr(http_client, "ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        line = PanelHttpClient(f"http://127.0.0.1:{silent.getsockname()[1]}", ())
        with pytest.raises(raised, match="broke before the answer arrived"):
            line.get("/") if ask == "get" else line.send_order("POST", "/")


def test_an_address_that_cannot_be_sent_is_not_sent():
    with Panel() as panel:
        with pytest.raises(PanelBusy, match="address"):
            wire_to(panel).send_order("POST", "/a\nb")
        assert not panel.asked


def test_no_secret_is_logged(caplog):
    """SONA takes its token in the address, which httpx would log."""
    caplog.set_level(logging.DEBUG)
    with Panel(X_Hook_Secret=SECRET) as panel:
        wire_to(panel).send_order("GET", f"/credit?credit_token={SECRET}")
        assert SECRET in panel.asked[0][1]
    assert SECRET not in caplog.text
