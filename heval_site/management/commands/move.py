"""``heval move``: move a site from SQLite to PostgreSQL."""

import os
import tempfile
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from heval_site.backup import BackupRefused, restore_elsewhere, write_backup
from heval_site.runtime.startup import is_migrated
from heval_site.runtime.supervisor import try_lock_home


class Command(BaseCommand):
    help = "Copy this site from SQLite into an empty PostgreSQL database. End heval up first. The SQLite file stays as it is."

    def add_arguments(self, parser):
        parser.add_argument("url", help="The new database: postgres://user:password@host:5432/name")

    def handle(self, *, url, **options):
        try:
            self._move(url)
        except BackupRefused as error:
            raise CommandError(str(error)) from error

    def _move(self, url: str) -> None:
        if not settings.EMBEDDED:
            raise BackupRefused(
                "This site uses DATABASE_URL already. Between two servers use heval backup and heval restore."
            )
        if not is_migrated():
            raise BackupRefused("Some migrations are not applied. Run: heval prepare")
        lock = try_lock_home(settings.HEVAL_HOME)
        if lock is None:
            raise BackupRefused("heval up is running. End it first: answers that arrive during the move would be lost.")
        with lock, tempfile.TemporaryDirectory(dir=settings.HEVAL_HOME) as folder:
            file = Path(folder) / "site.zip"
            environment = os.environ | {
                "DATABASE_URL": url,
                "SECRET_KEY": settings.SECRET_KEY,
                "PSEUDONYM_KEY": settings.PSEUDONYM_KEY,
                "MEDIA_ROOT": str(settings.MEDIA_ROOT),
                "SITE_URL": os.environ.get("SITE_URL") or settings.SITE_URL,
            }
            write_backup(file, self.stdout.write)
            said = restore_elsewhere(file, environment)
        self.stdout.write(said.rpartition("\n")[0])
        self.stdout.write(
            f"Set DATABASE_URL, MEDIA_ROOT={settings.MEDIA_ROOT}, and SECRET_KEY and PSEUDONYM_KEY to the contents of the files of these names in "
            f"{settings.HEVAL_HOME}. Start the site, then delete {settings.DATABASES['default']['NAME']}."
        )
