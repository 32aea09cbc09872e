"""The time and pay of taking part: from the study, from an arm, or a recruitment's reward for all arms."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from studies.design.wording import Wording


@dataclass(frozen=True, slots=True)
class Offer:
    """The minutes and reward of one arm. ``is_arm_specific``: the arm sets them itself and differs from the study."""

    minutes: int | None
    reward: Decimal | None
    is_arm_specific: bool = False

    @property
    def per_hour(self) -> Decimal | None:
        """Return the pay per hour, or None without a reward or minutes."""
        if not self.reward or not self.minutes:
            return None
        return (self.reward * 60 / self.minutes).quantize(Decimal("0.01"))


def arm_offer(wording: Wording, arm: Mapping[str, Any], link_reward: Decimal | None = None) -> Offer:
    """Return the offer of an arm. ``link_reward`` is the recruitment's pay; it replaces the arm's."""
    study = wording.study
    minutes = arm["minutes"] or study["minutes"]
    paid = next((amount for amount in (link_reward, arm["reward"], study["reward"]) if amount is not None), None)
    is_own = arm["minutes"] not in (None, study["minutes"]) or (link_reward is None and arm["reward"] is not None)
    return Offer(minutes, None if paid is None else Decimal(paid), is_own)


@dataclass(frozen=True, slots=True)
class OfferRange:
    """The range of minutes and rewards over arms, for people who do not have an arm yet."""

    minutes: str
    reward: str
    pays: bool
    per_hour: str
    is_one: bool


def offer_range(wording: Wording, arms: Collection[str] = (), link_reward: Decimal | None = None) -> OfferRange:
    """Return the range from lowest to highest over these arms, or all arms, and an hourly pay that holds for each."""
    offers = [arm_offer(wording, arm, link_reward) for name, arm in wording.arms.items() if not arms or name in arms]
    rewards = sorted({offer.reward for offer in offers if offer.reward is not None})
    minutes = sorted({offer.minutes for offer in offers if offer.minutes})
    hourly = [offer.per_hour for offer in offers]
    known_pays = [pay for pay in hourly if pay is not None]
    least = str(min(known_pays)) if known_pays and len(known_pays) == len(hourly) else ""
    return OfferRange(
        _format_range(minutes),
        _format_range(rewards),
        any(rewards),
        f"at least {least}" if least and len(set(known_pays)) > 1 else least,
        max(len(rewards), len(minutes)) <= 1,
    )


def _format_range(values: list) -> str:
    if not values:
        return ""
    return str(values[0]) if values[0] == values[-1] else f"{values[0]} to {values[-1]}"
