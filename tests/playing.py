"""What the scripts that play a whole study share: a home of their own, and how long each step takes."""

import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


def at_home(name: str) -> Path:
    """A new folder with a fresh database, for which Django is set up. Nothing of ours may have been imported before."""
    home = Path(tempfile.mkdtemp(prefix=f"heval-{name}-"))
    os.environ["HEVAL_HOME"], os.environ["DJANGO_SETTINGS_MODULE"] = str(home), "tests.settings"
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.ALLOWED_HOSTS.append("testserver")
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    return home


def timed(words: str, work: Callable[[], Result]) -> Result:
    """Do the work; tell its seconds, and the most memory that this process has had so far."""
    start = time.perf_counter()
    result = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{words:44} {time.perf_counter() - start:7.1f} s   peak {peak:5.0f} MB", flush=True)
    return result
