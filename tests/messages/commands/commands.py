"""The lines of the commands."""

from types import SimpleNamespace

from django.test import override_settings

from studies.services.jobs import LeaseLost
from tests import builders
from tests.messages.commands.scenarios import command, draft, launched, link
from tests.messages.lines import only_informs


def without_database():
    """The demo on a site that has a database server."""
    with override_settings(EMBEDDED=False):
        return command("demo")()


def seen_by_no_stranger():
    builders.user("stranger")
    return draft()


IMPORT = "heval_site.management.commands.import_study.import_stimuli_file"


def raising(error):
    def call(*given, **named):
        raise error

    return call


COMMANDS = {
    "The demo stores": without_database,
    "There is no file": command("import_study", "{code}", "{folder}/none.csv"),
    "The import was stopped": only_informs(
        command("import_study", "{code}", "{folder}/rows.csv", **{IMPORT: raising(KeyboardInterrupt)})
    ),
    "The import stood": command("import_study", "{code}", "{folder}/rows.csv", **{IMPORT: raising(LeaseLost)}),
    "A new study": command("import_study", "new", "{folder}/rows.csv"),
    "The file has prompts": command("import_study", "{code}", "{folder}/rows.csv"),
    "The columns have other": command("import_study", "{code}", "{folder}/own.csv"),
    "--pairs-by names attributes": command("import_study", "{code}", "{folder}/rows.csv", "--pairs-by", "domain"),
    "sd: … is not a number": command("power", "mean", "--difference", "0.1", "--sd", "0"),
    "tests: … is less": command("power", "mean", "--difference", "0.1", "--sd", "1", "--tests", "0"),
    "There is no active": command("token", "nobody"),
    "--days must be from": command("token", "researcher", "--days", "0"),
    "has no role": command("token", "stranger", "--study", "{code}", make=seen_by_no_stranger),
    "--link …: name a link": command("study", "reconcile", "{code}"),
    "--robots: … robots": command("study", "simulate", "{code}", "--robots", "0", make=launched),
    "--right: it is about": command("study", "simulate", "{code}", "--right", ".3", make=launched),
    "is not possible. Enter": command("study", "simulate", "{code}", "--abandoning", "2", make=launched),
    "Some migrations are not applied": command(
        "up",
        "--no-migrate",
        **{
            "heval_site.management.commands.up.lock_home_and_check_port_or_exit": lambda: None,
            "heval_site.management.commands.up.is_migrated": lambda: False,
        },
    ),
    "The analyses could not be recomputed": command(
        "rerun",
        "{folder}/rows.csv",
        **{
            "heval_site.management.commands.rerun.subprocess.run": lambda *_, **__: SimpleNamespace(
                returncode=1, stderr=""
            )
        },
    ),
    "The file is larger than": command(
        "import_study",
        "new",
        "{folder}/b.json",
        "--dry-run",
        **{"heval_site.management.commands.import_study.MAX_BUNDLE_BYTES": 3},
    ),
    "There is no user": command("import_study", "{code}", "{folder}/rows.csv", "--owner", "nobody"),
    "cannot be read: …. Correct": command(
        "study", "reconcile", "{code}", "--file", "{folder}/none.csv", make=lambda: link().study
    ),
    "--prefer: … is not a preference": command("study", "simulate", "{code}", "--prefer", "alpha", make=launched),
}
