"""Search for the least n and the least effect by bisection."""

from collections.abc import Callable

from scipy import optimize

from analysis.stats.arrays import validate_level

MAX_N = 10_000_000


def least_n(is_enough: Callable[[int], bool], *, largest: int = MAX_N) -> int:
    """Return the least n >= 2 that is enough, if every larger n is too. Raise ValueError beyond `largest`."""
    high = 2
    while not is_enough(high):
        high *= 2
        if high > largest:
            raise ValueError(f"effect: more than {largest} units would be needed")
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return low


def validate_n_tests(tests: int) -> None:
    """Raise ValueError for a family without a test."""
    if tests < 1:
        raise ValueError(f"tests: {tests} is less than 1")


def least_effect(
    power_at: Callable[[float], float], target_power: float, *, first_guess: float, largest: float
) -> float:
    """Return the least effect in 0..`largest` with the wanted power, for a power that grows with the effect."""
    validate_level(target_power)
    if power_at(0.0) >= target_power:
        return 0.0
    high = first_guess
    while power_at(high) < target_power:
        if high >= largest:
            raise ValueError(f"n: too few units to find even the largest effect with power {target_power:g}")
        high = min(largest, 2 * high)
    return float(optimize.brentq(lambda effect: power_at(effect) - target_power, 0.0, high, xtol=1e-10))
