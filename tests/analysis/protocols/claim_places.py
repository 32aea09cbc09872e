"""The places of a report that print a claim, and the functions that word each estimand."""

import math
import re
from dataclasses import replace

from analysis.protocols import best_worst, marks, ranking, rating, relative
from analysis.protocols.blocks import _default_conclusion, build_planned_conclusions, cells, layouts
from analysis.protocols.humanlike import planned_comparisons as humanlike
from analysis.protocols.rating import utilities
from analysis.protocols.spa import comparisons as spa_pairs
from analysis.protocols.two_choice import preference

KEY = "beta > alpha, section 1"
# The phrases of each estimand, its null, and the value of ``key`` in its settings.
ESTIMANDS = {
    "spa.pairs": (spa_pairs.PHRASES, 0.5, ""),
    "rating.superiority": (rating.superiority_phrases, 0.5, ""),
    "rating.difference": (rating.DIFFERENCE_PHRASES, 0.0, ""),
    "rating.utility_difference": (utilities.PHRASES, 0.0, ""),
    "relative.score": (relative.phrases_of_score(2.0), 0.0, ""),
    "ranking.share": (ranking.PHRASES, 0.5, ""),
    "marks.score": (marks.PHRASES[marks.SCORE], 0.0, marks.SCORE),
    "marks.penalty": (marks.PHRASES[marks.PENALTY], 0.0, marks.PENALTY),
    "choice.preference": (preference.preference_phrases, 0.5, ""),
    "best_worst.strength": (best_worst.PHRASES, 0.0, ""),
    "humanlike.sensitivity": (humanlike.phrases_of_comparison, 0.0, "sensitivity"),
    "humanlike.criterion": (humanlike.phrases_of_comparison, 0.0, "criterion"),
    "humanlike.accuracy": (humanlike.phrases_of_comparison, 0.0, "accuracy"),
    "humanlike.sensitivity against chance": (humanlike.phrases_of_comparison, 0.0, "sensitivity"),
    "humanlike.criterion against chance": (humanlike.phrases_of_comparison, 0.0, "criterion"),
    "humanlike.accuracy against chance": (humanlike.phrases_of_comparison, 0.5, "accuracy"),
    "an estimand without sentences": (None, 0.0, ""),
}


def conclusion_of(name, estimate):
    phrases, _, key = ESTIMANDS[name]
    contrast = estimate.settings["contrast"]
    if "against chance" in name:
        contrast = contrast | {"y": "chance"}
    estimate = replace(estimate, estimand="the value", settings={**estimate.settings, "contrast": contrast, "key": key})
    if phrases is None:
        return _default_conclusion(estimate)
    return build_planned_conclusions([estimate], phrases)[0]


def faults_of_other_places(estimate, sentence, said, null, limit):
    """What the JSON, the line in APA style, the table and the figure say against the sentence."""
    wrong = []
    claimed = sentence["claimed"]
    if said.status in ("claimed", "open", "not shown") and (claimed["above"], claimed["below"]) != (
        said.above,
        said.below,
    ):
        wrong.append(f"the JSON claims {claimed['above']} to {claimed['below']}")
    if said.pvalue is not None and said.status in ("claimed", "open", "not shown"):
        sign, value = said.pvalue
        exact = claimed["pvalue"]
        if not (math.isclose(value, exact, abs_tol=6e-4) if sign == "=" else (exact < value) == (sign == "<")):
            wrong.append(f"prints p {sign} {value} for {exact}")
    references = [value for value in (null, limit) if value is not None]
    interval = claimed["interval"]
    if interval and estimate.estimate is not None:
        ends = [interval["low"], interval["high"]]
        in_table = layouts.format_cell(ends, "wide_interval", references)
        in_apa = re.search(r"CI (\[.*?\])", sentence["apa"])
        in_figure = "[{}, {}]".format(*layouts.interval_ends_as_text(*ends, null, 2))
        for place, printed, against in (
            ("table", in_table, references),
            ("apa", in_apa and in_apa.group(1), references),
            ("figure", in_figure, (null,)),
        ):
            if printed is None:
                wrong.append(f"no interval in {place}")
                continue
            low, high = (float(end.replace("−", "-")) for end in printed.strip("[]").split(", "))
            for value in against:
                for end, exact in ((low, ends[0]), (high, ends[1])):
                    if not math.isclose(exact, value, abs_tol=1e-9) and (
                        (end > value) != (exact > value) or end == value
                    ):
                        wrong.append(f"{place} prints {printed} for {ends} beside {value}")
    verdict = cells.verdict_text(estimate)
    side = {(True, False): ">", (False, True): "<"}.get(
        (said.above is not None and said.above >= null, said.below is not None and said.below <= null), ""
    )
    if (
        said.status == "claimed"
        and "equivalent" not in verdict
        and (cells.verdict_direction_symbol(estimate) or "?") != (side or "?")
    ):
        wrong.append(f"the table has {cells.verdict_direction_symbol(estimate)} for {verdict}")
    if said.status == "not tested" and verdict != "not tested" or said.status == "no claim" and verdict != "no claim":
        wrong.append(f"the table says {verdict}")
    return wrong
