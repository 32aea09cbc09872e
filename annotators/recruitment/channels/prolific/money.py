"""Prolific's amounts of money: hundredths of a currency, in requests and in the cost of a study."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from annotators.recruitment.panels import ChargedFees, RequestRefused


def to_minor_units(amount: Any) -> int:
    """Convert 1.60 to 160, because Prolific uses pence or cents.

    Raises RequestRefused for amounts below one cent and for invalid numbers.
    """
    try:
        hundredths = Decimal(str(amount)) * 100
        is_money = 0 < hundredths < 10**8 and hundredths == int(hundredths)
    except InvalidOperation:
        is_money = False
    if not is_money:
        raise RequestRefused(f"{amount} is not a positive amount of money with two decimals. Correct the amount.")
    return int(hundredths)


def parse_charged_fees(answer: Mapping[str, Any]) -> ChargedFees | None:
    """Return the fees in a study's cost: amounts in hundredths, for rewards and bonuses separately.

    Returns None if a required field is missing or has another meaning.
    """
    rewards, bonuses = answer.get("rewards"), answer.get("bonuses") or {}
    if not isinstance(rewards, Mapping) or not isinstance(bonuses, Mapping) or "fees" not in rewards:
        return None
    currencies: set[str] = set()
    try:
        reward_fees = sum(_hundredths(rewards, name, currencies) for name in ("fees", "rep_sample_fees"))
        bonus_fees = _hundredths(bonuses, "fees", currencies)
        tax = sum(_hundredths(rewards, name, currencies) for name in ("tax", "rep_sample_tax"))
        tax += _hundredths(bonuses, "tax", currencies)
    except ValueError:
        return None
    if len(currencies) != 1:
        return None
    return ChargedFees(Decimal(reward_fees) / 100, Decimal(bonus_fees) / 100, Decimal(tax) / 100, currencies.pop())


def _hundredths(part: Mapping[str, Any], name: str, currencies: set[str]) -> int:
    """Return an amount; 0 if it is missing. Raises ValueError if it is not an amount of money."""
    money = part.get(name)
    if money is None:
        return 0
    amount, currency = (money.get("amount"), money.get("currency")) if isinstance(money, Mapping) else (None, None)
    if not isinstance(amount, int | float) or isinstance(amount, bool) or not 0 <= amount < 10**12:
        raise ValueError(name)
    if not (isinstance(currency, str) and currency):
        raise ValueError(name)
    currencies.add(currency)
    return round(amount)
