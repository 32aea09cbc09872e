"""What a check says, in sentences."""

import math
from collections.abc import Mapping
from typing import Any

from analysis.models import JudgeCheck
from analysis.protocols.blocks import cells
from analysis.protocols.blocks.populations import groups_sentence

from .binding import CheckState

# What the alternative annotator test asks of a person (``judges.MIN_ITEMS``, which pages do not import).
OUTPUTS_PER_PERSON = 30
NAMES = {
    "agreement": "agreement with people",
    "true_positive_rate": "true-positive rate",
    "true_negative_rate": "true-negative rate",
    "alternative_annotator_test": "alternative annotator test",
}


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def interval_text(estimate: Mapping[str, Any] | None) -> str:
    """Return a share with its interval, or why it is undefined."""
    if not estimate or estimate["estimate"] is None:
        return f"undefined: {estimate['reason']}" if estimate and estimate["reason"] else "undefined"
    interval = estimate["interval"]
    if not interval:
        return f"{percent(estimate['estimate'])} (no interval: {estimate['reason'] or 'too few people or outputs'})"
    return f"{percent(estimate['estimate'])} ({percent(interval['low'])} to {percent(interval['high'])})"


def headline(found: CheckState) -> str:
    if found.check is None:
        return "No sample is drawn, so nothing can be said about a judge."
    name = found.check.judge.name
    match found.state:
        case "good":
            return f"“{name}” is good enough: it reaches all that was declared."
        case "not_good":
            return f"“{name}” is not shown to be good enough."
        case "stale":
            return f"The result is stale: {found.reason}. Compute it again."
    return f"It is open whether “{name}” is good enough: {found.reason}."


def criterion_sentences(result: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each declared minimum."""
    said = []
    for one in result["criteria"]:
        name = NAMES[one["name"]].capitalize()
        if one["is_met"] is None:
            said.append(f"{name}: undefined, because {one['reason'] or 'there are too few people or outputs'}.")
        elif one["name"] == "alternative_annotator_test":
            passed = "passed" if one["is_met"] else "not passed"
            said.append(f"{name}: {passed}. The judge wins against {percent(one['estimate'])} of the tested people.")
        else:
            place = "above" if one["is_met"] else "not above"
            minimum = 100 * one["minimum"]
            # The lower end never looks like the minimum if it is another value.
            digits = cells.digits_to_distinguish(
                [100 * one["low"]], cells.exact_digits(round(minimum, 9), 1), [minimum]
            )
            estimate, low, high, declared = (
                cells.format_percent(one[key], digits) for key in ("estimate", "low", "high", "minimum")
            )
            said.append(
                f"{name}: {estimate}, interval {low} to {high}. The lower end is {place} the declared {declared}."
            )
    return said


def context_sentences(check: JudgeCheck, result: Mapping[str, Any]) -> list[str]:
    """Return what a reader needs beside the verdict."""
    test = result["test"]
    if not test["agreement"]:
        return ["No person has judged an output of the test part yet."]
    agreement = test["agreement"]
    who = "robots" if result["is_simulated"] else "people"
    said = [
        f"{result['n_people']} {who} gave {test['n_labels']} verdicts about {result['n_outputs']} outputs of the test part.",
        f"People say “{agreement['constant']}” most often. A judge that always said so would agree in "
        f"{interval_text(agreement['constant_agreement'])}.",
        *groups_sentence(result.get("n_groups"), result.get("n_prompts", 0)),
    ]
    if result.get("n_groups") is not None and test["alternative"]["people"]:
        said.append("The alternative annotator test still takes each output as independent, so it is too eager here.")
    possible = test["possible"]
    if possible["pair_agreement"]["estimate"] is not None:
        said.append(
            f"Two people agree with one another in {interval_text(possible['pair_agreement'])}. No judge can agree with people in more than "
            f"about {interval_text(possible['best_possible'])}."
        )
    n_versions = check.results.values("fingerprint").distinct().count()
    if n_versions > 1:
        said.append(
            f"The test part has now been used for {n_versions} versions of the judge. The best of them by this part "
            "looks better than it is: choose by the development part."
        )
    if result["is_simulated"]:
        said.append("Robots gave the answers, so nothing is decided.")
    return said


def workload_sentence(check: JudgeCheck, per_batch: int, batches_per_annotator: int) -> str:
    """Return how many batches a person must judge to count in the alternative annotator test, or nothing if one is enough."""
    of_test = per_batch * check.n_test / (check.n_test + check.n_development)
    needed = math.ceil(OUTPUTS_PER_PERSON / of_test)
    if not check.needs_alternative_test or needed < 2:
        return ""
    said = (
        f"The alternative annotator test counts people with at least {OUTPUTS_PER_PERSON} outputs of the test part. A batch has about "
        f"{of_test:.0f}, so three people or more must judge {needed} batches each."
    )
    if needed > batches_per_annotator:
        allowed = f"{batches_per_annotator} batch{'' if batches_per_annotator == 1 else 'es'}"
        said += f" The study allows {allowed} per annotator: allow {needed}, or show more outputs in a batch."
    return said


def probe_sentences(probes: Mapping[str, Any], family: str) -> list[str]:
    said = []
    if one := probes["repeat"]:
        said.append(f"Repeated runs give the same verdict in {interval_text(one['identical'])} of pairs of runs.")
    if one := probes["order"]:
        said.append(f"The verdict about a pair changes with its order in {interval_text(one['flips'])} of pairs.")
    if (one := probes["length"]) and one["estimate"] is not None:
        said.append(
            f"With each doubling of an output's length, the judge's share of “yes” {_more(one['estimate'], 'rises', 'falls')} points "
            f"compared with people's{_points_interval(one)}."
            if _is_direction_shown(one)
            else "It remains open whether an output's length changes the judge's share of “yes” compared with people's: "
            f"{_signed(one['estimate'])} points with each doubling{_points_interval(one)}."
        )
    if (one := probes["family"]) and one["difference"]["estimate"] is not None:
        difference = one["difference"]
        said.append(
            f"The judge's share of “yes” minus people's {_more(difference['estimate'], 'is higher', 'is lower')} points for systems of the "
            f"family “{family}” than for the others{_points_interval(difference)}."
            if _is_direction_shown(difference)
            else f"It remains open whether the judge favours systems of the family “{family}”: its share of “yes” minus people's is "
            f"{_signed(difference['estimate'])} points above that for the others{_points_interval(difference)}."
        )
    return said or [
        "The data allow no probe: they need repeated runs, pairs in both orders, texts, or a system of the judge's family."
    ]


def _more(estimate: float, more: str, less: str) -> str:
    return f"{more if estimate >= 0 else less} by {100 * abs(estimate):.1f}"


def _is_direction_shown(estimate: Mapping[str, Any]) -> bool:
    """Return whether the whole interval of a difference is on one side of 0."""
    interval = estimate["interval"]
    return bool(interval) and not interval["low"] <= 0 <= interval["high"]


def _signed(difference: float, digits: int = 1) -> str:
    return f"{100 * difference:+.{digits}f}".replace("-", "−")


def _points_interval(estimate: Mapping[str, Any]) -> str:
    interval = estimate["interval"]
    if not interval:
        return " (no interval)"
    digits = cells.digits_to_distinguish([100 * interval["low"], 100 * interval["high"]], 1, [0.0])
    return f" (interval {_signed(interval['low'], digits)} to {_signed(interval['high'], digits)})"
