"""`heval`: the management commands under the names that people use."""

import os
import secrets
import sys

COMMANDS = {
    "demo": "a site with a study, its annotator's link and its report, at once",
    "up": "serve: the web site and the runner of jobs",
    "worker": "run jobs alone, without a broker",
    "prepare": "make database, cache and folders ready",
    "import": "read a study, stimuli or old answers from files",
    "export": "write a study's answers, or the whole of it, to files",
    "simulate": "play a study with robots of known preferences",
    "rehearse": "play a study at a stand-in of its panel, before anybody is paid",
    "reconcile": "read what a panel shows, from its service or its file",
    "pay": "write down what is due to a link's people, or only say it",
    "analyse": "run an analysis and print its numbers",
    "doctor": "check this installation, and say what to do",
    "secret": "print a new random secret",
}
# Names that Python or Django keep for themselves.
COMMAND_MODULES = {"import": "import_study"}


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {words}" for name, words in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: heval COMMAND [--help]",
            "",
            *lines,
            "",
            "and every command of Django, such as createsuperuser, migrate, shell.",
        ]
    )


def main(arguments: list[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return
    if arguments[0] == "--version":
        from studies.services.version import version

        print(version())
        return
    if arguments == ["secret"]:  # serves those whose settings are not complete yet
        print(secrets.token_urlsafe(60))
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "heval_site.settings")
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    name, *rest = arguments
    try:
        settings.SECRET_KEY  # noqa: B018 - reading it is what checks the environment
        execute_from_command_line(["heval", COMMAND_MODULES.get(name, name), *rest])
    except ImproperlyConfigured as error:
        sys.exit(f"heval: {error}")


if __name__ == "__main__":
    main()
