from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from heval_site.runtime.pseudonym_key import refuse_wrong_key_at_start
from heval_site.runtime.startup import (
    in_child_process,
    is_migrated,
    lock_home_and_check_port_or_exit,
    migrate_and_create_cache_and_media_folder,
    serve,
)

NO_ACCOUNT = """
heval serves {url}
There is no account yet. Make the first one in another terminal, with the same HEVAL_HOME: heval createsuperuser"""


def prepare() -> str:
    migrate_and_create_cache_and_media_folder()
    return ""


class Command(BaseCommand):
    help = "Serve the web site and run jobs in the foreground, with PORT and HEVAL_HOME."

    def add_arguments(self, parser):
        parser.add_argument(
            "--no-migrate",
            action="store_true",
            help=("refuse to start if migrations are not applied, instead of applying them"),
        )

    def handle(self, *args, **options):
        lock = lock_home_and_check_port_or_exit()
        if not options["no_migrate"]:
            in_child_process(prepare)
        elif not is_migrated():
            raise CommandError("Some migrations are not applied. Run: heval prepare")
        else:
            refuse_wrong_key_at_start()
        # The banner of the server, unless somebody must first make an account.
        serve(lock, "" if get_user_model().objects.exists() else NO_ACCOUNT.format(url=settings.SITE_URL))
