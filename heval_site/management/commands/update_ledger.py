"""``update_ledger <key>``: record the payments due to a link's people now, in this process."""

from django.core.management.base import BaseCommand, CommandError

from annotators.models import Recruitment
from annotators.pay import costs, ledger
from annotators.recruitment.channels import REGISTRY


class Command(BaseCommand):
    help = "Record the payments due to the people of a link. Idempotent. It orders and pays nothing."

    def add_arguments(self, parser):
        parser.add_argument("key", help="the key of the link")
        parser.add_argument(
            "--dry-run", action="store_true", help="dry run: show what would be recorded, without recording it"
        )

    def handle(self, *args, **options):
        recruitment = Recruitment.objects.select_related("study").filter(key=options["key"]).first()
        if recruitment is None:
            raise CommandError(f"There is no link with the key {options['key']}. Copy the key from its address.")
        if recruitment.channel not in REGISTRY:
            raise CommandError(
                f"The channel {recruitment.channel} of this link is not installed. Install its package first."
            )
        summary = ledger.update_ledger(recruitment, by=None, dry_run=options["dry_run"])
        for outcome, n in sorted(summary.outcomes.items()):
            if n:
                self.stdout.write(f"{n:6} {outcome.replace('_', ' ')}")
        self.stdout.write(
            f"{summary.due} newly due: {summary.amount:.2f} {summary.currency}. {summary.paid} found paid, {summary.cancelled} "
            "cancelled."
        )
        sums = costs.compute_link_cost(recruitment)
        unrecorded = f" {sums.unsettled:.2f} not recorded yet," if sums.unsettled else ""
        self.stdout.write(
            f"Total: {sums.paid:.2f} paid, {sums.ordered:.2f} ordered, {sums.due:.2f} due,{unrecorded} "
            f"{sums.to_come:.2f} to come."
        )
        if options["dry_run"]:
            self.stdout.write("Nothing was recorded.")
