"""The numbers of a report, to compare two."""

import math

# Drawn again with every hash of names, or about the order of items, which an import numbers by their prompts.
DRAWN = ("replay", "hoeffding", "effort", "sign_flip", "bca", "bayesian", "split_half", "reliability")


def numbers(report):
    """Every estimate that no draw and no order of items moves, by what it is about."""
    found = {}
    for block in report["blocks"]:
        for first in block["estimates"]:
            for one in (first, *first["sensitivity"]):
                if any(word in one["analysis"] for word in DRAWN):
                    continue
                about = first["settings"]
                key = (
                    block["name"],
                    block["title"],
                    block["mode"],
                    one["analysis"],
                    one["estimand"],
                    about.get("system"),
                    about.get("section"),
                    about.get("measure"),
                    about.get("sort"),
                    (about.get("contrast") or {}).get("key"),
                    about.get("m"),
                )
                assert key not in found, key
                test = one["test"] or {}
                # Bets deal people and prompts into units in the order of their names.
                is_bet = test.get("name") == "independent_units_betting"
                values = (
                    one["estimate"],
                    None if is_bet else test.get("pvalue"),
                    one["n"],
                    one["n_rows"],
                    one["status"] == "ok",
                )
                found[key] = [math.nan if value is None else float(value) for value in values]
    return found
