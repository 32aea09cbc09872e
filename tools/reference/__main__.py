"""Update the generated pages of the reference: ``python -m tools.reference``."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "heval_site.settings")
django.setup()

from tools.reference.pages import write_outdated_pages  # noqa: E402 - it imports models, which need Django set up

for name in write_outdated_pages():
    print(f"{name} written")
