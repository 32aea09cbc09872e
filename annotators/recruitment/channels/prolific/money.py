"""Prolific's amounts of money: hundredths of a currency, in what is sent and in what a study has cost."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from annotators.recruitment.panels import ChargedFees, RequestRefused


def minor_units(amount: Any) -> int:
    """1.60 as 160: Prolific writes rewards in pence or cents. Raises Refused for less than a cent and for no number."""
    try:
        hundredths = Decimal(str(amount)) * 100
        is_money = 0 < hundredths < 10**8 and hundredths == int(hundredths)
    except InvalidOperation:
        is_money = False
    if not is_money:
        raise RequestRefused(f"{amount} is not an amount of money with two places above zero.")
    return int(hundredths)


def parse_cost(answer: Mapping[str, Any]) -> ChargedFees | None:
    """What a study's cost says of fees, in the fields that Prolific describes: amounts in hundredths, of rewards and of bonuses apart. None
    where one is missing that must be there, or says something else."""
    rewards, bonuses = answer.get("rewards"), answer.get("bonuses") or {}
    if not isinstance(rewards, Mapping) or not isinstance(bonuses, Mapping) or "fees" not in rewards:
        return None
    currencies: set[str] = set()
    try:
        of_rewards = sum(_hundredths(rewards, name, currencies) for name in ("fees", "rep_sample_fees"))
        of_bonuses = _hundredths(bonuses, "fees", currencies)
        tax = sum(_hundredths(rewards, name, currencies) for name in ("tax", "rep_sample_tax"))
        tax += _hundredths(bonuses, "tax", currencies)
    except ValueError:
        return None
    if len(currencies) != 1:
        return None
    return ChargedFees(*(Decimal(amount) / 100 for amount in (of_rewards, of_bonuses, tax)), currencies.pop())


def _hundredths(part: Mapping[str, Any], name: str, currencies: set[str]) -> int:
    """0 where it is left out. Raises ValueError for what is no amount of money."""
    one = part.get(name)
    if one is None:
        return 0
    amount, currency = (one.get("amount"), one.get("currency")) if isinstance(one, Mapping) else (None, None)
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if not is_number or not 0 <= amount < 10**12 or not (isinstance(currency, str) and currency):
        raise ValueError(name)
    currencies.add(currency)
    return round(amount)
