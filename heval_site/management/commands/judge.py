"""``heval judge STUDY``: say whether a study's judge is good enough, for people and, by the exit code, for programs."""

from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

from heval_site.management.site_client import SiteCommand, StudyClient, read_token

GOOD, NOT_GOOD, STALE_OR_OPEN, FAILED = 0, 1, 2, 3
CODES = {"good": GOOD, "not_good": NOT_GOOD, "stale": STALE_OR_OPEN, "open": STALE_OR_OPEN}


class Command(SiteCommand):
    help = (
        "Print whether the judge of a study is good enough, on this site or another. Exit with 0 if it is, 1 if it is not, 2 if the "
        "result is stale or open, and 3 if the site does not say. The token comes from HEVAL_TOKEN or --token-file."
    )
    failed = FAILED

    def add_arguments(self, parser):
        parser.add_argument("study", help="The code of the study, which is in the address of its pages.")
        parser.add_argument("--site", help="The address of the site (default: SITE_URL, this site).")
        parser.add_argument("--token-file", type=Path, help="A file with the token, instead of HEVAL_TOKEN.")

    def handle(self, *, study, site, token_file, **options):
        try:
            found = self.make_client(site or settings.SITE_URL, study, read_token(token_file)).get("judge/")
        except CommandError as error:
            raise CommandError(str(error), returncode=FAILED) from None
        basis = f"{found['n_verdicts']} verdicts of {found['n_people']} people about {found['n_outputs']} outputs"
        computed = f", computed {found['at'][:10]}" if found["at"] else ""
        self.stdout.write(f"{found['headline']} ({basis}{computed})")
        # A site of an earlier version says nothing about its sample.
        for sentence in filter(None, [found.get("sample"), *found["sentences"]]):
            self.stdout.write(f"  {sentence}")
        if code := CODES[found["state"]]:
            self.stdout.flush()
            raise SystemExit(code)

    def make_client(self, site: str, study: str, token: str) -> StudyClient:
        return StudyClient(site, study, token)
