"""One line an event, and no credential in it: an annotator's address is a password, and so may be a query.

Stands alone (no Django), for the web server's own log uses it too.
"""

import json
import logging
import re
import time

CODE = re.compile(r"(?<![\w/])(?:https?://[^\s/]+)?/(p|e)/[^\s/?\"'<>]+")
QUERY = re.compile(r"(?<![^\s?\"'<>])([^\s?\"'<>/]*+/[^\s?\"'<>]*+)\?[^\s\"'<>]+")
PASSWORD = re.compile(r"(\b\w{1,30}://[^\s:/@]*):[^\s@]{1,500}@")
# A line of our own making, or the screen of who reads it, is nothing that an address may hold.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def redact(text: str) -> str:
    """Without the codes of assignments and recruitments, without query strings, without passwords in addresses."""
    text = PASSWORD.sub(r"\1:***@", text)
    return QUERY.sub(r"\1", CODE.sub(r"/\1/***", text))


def escape_controls(text: str) -> str:
    """With every character that moves a terminal, or ends a line, written out."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class PlainFormatter(logging.Formatter):
    """For people: a traceback keeps its lines."""

    converter = time.gmtime

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", style="{")
        self.default_msec_format = "%s.%03dZ"

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = escape_controls(record.message)
        return super().formatMessage(record)

    def formatException(self, ei) -> str:
        return "\n".join(map(escape_controls, super().formatException(ei).split("\n")))

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class JsonFormatter(logging.Formatter):
    """For programs: everything of an event in one line."""

    converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if record.exc_info:
            event["exception"] = redact(self.formatException(record.exc_info))
        return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(event, ensure_ascii=False))


FORMATS = {"plain": PlainFormatter, "json": JsonFormatter}


def logging_config(style: str) -> dict:
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
