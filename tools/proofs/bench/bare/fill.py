"""Make the tables and the items. Run in the site's environment."""

import django
from django.core.management import call_command

from tools.proofs.bench.study import text_of


def fill() -> None:
    from tools.proofs.bench.bare.models import Item
    from tools.proofs.bench.bare.urls import ITEMS

    call_command("migrate", run_syncdb=True, verbosity=0)
    Item.objects.bulk_create(
        Item(prompt=f"Tell of the ferry, number {n}.", left=text_of("left", n), right=text_of("right", n))
        for n in range(ITEMS)
    )


if __name__ == "__main__":
    django.setup()
    fill()
