from django.core.management.base import BaseCommand, CommandError

from heval_site.runtime.preparing import is_prepared, prepare, serve, take_place


class Command(BaseCommand):
    help = "Serve: the web site and the runner of jobs, in the foreground. PORT and HEVAL_HOME say where."

    def add_arguments(self, parser):
        parser.add_argument(
            "--no-migrate", action="store_true", help="refuse to start where migrations wait, instead of applying them"
        )

    def handle(self, *args, **options):
        lock = take_place()
        if not options["no_migrate"]:
            prepare()
        elif not is_prepared():
            raise CommandError("Migrations wait. Run: heval prepare")
        serve(lock)
