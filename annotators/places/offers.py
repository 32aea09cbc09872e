"""What taking part takes and pays: the study's word, or an arm's own, or what a recruitment pays whatever the arm."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from studies.design.wording import Wording


@dataclass(frozen=True, slots=True)
class Offer:
    """What one arm takes and pays. ``is_own``: the arm says so itself, the study says otherwise."""

    minutes: int | None
    reward: Decimal | None
    is_arm_specific: bool = False

    @property
    def per_hour(self) -> Decimal | None:
        """What the reward comes to an hour, None where that cannot be said."""
        if not self.reward or not self.minutes:
            return None
        return (self.reward * 60 / self.minutes).quantize(Decimal("0.01"))


def offer_of(wording: Wording, arm: Mapping[str, Any], reward: Decimal | None = None) -> Offer:
    """``reward``: what the recruitment pays, whatever the arm says."""
    study = wording.study
    minutes = arm["minutes"] or study["minutes"]
    first = next((one for one in (reward, arm["reward"], study["reward"]) if one is not None), None)
    own = arm["minutes"] not in (None, study["minutes"]) or (reward is None and arm["reward"] is not None)
    return Offer(minutes, None if first is None else Decimal(first), own)


@dataclass(frozen=True, slots=True)
class OfferRange:
    """What taking part takes and pays before anybody knows in which arm they will be."""

    minutes: str
    reward: str
    pays: bool
    per_hour: str
    is_one: bool


def range_of(wording: Wording, arms: Collection[str] = (), reward: Decimal | None = None) -> OfferRange:
    """Over these arms, or all: from the least to the most, and an hourly pay that holds for each."""
    mine = [arm for name, arm in wording.arms.items() if not arms or name in arms]
    offers = [offer_of(wording, arm, reward) for arm in mine]
    rewards = sorted({offer.reward for offer in offers if offer.reward is not None})
    minutes = sorted({offer.minutes for offer in offers if offer.minutes})
    hourly = [offer.per_hour for offer in offers]
    known = [one for one in hourly if one is not None]
    least = str(min(known)) if known and len(known) == len(hourly) else ""
    return OfferRange(
        _format_range(minutes),
        _format_range(rewards),
        any(rewards),
        f"at least {least}" if least and len(set(known)) > 1 else least,
        max(len(rewards), len(minutes)) <= 1,
    )


def _format_range(values: list) -> str:
    if not values:
        return ""
    return str(values[0]) if values[0] == values[-1] else f"{values[0]} to {values[-1]}"
