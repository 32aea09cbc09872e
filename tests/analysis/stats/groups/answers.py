"""Reference numbers and simulated answers for the tests of groups."""

import numpy as np

from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("groups")
VALUES, GROUPS = GOLDEN["values"], GOLDEN["groups"]


def answers(seed=0, n_annotators=60, per=6, n_items=25):
    """Correct or not, by annotators in one arm and one domain each, who share items within the domain."""
    draw = rng(seed)
    who = np.repeat(np.arange(n_annotators), per)
    arms, domains = np.array(["none", "examples", "pairs"])[who % 3], np.array(["news", "story"])[who // 3 % 2]
    items = np.array(
        [f"{domain}{item}" for domain, item in zip(domains, draw.integers(0, n_items, len(who)), strict=True)]
    )
    lean = draw.normal(0, 0.5, n_annotators)[who]
    values = (draw.normal(0, 1, len(who)) + lean + 0.3 * (arms == "examples") > 0).astype(float)
    return values, arms, domains, who, items
