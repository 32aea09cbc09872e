"""``heval judge STUDY``: say whether a study's judge is good enough, for people and, by the exit code, for programs."""

from heval_site.management.client import Study
from heval_site.management.exit_codes import EXIT_CODES, NO, OPEN, YES
from heval_site.management.site_command import SiteCommand

CODES = {"good": YES, "not_good": NO, "stale": OPEN, "open": OPEN}


class Command(SiteCommand):
    help = (
        "Print whether the judge of a study is good enough, on this site or another: yes, no, or open if the result is open or stale. "
        f"{EXIT_CODES}"
    )

    def add_arguments(self, parser):
        parser.add_argument("study", metavar="STUDY", help="The study's code, the beginning of its code, or title.")
        self.add_site_arguments(parser)

    def handle(self, *, study, **options):
        found = Study(*self.connect(options, study)).judge()
        basis = f"{found['n_verdicts']} verdicts of {found['n_people']} people about {found['n_outputs']} outputs"
        computed = f", computed {found['at'][:10]}" if found["at"] else ""
        # A site of an earlier version says nothing about its sample.
        sentences = [f"  {one}" for one in (found.get("sample"), *found["sentences"]) if one]
        self.end(found, [f"{found['headline']} ({basis}{computed})", *sentences], CODES[found["state"]], options)
