"""In every stored report, a p-value and the interval beside it give the same decision."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from scipy import stats

from analysis.protocols.blocks import Block
from analysis.protocols.blocks.sentences import build_conclusion_sentences
from tests.analysis.protocols.claim_places import ESTIMANDS, KEY, conclusion_of, faults_of_other_places
from tests.analysis.protocols.claim_words import WORDS, faults, read

from .hashes import stored
from .rebuilt import estimate_of


def test_every_sentence_says_what_it_holds_for_or_why_nothing_was_tested():
    seen = Counter()
    for study, parts in stored().items():
        for name, *_, holds_for in parts["study"]["conclusions"]:
            assert holds_for, f"{study}: {name}"
            seen[holds_for] += 1
    assert seen["population"] > 50 and seen["reason"] > 20, seen


def recommended_estimates() -> Iterator[dict[str, Any]]:
    for parts in stored().values():
        for block in parts["blocks"]:
            for estimate in block["estimates"] if block["mode"] == "recommended" else ():
                yield from (estimate, *estimate["sensitivity"])


def is_excluded(interval: dict[str, Any], null: float) -> bool:
    return not interval["low"] <= null <= interval["high"]


def is_within_margin(interval: dict[str, Any], detail: dict[str, Any]) -> bool:
    return detail["low_bound"] < interval["low"] and interval["high"] < detail["high_bound"]


def is_beyond_limit(interval: dict[str, Any], claim: dict[str, Any]) -> bool:
    """Whether the whole interval is on the side of the limit that a claim by a margin is about."""
    return interval["high"] < claim["limit"] if claim["is_lower_better"] else interval["low"] > claim["limit"]


def is_one_decision(estimate: dict[str, Any]) -> bool:
    """Whether p and interval of an estimate decide alike, before and after the adjustment."""
    test, detail, claim = estimate["test"], estimate["detail"], estimate["settings"].get("claim")
    pairs = [(test["pvalue"], estimate["interval"]), (test["pvalue_adjusted"], estimate["interval_adjusted"])]
    if test["alternative"] == "within margin":
        significance = estimate["settings"]["significance"]
        return all((p < significance) == is_within_margin(between, detail) for p, between in pairs)
    significance = 1 - estimate["interval"]["level"]
    if claim is not None:
        assert (test["null"], test["alternative"]) == (
            claim["limit"],
            "less" if claim["is_lower_better"] else "greater",
        )
        return all((p < significance) == is_beyond_limit(between, claim) for p, between in pairs)
    return all((p < significance) == is_excluded(between, test["null"]) for p, between in pairs)


def test_adjusted_p_and_adjusted_interval_give_one_decision():
    seen = Counter()
    for estimate in recommended_estimates():
        test, adjusted = estimate["test"], estimate["interval_adjusted"]
        if adjusted is None:
            continue
        assert test["adjust"] == "bonferroni"
        assert is_one_decision(estimate), estimate["analysis"]
        is_tost = test["alternative"] == "within margin"
        significance = estimate["settings"]["significance"] if is_tost else 1 - estimate["interval"]["level"]
        for pvalue in (test["pvalue"], test["pvalue_adjusted"]):
            is_shown = pvalue < significance
            seen[
                ("equivalent" if is_shown else "not equivalent") if is_tost else "different" if is_shown else "open"
            ] += 1
    assert all(seen[verdict] for verdict in ("different", "open", "equivalent", "not equivalent")), seen
    assert sum(seen.values()) > 300, seen


def compared_estimates() -> Iterator[tuple[str, str, Any]]:
    """Study, estimand and record of each comparison of the stored reports that can have a sentence, planned or not."""
    for study, parts in stored().items():
        for block in parts["blocks"]:
            for one in block["estimates"] if block["mode"] == "recommended" else ():
                contrast = one["settings"].get("contrast")
                name = f"{block['name']}{' against chance' if contrast and contrast['y'] == 'chance' else ''}"
                if contrast and name in ESTIMANDS:
                    names = {
                        "x": "beta",
                        "y": "alpha",
                        "criterion": "",
                        "question": "",
                        "key": KEY,
                        "is_planned": True,
                        "section": 1,
                    }
                    estimate = estimate_of(one)
                    yield (
                        study,
                        name,
                        replace(
                            estimate, settings={**estimate.settings, "contrast": contrast | names, "scored": "1 to 5"}
                        ),
                    )


def test_every_conclusion_read_back_claims_what_its_interval_shows():
    seen, wrong = Counter(), []
    for study, name, estimate in compared_estimates():
        conclusion = conclusion_of(name, estimate)
        contrast, tested = estimate.settings["contrast"], estimate.settings.get("claim") or {}
        (sentence,) = build_conclusion_sentences([Block("b", "", "recommended", (estimate,), (conclusion,))])
        null = ESTIMANDS[name][1]
        said = read(
            sentence["claim"], sentence["text"], WORDS[name], null=null, margin=tested.get("margin", contrast["margin"]),
            kind=conclusion.wording.kind, is_lower_better=tested.get("is_lower_better", False),
        )  # fmt: skip
        limit = tested.get("limit")
        found = faults(said, null=null, limit=limit, level=contrast["level"])
        found += faults_of_other_places(estimate, sentence, said, null, limit)
        wrong += [f"{study}: {one} | {sentence['claim']} {sentence['text']}" for one in found]
        seen[name] += 1
        seen[said.status] += 1
    assert not wrong, f"{len(wrong)} of {seen.total() // 2}:\n" + "\n".join(wrong[:12])
    assert seen["claimed"] > 40 and seen["open"] > 40 and seen["nothing"] > 20, seen
    missing = ESTIMANDS.keys() - seen.keys()
    # No stored study has best-worst choices.
    assert missing <= {"best_worst.strength", "an estimand without sentences"} | {
        name for name in ESTIMANDS if "humanlike" in name
    }


SIZE = re.compile(
    r" Such a study finds a difference of ([\d.]+)( points)?(?: from 50 %)? in 8 of 10 cases; to find (half of that difference|the margin) takes about ([\d]+) "
)


def test_an_open_conclusion_says_what_its_study_finds_and_how_large_a_study_must_be():
    """The power of the t test is computed anew from the noncentral t distribution; four times as many halve the distance."""
    seen = Counter()
    for study, name, estimate in compared_estimates():
        conclusion = conclusion_of(name, estimate)
        (sentence,) = build_conclusion_sentences([Block("b", "", "recommended", (estimate,), (conclusion,))])
        if not (said := SIZE.search(sentence["text"])):
            continue
        assert sentence["verdict"] in (None, "inconclusive"), f"{study}: {sentence}"
        found = float(said[1]) / (100 if said[2] else 1)
        detail, level = estimate.detail, sentence["claimed"]["level"] / (estimate.test.family_size or 1)
        critical = stats.t.isf(level / 2, df := int(detail["df"]))
        power = stats.nct.sf(critical, df, found / detail["se"]) + stats.nct.cdf(-critical, df, found / detail["se"])
        assert 0.75 < power < 0.85, f"{study} {name}: {power} {sentence['text']}"
        times = int(said[4]) / estimate.n
        if said[3] == "half of that difference":
            assert 4 <= times <= 4.45, f"{study} {name}: {sentence['text']}"
        else:
            assert times >= 1
        seen[said[3]] += 1
    assert seen["half of that difference"] > 20 and seen["the margin"] > 5, seen
