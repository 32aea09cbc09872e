import subprocess
import sys
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger

from analysis.api import waiting
from heval_site import server

READY = "import gc; from heval_site import server; server.when_ready(None); print(gc.get_freeze_count(), gc.get_threshold()[0])"


def test_what_was_loaded_before_the_workers_part_is_not_looked_through_again():
    said = subprocess.run([sys.executable, "-c", READY], check=True, capture_output=True, text=True).stdout
    frozen, threshold = map(int, said.split())
    assert frozen > 10_000 and threshold == 10_000


def test_no_line_is_put_together_for_a_request():
    settings = Config()
    settings.set("logconfig_dict", server.logconfig_dict)
    settings.set("logger_class", server.logger_class)
    ours, gunicorns = (object.__new__(kind) for kind in (settings.logger_class, Logger))
    ours.cfg = gunicorns.cfg = settings
    assert ours.access(None, None, None, None) is None
    with pytest.raises(AttributeError):  # it looks at the request
        gunicorns.access(None, None, None, None)


def test_a_worker_looks_its_settings_up_no_more(monkeypatch):
    settings = Config()
    settings.set("keepalive", 7)
    expected = {name: getattr(settings, name) for name in settings.settings}
    monkeypatch.setattr(waiting, "is_stopping", waiting.is_stopping)  # this worker must not stay that of later tests
    server.post_worker_init(SimpleNamespace(cfg=settings))
    monkeypatch.setattr(Config, "__getattr__", None)
    assert {name: getattr(settings, name) for name in expected} == expected and settings.keepalive == 7
