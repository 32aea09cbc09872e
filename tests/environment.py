"""What the tests' process finds in its environment: a home of its own, and nothing of what this machine has set."""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

IS_POSTGRES = os.environ.get("HEVAL_TEST_ON") == "postgres"

for name in (
    "DEBUG",
    "SECRET_KEY",
    "PSEUDONYM_KEY",
    "DATABASE_URL",
    "REDIS_URL",
    "CELERY_BROKER_URL",
    "SITE_URL",
    "ALLOWED_HOSTS",
    "PORT",
    "LISTEN",
    "TRUSTED_PROXY_COUNT",
    "STATIC_ROOT",
    "MEDIA_ROOT",
    "LOG_FORMAT",
    "SSL_REDIRECT",
    "HSTS_SECONDS",
    "EXTERNAL_QUESTION_SITES",
    "RETURN_SITES",
):
    os.environ.pop(name, None)
    os.environ.pop(f"{name}_FILE", None)

# A machine that keeps no bytecode would compile the product again in each of the many processes that the tests start, and the tests
# themselves in every run.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False

HOME = Path(tempfile.mkdtemp(prefix="heval-tests-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ["HEVAL_HOME"] = str(HOME)
# The browser's library runs an event loop in the tests' own thread; Django would refuse its database there.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
if IS_POSTGRES:
    os.environ["DATABASE_URL"] = os.environ["HEVAL_TEST_DATABASE_URL"]
    os.environ["SECRET_KEY"] = "secret-key-of-the-tests-" + "0123456789" * 4
    os.environ["PSEUDONYM_KEY"] = "pseudonym-key-of-the-tests-" + "0123456789" * 4
    os.environ["SITE_URL"] = "http://127.0.0.1:8000"
    os.environ["ALLOWED_HOSTS"] = "127.0.0.1,localhost"
