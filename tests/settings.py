"""The site's own settings, in a state of their own: no test reads or writes what this machine has.

HEVAL_TEST_ON=postgres runs the same tests on the server of HEVAL_TEST_DATABASE_URL.
"""

import tests.environment as environment
from heval_site.settings import *  # noqa: F403 - this module is made of settings
from heval_site.settings import DATABASES

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if environment.IS_POSTGRES:
    # The tests stop and start threads and drop the database: connections of a pool would stay behind.
    del DATABASES["default"]["OPTIONS"]["pool"]
else:
    # A file, as in life: threads and other processes see it. Nobody pulls the plug on a test.
    DATABASES["default"]["TEST"] = {"NAME": environment.HOME / "test.sqlite3"}
    options = DATABASES["default"]["OPTIONS"]
    options["init_command"] = options["init_command"].replace("synchronous=FULL", "synchronous=OFF")
