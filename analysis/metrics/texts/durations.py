"""How long TER takes, before it starts and while it is computed."""

import math
from itertools import pairwise

# Seconds of one processor for one output, by its words. Low: the reference with words changed and moved, as of translations. High:
# another text about the same prompt. Docs: explanation/performance.
LOW = ((10, 0.0002), (25, 0.0034), (40, 0.0105), (80, 0.1))
HIGH = ((10, 0.0002), (25, 0.0036), (40, 0.026), (80, 0.6))
# A shorter time needs no word before the start.
SECONDS_WORTH_A_WORD = 30
# A word and the space after it, for texts whose words were not counted.
CHARACTERS_PER_WORD = 6


def seconds_per_output(words: float, measured: tuple[tuple[int, float], ...]) -> float:
    """Return the time for texts of so many words, on straight lines between the measured ones when both are logarithms."""
    ends = next((two for two in pairwise(measured) if words <= two[1][0]), measured[-2:])
    (first, low), (second, high) = ends
    slope = math.log(high / low) / math.log(second / first)
    return low * (max(words, 1.0) / first) ** slope


def forecast(n_outputs: int, mean_words: float, n_processors: int) -> str:
    """Return in words how long TER takes for so many outputs, or nothing if it is soon over."""
    low, high = (n_outputs * seconds_per_output(mean_words, times) / n_processors for times in (LOW, HIGH))
    if high < SECONDS_WORTH_A_WORD:
        return ""
    shortest, longest = in_words(low), in_words(high)
    return shortest if shortest == longest else f"{shortest} to {longest}"


def time_left(elapsed: float, n_done: int, n: int) -> str:
    """Return in words how long the rest takes at the speed so far, or nothing while that is a guess or soon over."""
    seconds = elapsed / n_done * (n - n_done) if n_done else 0.0
    return f"about {in_words(seconds)} left" if min(elapsed, seconds) >= 10 else ""


def in_words(seconds: float) -> str:
    """Return a time as one rounded number with its unit."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 0.95 * size:
            number = max(1, round(seconds / size))
            return f"{number:,} {unit}{'' if number == 1 else 's'}"
    return f"{max(10, round(seconds, -1)):.0f} seconds"
