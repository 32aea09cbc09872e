"""The lines of the commands."""

from django.test import override_settings

from tests.messages.commands.scenarios import COMMANDS, command, launched, link

NO_LINK = "There is no link with the key nothing"
COPY = "Copy the key from its address"


def without_database():
    """The demo on a site that has a database server."""
    with override_settings(EMBEDDED=False):
        return command("demo")()


LINES = {
    f"{COMMANDS}:_simulate": [
        (
            "The study is launched",
            "--quick shows approximate numbers",
            command("plan", "--study", "{code}", make=launched),
        )
    ],
    f"{COMMANDS}:_read_bundle": [
        ("There is no file", "Correct the path", command("plan", "{folder}/none.json")),
        (
            "The file is larger than 10 bytes",
            "Remove outputs from it",
            command("plan", "{folder}/rows.csv", **{"heval_site.management.commands.plan.MAX_BUNDLE_BYTES": 10}),
        ),
    ],
    f"{COMMANDS}:handle": [
        ("The demo stores its data in HEVAL_HOME", "Unset DATABASE_URL first", without_database),
        (
            "The study is still collecting, so answers by system are hidden",
            "--include-hidden-outcomes",
            command("export", "{code}", make=launched),
        ),
        ("There is no file", "Correct the path", command("import_study", "{code}", "{folder}/none.csv")),
        ("A new study needs an owner", "Add --owner NAME", command("import_study", "new", "{folder}/rows.csv")),
        (
            "--column maps columns of answers",
            "Add --answers",
            command("import_study", "{code}", "{folder}/rows.csv", "--column", "a=b"),
        ),
        (
            "--pairs-by names attributes of pairs",
            "Add --pairs",
            command("import_study", "{code}", "{folder}/rows.csv", "--pairs-by", "domain"),
        ),
        (
            "A bundle and --study are two studies",
            "Give one of them",
            command("plan", "{folder}/none.json", "--study", "{code}"),
        ),
        (
            "A stored plan has a seed of its own",
            "Leave out --seed or --study",
            command("plan", "--study", "{code}", "--seed", "1"),
        ),
        (
            "--sd: 0 is not a number above 0",
            "Give how much people's means vary",
            command("power", "mean", "--difference", "0.1", "--sd", "0"),
        ),
        (
            "--tests: 0 is less than 1",
            "Give how many comparisons you make",
            command("power", "mean", "--difference", "0.1", "--sd", "1", "--tests", "0"),
        ),
        (NO_LINK, COPY, command("update_ledger", "nothing")),
        (NO_LINK, COPY, command("reconcile", "nothing")),
        (NO_LINK, COPY, command("rehearse", "nothing")),
        (
            "The channel gone of this link is not installed",
            "Install its package first",
            command("update_ledger", "{key}", make=lambda: link(channel="gone")),
        ),
        (
            "--robots: 0 robots cannot answer",
            "Enter at least 1",
            command("simulate", "{code}", "--robots", "0", make=launched),
        ),
        (
            "--abandoning: 2 is not a share",
            "Enter a number from 0 to 1",
            command("simulate", "{code}", "--abandoning", "2", make=launched),
        ),
        (
            "Some migrations are not applied",
            "Run: heval prepare",
            command(
                "up",
                "--no-migrate",
                **{
                    "heval_site.management.commands.up.lock_home_and_check_port_or_exit": lambda: None,
                    "heval_site.management.commands.up.is_migrated": lambda: False,
                },
            ),
        ),
    ],
    f"{COMMANDS}:_write_parquet": [
        (
            "A Parquet file cannot be printed",
            "Name a file with --output",
            command("export", "{code}", "--format", "parquet"),
        ),
    ],
    f"{COMMANDS}:_atomic_output": [
        (
            "none/x.csv cannot be written (No such file or directory)",
            "Name another file with --output",
            command("export", "{code}", "--output", "{folder}/none/x.csv"),
        ),
    ],
    f"{COMMANDS}:_import_answers": [
        (
            "--column a: this is not HEVAL_NAME=FILE_NAME",
            "Correct this option",
            command("import_study", "{code}", "{folder}/rows.csv", "--answers", "--column", "a"),
        ),
    ],
    f"{COMMANDS}:_import_bundle": [
        (
            "The file is larger than 3 bytes",
            "Remove outputs from it",
            command(
                "import_study",
                "new",
                "{folder}/b.json",
                "--dry-run",
                **{"heval_site.management.commands.import_study.MAX_BUNDLE_BYTES": 3},
            ),
        ),
    ],
    f"{COMMANDS}:_get_user": [
        (
            "There is no user nobody",
            "Correct --owner",
            command("import_study", "{code}", "{folder}/rows.csv", "--owner", "nobody"),
        ),
    ],
    f"{COMMANDS}:_reconcile_file": [
        (
            "none.csv cannot be read: No such file or directory",
            "Correct --file",
            command("reconcile", "{key}", "--file", "{folder}/none.csv", make=link),
        ),
        (
            "binary.csv is not UTF-8 text",
            "Save it as UTF-8",
            command("reconcile", "{key}", "--file", "{folder}/binary.csv", make=link),
        ),
    ],
    f"{COMMANDS}:_parse_preferences": [
        (
            "--prefer: 'alpha' is not a preference",
            "Write SYSTEM=NUMBER",
            command("simulate", "{code}", "--prefer", "alpha", make=launched),
        ),
    ],
}
