"""What one settlement of a link's payments changed."""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

from .promises import ZERO


@dataclass(slots=True)
class LedgerUpdateSummary:
    """Counts of payments by their new state. ``due``: newly due payments; ``amount``: their sum."""

    due: int = 0
    amount: Decimal = ZERO
    paid: int = 0
    failed: int = 0
    cancelled: int = 0
    currency: str = ""
    outcomes: Counter[str] = field(default_factory=Counter)
