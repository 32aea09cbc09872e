"""Pay's receivers of the signals of recruitment."""

from collections.abc import Iterator

from annotators.models import Recruitment
from annotators.recruitment.panels.alerts import Alert

from . import keeping, ledger, promises


def name_missing_promises(sender, recruitment: Recruitment, **kwargs) -> list[str]:
    return promises.hindrances(recruitment)


def name_kept_ids(sender, recruitment: Recruitment, **kwargs) -> Iterator[Alert]:
    return keeping.alerts_of(recruitment)


def settle_ledger(sender, recruitment: Recruitment, **kwargs) -> None:
    # Due by what the panel shows, whoever had it asked or read its file.
    ledger.settle(recruitment, by=None)
