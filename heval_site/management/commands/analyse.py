"""``analyse <study>``: create and store a report now, in this process."""

from django.core.management.base import BaseCommand, CommandError

from analysis.data.frames import ORIGINS
from analysis.data.snapshot import TooManySnapshots
from analysis.protocols.blocks.warning_sentences import SEVERITY_LABELS
from analysis.report.build import DEFAULT_PARAMETERS, BadParameters
from analysis.report.runs import run_analysis
from heval_site.management.find_study import find_study


class Command(BaseCommand):
    help = "Create a study's report and store it under the next number. Print its conclusions and its hash."

    def add_arguments(self, parser):
        parser.add_argument("study", help="The study's code (a unique beginning is enough) or title.")
        parser.add_argument(
            "--origins",
            metavar="A,B",
            help=f"answers to count, separated by commas: {', '.join(ORIGINS)} (default: live, or imported if all "
            "answers were imported)",
        )
        parser.add_argument("--level", type=float, default=DEFAULT_PARAMETERS["level"])
        parser.add_argument("--resamples", type=int, default=DEFAULT_PARAMETERS["resamples"])
        parser.add_argument("--star-scheme", default=DEFAULT_PARAMETERS["star_scheme"])
        parser.add_argument(
            "--deltas",
            type=float,
            nargs="+",
            default=[],
            metavar="DELTA",
            help="two choices: further values of delta for which labels are counted, such as .01 .001 .0001",
        )

    def handle(self, *args, **options):
        parameters = {
            "level": options["level"],
            "resamples": options["resamples"],
            "star_scheme": options["star_scheme"],
            "deltas": options["deltas"],
        } | (
            {} if options["origins"] is None else {"origins": [name.strip() for name in options["origins"].split(",")]}
        )
        try:
            run = run_analysis(
                find_study(options["study"]), parameters, by=None, progress=self._progress_printer(options["verbosity"])
            )
        except (BadParameters, TooManySnapshots) as error:
            raise CommandError(str(error)) from None
        for conclusion in run.result["conclusions"]:
            self.stdout.write(f"{conclusion['claim']} {conclusion['text']}")
            for warning in conclusion["warnings"]:
                self.stdout.write(f"  {SEVERITY_LABELS[warning['severity']]}: {warning['text']}")
        if run.result["outcomes"]["is_hidden"]:
            self.stdout.write(run.result["outcomes"]["reason"])
        self.stdout.write(f"Analysis {run.number}, result SHA-256 {run.result_sha256}")

    def _progress_printer(self, verbosity):
        def say(done, total, doing):
            if verbosity > 1:
                self.stderr.write(f"{done}/{total} {doing}")

        return say
