"""Commands that talk to a site by the client of ``heval_site.management.client``. They need no database, and start without the applications."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, handle_default_options

from heval_site.management import operator
from heval_site.management.client import ClientError, Refused, Site, TimedOut, WrongUse
from heval_site.management.client.http import checked_token
from heval_site.management.client.tables import read_file
from heval_site.management.exit_codes import FAILED, TIMED_OUT, WRONG_USE


class SiteCommand(BaseCommand):
    """A command that reads the settings only to talk to this site."""

    requires_system_checks = []

    @staticmethod
    def add_site_arguments(parser: Any) -> None:
        parser.add_argument("--site", default="", help="The address of another site (default: this one).")
        parser.add_argument(
            "--token-file", type=Path, help="With --site: a file with the token, instead of HEVAL_TOKEN."
        )
        parser.add_argument("--user", default="", help="On this site: act as this user (default: the owner).")
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def connect(self, options: dict[str, Any], study: str = "", board: str = "") -> tuple[Site, str]:
        """Return the site, and the code of the named study. ``board``: whose owner acts on this site by default."""
        if options["site"]:
            site = self.make_site(options["site"], read_token(options["token_file"]))
            return site, site.study(study).code if study else ""
        connection, code = operator.connect(study, board, options["user"], self.say_progress)
        return Site("", connection=connection), code

    def make_site(self, address: str, token: str) -> Site:
        return Site(address, token, on_wait=self.say_progress)

    def end(self, data: Any, lines: list[str], code: int, options: dict[str, Any]) -> None:
        """Print the data as JSON or else the lines, and exit with the code."""
        for line in [json.dumps(data, ensure_ascii=False, default=str)] if options["json"] else lines:
            self.stdout.write(line)
        if code:
            self.stdout.flush()
            raise SystemExit(code)

    def run_from_argv(self, argv):
        """Run as Django does, which would then read the settings to close connections to databases."""
        self._called_from_command_line = True
        options = self.create_parser(*argv[:2]).parse_args(argv[2:])
        handle_default_options(options)
        try:
            self.execute(**vars(options))
        except CommandError as error:
            if options.traceback:
                raise
            self.stderr.write(f"heval: {error}")
            sys.exit(error.returncode)

    def execute(self, *args, **options):
        try:
            return super().execute(*args, **options)
        except ClientError as error:
            raise CommandError(str(error), returncode=_code_of(error)) from None

    def say_progress(self, reason: str) -> None:
        """Write what is waited for to the standard error, if it is new."""
        if reason and reason != getattr(self, "_said", ""):
            self._said = reason
            self.stderr.write(reason, style_func=str)
            self.stderr.flush()


def _code_of(error: ClientError) -> int:
    # A site answers 400 to what is wrong in itself, and other statuses to what it refuses in its present state.
    if isinstance(error, WrongUse) or (isinstance(error, Refused) and error.status == 400):
        return WRONG_USE
    return TIMED_OUT if isinstance(error, TimedOut) else FAILED


def read_token(path: Path | None) -> str:
    """Return the token of a file or of HEVAL_TOKEN. Raise WrongUse without one."""
    if path is None:
        return checked_token(None)
    try:
        return checked_token(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise WrongUse(f"{path} cannot be read as text. Correct --token-file.") from None


def read_input(path: str) -> bytes:
    """Return the content of a file, or of the standard input for ``-``."""
    return sys.stdin.buffer.read() if path == "-" else read_file(path)
