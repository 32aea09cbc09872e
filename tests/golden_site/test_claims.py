"""In every stored report, a p-value and the interval beside it give the same decision."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from .hashes import stored


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


def test_adjusted_p_and_adjusted_interval_give_one_decision():
    seen = Counter()
    for estimate in recommended_estimates():
        test, interval, adjusted = estimate["test"], estimate["interval"], estimate["interval_adjusted"]
        if adjusted is None:
            continue
        assert test["adjust"] == "bonferroni"
        if test["alternative"] == "within margin":
            significance = estimate["settings"]["significance"]
            for pvalue, between in ((test["pvalue"], interval), (test["pvalue_adjusted"], adjusted)):
                assert (pvalue < significance) == is_within_margin(between, estimate["detail"]), estimate["analysis"]
                seen["equivalent" if pvalue < significance else "not equivalent"] += 1
        else:
            significance = 1 - interval["level"]
            for pvalue, between in ((test["pvalue"], interval), (test["pvalue_adjusted"], adjusted)):
                assert (pvalue < significance) == is_excluded(between, test["null"]), estimate["analysis"]
                seen["different" if pvalue < significance else "open"] += 1
    assert all(seen[verdict] for verdict in ("different", "open", "equivalent", "not equivalent")), seen
    assert sum(seen.values()) > 300, seen
