"""Tables of a report, made from its blocks: rows of plain values that the page, CSV, LaTeX and JSON print the same way.

Nothing is computed here but what is put beside what; a value that is undefined is None, and the row says why.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from studies.spreadsheet import csv_text as guarded_csv

from . import apa

METHOD_NAMES = {
    "spa.pair": "both orders combined, t test",
    "spa.pair.sign_flip": "sign flips (permutation)",
    "spa.pair.wilcoxon": "Wilcoxon: symmetry about 50 %, not the mean",
    "spa.pair.bca": "bootstrap (BCa)",
    "spa.pair.bayesian_bootstrap": "Bayesian bootstrap: chance that the mean exceeds 50 %",
    "spa.pair.sign_test": "sign test: share of annotators above 50 %",
    "spa.pair.tau": "after leaving out by tau",
    "spa.pair.tau_symmetric": "after leaving out by tau, both sides",
    "spa.pair.by_batch": "clustered by batch",
    "spa.pair.equivalence": "equivalence (two one-sided t tests)",
    "rating.superiority": "ratings: probability of superiority",
    "rating.superiority.cluster_means": "ratings: superiority, mean of annotators' means",
    "rating.superiority.equivalence": "ratings: equivalence of superiority",
    "rating.sign_test": "ratings: sign test",
    "rating.wilcoxon": "ratings: Wilcoxon, symmetry about 0",
    "rating.cumulative_logit": "ratings: cumulative logit (log odds ratio)",
    "rating.crossed_mixed": "ratings: mixed model, annotators and prompts crossed",
    "rating.mean_difference": "ratings: difference of means",
    "rating.mean_difference.two_way": "ratings: difference of means, annotators and prompts as clusters",
    "rating.mean_difference.equivalence": "ratings: equivalence of means",
    "rating.mean_difference.z": "ratings: difference of means (standard deviations of each annotator's own)",
    "rating.mean_difference.cluster_means": "ratings: difference of means, mean of annotators' means",
}
# On which side of what a method's estimate speaks for x; without one the estimate is no preference (a p-value alone, TOST).
NULLS = {
    "rating.sign_test": 0.5,
    "spa.pair.sign_test": 0.5,
    "spa.pair.bayesian_bootstrap": 0.5,
    "spa.pair.wilcoxon": 0.0,
}
USUAL = "95% CI"
EXPECTED_WORDS = {">": "x > y", "<": "x < y", "~": "x ~ y", "": ""}


class Column(TypedDict, total=False):
    key: str
    label: str
    # text | integer | probability | number | p | interval | wide_interval | points | percent. A difference, and what it is the
    # difference of where that stands beside it, has fine_ before its kind: one digit more, or a small one would print as none.
    kind: str


class Table(TypedDict):
    name: str
    title: str
    place: str  # first | sure | more
    columns: list[Column]
    rows: list[dict[str, Any]]
    note: str


def table(name: str, title: str, columns: str, rows: Iterable[Mapping[str, Any]], place: str, note: str = "") -> Table:
    """``columns``: "key|label|kind" separated by semicolons; every row has every key."""
    made: list[Column] = []
    for text in columns.split(";"):
        key, label, kind = (part.strip() for part in text.split("|"))
        made.append({"key": key, "label": label, "kind": kind})
    is_adjusted = any(column["label"].startswith("adj. p") for column in made)
    if is_adjusted and any(column["kind"].endswith("interval") for column in made):
        note = f"{note} {apa.BESIDE_INTERVALS}".strip()
    return {
        "name": name, "title": title, "place": place, "columns": made, "note": note,
        "rows": [{column["key"]: row.get(column["key"]) for column in made} for row in rows],
    }  # fmt: skip


def at_level(one: Table, level: float) -> Table:
    """The table with the report's own confidence level in its heads: they are laid out with the usual one."""
    said = f"{100 * level:g}% CI"
    return {**one, "columns": [{**column, "label": column["label"].replace(USUAL, said)} for column in one["columns"]]}


def printed(value: Any, kind: str) -> str:
    """One cell, as a reader sees it."""
    if value is None:
        return apa.UNDEFINED
    more = kind.startswith("fine_")
    match kind.removeprefix("fine_"):
        case "probability":
            return apa.proportion(value, 2 + more)
        case "number" | "points":
            return apa.number(value, 2 + more)
        case "p":
            return apa.pvalue(value)
        case "interval":
            return apa.interval(value, digits=2 + more)
        case "wide_interval":
            return apa.interval(value, "number", digits=2 + more)
        case "percent":
            return apa.percent(value, 0 + more)
        case "integer":
            return str(value)
    return str(value)


def filled(one: Table) -> list[Column]:
    """The columns in which something stands: those that a reader is shown. CSV and JSON have them all."""
    return [column for column in one["columns"] if any(row[column["key"]] not in (None, "") for row in one["rows"])]


def csv_text(one: Table) -> str:
    """The table with full precision; an interval as two columns, what is undefined as nothing."""
    head: list[str] = []
    for column in one["columns"]:
        is_interval = column["kind"].endswith("interval")
        head += [f"{column['key']}_low", f"{column['key']}_high"] if is_interval else [column["key"]]
    lines: list[list[Any]] = [head]
    for row in one["rows"]:
        cells: list[Any] = []
        for column in one["columns"]:
            value = row[column["key"]]
            if column["kind"].endswith("interval"):
                cells += ["", ""] if value is None else list(value)
            else:
                cells.append(value)
        lines.append(cells)
    return guarded_csv(lines)


Blocks = Sequence[Mapping[str, Any]]
# So many things a warning names before it only counts them.
FEW = 3


def estimates_of(blocks: Blocks, name: str, mode: str = "recommended") -> list[dict[str, Any]]:
    """All envelopes of the blocks of that name and mode."""
    return [
        estimate
        for block in blocks
        if block["name"] == name and block["mode"] == mode
        for estimate in block["estimates"]
    ]


def contrast_of(estimate: Mapping[str, Any]) -> dict[str, Any]:
    return estimate["settings"].get("contrast") or {}


def pvalue_of(estimate: Mapping[str, Any] | None) -> float | None:
    """The adjusted p-value where there is one, else the p-value, else None."""
    test = (estimate or {}).get("test")
    if not test:
        return None
    return test["pvalue"] if test.get("pvalue_adjusted") is None else test["pvalue_adjusted"]


def label_of(contrast: Mapping[str, Any], is_long: bool = False) -> str:
    """x > y, with what else tells it from others of the study."""
    text = f"{contrast['x']} > {contrast['y']}"
    if contrast.get("criterion"):
        text += f", {contrast['criterion']}"
    return text + (f" (section {contrast['section']})" if is_long else "")


def found_direction(estimate: Mapping[str, Any] | None, null: float, is_paper: bool) -> str:
    """What was found: >, <, ~ (equivalent; in the paper's way of counting, not significant) or ? (open), '' without data."""
    if estimate is None or estimate["estimate"] is None:
        return ""
    side = ">" if estimate["estimate"] > null else "<"
    if is_paper:
        if estimate["test"] is None:
            return "?"
        return side if estimate["test"].get("stars") else "~"
    verdict = estimate["detail"].get("verdict")
    if verdict in ("different", "different_but_trivial"):
        return side
    return "~" if verdict == "equivalent" else "?"


def recovered(expected: str, found: str) -> str:
    """Whether what was expected was found."""
    if not expected or not found:
        return ""
    if found == expected:
        return "recovered"
    if found == "?" or (found == "~" and expected != "~"):
        return "not shown"
    return "contradicted"


def _by_pair(estimates: Iterable[Mapping[str, Any]]) -> dict[tuple, list[Mapping[str, Any]]]:
    found: dict[tuple, list[Mapping[str, Any]]] = {}
    for estimate in estimates:
        contrast = contrast_of(estimate)
        found.setdefault((contrast.get("x"), contrast.get("y"), contrast.get("criterion")), []).append(estimate)
    return found


def of_blocks(blocks: Blocks) -> list[Table]:
    """The tables that the protocols' own analyses laid out."""
    return [
        table(one["name"], one["title"], one["columns"], one["rows"], one["place"], one["note"])
        for block in blocks
        for one in block["tables"]
    ]


def table_1(blocks: Blocks, scheme: str) -> list[Table]:
    """The paper's Table 1 for this study (stated chances beside ratings), and both ways of counting beside each other."""
    spa = estimates_of(blocks, "spa.pairs")
    spa_paper = {contrast_of(e)["key"]: e for e in estimates_of(blocks, "spa.pairs", "paper")}
    paper = {contrast_of(e)["key"]: e for e in estimates_of(blocks, "rating.difference", "paper")}
    ratings = _by_pair(estimates_of(blocks, "rating.superiority"))
    rows = []
    for estimate in spa:
        contrast = contrast_of(estimate)
        x, y, criterion = contrast["x"], contrast["y"], contrast["criterion"]
        mine = ratings.get((x, y, criterion)) or ratings.get((x, y, "")) or [None]
        rows += [_row_1(contrast, estimate, spa_paper.get(contrast["key"]), one, paper) for one in mine]
    if not spa:
        rows = [_row_1(contrast_of(one), None, None, one, paper) for found in ratings.values() for one in found]
    if not rows:
        return []
    if any(row["criterion"] for row in rows):
        rows = [row | {"criterion": row["criterion"] or "overall"} for row in rows]
    if len({row["section"] for row in rows}) == 1:
        rows = [row | {"section": None} for row in rows]
    thresholds = ", ".join(f"{'*' * n} p < {level}" for n, level in enumerate(_thresholds(scheme), 1))
    stars = f"Stars on adjusted p: {thresholds} (scheme {scheme})."
    who = (
        "x|System x|text; y|System y|text; criterion|Criterion|text; section|Section|integer; expected|Expected|text; "
    )
    first = table(
        "table1",
        "What was expected and what was found",
        who + "p_xy|P[x > y]|probability; p_xy_interval|95% CI|interval; p_xy_pvalue|adj. p|p; p_xy_stars|Stars|text; "
        "n|n annotators|integer; recovered|As expected?|text; delta|Rating Δ|points; scored|Δ in|text; delta_pvalue|adj. p, Δ|p; "
        "delta_stars|Stars, Δ|text; delta_n|n, Δ|integer; delta_recovered|As expected? (Δ)|text; reason|Undefined because|text",
        rows,
        "first",
        f"P[x > y]: mean stated chance that x is better, both orders combined. Rating Δ: mean difference of ratings, as in the paper. {stars}",
    )
    both = table(
        "ways_of_counting",
        "Recommended, and as in the paper",
        who
        + "p_xy|P[x > y], recommended|probability; p_xy_interval|95% CI|interval; p_xy_pvalue|adj. p|p; n|n annotators|integer; "
        "found|Found|text; recovered|As expected?|text; "
        "paper|P[x > y], paper|probability; paper_interval|95% CI, paper|interval; paper_pvalue|adj. p, paper|p; paper_stars|Stars, paper|text; "
        "paper_n|n, paper|integer; paper_recovered|As expected? (paper)|text; "
        "above|P(rated higher), recommended|probability; above_interval|95% CI, rated higher|interval; above_pvalue|adj. p, rated higher|p; "
        "above_n|n, rated higher|integer; above_recovered|As expected? (rated higher)|text; delta|Rating Δ, paper|points; scored|Δ in|text; "
        "delta_pvalue|adj. p, Δ|p; delta_stars|Stars, Δ|text; delta_n|n, Δ|integer; delta_recovered|As expected? (Δ)|text",
        rows,
        "first",
        "They differ because the paper takes one order of naming, leaves people out by rules that look at answers, and counts no star as "
        "x ~ y. The recommended columns combine both orders, pass over such rules, and call x ~ y only what lies within the margin; "
        f"the rest is open. {stars}",
    )
    return [first, both]


def _thresholds(scheme: str) -> list[str]:
    return [f"{float(part) / 100:g}".replace("0.", ".", 1) for part in scheme.split("/")]


def _row_1(contrast, spa, spa_paper, above, paper) -> dict[str, Any]:
    delta = paper.get(contrast_of(above)["key"]) if above else None
    expected = contrast.get("expected", "")
    found = found_direction(spa, 0.5, False)
    reasons = {one["reason"] for one in (spa, above) if one and one["reason"]}
    return {
        "x": contrast["x"], "y": contrast["y"], "criterion": contrast["criterion"], "section": contrast["section"],
        "expected": EXPECTED_WORDS[expected], "found": _found_words(found), "recovered": recovered(expected, found),
        **_cells("p_xy", spa), "n": spa["n"] if spa else None,
        **_cells("paper", spa_paper), "paper_n": spa_paper["n"] if spa_paper else None,
        "paper_recovered": recovered(expected, found_direction(spa_paper, 0.5, True)),
        **_cells("delta", delta), "scored": scored_in(delta), "delta_n": delta["n"] if delta else None,
        "delta_recovered": recovered(expected, found_direction(delta, 0.0, True)),
        **_cells("above", above), "above_n": above["n"] if above else None,
        "above_recovered": recovered(expected, found_direction(above, 0.5, False)),
        "reason": "; ".join(sorted(reasons)),
    }  # fmt: skip


def scored_in(estimate: Mapping[str, Any] | None) -> str:
    """The unit of a rating's mean or difference: what its question's points are scored between."""
    return (estimate or {}).get("settings", {}).get("scored", "")


def _found_words(found: str) -> str:
    return {"?": "open", "": ""}.get(found, EXPECTED_WORDS.get(found, ""))


def _cells(prefix: str, estimate: Mapping[str, Any] | None) -> dict[str, Any]:
    if estimate is None:
        return {}
    return {
        prefix: estimate["estimate"],
        f"{prefix}_interval": apa.ends_of(estimate),
        f"{prefix}_pvalue": pvalue_of(estimate),
        f"{prefix}_stars": (estimate["test"] or {}).get("stars") or "",
    }


def methods(blocks: Blocks) -> Table | None:
    """Every method's answer to every comparison, and whether it points the same way as the first."""
    spa, paper = estimates_of(blocks, "spa.pairs"), estimates_of(blocks, "spa.pairs", "paper")
    found = [(estimate, _method_rows(estimate)) for estimate in spa]
    found += [(estimate, [_method_row(estimate, "one order, as in the paper")]) for estimate in paper]
    for name in ("rating.superiority", "rating.difference"):
        found += [(estimate, _method_rows(estimate)) for estimate in estimates_of(blocks, name)]
    for estimate in estimates_of(blocks, "rating.difference", "paper"):
        name = "ratings: paired difference, as in the paper"
        found.append((estimate, [_method_row(estimate, name)]))
    # One section of each protocol: its methods stand together. Several: each keeps to its own.
    is_long = any(
        len({contrast_of(estimate)["section"] for estimate, _ in found if estimate["analysis"].startswith(kind)}) > 1
        for kind in ("spa.", "rating.")
    )
    groups: dict[str, list[dict[str, Any]]] = {}
    for estimate, rows in found:
        groups.setdefault(label_of(contrast_of(estimate), is_long), []).extend(rows)
    made = []
    for label, rows in groups.items():
        head = rows[0]["side"]
        for row in rows:
            agrees = "" if not row["side"] or not head else ("yes" if row["side"] == head else "no")
            made.append(row | {"contrast": label, "agrees": agrees})
    if not made:
        return None
    return table(
        "methods",
        "Every method",
        "contrast|Comparison|text; method|Method|text; estimate|Estimate|number; interval|CI|wide_interval; level|CI at|text; p|p|p; "
        "n|n|integer; unit|Unit|text; agrees|Same direction as the first|text; reason|Undefined because|text",
        made,
        "more",
        "p is adjusted within its family for the first method of each kind, and as it is for the others.",
    )


def agreement(every_method: Table | None) -> Table | None:
    """For each comparison: how many methods point the same way as the first, and which do not."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in every_method["rows"] if every_method else []:
        groups.setdefault(row["contrast"], []).append(row)
    rows = [
        {
            "contrast": contrast,
            "first": mine[0]["estimate"],
            "same": sum(row["agrees"] == "yes" for row in mine),
            "of": sum(row["agrees"] != "" for row in mine),
            "other": "; ".join(row["method"] for row in mine if row["agrees"] == "no"),
            "undefined": sum(row["agrees"] == "" for row in mine),
        }
        for contrast, mine in groups.items()
    ]
    columns = (
        "contrast|Comparison|text; first|Estimate of the first|number; same|Methods of the same direction|integer; of|of|integer; "
        "undefined|Without a direction|integer; other|The other direction|text"
    )
    note = "No p-value follows from this count. Each method stands under “Every method”."
    return table("agreement", "Do the methods agree?", columns, rows, "sure", note) if rows else None


def _method_rows(estimate: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [_method_row(one, _method_name(one["analysis"])) for one in (estimate, *estimate["sensitivity"])]


def _method_name(analysis: str) -> str:
    return METHOD_NAMES.get(analysis, analysis)


def _method_row(estimate: Mapping[str, Any], name: str) -> dict[str, Any]:
    analysis = estimate["analysis"]
    if analysis in NULLS:
        null: float | None = NULLS[analysis]
    elif analysis.startswith(("spa.pair", "rating.superiority")):
        null = 0.5
    else:
        null = 0.0
    value = estimate["estimate"]
    side = "" if value is None or value == null else (">" if value > null else "<")
    return {
        "method": name, "estimate": value, "interval": apa.ends_of(estimate), "level": apa.level_of(estimate),
        "p": pvalue_of(estimate), "n": estimate["n"], "unit": estimate["unit"], "side": side, "reason": estimate["reason"],
    }  # fmt: skip


def likert(blocks: Blocks) -> Table | None:
    """Differences of ratings with their ordinal-safe companions and the reversal guard."""
    differences = {contrast_of(e)["key"]: e for e in estimates_of(blocks, "rating.difference")}
    paper = {contrast_of(e)["key"]: e for e in estimates_of(blocks, "rating.difference", "paper")}
    rows = []
    for above in estimates_of(blocks, "rating.superiority"):
        contrast = contrast_of(above)
        apart, delta = differences.get(contrast["key"]), paper.get(contrast["key"])
        guard = (apart or {}).get("detail", {}).get("reversal_guard") or {}
        others = {other["analysis"]: other for other in above["sensitivity"]}
        logit = others.get("rating.cumulative_logit")
        rows.append(
            {
                "contrast": label_of(contrast, True), "question": contrast["question"], "scored": scored_in(apart or delta),
                **_cells("paper", delta), **_cells("delta", apart), **_cells("above", above),
                "cliff": above["detail"].get("cliff_delta"), "ties": above["detail"].get("n_ties"),
                "sign": (others.get("rating.sign_test") or {}).get("estimate"), "sign_pvalue": pvalue_of(others.get("rating.sign_test")),
                "wilcoxon_pvalue": pvalue_of(others.get("rating.wilcoxon")),
                "logit": (logit or {}).get("estimate"), "logit_interval": apa.ends_of(logit), "logit_pvalue": pvalue_of(logit),
                "logit_reason": (logit or {}).get("reason", ""),
                "guard": [guard["low"], guard["high"]] if guard else None,
                "reversal": "" if not guard else "cannot be excluded" if guard["is_reversal_possible"] else "excluded",
                "n": above["n"], "reason": above["reason"],
            }
        )  # fmt: skip
    if not rows:
        return None
    return table(
        "ratings", "Ratings, and what rests on their order alone",
        "contrast|Comparison|text; question|Question|text; scored|Δ in|text; paper|Δ, paper|points; paper_pvalue|adj. p, paper|p; paper_stars|Stars, paper|text; "
        "delta|Δ|points; delta_interval|95% CI, Δ|wide_interval; delta_pvalue|adj. p, Δ|p; "
        "above|P(rated higher)|probability; above_interval|95% CI|interval; above_pvalue|adj. p|p; cliff|Cliff's δ|probability; "
        "ties|Ties|integer; sign|Sign test, share|probability; sign_pvalue|p, sign test|p; wilcoxon_pvalue|p, Wilcoxon (symmetry)|p; "
        "logit|Cumulative logit|number; logit_interval|95% CI, logit|wide_interval; logit_pvalue|p, logit|p; logit_reason|No logit because|text; "
        "guard|True Δ lies in|wide_interval; reversal|Reversed preference|text; n|n annotators|integer; reason|Undefined because|text",
        rows, "sure",
        "Reversed preference: rounding to whole points could at worst have turned the sign; that it cannot be excluded does not say "
        "that it occurred.",
    )  # fmt: skip


def rules(flow: Mapping[str, Any]) -> Table:
    """Who left by which rule."""
    rows = [
        {
            **step,
            "settings": ", ".join(f"{key}: {_setting(value)}" for key, value in sorted(step["settings"].items())),
            "blind": "no" if step["is_outcome_blind"] else "yes",
            "recommended": "yes" if step["role"] != "sensitivity" and step["is_outcome_blind"] else "no",
        }
        for step in flow["rules"]
    ]
    return table(
        "rules", "Who was left out by which rule",
        "label|Rule|text; role|Role|text; settings|Settings|text; blind|Looks at outcomes|text; recommended|Applied to recommended|text; "
        "n_in|Before|integer; n_flagged|Found|integer; n_unknown|Unknown|integer; n_excluded|Left out|integer; n_out|After|integer; problem|Problem|text",
        rows, "sure",
        "Found counts everybody whom the rule finds, left out those whom no rule above had left out. Unknown never excludes. "
        "A rule that looks at outcomes is applied to the paper's estimates alone.",
    )  # fmt: skip


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def overlaps(flow: Mapping[str, Any]) -> Table | None:
    rows = [{"rules": " + ".join(found["rules"]), "n": found["n"]} for found in flow["overlaps"]]
    columns = "rules|Found by exactly these rules|text; n|n assignments|integer"
    return table("overlaps", "Overlap of the rules", columns, rows, "sure") if rows else None


def by_arm(flow: Mapping[str, Any]) -> Table | None:
    rows = [
        {
            "rule": step["label"],
            "arm": arm,
            **counts,
            "share": counts["n_excluded"] / counts["n_in"] if counts["n_in"] else None,
        }
        for step in flow["rules"]
        if step["n_excluded"]
        for arm, counts in step["by_arm"].items()
    ]
    columns = "rule|Rule|text; arm|Arm|text; n_in|Before|integer; n_excluded|Left out|integer; share|Share|percent"
    return table("rules_by_arm", "Left out, by arm", columns, rows, "more") if rows else None


def attrition(blocks: Blocks) -> Table | None:
    """Who was lost in each arm, and whether arms differ in it."""
    found = estimates_of(blocks, "attrition")
    if not found:
        return None
    differences = {
        (e["settings"]["lost"], e["settings"]["condition"]): e for e in found if e["analysis"] == "attrition.difference"
    }
    rows, notes = [], []
    for e in found:
        if e["analysis"] == "attrition.share":
            lost, arm = e["settings"]["lost"], e["settings"]["condition"]
            other = differences.get((lost, arm))
            rows.append(
                {
                    "lost": lost, "arm": arm, "n": e["n"], "n_lost": e["detail"].get("successes", 0), "share": e["estimate"],
                    "interval": apa.ends_of(e), "difference": other and other["estimate"],
                    "difference_interval": apa.ends_of(other) if other else None, "p": pvalue_of(other) if other else None,
                    "reason": e["reason"] or (other["reason"] if other else ""),
                }
            )  # fmt: skip
        elif e["analysis"] == "attrition.independence" and e["test"]:
            notes.append(f"{e['settings']['lost']}: {apa.tested(e['test'])}")
    return table(
        "attrition", "Who was lost, by arm",
        "lost|Lost|text; arm|Arm|text; n|n assignments|integer; n_lost|Of them lost|integer; share|Share|fine_percent; interval|95% CI|fine_interval; "
        "difference|Difference from the first arm|fine_percent; difference_interval|95% CI, difference|fine_interval; p|adj. p|p; "
        "reason|Undefined because|text",
        rows, "sure",
        "Where arms lose different people, those who remain are no longer alike, whatever drew them. Who found no place or was screened out did "
        "not begin."
        + (f" Test that all arms lose the same share: {'; '.join(notes)}." if notes else ""),
    )  # fmt: skip


def people(flow: Mapping[str, Any]) -> Table | None:
    columns = "annotator|Annotator|text; rule|First rule|text; evidence|Evidence|text"
    return table("left_out", "Assignments left out", columns, flow["people"], "more") if flow["people"] else None


def before_after(blocks: Blocks) -> Table | None:
    rows, idle = [], set()
    for estimate in estimates_of(blocks, "spa.before_after"):
        if estimate["status"] == "not_applicable":
            idle.add(estimate["settings"]["rule"])
            continue
        against = next(iter(estimate["sensitivity"]), None)
        rows.append(
            {
                "rule": estimate["settings"]["rule"], "contrast": label_of(contrast_of(estimate), True),
                "before": estimate["detail"].get("before"), "after": estimate["detail"].get("after"),
                "change": estimate["estimate"], "interval": apa.ends_of(estimate),
                "n_before": estimate["detail"]["n_before"], "n_after": estimate["detail"]["n_after"],
                "out": None if against is None else against["estimate"], "out_interval": apa.ends_of(against),
                "reason": estimate["reason"],
            }
        )  # fmt: skip
    if not rows:
        return None
    nobody = f" Leaves out nobody: {', '.join(sorted(idle))}." if idle else ""
    return table(
        "before_after", "What each rule does to each comparison",
        "rule|Rule|text; contrast|Comparison|text; before|P[x > y] before|fine_probability; after|after|fine_probability; change|Change|fine_probability; "
        "interval|95% CI of the change|fine_interval; n_before|n before|integer; n_after|n after|integer; "
        "out|Left out less kept|fine_probability; out_interval|95% CI, Welch|fine_interval; reason|No interval because|text",
        rows, "sure", f"Before: everybody who submitted. The change is resampled with the same annotators on both sides.{nobody}",
    )  # fmt: skip


def gap(blocks: Blocks) -> Table | None:
    rows = []
    for estimate in estimates_of(blocks, "spa.order"):
        shares = estimate["detail"].get("shares") or {}
        rows.append(
            {
                "contrast": label_of(contrast_of(estimate), True), "gap": estimate["estimate"], "interval": apa.ends_of(estimate),
                "p": pvalue_of(estimate), "n": estimate["n"], "verdict": "" if estimate["estimate"] is None else str(estimate["detail"].get("verdict") or "").replace("_", " "),
                **{name: (shares.get(name) or {}).get("share") for name in ("above", "within", "below")},
                "reason": estimate["reason"],
            }
        )  # fmt: skip
    if not rows:
        return None
    return table(
        "gap", "Does it matter who is named first?",
        "contrast|Comparison|text; gap|Mean of p_xy + p_yx − 1|fine_probability; interval|95% CI|fine_interval; p|p|p; verdict|Verdict|text; "
        "above|Above +10 points|percent; within|Within 10 points|percent; below|Below −10 points|percent; n|n annotators|integer; reason|Undefined because|text",
        rows, "sure",
        "Computed before any rule that looks at sums. A gap above 0 means that whoever is named first gains. "
        "“Equivalent”: smaller than 5 points, shown by two one-sided tests.",
    )  # fmt: skip


def coherence(blocks: Blocks) -> Table | None:
    rows = []
    for block in blocks:
        if block["name"] == "spa.coherence":
            for estimate in block["estimates"]:
                rows.append(
                    {
                        "block": block["title"].partition("(")[2].rstrip(")"), "what": _cycle_words(estimate), "estimate": estimate["estimate"],
                        "interval": apa.ends_of(estimate), "n": estimate["n"], "n_rows": estimate["n_rows"],
                        "cycles": "; ".join((block.get("verdict") or {}).get("cycles", [])) if "cycle" in estimate["analysis"] else "",
                        "reason": estimate["reason"],
                    }
                )  # fmt: skip
    if not rows:
        return None
    return table(
        "coherence", "Coherence of the pairs",
        "block|Where|text; what|Measure|text; estimate|Estimate|number; interval|95% CI|wide_interval; cycles|Cycles|text; "
        "n|n annotators|integer; n_rows|Answers or triples|integer; reason|Undefined because|text",
        rows, "sure",
        "A sum of log-odds around a cycle that is not 0 says that one scale does not fit all annotators, not that wording mattered.",
    )  # fmt: skip


def _cycle_words(estimate: Mapping[str, Any]) -> str:
    systems, cycle = estimate["settings"].get("systems"), estimate["detail"].get("cycle")
    if systems and cycle and all(isinstance(n, int) and n < len(systems) for n in cycle):
        return "sum of log-odds around " + " – ".join(systems[n] for n in cycle)
    return estimate["estimand"]


def ranking(blocks: Blocks) -> list[Table]:
    """Strengths of the systems, and the chances that the fitted model gives each pair beside those stated."""
    found = []
    rankings = ("spa.ranking", "choice.ranking")
    for place, block in enumerate(block for block in blocks if block["name"] in rankings):
        verdict, where = block["verdict"], block["title"].partition("(")[2].rstrip(")")
        named = [e for e in block["estimates"] if e["detail"].get("system")]
        named.sort(key=lambda e: (e["estimate"] is None, -(e["estimate"] or 0.0), e["detail"]["system"]))
        rows = [
            {
                "rank": None if e["estimate"] is None else n, "system": e["detail"]["system"], "strength": e["estimate"],
                "interval": apa.ends_of(e), "p": pvalue_of(e), "n": e["n"],
                "reason": e["reason"],
            }
            for n, e in enumerate(named, 1)
        ]  # fmt: skip
        rows += [
            {
                "system": "(bonus of being named first)",
                "strength": e["estimate"],
                "interval": apa.ends_of(e),
                "p": pvalue_of(e),
                "n": e["n"],
                "reason": e["reason"],
            }
            for e in block["estimates"]
            if e["analysis"].endswith(".framing")
        ]
        suffix = "" if place == 0 else f"_{place + 1}"
        found.append(
            table(
                f"ranking{suffix}", f"Ranking of the systems ({where})",
                "rank|Rank|integer; system|System|text; strength|Strength, log-odds|number; interval|95% CI|wide_interval; p|p|p; n|n annotators|integer; reason|Note|text",
                rows, "sure", f"{block['note']} p tests against the reference and is not adjusted. {verdict['reason']}".strip(),
            )
        )  # fmt: skip
        systems = verdict["systems"]
        cells = [
            {"x": x, "y": y, "observed": verdict["observed"][i][j], "fitted": verdict["probabilities"][i][j],
             "residual": None if None in (verdict["observed"][i][j], verdict["probabilities"][i][j]) else verdict["observed"][i][j] - verdict["probabilities"][i][j]}
            for i, x in enumerate(systems) for j, y in enumerate(systems) if i < j and verdict["observed"][i][j] is not None
        ]  # fmt: skip
        if cells:
            found.append(
                table(
                    f"ranking_fit{suffix}", f"Stated and fitted chances ({where})",
                    "x|System x|text; y|System y|text; observed|Stated P[x > y]|fine_probability; fitted|Fitted|fine_probability; residual|Stated less fitted|fine_probability",
                    cells, "more",
                )
            )  # fmt: skip
    return found


def reliability(blocks: Blocks) -> Table | None:
    """Split-half reliability, agreement, and how much of the spread lies between batches."""
    rows = []
    for block in blocks:
        if block["name"] in ("spa.reliability", "rating.checks"):
            rows += [
                {"where": block["title"].partition("(")[2].rstrip(")"), "what": e["estimand"], "estimate": e["estimate"], "interval": apa.ends_of(e),
                 "n": e["n"], "unit": e["unit"], "reason": e["reason"]}
                for e in block["estimates"]
            ]  # fmt: skip
    for estimate in estimates_of(blocks, "spa.pairs"):
        parts = estimate["detail"].get("batches")
        if parts:
            rows.append(
                {"where": label_of(contrast_of(estimate), True), "what": "share of the variance that lies between batches (ICC)",
                 "estimate": parts["icc"], "n": parts["n_clusters"], "unit": "batch",
                 "reason": "" if parts["icc"] is not None else "each batch was answered once, or nothing varies"}
            )  # fmt: skip
    if not rows:
        return None
    return table(
        "reliability", "Reliability and agreement",
        "where|Where|text; what|Measure|text; estimate|Estimate|number; interval|95% CI|wide_interval; n|n|integer; unit|Unit|text; reason|Undefined because|text",
        rows, "sure",
        "Low agreement about preferences is information about people, and no rule may use it. The interval of alpha resamples "
        "outputs, not people: it is about these annotators.",
    )  # fmt: skip


def simple(blocks: Blocks, name: str, table_name: str, title: str, place: str = "more") -> Table | None:
    """Estimates of a block that need no more than a line each."""
    rows = [
        {
            "what": e["settings"].get("system") or (label_of(contrast_of(e), True) if contrast_of(e) else e["estimand"]),
            "where": "" if "section" not in e["settings"] else f"section {e['settings']['section']}", "estimand": e["estimand"],
            "estimate": e["estimate"], "interval": apa.ends_of(e), "p": pvalue_of(e), "n": e["n"], "unit": e["unit"], "reason": e["reason"],
        }
        for e in estimates_of(blocks, name)
    ]  # fmt: skip
    if not rows:
        return None
    return table(
        table_name, title,
        "what|What|text; where|Where|text; estimand|Estimand|text; estimate|Estimate|number; interval|95% CI|wide_interval; p|p|p; n|n|integer; "
        "unit|Unit|text; reason|Undefined because|text",
        rows, place,
    )  # fmt: skip


def means(blocks: Blocks) -> Table | None:
    """Mean rating of each system, best first within a question, with the ranks that it may have."""
    rows = []
    for block in blocks:
        if block["name"] != "rating.means":
            continue
        ranked = block["verdict"]["ranks"]
        sets = dict(
            zip(
                ranked["systems"],
                zip(ranked["ranks"], ranked["low"] or (), ranked["high"] or (), strict=False),
                strict=False,
            )
        )
        found = sorted(
            block["estimates"], key=lambda e: (e["estimate"] is None, -(e["estimate"] or 0.0), e["settings"]["system"])
        )
        for e in found:
            system = e["settings"]["system"]
            rank, low, high = sets.get(system, (None, None, None))
            rows.append(
                {"where": f"section {e['settings']['section']}, {e['settings']['question']}", "system": system, "mean": e["estimate"], "scored": scored_in(e),
                 "interval": apa.ends_of(e), "rank": rank, "highest": low, "lowest": high, "n": e["n"],
                 "reason": e["reason"] or ranked["reason"]}
            )  # fmt: skip
    columns = (
        "where|Question|text; system|System|text; mean|Mean|number; scored|In|text; interval|95% CI|wide_interval; rank|Rank|integer; "
        "highest|May be as high as|integer; lowest|May be as low as|integer; n|n annotators|integer; reason|Note|text"
    )
    note = "Every annotator weighs the same. All the ranks that systems may have hold together at the stated level."
    return table("means", "Mean rating of each system", columns, rows, "more", note) if rows else None


def exposure_label(estimate: Mapping[str, Any]) -> str:
    """A comparison after m exposures, as rows and figures name it."""
    about = estimate["settings"]
    criterion = f", {about['criterion']}" if about["criterion"] else ""
    return f"{about['x']} > {about['y']}{criterion}, m = {about['m']}"


def exposure_levels(blocks: Blocks) -> Table | None:
    """The stated chance after each m, with both orders as the paper tests them, and how convinced people were."""
    rows = []
    for e in estimates_of(blocks, "spa.exposure_levels"):
        xy, yx = (
            next((o for o in e["sensitivity"] if o["analysis"].endswith(f".{order}")), None) for order in ("xy", "yx")
        )
        rows.append(
            {"what": exposure_label(e), "estimate": e["estimate"], "interval": apa.ends_of(e), "p": pvalue_of(e), "n": e["n"],
             "xy": xy and xy["estimate"], "xy_p": pvalue_of(xy), "yx": yx and yx["estimate"], "yx_p": pvalue_of(yx),
             "conviction": e["detail"].get("conviction"), "reason": e["reason"]}
        )  # fmt: skip
    columns = (
        "what|Comparison|text; estimate|P[x > y]|probability; interval|95% CI|interval; p|adj. p|p; n|n annotators|integer; "
        "xy|P[x > y], x named first|probability; xy_p|adj. p, x first|p; yx|P[y > x], y named first|probability; yx_p|adj. p, y first|p; "
        "conviction|Conviction|probability; reason|Undefined because|text"
    )
    note = (
        "p adjusted (Holm) over the m of one comparison. Conviction is the distance from 50 %; noise alone inflates it."
    )
    return table("exposure_levels", "The stated chance by what was seen", columns, rows, "sure", note) if rows else None


def warnings(blocks: Blocks) -> Table | None:
    """Every warning that numbers carry, once with all the numbers that carry it."""
    found: dict[tuple[str, ...], dict[str, dict[str, None]]] = {}
    for block in blocks:
        for estimate in block["estimates"]:
            for one in [estimate, *estimate["sensitivity"]]:
                for warning in one["warnings"]:
                    if warning["severity"] == "info":
                        continue
                    about = label_of(contrast_of(estimate), True) if contrast_of(estimate) else one["estimand"]
                    detail = ", ".join(
                        f"{k.replace('_', ' ')} {_short(v)}" for k, v in sorted(warning["detail"].items())
                    )
                    key = (warning["code"].replace("_", " "), warning["severity"], detail, block["mode"])
                    found.setdefault(key, {}).setdefault(about, {})[one["analysis"]] = None
    rows = [
        {
            "code": code, "severity": severity, "detail": detail, "mode": mode, "n": sum(map(len, mine.values())),
            "about": _listed(mine, None if severity == "block" else FEW),
            "analysis": _listed(dict.fromkeys(name for names in mine.values() for name in names), None),
        }
        for (code, severity, detail, mode), mine in found.items()
    ]  # fmt: skip
    columns = (
        "code|Warning|text; severity|Severity|text; detail|Detail|text; n|Numbers|integer; about|About|text; analysis|Analyses|text; "
        "mode|Mode|text"
    )
    note = "“block”: no claim may rest on these numbers. Which carry a warning, the result as JSON says of each."
    return table("warnings", "Warnings", columns, rows, "more", note) if rows else None


def _listed(names: Iterable[str], most: int | None) -> str:
    every = list(names)
    shown = every[:most]
    return ", ".join(shown) + (f" and {len(every) - len(shown)} more" if len(every) > len(shown) else "")


def _short(value: Any) -> str:
    return apa.number(value, 3) if isinstance(value, float) else str(value)


def everything(blocks: Blocks) -> Table:
    """Every number of the report in one table, with its unit, n and status: the last word for who wants to check."""
    rows = []
    for block in blocks:
        for estimate in block["estimates"]:
            for one, is_first in [(estimate, True), *((other, False) for other in estimate["sensitivity"])]:
                test, effect = one["test"] or {}, one["effect"] or {}
                rows.append(
                    {
                        "mode": block["mode"], "analysis": one["analysis"],
                        "about": label_of(contrast_of(estimate), True) if contrast_of(estimate) else estimate["settings"].get("system", ""),
                        "estimand": one["estimand"], "unit": one["unit"], "n": one["n"], "n_rows": one["n_rows"], "estimate": one["estimate"],
                        "interval": apa.ends_of(one), "level": apa.level_of(one), "method": (one["interval"] or {}).get("method", ""), "test": test.get("name", ""),
                        "statistic": test.get("statistic"), "df": test.get("df"), "p": test.get("pvalue"),
                        "p_adjusted": test.get("pvalue_adjusted"), "family": test.get("family") or "", "family_size": test.get("family_size"),
                        "effect": effect.get("value"), "status": one["status"], "reason": one["reason"],
                        "role": (contrast_of(estimate).get("role", "") if is_first else "sensitivity"),
                    }
                )  # fmt: skip
    return table(
        "estimates", "Every number",
        "mode|Mode|text; role|Role|text; analysis|Analysis|text; about|About|text; estimand|Estimand|text; estimate|Estimate|number; interval|CI|wide_interval; "
        "level|CI at|text; method|CI by|text; test|Test|text; statistic|Statistic|number; df|df|number; p|p|p; p_adjusted|adj. p|p; family|Family|text; "
        "family_size|Tests in it|integer; effect|d|number; n|n|integer; unit|Unit|text; n_rows|Answers|integer; status|Status|text; reason|Because|text",
        rows, "more",
    )  # fmt: skip
