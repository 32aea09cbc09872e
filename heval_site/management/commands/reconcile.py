"""``reconcile <key>``: read a panel's submissions now, in this process."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from annotators.models import Recruitment
from annotators.recruitment.channels.exported_file import LIMITS
from annotators.recruitment.panels.http_client import NoService
from annotators.recruitment.panels.reconcile import MATCH_STATUSES, import_panel_file_and_release_places
from annotators.recruitment.panels.sync import PanelUnavailable, send_orders_and_sync_panel
from heval_site.management.site_command import WRONG_USE
from studies.stimuli.lines import UnreadableFile
from studies.stimuli.rows import text_of_table


class Command(BaseCommand):
    help = "Compare the panel's submissions with heval's assignments, from its service or its exported file."

    def add_arguments(self, parser):
        parser.add_argument("key", help="the key of the link")
        parser.add_argument("--file", help="the panel's exported file, to read instead of asking its service")
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="dry run: show what would change, without changing or ordering anything",
        )

    def handle(self, *args, **options):
        recruitment = Recruitment.objects.select_related("study").filter(key=options["key"]).first()
        if recruitment is None:
            raise CommandError(
                f"There is no link with the key {options['key']}. Copy the key from its address.", returncode=WRONG_USE
            )
        try:
            if options["file"]:
                summary = self._reconcile_file(recruitment, options["file"], options["dry_run"])
            else:
                summary = send_orders_and_sync_panel(recruitment, lambda *_: None, dry_run=options["dry_run"])
        except (NoService, PanelUnavailable) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"{summary.seen} submissions: {summary.new} new, {summary.changed} changed, {summary.linked} "
            f"matched to assignments, {summary.confirmed} confirmed, {summary.released} places released"
        )
        for name, n in summary.classes.items():
            label, advice = MATCH_STATUSES[name]
            self.stdout.write(f"{n:6} {label}{f'. {advice}' if advice else ''}")
        if options["dry_run"]:
            self.stdout.write("Nothing was changed.")

    def _reconcile_file(self, recruitment, name, is_dry):
        try:
            text = text_of_table(name, Path(name).read_bytes(), LIMITS.bytes)
            return import_panel_file_and_release_places(recruitment, text, None, is_dry)
        except OSError as error:
            raise CommandError(
                f"{name} cannot be read: {error.strerror}. Correct --file.", returncode=WRONG_USE
            ) from None
        except UnreadableFile as refused:
            raise CommandError(refused.text, returncode=WRONG_USE) from None
        except ValueError as refused:
            raise CommandError(str(refused), returncode=WRONG_USE) from None
