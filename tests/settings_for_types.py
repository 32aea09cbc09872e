"""The settings that mypy asks for models and settings. mypy ends without exit handlers, so the tests' home is deleted at once."""

import shutil

from tests.environment import HOME
from tests.settings import *  # noqa: F403 - a settings module takes all names

shutil.rmtree(HOME)
