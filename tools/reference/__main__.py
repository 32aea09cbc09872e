"""Writes the generated pages of the reference anew: ``python -m tools.reference``."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "heval_site.settings")
django.setup()

from tools.reference.pages import write  # noqa: E402 - it imports models, which need Django set up

for name in write():
    print(f"{name} written")
