"""``pay <key>``: what is due to a link's people, written down now and in this process."""

from django.core.management.base import BaseCommand, CommandError

from annotators.models import Recruitment
from annotators.pay import costs, ledger
from annotators.recruitment.channels import REGISTRY


class Command(BaseCommand):
    help = "Write down what is due to the people of a link: each thing owed once, however often this runs. It orders and pays nothing."

    def add_arguments(self, parser):
        parser.add_argument("key", help="the key of the link by which people came")
        parser.add_argument("--dry-run", action="store_true", help="say what would be written down, and write nothing")

    def handle(self, *args, **options):
        recruitment = Recruitment.objects.select_related("study").filter(key=options["key"]).first()
        if recruitment is None:
            raise CommandError(f"There is no link with the key {options['key']}.")
        if recruitment.channel not in REGISTRY:
            raise CommandError(f"The channel {recruitment.channel} of this link is not installed.")
        told = ledger.settle_payments(recruitment, by=None, dry_run=options["dry_run"])
        for outcome, n in sorted(told.outcomes.items()):
            if n:
                self.stdout.write(f"{n:6} {outcome.replace('_', ' ')}")
        self.stdout.write(
            f"{told.due} newly due: {told.amount:.2f} {told.currency}. {told.paid} found paid, {told.cancelled} taken back."
        )
        sums = costs.link_cost(recruitment)
        unwritten = f" {sums.unsettled:.2f} not written down yet," if sums.unsettled else ""
        self.stdout.write(
            f"In all: {sums.paid:.2f} paid, {sums.ordered:.2f} ordered, {sums.due:.2f} due,{unwritten} {sums.to_come:.2f} to come."
        )
        if options["dry_run"]:
            self.stdout.write("Nothing was written down.")
