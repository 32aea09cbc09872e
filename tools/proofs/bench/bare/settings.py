"""Its database is configured by the very lines that configure ours; nothing else is taken over."""

from pathlib import Path

from heval_site.settings import ALLOWED_HOSTS, DATABASES, DEFAULT_AUTO_FIELD, SECRET_KEY

__all__ = ["ALLOWED_HOSTS", "DATABASES", "DEFAULT_AUTO_FIELD", "SECRET_KEY"]
DEBUG = False
INSTALLED_APPS = ["tools.proofs.bench.bare"]
MIDDLEWARE = []
ROOT_URLCONF = "tools.proofs.bench.bare.urls"
TEMPLATES = [
    {
        "NAME": "bare",
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).resolve().parent / "templates"],
    }
]
USE_TZ = True
USE_I18N = False
