"""Pay's receivers of the signals of recruitment."""

from collections.abc import Iterator

from annotators.models import Recruitment
from annotators.recruitment.panels.alerts import Alert

from . import ledger, promises


def collect_pay_obstacles(sender, recruitment: Recruitment, **kwargs) -> list[str]:
    return promises.pay_obstacles(recruitment)


def collect_retention_alerts(sender, recruitment: Recruitment, **kwargs) -> Iterator[Alert]:
    return ledger.id_retention_alerts(recruitment)


def update_ledger_after_import(sender, recruitment: Recruitment, **kwargs) -> None:
    # Settle payments after each check or import, by any user or job.
    ledger.update_ledger(recruitment, by=None)
