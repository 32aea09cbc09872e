"""``heval backup``: write the whole site into one file."""

from datetime import UTC, datetime
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from heval_site.backup import BackupRefused, WrongFile, write_backup
from heval_site.management.exit_codes import FAILED, WRONG_USE
from heval_site.runtime.startup import is_migrated


class Command(BaseCommand):
    help = "Write a backup of the whole site, also while people answer: rows, files and keys. Keep the file as secret as the site itself."

    def add_arguments(self, parser):
        parser.add_argument(
            "file", nargs="?", type=Path, help="The file to write. By default heval-backup-TIME.zip in this folder."
        )

    def handle(self, *, file, **options):
        if not is_migrated():
            raise CommandError("Some migrations are not applied. Run: heval prepare")
        file = file or Path(f"heval-backup-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip")
        try:
            write_backup(file, self.stdout.write)
        except BackupRefused as error:
            raise CommandError(str(error), returncode=WRONG_USE if isinstance(error, WrongFile) else FAILED) from error
        self.stdout.write(
            f"The backup is {file}. It contains the site's keys and all answers. Nobody else may read it."
        )
