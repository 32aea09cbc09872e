"""Every sentence, table cell, figure and line in APA style claims what its printed interval shows, in every cell of the product.

The product: hypothesis, family (alone, one of three, before another, behind another), method of adjustment, direction that is better,
place of the interval, level, missing test, forbidden claim, stopping rule, and each estimand that has a sentence.

Cells that cannot occur:
- a claim by a margin under a stopping rule, with equivalence expected, or against chance: ``studies.design.comparisons`` refuses them;
- "lower is better" without a claim by a margin: then nothing says which direction is better;
- a stopping rule with another protocol than two choices;
- a family that waits for another one, and a family of three, under Holm's or Hommel's method, with an interval that agrees with p.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from analysis.protocols import REGISTRY
from analysis.protocols.blocks import Block, cells
from analysis.protocols.blocks.comparisons import Comparison
from analysis.protocols.blocks.sentences import build_conclusion_sentences
from analysis.protocols.families import adjust_comparisons
from analysis.stats import basic
from analysis.stats.results import ResultWarning
from tests.conftest import ROOT

from .claim_places import ESTIMANDS, conclusion_of, faults_of_other_places
from .claim_words import WORDS, faults, read

NI, SUPERIORITY, DIFFERENCE = "noninferiority", "superiority_by_margin", "difference"
MARGIN = 0.075
# The middle and half the width of the interval, in margins, as if higher were better. The last ones touch the null or a limit.
PLACES = {
    "beyond the worse limit": (-2.0, 0.5),
    "across the worse limit": (-1.0, 0.5),
    "worse, within the margin": (-0.5, 0.2),
    "within both limits": (0.05, 0.3),
    "across everything": (0.2, 2.0),
    "better, within the margin": (0.5, 0.2),
    "across the better limit": (1.0, 0.5),
    "beyond the better limit": (2.0, 0.5),
    "just better": (0.5, 0.4995),
    "just not better": (0.5, 0.5005),
    "just not worse": (-0.5, 0.4995),
    "just worse": (-0.5, 0.5005),
    "just beyond the better limit": (1.5, 0.4995),
    "just beyond the worse limit": (-1.5, 0.4995),
    "no test": (0.5, 0.2),
    "no claim": (2.0, 0.5),
}
FAMILIES = ("alone", "one of three", "gate", "gate of three", "behind open", "behind closed", "behind a larger p")
CLAIMS = ((DIFFERENCE, None, False), (DIFFERENCE, MARGIN, False)) + tuple(
    (name, MARGIN, is_lower) for name in (NI, SUPERIORITY) for is_lower in (False, True)
)


@dataclass(frozen=True)
class Cell:
    hypothesis: str
    margin: float | None
    is_lower_better: bool
    family: str
    adjustment: str
    place: str
    level: float
    is_sequential: bool = False


def family_row(name, adjustment="bonferroni", after=""):
    return SimpleNamespace(name=name, adjustment=adjustment, after=after)


def estimate_of(values_mean, half, null, confidence, n=30):
    """A t test of made-up values whose interval at this confidence has this middle and half width."""
    values = np.linspace(-1, 1, n)
    sd = half * math.sqrt(n) / stats.t.ppf((1 + confidence) / 2, n - 1)
    return basic.one_sample_t_test(null + values_mean + (values - values.mean()) / values.std(ddof=1) * sd, null=null)


def _families_places_and_levels():
    """Families, methods, places and levels. Methods differ only in families of three, and levels change only what the interval shows."""
    for family, place in product(FAMILIES, PLACES):
        methods = ("bonferroni", "holm", "hommel") if "three" in family else ("bonferroni",)
        levels = {"alone": (0.05, 0.01, 0.1), "one of three": (0.05, 0.01, 0.1), "behind a larger p": (0.01,)}
        for level in levels.get(family, (0.05,)):
            for method in methods if level == 0.05 else ("bonferroni",):
                yield family, method, place, level


@cache
def adjusted_cells(null):
    """Every cell with its adjusted estimate. An estimand only changes the words."""
    cells_of = [Cell(*claim, *rest) for claim, rest in product(CLAIMS, _families_places_and_levels())]
    if null == 0.5:
        sequential = product(
            CLAIMS[:2], ("alone", "one of three", "gate", "behind closed"), ["bonferroni"], PLACES, (0.05, 0.01), [True]
        )
        cells_of += [Cell(*claim, *rest) for claim, *rest in sequential]
    return {cell: adjusted(cell, null) for cell in cells_of}


def adjusted(cell, null):
    size = 3 if "three" in cell.family else 1
    is_behind = "behind" in cell.family
    compared = Comparison(
        1, "beta", "alpha", role="primary", family="secondary" if is_behind else "primary", margin=cell.margin, level=cell.level,
        is_planned=True, hypothesis=cell.hypothesis, is_lower_better=cell.is_lower_better, population="people_and_prompts",
    )  # fmt: skip
    middle, half = PLACES[cell.place]
    nominal = cell.level if cell.hypothesis != DIFFERENCE or cell.is_sequential else 0.05
    towards = -1 if cell.is_lower_better else 1
    estimate = estimate_of(towards * middle * MARGIN, half * MARGIN, null, 1 - nominal / size)
    if cell.place == "no test":
        estimate = replace(estimate, test=None)
    if cell.place == "no claim":
        estimate = replace(
            estimate,
            warnings=(
                ResultWarning("few_clusters", "block", {"n_clusters": 3, "cluster": "annotator", "effective": 3.0}),
            ),
        )
    estimate = replace(estimate, settings={**estimate.settings, "population": "people and prompts", "scored": "1 to 5"})
    estimate = replace(estimate, sensitivity=compared.equivalence_tests(estimate, null=null))
    if cell.is_sequential:
        estimate = decided_by_a_rule(estimate, cell, null, size)
    pairs = [(compared, compared.tag_estimate(estimate, ""))]
    rows = [family_row(compared.family, cell.adjustment, "primary" if is_behind else "")]
    if "gate" in cell.family:
        rows.append(family_row("next", after="primary"))
    if is_behind:
        other = Comparison(1, "gamma", "alpha", role="primary", family="primary", is_planned=True)
        place = {"behind open": 5.0, "behind closed": 0.2, "behind a larger p": 2.3}[cell.family]
        pairs.append((other, other.tag_estimate(estimate_of(place, 2.0, 0.0, 0.95), "")))
    missing = [replace(compared, x=f"missing{n}") for n in range(size - 1)]
    claims = {"block": [one for one, _ in pairs] + missing}
    return adjust_comparisons({"block": pairs}, claims, rows)["block"][0]


def decided_by_a_rule(estimate, cell, null, size):
    """What an anytime-valid rule would report of this interval: it decides at its level, divided by the family's size."""
    if estimate.test is None:
        return replace(estimate, analysis="choice.preference.sequential", sensitivity=())
    interval = estimate.curve.interval(1 - cell.level / size)
    is_within = cell.margin is not None and null - cell.margin < interval.low and interval.high < null + cell.margin
    is_different = not interval.low <= null <= interval.high
    verdict = {(True, True): "different_but_trivial", (True, False): "different", (False, True): "equivalent"}.get(
        (is_different, is_within), "inconclusive"
    )
    verdict = "inconclusive" if estimate.is_blocked else verdict
    return replace(
        estimate,
        analysis="choice.preference.sequential",
        interval=interval,
        sensitivity=(),
        detail={**estimate.detail, "verdict": verdict},
    )


def test_every_function_that_words_a_claim_is_in_the_product():
    """A new protocol, or a new estimand with a sentence, must have its words in the product."""
    folder = ROOT / "analysis" / "protocols"
    makers = {
        str(path.relative_to(folder)): path.read_text().count("build_planned_conclusions(")
        for path in folder.rglob("*.py")
    }
    found = {name: n for name, n in makers.items() if n}
    assert found == {
        "best_worst.py": 1, "blocks/__init__.py": 1, "humanlike/planned_comparisons.py": 1, "marks.py": 1,
        "ranking.py": 1, "rating/__init__.py": 2, "rating/utilities.py": 1, "relative.py": 1, "spa/comparisons.py": 1,
        "two_choice/preference.py": 1,
    }  # fmt: skip
    assert {name.partition("/")[0].removesuffix(".py") for name in found} - {"blocks"} == set(REGISTRY) - {"survey"}
    assert ESTIMANDS.keys() == WORDS.keys()


REASONS = {
    "gate": "the level goes to the next family",
    "gate of three": "the level goes to the next family",
    "behind a larger p": "the adjusted p-value includes that of the family “primary”",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMANDS)
def test_words_claim_what_the_printed_interval_shows(name):
    _, null, _ = ESTIMANDS[name]
    found, n, said_statuses = [], 0, set()
    for cell, estimate in adjusted_cells(null).items():
        if (
            cell.hypothesis != DIFFERENCE
            and "against chance" in name
            or cell.is_sequential
            and name != "choice.preference"
        ):
            continue  # cannot occur: see the docstring
        n += 1
        conclusion = conclusion_of(name, estimate)
        (sentence,) = build_conclusion_sentences([Block("b", "", "recommended", (conclusion.estimate,), (conclusion,))])
        said = read(
            sentence["claim"], sentence["text"], WORDS[name], null=null, margin=cell.margin, kind=conclusion.wording.kind,
            is_lower_better=cell.is_lower_better,
        )  # fmt: skip
        sign = {NI: -1, SUPERIORITY: 1}.get(cell.hypothesis)
        limit = None if sign is None else round(null + sign * (-1 if cell.is_lower_better else 1) * MARGIN, 12)
        wrong = faults(said, null=null, limit=limit, level=cell.level)
        wrong += faults_of_other_places(estimate, sentence, said, null, limit) + faults_of_the_cell(
            cell, sentence, said
        )
        said_statuses.add(said.status)
        found += [f"{cell}: {one} | {sentence['claim']} {sentence['text']}" for one in wrong]
    assert not found, f"{len(found)} of {n}:\n" + "\n".join(found[:12])
    assert n > 400 and said_statuses == {"claimed", "open", "not tested", "no claim", "nothing"} | (
        {"not shown"} if "chance" not in name else set()
    )


def faults_of_the_cell(cell, sentence, said):
    wrong = []
    if said.margin is not None and said.margin != pytest.approx(MARGIN):
        wrong.append(f"prints the margin {said.margin}")
    if (
        said.unclaimed
        and said.unclaimed[-1] != REASONS.get(cell.family)
        and not said.unclaimed[-1].startswith("the test has the level")
    ):
        wrong.append(f"gives the reason {said.unclaimed[-1]}")
    if (
        said.unclaimed
        and cell.family in ("gate", "gate of three")
        and cell.hypothesis != DIFFERENCE
        and "no claim “" not in sentence["apa"]
    ):
        wrong.append("the line in APA style hides that no claim is made")
    return wrong


def test_the_template_that_lost_its_words():
    """ "Good enough: not worse" asks for two families. A clearly worse system is said to be so, without a claim."""
    cell = Cell(NI, MARGIN, False, "gate", "bonferroni", "beyond the worse limit", 0.05)
    conclusion = conclusion_of("rating.difference", adjusted(cell, 0.0))
    (sentence,) = build_conclusion_sentences([Block("b", "", "recommended", (conclusion.estimate,), (conclusion,))])
    assert (
        sentence["claim"]
        == "It is not shown that beta is not worse than alpha by more than 0.075, for prompts like these."
    )
    assert (
        "The whole interval (−0.19 to −0.11) is below −0.075; no claim “worse” is made, because the level goes to the next family."
        in sentence["text"]
    )
    assert sentence["verdict"] == "inconclusive" and sentence["claimed"]["withheld"] == "gate"
    assert cells.verdict_text(conclusion.estimate) == "inconclusive, no claim “worse”"
    assert sentence["apa"].endswith(", no claim “worse”")
