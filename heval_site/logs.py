"""One line an event, and no credential in it: an annotator's address is a password, and so may be a query.

Stands alone (no Django), for the web server's own log uses it too.
"""

import json
import logging
import re
import time

CODE = re.compile(r"(?<![\w/])(?:https?://[^\s/]+)?/(p|e)/[^\s/?\"'<>]+")
QUERY = re.compile(r"(/[^\s?\"'<>]*)\?[^\s\"'<>]+")
PASSWORD = re.compile(r"(\w+://[^\s:/@]*):[^\s@]+@")


def redacted(text: str) -> str:
    """Without the codes of assignments and recruitments, without query strings, without passwords in addresses."""
    text = PASSWORD.sub(r"\1:***@", text)
    return QUERY.sub(r"\1", CODE.sub(r"/\1/***", text))


class Plain(logging.Formatter):
    """For people: a traceback keeps its lines."""

    converter = time.gmtime

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", style="{")
        self.default_msec_format = "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


class Json(logging.Formatter):
    """For programs: everything of an event in one line."""

    converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": redacted(record.getMessage()),
        }
        if record.exc_info:
            event["exception"] = redacted(self.formatException(record.exc_info))
        return json.dumps(event, ensure_ascii=False)


FORMATS = {"plain": Plain, "json": Json}


def configuration(style: str) -> dict:
    """For ``logging.config.dictConfig``: Django, jobs and Celery, to standard error."""
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
            # Tells of every try while the database is away; the request that fails is told of by us.
            "psycopg.pool": {"level": "ERROR"},
            # Its own handlers would print addresses whole.
            "django": {"handlers": [], "level": "WARNING", "propagate": True},
            "django.server": {"handlers": [], "level": "INFO", "propagate": True},
            # Wrong addresses are daily bread of a public site.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "gunicorn.error": {"handlers": [], "level": "WARNING", "propagate": True},
            "gunicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
        },
    }
