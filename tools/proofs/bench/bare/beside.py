"""Our site's settings with the bare view's tables and template beside them: both answer in one process."""

from heval_site.settings import *  # noqa: F403 - this module is made of settings
from heval_site.settings import INSTALLED_APPS as OURS
from heval_site.settings import TEMPLATES as OUR_TEMPLATES

from .settings import INSTALLED_APPS as BARE
from .settings import TEMPLATES as BARE_TEMPLATES

INSTALLED_APPS = [*OURS, *BARE]
TEMPLATES = [*OUR_TEMPLATES, *BARE_TEMPLATES]
