import json
import sys

from django.core.management.base import BaseCommand

from heval_site.runtime import doctor

MARKS = {doctor.OK: "ok  ", doctor.WARNING: "warn", doctor.FAILED: "FAIL", doctor.SKIPPED: "-   "}


class Command(BaseCommand):
    help = "Check this installation, and say how to fix each problem. The exit code is 1 if a check fails."
    requires_system_checks = ()

    def add_arguments(self, parser):
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")

    def handle(self, *args, **options):
        results = []
        for result in doctor.run_all_checks():
            results.append(result)
            if not options["json"]:
                self.stdout.write(f"{MARKS[result.status]} {result.name}: {result.message}")
                if result.fix:
                    self.stdout.write(f"     {result.fix}")
        if options["json"]:
            self.stdout.write(json.dumps(doctor.results_as_json(results), indent=2))
        if doctor.has_failed_result(results):
            sys.exit(1)
