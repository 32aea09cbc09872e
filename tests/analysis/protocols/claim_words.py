"""Sentences about planned comparisons, read back: what a reader learns from the words and the printed numbers alone.

Nothing here asks the code what it meant: the words of each estimand are listed, and regular expressions read the numbers.
"""

import re
from dataclasses import dataclass

# For each estimand: what a sentence says if the value is above its null, below it, unknown, and alike. All name beta, or x, first.
WORDS = {
    "spa.pairs": (
        "beta was preferred to alpha",
        "beta was less preferred than alpha",
        "whether beta or alpha is preferred",
        "beta and alpha are indistinguishable",
    ),
    "rating.superiority": (
        "beta was rated higher than alpha",
        "beta was rated lower than alpha",
        "whether beta or alpha is rated higher",
        "beta and alpha are indistinguishable",
    ),
    "rating.difference": (
        "beta has a higher mean rating than alpha",
        "beta has a lower mean rating than alpha",
        "whether beta or alpha has the higher mean rating",
        "beta and alpha have equivalent mean ratings",
    ),
    "rating.utility_difference": (
        "beta has a higher expected utility than alpha",
        "beta has a lower expected utility than alpha",
        "whether beta or alpha has the higher expected utility",
        "beta and alpha have equivalent expected utilities",
    ),
    "relative.score": (
        "beta was judged better than alpha",
        "beta was judged worse than alpha",
        "whether beta or alpha is judged better",
        "beta and alpha are indistinguishable",
    ),
    "ranking.share": (
        "beta was ranked above alpha",
        "beta was ranked below alpha",
        "whether beta or alpha is ranked higher",
        "beta and alpha were ranked alike",
    ),
    "marks.score": (
        "beta was scored higher than alpha",
        "beta was scored lower than alpha",
        "whether beta or alpha is scored higher",
        "beta and alpha were scored alike",
    ),
    "marks.penalty": (
        "beta has fewer or milder errors than alpha",
        "beta has more or graver errors than alpha",
        "whether beta or alpha has fewer or milder errors",
        "beta and alpha have equally many and grave errors",
    ),
    "choice.preference": (
        "beta was chosen over alpha",
        "beta was chosen less often than alpha",
        "whether beta or alpha is chosen more often",
        "beta and alpha are indistinguishable",
    ),
    "best_worst.strength": (
        "beta was picked as better than alpha",
        "beta was picked as worse than alpha",
        "whether beta or alpha was picked as better",
        "beta and alpha were picked alike",
    ),
    "humanlike.sensitivity": (
        "Annotators distinguished machine from human texts better under beta than under alpha",
        "Annotators distinguished machine from human texts worse under beta than under alpha",
        "whether beta or alpha lets annotators distinguish machine from human texts better",
        "Annotators distinguished machine from human texts equally well under beta and alpha",
    ),
    "humanlike.criterion": (
        "Annotators leaned to “human” more under beta than under alpha",
        "Annotators leaned to “human” less under beta than under alpha",
        "whether beta or alpha makes annotators lean to “human” more",
        "Annotators leaned to “human” alike under beta and alpha",
    ),
    "humanlike.accuracy": (
        "Annotators were right more often under beta than under alpha",
        "Annotators were right less often under beta than under alpha",
        "whether annotators are right more often under beta or alpha",
        "Annotators were right equally often under beta and alpha",
    ),
    "humanlike.sensitivity against chance": (
        "Annotators distinguished machine from human texts (beta)",
        "Annotators took machine texts for human ones more than guessing would (beta)",
        "whether annotators distinguish machine from human texts (beta)",
        "Annotators did not distinguish machine from human texts (beta)",
    ),
    "humanlike.criterion against chance": (
        "Annotators leaned to “human” (beta)",
        "Annotators leaned to “machine” (beta)",
        "whether annotators lean to either answer (beta)",
        "Annotators leaned to neither answer (beta)",
    ),
    "humanlike.accuracy against chance": (
        "Annotators were right more often than by guessing (beta)",
        "Annotators were right less often than by guessing (beta)",
        "whether annotators are right more often than by guessing (beta)",
        "Annotators were right as often as by guessing (beta)",
    ),
    "an estimand without sentences": (
        "beta and alpha differ: the value is above 0",
        "beta and alpha differ: the value is below 0",
        "whether beta and alpha differ",
        "beta and alpha are equivalent",
    ),
}  # fmt: skip
NUMBER = r"−?\d+(?:\.\d+)?"
INTERVAL = re.compile(
    rf"; ([\d.]+) %(?: simultaneous)? confidence (?:interval|sequence) ({NUMBER})(?: %)? to ({NUMBER})(?: %)?;"
)
EQUIVALENCE = re.compile(rf"interval ({NUMBER})(?: %)? to ({NUMBER})(?: %)?, which decides this, is within the margin")
PVALUE = re.compile(r"\bp (=|<|>) (\.\d+)")
UNCLAIMED = re.compile(
    rf"The whole interval \(({NUMBER})(?: %)? to ({NUMBER})(?: %)?\) is (above|below) ({NUMBER})(?: %)?; no claim (?:“(.+?)”|of a difference) is made, "
    r"because (.+?)\."
)
MARGIN = re.compile(rf"(?:more|less) than (?:the margin of )?({NUMBER})|\(±({NUMBER})|within ±({NUMBER})")
POPULATION = re.compile(r", for (?:\w+ like these|exactly (?:this|these)[\w ]*)\.$")
NOTHING = (None, None)


@dataclass(frozen=True)
class Read:
    """What a reader learns. ``above``, ``below``: between which values the true value is claimed to be, None without a claim."""

    above: float | None
    below: float | None
    status: str  # claimed | open | not shown | not tested | no claim | nothing
    margin: float | None
    interval: tuple[float, float] | None
    equivalence: tuple[float, float] | None
    pvalue: tuple[str, float] | None
    unclaimed: tuple[str, ...] | None
    is_test_alone: bool


def number(text):
    return float(text.replace("−", "-"))


def read(claim, text, words, *, null, margin, kind, is_lower_better):
    """Read a claim and its text. Numbers are returned on the scale of the estimand."""
    scale = 0.01 if kind == "percent" else 1.0

    def span(match, first):
        return match and (scale * number(match.group(first)), scale * number(match.group(first + 1)))

    found = MARGIN.search(claim)
    printed = found and scale * number(next(filter(None, found.groups())))
    below, above, status = _region(POPULATION.sub("", claim).rstrip("."), words, null, margin, is_lower_better)
    status = "no claim" if "These numbers support no claim: " in text else "nothing" if " No test: " in text else status
    p, unclaimed = PVALUE.search(text), UNCLAIMED.search(text)
    return Read(
        above, below, status, printed,
        span(INTERVAL.search(text), 2), span(EQUIVALENCE.search(text), 1),
        p and (p.group(1), float(p.group(2))), unclaimed and unclaimed.groups(), "has the level" in text and "decides" in text,
    )  # fmt: skip


def _region(claim, words, null, margin, is_lower_better):
    """Return (below, above, status) of a claim, without its population and full stop."""
    higher, lower, unknown, same = words
    better, worse = (lower, higher) if is_lower_better else (higher, lower)
    m = rf"{NUMBER}(?: percentage points?)?"
    claims = [
        (rf"It remains open {re.escape(unknown)}", "open", *NOTHING),
        (rf"It remains open whether beta is (worse|better) than alpha by more than {m}", "open", *NOTHING),
        (rf"It is not shown that beta is (not worse|better) than alpha by more than {m}", "not shown", *NOTHING),
        (r".*: not tested, because not all comparisons of the family “primary” were shown", "not tested", *NOTHING),
        (r"No test was possible for .*|Nothing can be said of .*", "nothing", *NOTHING),
        (rf"beta is not worse than alpha by more than {m}", "claimed", -1, None),
        (rf"beta is worse than alpha by more than {m}", "claimed", None, -1),
        (rf"beta is better than alpha by more than {m}", "claimed", 1, None),
        (rf"beta is not better than alpha by more than {m}, and it remains open which of the two is better", "claimed", None, 1),
        (rf"{re.escape(better)}, so beta is not worse by more than {m}", "claimed", 0, None),
        (rf"{re.escape(better)}, but it remains open whether by more than {m}", "claimed", 0, None),
        (rf"{re.escape(better)}, but by less than {m}", "claimed", 0, 1),
        (rf"{re.escape(worse)}, but by less than the margin of {m}", "claimed", -1, 0),
        (re.escape(better), "claimed", 0, None),
        (re.escape(worse), "claimed", None, 0),
        (rf"{re.escape(better)}, but by less than matters \(±{m}\)", "claimed", 0, 1),
        (rf"{re.escape(worse)}, but by less than matters \(±{m}\)", "claimed", -1, 0),
        (rf"{re.escape(same)} within ±{m}", "claimed", -1, 1),
    ]  # fmt: skip
    (found,) = [rest for pattern, *rest in claims if re.fullmatch(pattern, claim)] or [None]
    assert found is not None, f"no reading of: {claim}"
    status, low, high = found
    sign = -1 if is_lower_better else 1
    ends = [None if place is None else round(null + sign * place * (margin or 0), 12) for place in (low, high)]
    if is_lower_better:
        ends.reverse()
    return ends[1], ends[0], status


def faults(said, *, null, limit, level):
    """Return every contradiction between the words and the numbers that a sentence prints."""
    cuts = [value for value in (null, limit) if value is not None]
    found = []
    is_shown = said.interval is not None
    if said.status == "claimed" and is_shown and not said.is_test_alone:
        within = said.equivalence or said.interval
        for end, bound, name in ((said.above, 0, "above"), (said.below, 1, "below")):
            if end is None:
                continue
            low_or_high = (said.interval if end in cuts else within)[bound]
            if (low_or_high <= end) if name == "above" else (low_or_high >= end):
                found.append(f"claims {name} {end}, prints {said.interval}")
    if is_shown and said.status not in ("not tested", "no claim", "nothing"):
        low, high = said.interval
        more = [cut for cut in cuts if low > cut and (said.above is None or said.above < cut)]
        more += [cut for cut in cuts if high < cut and (said.below is None or said.below > cut)]
        if more and said.unclaimed is None:
            found.append(f"prints {said.interval} and claims only {said.above} to {said.below}")
        if not more and said.unclaimed is not None:
            found.append(f"says “no claim” of {said.interval}")
    if said.unclaimed is not None:
        low, high, side, place, words, _ = said.unclaimed
        if (number(low) > number(place)) != (side == "above") or (number(high) < number(place)) != (side == "below"):
            found.append(f"the interval {low} to {high} is not {side} {place}")
        if said.status == "claimed" and words in ("better", "worse") and said.above == null:
            found.append("claims what it says that it does not claim")
    if said.pvalue is not None and said.status == "claimed" and not said.equivalence and not said.unclaimed:
        sign, value = said.pvalue
        is_by_test = said.above in cuts or said.below in cuts
        is_below_level = sign == "<" or (sign == "=" and value < level)
        if is_by_test and limit is None and not is_below_level:
            found.append(f"claims with p {sign} {value} at {level}")
    if said.pvalue is not None and said.status in ("open", "not shown") and not said.unclaimed:
        sign, value = said.pvalue
        if limit is None and (sign == "<" or (sign == "=" and value < level)):
            found.append(f"is open with p {sign} {value} at {level}")
    return found
