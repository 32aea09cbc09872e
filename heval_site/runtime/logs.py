"""Logs with one line per event and no credentials: addresses of people and query strings can be passwords.

A line about a request names its route, never the values in it. Does not import Django before a request is there, because
the web server's own log uses this module too.
"""

import json
import logging
import re
import time
from typing import Any

# The first words of all addresses that have a variable part. What follows can be a code, a key or a token.
FIRST_WORDS = ("p", "e", "admin", "api", "boards", "docs", "judge-badges", "r", "studies")
ADDRESS = re.compile(rf"(?<![\w/])(?:https?://[^\s/]+)?/({'|'.join(FIRST_WORDS)})/[^\s?\"'<>]+")
QUERY = re.compile(r"(?<![^\s?\"'<>])([^\s?\"'<>/]*+/[^\s?\"'<>]*+)\?[^\s\"'<>]+")
PASSWORD = re.compile(r"(\b\w{1,30}://[^\s:/@]*):[^\s@]{1,500}@")
# Addresses must not contain characters that break a log line or control the reader's terminal.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def redact_url_secrets(text: str) -> str:
    """Return the text without the variable parts of addresses, query strings, and passwords in addresses."""
    text = PASSWORD.sub(r"\1:***@", text)
    return QUERY.sub(r"\1", ADDRESS.sub(r"/\1/***", text))


def redact(record: logging.LogRecord, text: str) -> str:
    """Return the text without secrets. If the record has a request, its route replaces its address.

    The values in the address are masked everywhere, because messages of exceptions repeat them.
    """
    request = getattr(record, "request", None)
    if hasattr(request, "path_info"):  # the request of Django's development server is a socket
        for value, mask in _masks(request):
            text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", mask.replace("\\", r"\\"), text)
    return redact_url_secrets(text)


def _masks(request: Any) -> list[tuple[str, str]]:
    """Return what to mask for this request, the longest first, and what takes its place."""
    from django.urls import Resolver404, resolve

    path = request.path.strip("/")
    try:
        match = request.resolver_match or resolve(request.path_info)
    except Resolver404:
        return [(value, "(unknown address)") for value in (request.path, path) if path]
    masks = {request.path: match.route, path: match.route.strip("/")}
    for value in match.kwargs.values():
        if not isinstance(value, int):  # numbers of rows are no secrets
            masks |= {str(value): "***", str(getattr(value, "hex", value)): "***"}
    # Django escapes what it logs of an address.
    masks |= {value.encode("unicode_escape").decode(): mask for value, mask in masks.items()}
    return sorted(((value, mask) for value, mask in masks.items() if value.strip("/")), key=lambda one: -len(one[0]))


def escape_controls(text: str) -> str:
    """Escape every character that controls a terminal or ends a line."""
    return CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class PlainFormatter(logging.Formatter):
    """Formatter for people: a traceback keeps its lines."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", style="{")
        self.default_msec_format = "%s.%03dZ"

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = escape_controls(record.message)
        return super().formatMessage(record)

    def formatException(self, ei) -> str:
        return "\n".join(map(escape_controls, super().formatException(ei).split("\n")))

    def format(self, record: logging.LogRecord) -> str:
        return redact(record, super().format(record))


class JsonFormatter(logging.Formatter):
    """Formatter for programs: each event is one line."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record, record.getMessage()),
        }
        if record.exc_info:
            event["exception"] = redact(record, self.formatException(record.exc_info))
        return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(event, ensure_ascii=False))


FORMATS = {"plain": PlainFormatter, "json": JsonFormatter}


def logging_config(style: str) -> dict:
    """Return the configuration for ``logging.config.dictConfig``: Django, jobs and Celery, to standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": FORMATS[style]}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": "WARNING"},
        "loggers": {
            "heval": {"level": "INFO"},
            "celery": {"level": "WARNING"},
            "axes": {"level": "ERROR"},
            # It logs every attempt while the database is down; heval logs the failed request itself.
            "psycopg.pool": {"level": "ERROR"},
            # Its own handlers would print complete addresses.
            "django": {"handlers": [], "level": "WARNING", "propagate": True},
            "django.server": {"handlers": [], "level": "INFO", "propagate": True},
            # Wrong addresses are common on a public site.
            "django.request": {"level": "ERROR"},
            # heval logs a wrong host without a traceback.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "gunicorn.error": {"handlers": [], "level": "WARNING", "propagate": True},
            "gunicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
        },
    }
