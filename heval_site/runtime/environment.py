"""Read environment variables strictly: an invalid value stops the start and is never guessed."""

import os
import re
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

BOOLEAN_WORDS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}
RENAMED = {"TRUSTED_PROXIES": "TRUSTED_PROXY_COUNT"}
# Every variable that an operator sets.
NAMES = (
    *("DATABASE_URL", "HEVAL_HOME", "XDG_DATA_HOME", "MEDIA_ROOT", "STATIC_ROOT", "DATABASE_POOL"),
    *("SECRET_KEY", "SECRET_KEY_FALLBACKS", "PSEUDONYM_KEY"),
    *("SITE_URL", "ALLOWED_HOSTS", "PORT", "LISTEN", "TRUSTED_PROXY_COUNT", "PROLIFIC_API"),
    *("SSL_REDIRECT", "HSTS_SECONDS", "HSTS_SUBDOMAINS"),
    *("WEB_WORKERS", "WEB_THREADS", "REDIS_URL", "CELERY_BROKER_URL", "EXTERNAL_QUESTION_SITES", "RETURN_SITES"),
    *("WEBHOOK_NETWORKS", "EMAIL_URL", "EMAIL_FROM"),
    *("LOG_FORMAT", "DEBUG", "HEVAL_TOKEN"),
)
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# The value becomes part of a header, so only a scheme, a host and a port are allowed.
ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?", re.ASCII)


def text(name: str, default: str = "") -> str:
    """Return the variable, or the content of the file named by ``<name>_FILE`` (for mounted secrets)."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        if os.environ.get(name):
            raise ImproperlyConfigured(f"{name} and {name}_FILE are both set. Remove one of them.")
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise ImproperlyConfigured(
                f"{name}_FILE: {path} cannot be read ({reason}). Correct the path or the file."
            ) from error
    return os.environ.get(name, "").strip() or default


def refuse_old_names() -> None:
    """Raise ImproperlyConfigured if a variable is set under its old name. To ignore it could make the site less safe."""
    for old, new in RENAMED.items():
        if os.environ.get(old) or os.environ.get(f"{old}_FILE"):
            raise ImproperlyConfigured(f"{old} is now {new}. Rename it where you set it, for example in .env.")


def find_misspelt_names() -> dict[str, str]:
    """Return the variables whose names are nearly ours, each with the name that it probably means.

    Short names without an underscore resemble too many of other programs.
    """
    known = [name for name in NAMES if "_" in name]
    found = {}
    for name in os.environ:
        bare = name.removesuffix("_FILE")
        if bare not in NAMES and (close := get_close_matches(bare.upper(), known, 1, cutoff=0.86)):
            found[name] = close[0]
    return found


def boolean(name: str, default: bool) -> bool:
    value = text(name)
    if not value:
        return default
    try:
        return BOOLEAN_WORDS[value.lower()]
    except KeyError:
        raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.") from None


def integer(name: str, default: int, minimum: int = 0, maximum: int = 2**31) -> int:
    value = text(name)
    if not value:
        return default
    if not value.isascii() or not value.isdigit() or len(value) > 12 or not minimum <= int(value) <= maximum:
        raise ImproperlyConfigured(f"{name} must be a whole number from {minimum} to {maximum}, not {value!r}.")
    return int(value)


def network_address(name: str, default: str) -> str:
    """Return an address of this machine to listen on: numbers, or localhost."""
    value = text(name, default)
    try:
        return value if value == "localhost" else str(ip_address(value))
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} must be an IP address such as 127.0.0.1 or 0.0.0.0, not {value!r}."
        ) from None


def text_list(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def choice(name: str, default: str, *allowed: str) -> str:
    value = text(name, default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} must be {' or '.join(allowed)}, not {value!r}.")
    return value


def required_secret(name: str, default: str = "", min_length: int = 50) -> str:
    """Return a required secret, which must be long and not an example. ``default`` is only for the embedded mode."""
    value = text(name) or default
    if not value:
        raise ImproperlyConfigured(f"{name} is not set. Generate one: heval secret")
    if len(value) < min_length or len(set(value)) < 5 or value.startswith("django-insecure"):
        raise ImproperlyConfigured(
            f"{name} must have at least {min_length} random characters. Generate one: heval secret"
        )
    return value


def site_origin(name: str, default: str = "") -> str:
    """Return an origin such as https://eval.example.org. http is allowed only for this machine."""
    value = text(name, default).rstrip("/")
    if not _is_origin(value):
        raise ImproperlyConfigured(
            f"{name} must be the address that annotators use, for example https://eval.example.org, not {value!r}."
        )
    if not _is_https_or_local(value):
        raise ImproperlyConfigured(
            f"{name} must begin with https://, not {value!r}: annotators' links are credentials."
        )
    return value


def origins(name: str) -> list[str]:
    """Return a comma-separated list of other sites' origins: https, or http on this machine."""
    values = [value.rstrip("/") for value in text_list(name)]
    for value in values:
        if not _is_origin(value) or not _is_https_or_local(value) or not ORIGIN.fullmatch(value):
            raise ImproperlyConfigured(f"{name} must name origins such as https://tasks.example.org, not {value!r}.")
    return values


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Return a comma-separated list of networks such as 10.1.0.0/16."""
    try:
        return [ip_network(value) for value in text_list(name)]
    except ValueError:
        raise ImproperlyConfigured(f"{name} must name networks such as 10.1.0.0/16, not {text(name)!r}.") from None


def _is_https_or_local(value: str) -> bool:
    return value.startswith("https://") or urlsplit(value).hostname in LOOPBACK


def _is_origin(value: str) -> bool:
    """Return an origin with only scheme, host and optional port."""
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError:
        return False
    is_bare = not (parts.path or parts.query or parts.fragment or parts.username)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_bare


def official_or_local_stand_in_origin(name: str, default: str) -> str:
    """Return the origin of an external service: its own, or a stand-in on this machine. Secrets are sent to it."""
    value = text(name, default).rstrip("/")
    if value != default and not re.fullmatch(r"http://(127\.0\.0\.1|localhost|\[::1\]):[0-9]{1,5}", value, re.ASCII):
        raise ImproperlyConfigured(
            f"{name} must be {default}, or a stand-in on this machine, for example http://127.0.0.1:9000."
        )
    return value


def url(name: str, *schemes: str, default: str = "") -> str:
    """Return the address of a server, '' if it is not set.

    The message never repeats it, because it may contain a password.
    """
    value = text(name, default)
    if not value:
        return ""
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 - reading it is what checks it
        is_valid = parts.scheme in schemes and bool(parts.hostname or parts.path)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ImproperlyConfigured(
            f"{name} must begin with {' or '.join(f'{scheme}://' for scheme in schemes)} and be a complete address. "
            "Write special characters of a password as %XX."
        )
    return value
