"""``heval restore``: make a site of a backup, or verify that it can be made."""

import os
import tempfile
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from heval_site.backup import BackupRefused, WrongFile, restore, restore_elsewhere
from heval_site.management.exit_codes import FAILED, WRONG_USE


class Command(BaseCommand):
    help = "Make a site of a backup, in an empty database. With --verify, restore it into a temporary site only."

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path, help="The file that heval backup wrote.")
        parser.add_argument(
            "--verify",
            action="store_true",
            help="Restore the backup into a temporary site, compare each row and file, and delete that site again.",
        )
        parser.add_argument(
            "--erasures",
            type=Path,
            action="append",
            default=[],
            metavar="FILE",
            help="A copy of erasures.jsonl of the former site: people who withdrew after the backup are erased again. The one of this site is always read.",
        )

    def handle(self, *, file, verify, erasures, **options):
        own = settings.ERASURES_FILE
        try:
            if missing := [path for path in erasures if not path.is_file()]:
                raise WrongFile(f"There is no file {missing[0]}. Correct the path.")
            if verify:
                self._verify(file, erasures)
                return
            manifest = restore(file, [*erasures, *([own] if own.exists() else [])], self.stdout.write)
        except BackupRefused as error:
            raise CommandError(str(error), returncode=WRONG_USE if isinstance(error, WrongFile) else FAILED) from error
        self.stdout.write(f"The site of {manifest['made_at']} is restored. Run heval doctor, then start it.")

    def _verify(self, file: Path, erasures: list[Path]) -> None:
        """Restore in a process of its own, with a home that is deleted afterwards."""
        with tempfile.TemporaryDirectory() as home:
            kept = ("PATH", "LANG", "TMPDIR", "PYTHONPATH")
            environment = {name: os.environ[name] for name in kept if name in os.environ} | {"HEVAL_HOME": home}
            said = restore_elsewhere(file, environment, erasures)
        self.stdout.write(said.rpartition("\n")[0])
        self.stdout.write("This backup can be restored. The site itself was not touched.")
