"""``rehearse <key>``: rehearse a study on this machine before you pay anyone."""

import json
import sys

from django.core.management.base import BaseCommand, CommandError

from annotators.models import Recruitment
from annotators.recruitment.panels.stand_in import DEFAULT_PEOPLE
from heval_site.rehearsal.rehearsal import RehearsalRefused, run_rehearsal
from heval_site.rehearsal.results import report_lines


class Command(BaseCommand):
    help = (
        "Rehearse a whole study with robots against a stand-in of its panel, in a separate copy on this "
        "machine. The exit code is 1 if something was not as expected."
    )

    def add_arguments(self, parser):
        parser.add_argument("key", help="the key of the link to rehearse")
        parser.add_argument(
            "--robots", type=int, default=DEFAULT_PEOPLE, help=f"number of robots (default {DEFAULT_PEOPLE})"
        )
        parser.add_argument("--seed", type=int, default=0, help="random seed of the robots' answers")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, *args, **options):
        recruitment = Recruitment.objects.select_related("study").filter(key=options["key"]).first()
        if recruitment is None:
            raise CommandError(f"There is no link with the key {options['key']}. Copy the key from its address.")
        try:
            report = run_rehearsal(recruitment, options["robots"], options["seed"])
        except RehearsalRefused as refused:
            raise CommandError(str(refused)) from None
        self.stdout.write(
            json.dumps(report, indent=1, ensure_ascii=False) if options["json"] else "\n".join(report_lines(report))
        )
        if not report["is_ok"]:
            sys.exit(1)
