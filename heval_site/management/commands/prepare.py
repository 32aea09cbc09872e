from django.core.management.base import BaseCommand

from heval_site.runtime.startup import migrate_and_create_cache_and_media_folder


class Command(BaseCommand):
    help = "Prepare the database, the cache table and the media folder. Idempotent."

    def handle(self, *args, **options):
        migrate_and_create_cache_and_media_folder(options["verbosity"])
