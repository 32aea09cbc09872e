"""The `heval` command: management commands under short names."""

import errno
import os
import secrets
import sys
from argparse import ArgumentParser
from importlib import import_module

COMMANDS = {
    "demo": "start a demo site with a study, a link and a report",
    "up": "serve the web site and run jobs",
    "worker": "run only jobs, without a broker",
    "prepare": "prepare the database, the cache and the folders",
    "study": "create, plan, launch, link, close, report: all about one study",
    "token": "make a token for programs",
    "import": "import a study, stimuli or existing answers from files",
    "rerun": "recompute the numbers of an archive, and say which differ",
    "submit": "submit outputs to a board of this or another site",
    "power": "print the exact power of a classical test, or its people",
    "judge": "say by the exit code whether a judge is good enough",
    "backup": "write the whole site into one file, while it runs",
    "restore": "make a site of a backup, or verify that it can be made",
    "move": "move a site from SQLite to PostgreSQL",
    "doctor": "check this installation and say how to fix problems",
    "secret": "print a new random secret",
    "completion": "print the completion of these names for bash",
}
# These only talk to a site: see ``site_command.SiteCommand``.
SITE_COMMANDS = ("study", "submit", "judge")
# Names that Python or Django reserve.
COMMAND_MODULES = {"import": "import_study"}
# The exit codes of a shell for a program that ends by these signals: SIGINT and SIGPIPE.
STOPPED, PIPE_CLOSED = 130, 141


def usage_text() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {description}" for name, description in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: heval COMMAND [--help]",
            *lines,
            "and every Django command, for example createsuperuser, migrate, shell.",
        ]
    )


def main(arguments: list[str] | None = None) -> None:
    """Run a command. Ctrl-C, a pipe that closes and a disk that cannot be written end it with a line instead of a traceback."""
    try:
        _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except BrokenPipeError:
        # Python flushes the standard output again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PIPE_CLOSED)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.ENOSPC):
            raise
        sys.exit(
            f"heval: {error.filename or 'A file'} cannot be written: {error.strerror}. Choose another folder or disk."
        )


def _run(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage_text())
        return
    if arguments[0] == "--version":
        from studies.services.version import version

        print(version())
        return
    if arguments[0] == "secret":  # these work before the settings are complete
        ArgumentParser("heval secret", description="Print a new random secret.").parse_args(arguments[1:])
        print(secrets.token_urlsafe(60))
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "heval_site.settings")
    import django
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line, get_commands
    from django.db.utils import OperationalError

    name, *rest = arguments
    try:
        if name in SITE_COMMANDS:
            import_module(f"heval_site.management.commands.{name}").Command().run_from_argv(["heval", *arguments])
            return
        settings.SECRET_KEY  # noqa: B018 - reading it is what checks the environment
        if name not in COMMANDS:
            django.setup()
            if name not in get_commands():
                print(f"heval: There is no command {name}. heval help lists the commands.", file=sys.stderr)
                sys.exit(2)
        execute_from_command_line(["heval", COMMAND_MODULES.get(name, name), *rest])
    except ImproperlyConfigured as error:
        sys.exit(f"heval: {error}")
    except OperationalError as error:
        sys.exit(f"heval: The database cannot be used: {error}. heval doctor says what to change.")


if __name__ == "__main__":
    main()
