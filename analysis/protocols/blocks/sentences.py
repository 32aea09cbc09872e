"""Write the sentences of a report: each estimate with its interval and test, and claims by a margin."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.stats.plain_records import NONINFERIORITY
from studies.design.subjects import PURPOSES

from . import Block, Conclusion, cells
from .cells import (
    NO_CLAIM,
    claim_of,
    comparison_x_y_and_criterion_phrase,
    contrast_of,
    expectation_outcome,
    finite_bounds,
    is_not_tested,
    is_sequential,
    subject_note,
    unclaimed_phrase,
    verdict_direction_symbol,
)
from .comparisons import DIFFERENCE_HYPOTHESIS, NOT_PLANNED
from .warning_sentences import gravest_warnings_with_sentences

if TYPE_CHECKING:
    from analysis.stats.claims import Claim
    from analysis.stats.results import Estimate

CHANCE = 0.5
# A difference from chance that is large in evaluations of texts: 70 % against 30 %.
LARGE_EFFECT = 0.2


# Write the sentences about claims by a margin: x is not worse, or is better, by more than the margin.
#
# The interval that decides the claim also decides whether x is better or worse at all, so each sentence says what the
# interval shows and against which values. All of it is in the claim (``analysis.stats.claims``).


def margin_claim_and_reason(conclusion: Conclusion, claim: "Claim") -> tuple[str, str]:
    """Return the claim in words, without a full stop, and the sentence about the values that decided it."""
    wording = conclusion.wording
    x, y, about = comparison_x_y_and_criterion_phrase(conclusion.estimate)
    margin = format_margin_size(claim.margin or 0.0, wording.kind)
    is_not_worse_asked = claim.hypothesis == NONINFERIORITY
    better, worse = (sentence[:-1] for sentence in (wording.above_claim, wording.below_claim))
    if claim.is_lower_better:
        better, worse = worse, better
    by_margin = f"{'worse' if is_not_worse_asked else 'better'} than {y} by more than {margin}"
    asked = f"{x} is {'not ' if is_not_worse_asked else ''}{by_margin}{about}"
    if claim.verdict == "inconclusive" and claim.withheld:
        return f"It is not shown that {asked}", ""
    claims = {
        "noninferior": asked,
        "noninferior_but_worse": f"{worse}, but by less than the margin of {margin}",
        "superior_by_margin": asked,
        "better": better,
        "worse": f"{x} is {by_margin}{about}" if is_not_worse_asked and claim.is_limit_missed else worse,
        "inconclusive": f"{x} is not {by_margin}{about}, and it remains open which of the two is better"
        if claim.is_limit_missed
        else f"It remains open whether {x} is {by_margin}{about}",
    }
    if is_not_worse_asked:
        claims["better"] += f", so {x} is not worse by more than {margin}"
    else:
        claims["better"] += (
            ", but by less than " if claim.is_limit_missed else ", but it remains open whether by more than "
        )
        claims["better"] += margin
    return claims[str(claim.verdict)], f" {_reason(claim, wording.kind)}"


def unclaimed_sentence(conclusion: Conclusion, claim: "Claim") -> str:
    """Return a sentence about what the interval shows without a claim, and why, or ''.

    What was not tested, and what a warning forbids to claim, has its own sentence.
    """
    kind, bounds = conclusion.wording.kind, finite_bounds(claim.interval)
    if claim.is_test_alone and claim.interval is not None:
        return f" The test has the level {_level(claim)} and decides; the interval has the level {_level_of_interval(claim)}."
    if claim.withheld in ("", "not tested", "no claim") or bounds is None:
        return ""
    gate = conclusion.estimate.detail.get("gate") or {}
    why = {
        "gate": "the level goes to the next family",
        "family before": f"the adjusted p-value includes that of the family “{gate.get('family')}”",
        "stopping rule": "the stopping rule has not decided",
        "level": f"the test has the level {_level(claim)}, and the interval {_level_of_interval(claim)}",
    }[claim.withheld]
    _, low, high = cells.format_estimate_with_bounds(None, bounds, kind, claim.references)
    is_below = (claim.unclaimed in ("better", "not worse")) == claim.is_lower_better
    cut = claim.shown_below if is_below else claim.shown_above
    place = f"{'below' if is_below else 'above'} {_format_value(cut or 0.0, kind)}"
    by_margin = f" by more than {format_margin_size(claim.margin or 0.0, kind)}" if "not" in claim.unclaimed else ""
    named = f"no claim “{claim.unclaimed}{by_margin}”" if claim.limit is not None else "no claim of a difference"
    return f" The whole interval ({low} to {high}) is {place}; {named} is made, because {why}."


def _level(claim: "Claim") -> str:
    return cells.format_percent(claim.level, cells.exact_digits(round(100 * claim.level, 9), 0))


def _level_of_interval(claim: "Claim") -> str:
    level = 0.0 if claim.interval is None else claim.interval.level
    return cells.format_percent(1 - level, min(4, cells.exact_digits(round(100 * (1 - level), 4), 0)))


def format_limit(claim: "Claim", kind: str) -> str:
    """Format the limit of a claim by a margin: "45 %", "−0.50"."""
    return _format_value(claim.limit or 0.0, kind)


def _reason(claim: "Claim", kind: str) -> str:
    """Return the sentence about the interval, or the p-value, and the limit and the null."""
    limit, null = format_limit(claim, kind), _format_value(claim.null or 0.0, kind)
    better, worse = ("below", "above") if claim.is_lower_better else ("above", "below")
    verdict = str(claim.verdict)
    if finite_bounds(claim.interval) is None:
        shown = "shows" if verdict != "inconclusive" else "does not show"
        return f"The adjusted p-value {shown} that the true value is {better} {limit}, the limit that the margin sets."
    named_limit = f"{limit}, the limit that the margin sets"
    if claim.is_limit_missed:
        other = {"better": f", but {better} {null}", "worse": f", and {worse} {null}"}.get(verdict, "")
        return f"The whole interval is {worse} {named_limit}{other}."
    if verdict == "better" and claim.hypothesis == NONINFERIORITY:
        return (
            f"The whole interval is {better} {named_limit}, and {better} {null}. One interval decides "
            "both, so “better” needs no further adjustment."
        )
    return {
        "noninferior": f"The whole interval is {better} {named_limit}.",
        "noninferior_but_worse": f"The whole interval is {better} {named_limit}, but {worse} {null}.",
        "superior_by_margin": f"The whole interval is {better} {named_limit}.",
        "better": f"The whole interval is {better} {null}, but not {better} {named_limit}.",
        "worse": f"The whole interval is {worse} {null}, and not wholly {better} {named_limit}.",
        "inconclusive": f"The interval is not wholly {better} {named_limit}.",
    }[verdict]


def _format_value(value: float, kind: str) -> str:
    """Format a limit with as many decimals as it has, so that 45 % and 47.5 % differ."""
    if kind == "percent":
        return cells.format_percent(value, cells.exact_digits(round(100 * value, 9), 0))
    return cells.format_number(value, cells.exact_digits(value, 2))


def format_margin_size(margin: float, kind: str) -> str:
    """Format the size of a margin: "5 percentage points", "0.50".

    >>> format_margin_size(0.05, "percent"), format_margin_size(0.025, "percent"), format_margin_size(0.5, "number")
    ('5 percentage points', '2.5 percentage points', '0.50')
    """
    points = _format_value(margin, kind).replace(" %", " percentage points")
    return points.replace("points", "point") if points.startswith("1 ") else points


# Write the sentences of a report. Each gives its estimate, interval, adjusted p and n, and claims no more than its
# test.
#
# A p-value is never called the probability of a hypothesis. Only an equivalence test may claim the lack of a
# difference.


LARGE_MISSING_SHARE = 0.05
ROLES = ("primary", "secondary", "exploratory")


def build_conclusion_sentences(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return a sentence for each planned comparison, primary ones first, with the gravest warnings about its number."""
    sentences = []
    for conclusion in ordered_conclusions(blocks):
        estimate, contrast = conclusion.estimate, contrast_of(conclusion.estimate)
        claimed = claim_of(estimate)
        x, y = cells.compared_names(estimate)
        claim, text = _claim_and_numbers(conclusion, claimed)
        outcome = (
            expectation_outcome(contrast["expected"], verdict_direction_symbol(estimate))
            if _has_verdict(estimate)
            else ""
        )
        sentences.append(
            {
                "contrast": conclusion.name,
                "x": x,
                "y": y,
                "about": subject_note(estimate),
                "side": _side(estimate),
                "role": contrast["role"],
                "claim": claim,
                "text": text + _expectation_sentence(conclusion, outcome) + population_mismatch_sentence(estimate),
                "apa": _apa_line(conclusion, claimed),
                "verdict": claimed.verdict,
                "claimed": claimed.as_dict(),
                "status": estimate.status,
                "recovered": outcome,
                "hypothesis": claimed.hypothesis,
                "warnings": gravest_warnings_with_sentences(estimate.warnings),
            }
        )
    return sentences


def ordered_conclusions(blocks: Sequence[Block]) -> list[Conclusion]:
    """Return the printed conclusions, primary ones first."""
    conclusions = [conclusion for _, conclusion in printed_conclusions(blocks)]
    return sorted(conclusions, key=lambda one: ROLES.index(contrast_of(one.estimate)["role"]))


def printed_conclusions(blocks: Sequence[Block]) -> list[tuple[str, Conclusion]]:
    """Return the conclusions that no other block supersedes, each with the name of its block."""
    concluding = {block.name for block in blocks if block.conclusions}
    return [
        (block.name, conclusion)
        for block in blocks
        for conclusion in block.conclusions
        if conclusion.superseded_by not in concluding
    ]


def decided_comparisons(blocks: Sequence[Block]) -> dict[str, list[tuple[str, str, str]]]:
    """Return x, y and the side that its claim takes ("?" if it remains open) of each planned comparison, by what it is about."""
    decided: dict[str, list[tuple[str, str, str]]] = {}
    for _, conclusion in printed_conclusions(blocks):
        estimate = conclusion.estimate
        decided.setdefault(subject_note(estimate), []).append((*cells.compared_names(estimate), _side(estimate)))
    return decided


def _side(estimate: "Estimate") -> str:
    """Return which of the two is better by the claim: ">" for x. Lower values can be better."""
    side = verdict_direction_symbol(estimate) if _has_verdict(estimate) else "?"
    return {">": "<", "<": ">"}.get(side, side) if claim_of(estimate).is_lower_better else side or "?"


def _claim_and_numbers(conclusion: Conclusion, claimed: "Claim") -> tuple[str, str]:
    """Return the claim and the numbers that support it."""
    estimate, wording = conclusion.estimate, conclusion.wording
    if estimate.estimate is None:
        if wording.subject:
            return f"Nothing can be said of {wording.subject}.", f"{estimate.reason[:1].upper()}{estimate.reason[1:]}."
        return wording.open, f"Nothing can be estimated: {estimate.reason}."
    if estimate.test is not None and is_not_tested(estimate):
        return _not_tested_claim_and_numbers(conclusion, claimed)
    numbers = _numbers_sentence(conclusion, claimed)
    if estimate.test is None:
        claim = f"No test was possible for {wording.subject}." if wording.subject else wording.open
        return claim, f"{numbers} No test: {estimate.reason or f'{_shortage_text(estimate)} for a test'}."
    if not _has_verdict(estimate):
        x, y, about = comparison_x_y_and_criterion_phrase(estimate)
        return f"{x} and {y} were compared{about}; no verdict was formed.", numbers + wording.closing_text
    verdict = claimed.verdict
    margin = f"±{format_margin_size(claimed.margin, wording.kind)}" if claimed.margin else ""
    about = population_phrase(estimate, wording.item)
    claim = (wording.above_claim if claimed.side == ">" else wording.below_claim)[:-1]
    if estimate.supports_no_claim:
        claim = f"{wording.open[:-1]}{about}."
        return (
            claim,
            f"{numbers} These numbers support no claim: the first warning gives the reason.{wording.closing_text}",
        )
    closing = unclaimed_sentence(conclusion, claimed) + wording.closing_text
    if claimed.limit is not None:
        claim, reason = margin_claim_and_reason(conclusion, claimed)
        return f"{claim}{about}.", numbers + reason + closing
    if verdict == "different":
        return f"{claim}{about}.", numbers + closing
    if verdict == "different_but_trivial":
        claim = f"{claim}, but by less than matters ({margin}){about}."
        return claim, numbers + _equivalence_sentence(conclusion) + closing
    if verdict == "equivalent":
        claim = f"{wording.same} within {margin}{about}."
        return claim, numbers + _equivalence_sentence(conclusion) + closing
    if claimed.withheld:
        return f"{wording.open[:-1]}{about}.", numbers + closing
    if margin:
        numbers += f" The data show neither a difference nor equivalence within {margin}."
    else:
        numbers += " No difference was shown, which is no evidence that there is none."
    claim = f"{wording.open[:-1]}{about}."
    return claim, numbers + _larger_study_text(conclusion, claimed) + wording.closing_text


def _not_tested_claim_and_numbers(conclusion: Conclusion, claimed: "Claim") -> tuple[str, str]:
    """Return that the order of the families left the comparison untested, and its numbers as a description."""
    estimate, wording = conclusion.estimate, conclusion.wording
    x, y, about = comparison_x_y_and_criterion_phrase(estimate)
    before = estimate.detail["gate"]["family"]
    subject = wording.subject or f"{x} and {y}{about}"
    claim = f"{subject}: not tested, because not all comparisons of the family “{before}” were shown."
    return claim, f"These numbers only describe. {_numbers_sentence(conclusion, claimed)}{wording.closing_text}"


def population_phrase(estimate: "Estimate", item: str = "prompt") -> str:
    """Return ", for prompts like these", ", for exactly these 3 prompts" or, if the analysis does not say it, ''."""
    population = estimate.settings.get("population")
    if population == "people and prompts":
        return f", for {item}s like these"
    if population != "people":
        return ""
    n_prompts = estimate.detail.get("n_prompts")
    if n_prompts == 1:
        return f", for exactly this {item}"
    return f", for exactly these {n_prompts} {item}s" if n_prompts else f", for exactly these {item}s"


def population_mismatch_sentence(estimate: "Estimate") -> str:
    """Return a sentence if the design declared another population than the claim's; otherwise ''."""
    if estimate.estimate is None or not population_phrase(estimate):
        return ""
    declared, found = contrast_of(estimate)["population"], estimate.settings["population"]
    if not declared or declared == found.replace(" ", "_"):
        return ""
    if declared == "people":
        return " The design declared exactly these prompts, but this method is about prompts like these."
    wanted = " The design declared prompts like these, but "
    if is_sequential(estimate):
        return f"{wanted}its stopping rule counts people only. A study without a stopping rule can show more."
    if "n_batches" in estimate.detail:
        return f"{wanted}batches that share prompts cannot show that. A study with five sets that share no prompt can."
    n_prompts = estimate.detail.get("n_prompts")
    few = f"{n_prompts} prompt{'' if n_prompts == 1 else 's'}" if n_prompts else "so few prompts"
    return f"{wanted}{few} cannot show that. A study with five prompts or more can."


def undeclared_population_lines(blocks: Sequence[Block]) -> list[str]:
    """Return a line if the design declared no population for some results, once for all of them."""
    estimates = [
        conclusion.estimate
        for _, conclusion in printed_conclusions(blocks)
        if conclusion.estimate.estimate is not None and population_phrase(conclusion.estimate)
    ]
    undeclared = [estimate for estimate in estimates if not contrast_of(estimate)["population"]]
    if not undeclared:
        return []
    results = "its results hold"
    if len(undeclared) < len(estimates):
        results = f"{len(undeclared)} of its {len(estimates)} results hold{'s' if len(undeclared) == 1 else ''}"
    return [
        f"The design does not declare for which people and prompts {results}, so each sentence says what its numbers allow. In a new study, "
        "declare it with each comparison."
    ]


def _equivalence_sentence(conclusion: Conclusion) -> str:
    """Return a sentence with the interval that decided equivalence, or with the p-value if no interval agrees with it."""
    from analysis.stats.claims import agreeing_interval

    for other in conclusion.estimate.sensitivity:
        if not other.analysis.endswith(".equivalence"):
            continue
        between = agreeing_interval(other)
        if between is None:
            return f" The test of equivalence has {cells.format_named_pvalue(other.test)}."
        if bounds := finite_bounds(between):
            references = claim_of(conclusion.estimate).references
            _, low, high = cells.format_estimate_with_bounds(
                other.estimate, bounds, conclusion.wording.kind, references
            )
            return f" The {cells.format_confidence_level(other)} confidence interval {low} to {high}, which decides this, is within the margin."
    return ""


def _has_verdict(estimate: "Estimate") -> bool:
    """Return whether ``adjust_pvalues_and_add_verdicts`` has added a verdict, or the estimate has no test."""
    return estimate.test is None or "verdict" in estimate.detail


def _larger_study_text(conclusion: Conclusion, claimed: "Claim") -> str:
    """Return which effect such a study finds in 8 of 10 cases, and how large a study must be for the margin, or for half.

    The effect that this study estimated is not used: a size that is computed from it repeats the p-value.
    """
    from analysis.stats.groups import difference_detectable_at_power_80

    estimate, is_share = conclusion.estimate, conclusion.wording.kind == "percent"
    se, df, test = estimate.detail.get("se"), estimate.detail.get("df"), estimate.test
    if not se or not df or test is None or test.null is None or is_sequential(estimate):
        return ""
    found = difference_detectable_at_power_80(se, df, 1 - claimed.level, tests=test.family_size or 1)
    is_chance = is_share and test.null == CHANCE

    def size(effect: float) -> str:
        points = (
            f"{cells.format_number(100 * effect, 0 if effect >= 0.02 else 1)} points"
            if is_share
            else cells.format_number(effect)
        )
        return f"{points} from 50 %" if is_chance else points

    def needed(effect: float) -> str:
        times = (found / effect) ** 2
        return cells.listed([cells.format_count(_rounded_up(times * n), noun) for n, noun in _sample_sizes(estimate)])

    if is_chance and found >= CHANCE:
        return f" So small a study finds no difference in 8 of 10 cases, however large; {size(LARGE_EFFECT)} take about {needed(LARGE_EFFECT)}."
    text = f" Such a study finds a difference of {size(found)} in 8 of 10 cases"
    if claimed.margin is None:
        return f"{text}; to find half of that difference takes about {needed(found / 2)}."
    return f"{text}; to find the margin takes about {needed(claimed.margin)}." if found > claimed.margin else f"{text}."


def _rounded_up(n: float) -> int:
    """Return a number with at most two digits that are not zero, rounded up.

    >>> _rounded_up(55.2), _rounded_up(1201)
    (56, 1300)
    """
    step = 10 ** max(0, len(str(math.ceil(n))) - 2)
    return math.ceil(n / step) * step


def _numbers_sentence(conclusion: Conclusion, claimed: "Claim") -> str:
    estimate, wording = conclusion.estimate, conclusion.wording
    bounds = finite_bounds(claimed.interval)
    middle, low, high = cells.format_estimate_with_bounds(estimate.estimate, bounds, wording.kind, claimed.references)
    text = f"{wording.before} {middle}{wording.after}"
    text += f"; {cells.format_confidence_level(estimate)} {wording.interval} {low} to {high}" if bounds else ""
    if claimed.pvalue is not None:
        text += f"; {cells.format_named_pvalue(estimate.test, claimed.level)}"
        text += f" against {format_limit(claimed, wording.kind)}" if claimed.limit is not None else ""
    text = f"{text}; {_sample_size_text(estimate)}.{_unpaired_sentence(estimate)}"
    if claimed.pvalue is None or estimate.test is None or claimed.interval is not None:
        return text
    method = cells.ADJUSTMENT_NAMES[str(estimate.test.adjust)][1]
    return f"{text} {method} gives no interval that agrees with p; the table has the interval of this comparison alone."


def is_unpaired(estimate: "Estimate") -> bool:
    """Return whether the estimate compares two samples (``analysis.stats.unpaired``): too few people judged both systems."""
    return estimate.settings.get("comparison") == "not side by side"


def _sample_sizes(estimate: "Estimate") -> list[tuple[int, str]]:
    """Return n and its unit, and the number of prompts, groups or batches if they are a sample, too."""
    sizes = [(estimate.n, estimate.unit)]
    if is_unpaired(estimate) or estimate.settings.get("population") == "people and prompts":
        sizes += [
            (estimate.detail[f"n_{name}"], singular)
            for name, singular in (
                ("groups", estimate.detail.get("group_noun", cells.GROUP)),
                ("prompts", "prompt"),
                ("batches", "batch"),
            )
            if f"n_{name}" in estimate.detail and not (name == "prompts" and "n_groups" in estimate.detail)
        ]
    return sizes


def _sample_size_text(estimate: "Estimate") -> str:
    """Return n with its unit, and the number of prompts, groups or batches if they are a sample, too."""
    sizes = _sample_sizes(estimate)
    text = ", ".join(cells.format_sample_size(n, noun) for n, noun in sizes)
    return (
        f"{text} ({cells.format_count(estimate.detail['n_prompts'], 'prompt')})"
        if len(sizes) > 1 and "n_groups" in estimate.detail
        else text
    )


def _unpaired_sentence(estimate: "Estimate") -> str:
    """Return a sentence about who judged what in an unpaired comparison, or '' in a paired one."""
    if not is_unpaired(estimate):
        return ""
    detail, contrast = estimate.detail, contrast_of(estimate)
    n_both = detail["n_annotators_both"]
    judged = f"{detail['n_annotators_x']} judged {contrast['x']} and {detail['n_annotators_y']} judged {contrast['y']}"
    if not n_both:
        return f" The comparison is between different annotators, not side by side: {judged}."
    n_side_by_side, same = (
        detail["n_annotators_side_by_side"],
        detail.get("group_noun", cells.GROUP) if "n_groups" in detail else "prompt",
    )
    side_by_side_text = (
        f"{n_side_by_side} judged both for the same {same}, too few for a test"
        if n_side_by_side
        else f"nobody judged both for the same {same}"
    )
    return f" The comparison is not side by side: of {detail['n_annotators']} annotators {judged}; {side_by_side_text}."


def _shortage_text(estimate: "Estimate") -> str:
    """Return which sample is too small for a test."""
    short_samples = {
        warning.detail.get("cluster")
        for warning in estimate.warnings
        if warning.code == "few_clusters" and warning.severity == "block"
    }
    group = estimate.detail.get("group_noun", cells.GROUP)
    return next(
        (f"too few {cells.plural_noun(one)}" for one in (group, "prompt") if short_samples == {one}),
        "too few annotators",
    )


def _expectation_sentence(conclusion: Conclusion, outcome: str) -> str:
    """Return a sentence about the expectation and its outcome, or '' if one of them is missing."""
    if not outcome:
        return ""
    wording, expected = conclusion.wording, contrast_of(conclusion.estimate)["expected"]
    expected_claims = wording.expected or (wording.above_claim, wording.below_claim, f"{wording.same}.")
    opposite = "A difference was found." if expected == "~" else "The opposite was found."
    if conclusion.estimate.detail.get("verdict") == "different_but_trivial":
        opposite = f"{opposite[:-1]}, by less than matters."
    ending = {"recovered": "That was found.", "not shown": "That was not shown.", "contradicted": opposite}
    return f" Expected: {expected_claims['><~'.index(expected)]} {ending[outcome]}"


def _apa_line(conclusion: Conclusion, claimed: "Claim") -> str:
    if conclusion.estimate.estimate is None:
        return ""
    kind = "proportion" if conclusion.wording.kind == "percent" else "number"
    sizes = _sample_size_text(conclusion.estimate)
    own = cells.format_sample_size(conclusion.estimate.n, conclusion.estimate.unit)
    line = cells.format_result_line(conclusion.estimate, conclusion.wording.symbol, kind)
    if note := subject_note(conclusion.estimate):
        line = f"{note}: {line}"
    line = f"{line}{sizes.removeprefix(own)}{population_phrase(conclusion.estimate, conclusion.wording.item)}"
    return f"{line}, {NO_CLAIM}" if conclusion.estimate.supports_no_claim else f"{line}{unclaimed_phrase(claimed)}"


# Why tests of imported answers are not confirmatory.
IMPORTED_EARLIER = "It includes imported answers, which were collected before the design was frozen."


def _missing_answers_lines(report: Mapping[str, Any]) -> list[str]:
    """Return a sentence about the missing answers of the annotators behind the recommended numbers, or nothing if none was planned."""
    missing, names = report["missing_answers"], {one["position"]: one["name"] for one in report["sections"]}
    if not missing["planned"]:
        return []
    n_missing = missing["skipped"] + missing["not_given"]
    line = f"Of their {missing['planned']} planned answers (without free texts), {n_missing} "
    line += f"({cells.format_percent(n_missing / missing['planned'])}) are missing: {missing['skipped']} were skipped with a reason and "
    line += f"{missing['not_given']} were not given."
    shares = {row["position"]: (row["skipped"] + row["not_given"]) / row["planned"] for row in missing["sections"]}
    if large := [
        f"{cells.format_percent(n)} in “{names[one]}”" for one, n in shares.items() if n > LARGE_MISSING_SHARE
    ]:
        most = cells.format_percent(LARGE_MISSING_SHARE)
        line += f" More than {most} are missing in these sections: {', '.join(large)}."
    return [line]


def _frozen_design_line(report: Mapping[str, Any]) -> str:
    """Return when the design was frozen, with the facts that decide whether the tests are confirmatory."""
    design, reasons = report["design"], report["confirmatory"]["reasons"]
    if not design["versions"]:
        return "The study was not launched, so its design is not frozen."
    newest = design["versions"][-1]
    frozen = f"Version {newest['version']} of the design was frozen"
    if IMPORTED_EARLIER in reasons:
        line = f"{frozen} after the imported answers had been collected (SHA-256 {newest['sha256']})."
    elif earlier := sum(version["assignments"] for version in design["versions"][:-1]):
        line = f"{frozen} after {earlier} assignments with earlier versions had been made (SHA-256 {newest['sha256']})."
    else:
        line = f"{frozen} before answers came (SHA-256 {newest['sha256']})."
    return f"{line} {design['mismatch']}".rstrip()


def _family_words(report: Mapping[str, Any], name: str) -> str:
    """Return how readers know a family of tests: by its declared name, and by the title of its block unless that name is all."""
    tests = [
        (estimate["test"]["family"], block["title"], (estimate["settings"].get("contrast") or {}).get("family", ""))
        for block in report["blocks"]
        for estimate in block["estimates"]
        if estimate["test"]
    ]
    titles = dict.fromkeys(title for family, title, _ in tests if family == name)
    declared = next((one for family, _, one in tests if family == name and one), "")
    if declared == name:
        return f"the family “{name}”"
    where = " and ".join(f"“{title}”" for title in titles)
    if declared:
        own = "comparisons that were not planned" if declared == NOT_PLANNED else f"family “{declared}”"
        return f"the {own} in {where}"
    is_only_one = {family for family, title, one in tests if title in titles and family and not one} == {name}
    own = "" if is_only_one else f" of {name.partition('.')[2].replace('_', ' ').replace('auc', 'AUC')}"
    return f"the tests{own} in {where}"


def methods_section_lines(report: Mapping[str, Any]) -> list[str]:
    """Return the methods section, using only facts of the report."""
    flow = report["flow"]
    lines = [
        _frozen_design_line(report),
        *report.get("planned_and_reached", {}).get("sentences", ()),
        f"{flow['arrived']} assignments were made, and {flow['submitted']} were submitted.",
        f"{report['n']['kept']} remain after the rules that do not use outcomes: the recommended numbers are about them. "
        f"{report['n']['kept_paper']} remain after all primary rules: the numbers as published are about them.",
        *_missing_answers_lines(report),
    ]
    applied = [step for step in flow["rules"] if step["role"] != "sensitivity"]
    if applied:
        lines.append(
            "Exclusion rules, in order: "
            + "; ".join(f"{step['label']} ({step['n_excluded']})" for step in applied)
            + "."
        )
    lines += [
        f"The section “{one['name']}”, {PURPOSES[one['purpose']]}, asked {cells.format_count(one['questions'], 'question')}."
        for one in report["sections"]
    ]
    recommended = (block["estimates"] for block in report["blocks"] if block["mode"] == "recommended")
    if counted := cells.groups_phrase(estimate["detail"] for estimates in recommended for estimate in estimates):
        lines.append(f"Results about prompts like these {counted}.")
    for family in report["families"]:
        tests = "test" if family["size"] == 1 else "tests"
        lines.append(
            f"p-values of {_family_words(report, family['family'])} ({family['size']} {tests}) are adjusted by "
            f"{cells.ADJUSTMENT_NAMES[family['adjust']][1]}."
        )
        if "after" in family:
            outcome = "was tested" if family["is_tested"] else "was not tested"
            lines.append(
                f"The family “{family['family']}” is tested only if all comparisons of the family “{family['after']}” were shown; "
                f"it {outcome}. Its adjusted p-values are never below the largest of that family."
            )
    if any(conclusion["hypothesis"] != DIFFERENCE_HYPOTHESIS for conclusion in report["conclusions"]):
        lines.append(
            "Where a comparison claims that x is not worse, or is better, by more than a margin, its test is of the limit that the margin "
            "sets, and takes the place of the test of difference in the family. The two-sided interval decides such a claim, so half of "
            "the significance level is spent on the claimed side."
        )
    if any(conclusion["claimed"]["withheld"] == "gate" for conclusion in report["conclusions"]):
        lines.append(
            "In a family before another one, only the planned claim can be shown. Where its interval shows more, no claim is made "
            "of it, because the level goes to the next family."
        )
    level = report["parameters"]["level"]
    lines += [
        f"Intervals have a confidence level of {100 * level:g} %. Resampling draws annotators {report['parameters']['resamples']} times; the seed "
        f"{report['seed']} follows from study, design, parameters and data.",
        "Computed by heval "
        + report["code_version"]
        + " with "
        + ", ".join(f"{k} {v}" for k, v in report["libraries"].items())
        + ".",
    ]
    return lines
