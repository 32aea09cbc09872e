from django.core.management.base import BaseCommand

from heval_site.runtime.startup import migrate_and_create_cache_and_media_folder


class Command(BaseCommand):
    help = "Prepare the database, the cache table and the media folder. Idempotent."

    def add_arguments(self, parser):
        parser.add_argument(
            "--accept-new-pseudonym-key",
            action="store_true",
            help="accept a new PSEUDONYM_KEY if the former one is lost; earlier annotators then count as new people",
        )

    def handle(self, *args, **options):
        migrate_and_create_cache_and_media_folder(options["verbosity"], options["accept_new_pseudonym_key"])
