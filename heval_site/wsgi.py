import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "heval_site.settings")
application = get_wsgi_application()
# Before the workers part: what all of them import is shared, and a view that does not import stops the start.
get_resolver().url_patterns  # noqa: B018 - reading it loads it
