from django.core.management.base import BaseCommand, CommandError

from heval_site.runtime.startup import claim_home_and_port, is_migrated, prepare_site, serve


class Command(BaseCommand):
    help = "Serve: the web site and the runner of jobs, in the foreground. PORT and HEVAL_HOME say where."

    def add_arguments(self, parser):
        parser.add_argument(
            "--no-migrate", action="store_true", help="refuse to start where migrations wait, instead of applying them"
        )

    def handle(self, *args, **options):
        lock = claim_home_and_port()
        if not options["no_migrate"]:
            prepare_site()
        elif not is_migrated():
            raise CommandError("Migrations wait. Run: heval prepare")
        serve(lock)
