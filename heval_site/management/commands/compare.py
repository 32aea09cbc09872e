"""``compare <study> <study>``: compare closed studies or links that ask the same question now, in this process."""

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError

from analysis.data.frames import ORIGINS
from analysis.data.snapshot import TooManySnapshots
from analysis.report.between_studies import run_comparison
from heval_site.management.find_study import find_study
from studies.services.lifecycle import ActionRefused, FieldsRefused


class Command(BaseCommand):
    help = (
        "Compare two or more closed studies, or links of them, that ask the same question. Keep the result with the "
        "first study, and print what it says and its hash."
    )

    def add_arguments(self, parser):
        parser.add_argument(
            "study",
            nargs="+",
            help="A study's code (a unique beginning is enough) or title; or one of its links, as STUDY:LINK.",
        )
        parser.add_argument(
            "--comparison",
            action="append",
            default=[],
            help="The name of the comparison of one study, if the studies compare different systems. Give it once for each "
            "study, in their order.",
        )
        parser.add_argument(
            "--origins",
            metavar="A,B",
            help=f"answers to count, separated by commas: {', '.join(ORIGINS)} (default: live, or imported if all "
            "answers were imported)",
        )
        parser.add_argument("--level", type=float, default=0.95)

    def handle(self, *args, **options):
        found = []
        for named in options["study"]:
            title, _, link = named.rpartition(":")
            is_link = title and link.isalnum()
            found.append((find_study(title if is_link else named), link if is_link else ""))
        sent = {
            "studies": [f"{study.code}:{link}" if link else str(study.code) for study, link in found],
            "comparisons": options["comparison"],
            "level": options["level"],
        } | (
            {} if options["origins"] is None else {"origins": [name.strip() for name in options["origins"].split(",")]}
        )
        try:
            row = run_comparison(found[0][0], sent, by=None)
        except FieldsRefused as error:
            raise CommandError(" ".join(error.errors.values())) from None
        except (ActionRefused, PermissionDenied, TooManySnapshots) as error:
            raise CommandError(str(error)) from None
        for sentence in row.result["sentences"]:
            self.stdout.write(sentence)
        self.stdout.write(f"Comparison {row.number}, result SHA-256 {row.result_sha256}")
