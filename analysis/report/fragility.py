"""How few answers, and how few people, each claim of a report rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks import Block, cells
from analysis.protocols.blocks.cells import claim_of, contrast_of, is_sequential
from analysis.protocols.blocks.comparisons import DIFFERENCE_HYPOTHESIS
from analysis.protocols.blocks.sentences import ordered_conclusions

if TYPE_CHECKING:
    from analysis.stats.claims import Claim
    from analysis.stats.removals import ClaimFragility, Removal
    from analysis.stats.results import Estimate

# Refits of a report beyond those that each claim needs, for all its claims together. They take about a quarter of a second.
MORE_REFITS = 200
OPEN_VERDICTS = (None, "inconclusive", "not_tested")
OPPOSITE = "opposite"
# What would take the place of a claim, by the verdict.
INSTEAD = {
    "inconclusive": "it would remain open",
    OPPOSITE: "the opposite would be shown",
    "equivalent": "no difference would be shown, only equivalence",
    "different": "it would remain open whether the difference is within the margin",
    "better": "it would remain open whether it is better by more than the margin",
    "noninferior": "only “not worse by more than the margin” would be shown",
    "noninferior_but_worse": "only “not worse by more than the margin” would be shown",
}
DECIDED_BY_RULE = "a stopping rule decided by the answers that it had counted"
NO_ANSWERS = "its method does not say what each answer contributes"


def claims_fragility(
    blocks: Sequence[Block], sentences: Sequence[Mapping[str, Any]], people: Sequence[str]
) -> list[dict[str, Any]]:
    """Return for each claim that holds how few answers and people it rests on, in one sentence and in numbers.

    ``sentences``: the conclusions of the report, from ``build_conclusion_sentences``. ``people``: the names of the annotators by their
    numbers, see ``cluster_labels``.
    """
    holding = []
    for conclusion, sentence in zip(ordered_conclusions(blocks), sentences, strict=True):
        claim = claim_of(conclusion.estimate)
        if claim.verdict not in OPEN_VERDICTS and (claim.above, claim.below) != (None, None):
            holding.append((conclusion.estimate, claim, sentence))
    refits = MORE_REFITS // (2 * max(1, len(holding)))
    found = []
    for estimate, claim, sentence in holding:
        fragility = _fragility(blocks, estimate, claim, refits)
        found.append(
            {
                "contrast": sentence["contrast"],
                "claim": sentence["claim"],
                "sentence": _fragility_sentence(fragility),
                # Answers are rows, which have no name outside of the statistic.
                "answers": fragility.answers.as_dict() | {"removed": []},
                "people": fragility.people.as_dict()
                | {"removed": [people[one] if isinstance(one, int) else one for one in fragility.people.removed]},
            }
        )
    return found


def _fragility(blocks: Sequence[Block], estimate: "Estimate", claim: "Claim", refits: int) -> "ClaimFragility":
    from scipy.special import stdtrit

    from analysis.stats.removals import claim_fragility, without_fragility

    if estimate.answers is None or estimate.test is None:
        return without_fragility(DECIDED_BY_RULE if is_sequential(estimate) else NO_ANSWERS)
    others = _others_of_family(blocks, estimate)
    significance = claim.level / max(1, estimate.test.family_size or 1)
    tail = significance if claim.verdict == "equivalent" else significance / 2

    def verdict_without(again: "Estimate") -> str | None:
        return _lost_to(claim, _judge_again(estimate, again, others))

    return claim_fragility(
        estimate.answers,
        estimate,
        above=claim.above,
        below=claim.below,
        quantile=float(stdtrit(max(1.0, estimate.detail.get("df") or 100.0), 1 - tail)),
        verdict_without=verdict_without,
        refits=refits,
    )


def _others_of_family(blocks: Sequence[Block], estimate: "Estimate") -> "list[Estimate]":
    """Return the other tests of the estimate's family with the p-values that count while it is adjusted."""
    from analysis.stats.results import Estimate, HypothesisTest

    if estimate.test is None or estimate.test.adjust == "bonferroni":
        return []
    found, own = [], (estimate.analysis, contrast_of(estimate)["key"])
    for other in (one for block in blocks if block.mode == "recommended" for one in block.estimates):
        if other.test is None or other.test.family != estimate.test.family or is_sequential(other):
            continue
        if (other.analysis, contrast_of(other)["key"]) == own:
            continue
        equivalence = next((one.test for one in other.sensitivity if one.analysis.endswith(".equivalence")), None)
        larger = max(other.test.pvalue, equivalence.pvalue if equivalence is not None else 0.0)
        test = HypothesisTest(name=other.test.name, null=None, statistic=None, pvalue=larger)
        found.append(Estimate(analysis=other.analysis, estimand=other.estimand, unit=other.unit, n=other.n, test=test))
    return found


def _judge_again(estimate: "Estimate", again: "Estimate", others: "Sequence[Estimate]") -> "Claim | None":
    """Return the claim of the estimate without some answers, in its family; None without a test, or if it can show nothing."""
    from analysis.stats.margins import (
        MarginHypothesis,
        adjust_and_add_verdicts,
        equivalence_test_of_estimate,
        margin_test,
        margin_verdict,
    )
    from analysis.stats.multiplicity import Family, Gate

    null = None if again.test is None else again.test.null
    if null is None or again.supports_no_claim or estimate.test is None:
        return None
    contrast, gate = contrast_of(estimate), estimate.detail.get("gate")
    level = float(contrast["level"])
    again = replace(again, settings={**again.settings, **estimate.settings})
    claimed = estimate.settings.get("claim")
    hypothesis = claimed and MarginHypothesis(**{name: value for name, value in claimed.items() if name != "limit"})
    if hypothesis:
        again = margin_test(again, hypothesis, significance=level)
    elif contrast["margin"] and contrast["hypothesis"] == DIFFERENCE_HYPOTHESIS:
        tost = equivalence_test_of_estimate(again, null=null, margin=contrast["margin"], significance=level)
        again = replace(again, sensitivity=() if tost is None else (tost,))
    size = max(1, estimate.test.family_size or 1)
    keys = ("", *(f"other {number}" for number in range(1, size)))
    family = Family("", keys, estimate.test.adjust or "bonferroni", gate and Gate(**gate))
    members = dict(zip(keys, (again, *others), strict=False))
    judged = adjust_and_add_verdicts(members, family, significance=level, star_scheme=None)[""]
    if hypothesis:
        judged = replace(judged, detail={**judged.detail, "is_gate": bool(estimate.detail.get("is_gate"))})
        verdict = margin_verdict(judged, hypothesis, significance=level)
        judged = replace(judged, detail={**judged.detail, "verdict": verdict})
    return claim_of(judged)


def _lost_to(claim: "Claim", again: "Claim | None") -> str | None:
    """Return the verdict that takes the place of a claim, or None if the claim still follows."""
    if again is None:
        return None
    is_above = claim.above is None or (again.above is not None and again.above >= claim.above)
    is_below = claim.below is None or (again.below is not None and again.below <= claim.below)
    if is_above and is_below:
        return None
    sides = {claim.side, again.side}
    return OPPOSITE if sides == {"<", ">"} else str(again.verdict or "inconclusive")


def _fragility_sentence(fragility: "ClaimFragility") -> str:
    answers, people = fragility.answers, fragility.people
    if answers.status == "not_applicable":
        return f"How few answers it rests on is not computed: {answers.reason}."
    shown = [people] if (answers.n, answers.total) == (people.n, people.total) else [answers, people]
    parts: dict[str, list[str]] = {}
    for removal in shown:
        if removal.n is not None:
            instead = INSTEAD.get(removal.challenger, f"the verdict would be “{removal.challenger}”")
            parts.setdefault(instead, []).append(_without(removal))
    sentences = [f"{' or '.join(removals)}, {instead}" for instead, removals in parts.items()]
    nouns = [_noun(removal) for removal in shown if removal.n is None]
    if nouns:
        sentences.append(
            f"no group of up to half of the {' or of the '.join(nouns)} was found without which it would not follow"
        )
    text = "; ".join(sentences)
    return f"{text[:1].upper()}{text[1:]}."


def _noun(removal: "Removal") -> str:
    return "answers" if removal.unit == "answer" else "people"


def _without(removal: "Removal") -> str:
    share = cells.format_percent(removal.share, 0 if (removal.share or 0) >= 0.1 else 1)
    noun = "person" if (removal.unit, removal.total) == ("annotator", 1) else _noun(removal)
    return f"without {removal.n:,} of {removal.total:,} {noun} ({share})"
