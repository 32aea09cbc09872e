"""Logs with one line per event and no credentials: annotators' addresses and query strings can be passwords.

Does not import Django, because the web server's own log uses it too.
"""

import json
import logging
import re
import time

CODE = re.compile(r"(?<![\w/])(?:https?://[^\s/]+)?/(p|e)/[^\s/?\"'<>]+")
QUERY = re.compile(r"(?<![^\s?\"'<>])([^\s?\"'<>/]*+/[^\s?\"'<>]*+)\?[^\s\"'<>]+")
PASSWORD = re.compile(r"(\b\w{1,30}://[^\s:/@]*):[^\s@]{1,500}@")
# Addresses must not contain characters that break a log line or control the reader's terminal.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def redact_url_secrets(text: str) -> str:
    """Return the text without codes of assignments and recruitments, query strings, and passwords in addresses."""
    text = PASSWORD.sub(r"\1:***@", text)
    return QUERY.sub(r"\1", CODE.sub(r"/\1/***", text))


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
        return redact_url_secrets(super().format(record))


class JsonFormatter(logging.Formatter):
    """Formatter for programs: each event is one line."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": redact_url_secrets(record.getMessage()),
        }
        if record.exc_info:
            event["exception"] = redact_url_secrets(self.formatException(record.exc_info))
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
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "gunicorn.error": {"handlers": [], "level": "WARNING", "propagate": True},
            "gunicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
        },
    }
