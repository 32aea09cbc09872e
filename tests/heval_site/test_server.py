import subprocess
import sys
from types import SimpleNamespace

from gunicorn.config import Config

from heval_site import server

READY = "import gc; from heval_site import server; server.when_ready(None); print(gc.get_freeze_count(), gc.get_threshold()[0])"


def test_what_was_loaded_before_the_workers_part_is_not_looked_through_again():
    said = subprocess.run([sys.executable, "-c", READY], check=True, capture_output=True, text=True).stdout
    frozen, threshold = map(int, said.split())
    assert frozen > 10_000 and threshold == 10_000


def test_a_worker_looks_its_settings_up_no_more(monkeypatch):
    settings = Config()
    settings.set("keepalive", 7)
    expected = {name: getattr(settings, name) for name in settings.settings}
    server.post_worker_init(SimpleNamespace(cfg=settings))
    monkeypatch.setattr(Config, "__getattr__", None)
    assert {name: getattr(settings, name) for name in expected} == expected and settings.keepalive == 7
