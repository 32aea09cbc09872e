from django.core.management.base import BaseCommand

from heval_site.runtime.startup import prepare_site


class Command(BaseCommand):
    help = "Prepare the database, the cache table and the media folder. Idempotent."

    def handle(self, *args, **options):
        prepare_site(options["verbosity"])
