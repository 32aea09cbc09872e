"""What a report says in words. Each sentence carries its estimate, interval, corrected p and n; none says more than its test.

A p-value is never called the probability of a hypothesis, and the lack of a difference is claimed for equivalence alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from . import apa
from .tables import contrast_of, estimates_of, found_direction, label_of, pvalue_of, recovered

Envelope = Mapping[str, Any]


def conclusions(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A sentence for each planned comparison: of SPA where it was asked, else of the ratings; primary ones first."""
    spa = [e for e in estimates_of(blocks, "spa.pairs") if contrast_of(e)["is_planned"]]
    lead = spa or [e for e in estimates_of(blocks, "rating.superiority") if contrast_of(e)["is_planned"]]
    is_spa = bool(spa)
    several = len({contrast_of(e)["section"] for e in lead}) > 1
    order = {"primary": 0, "secondary": 1, "exploratory": 2}
    found = []
    for estimate in sorted(lead, key=lambda e: order[contrast_of(e)["role"]]):
        contrast = contrast_of(estimate)
        head, rest = _pair(estimate, is_spa)
        where = f" (section {contrast['section']})" if several else ""
        found.append(
            {
                "contrast": contrast["key"], "role": contrast["role"], "claim": head + where, "text": rest,
                "apa": _apa(estimate, is_spa), "verdict": estimate["detail"].get("verdict"), "status": estimate["status"],
                "recovered": recovered(contrast["expected"], found_direction(estimate, 0.5, False)),
            }
        )  # fmt: skip
    return found + _worded(blocks)


def _worded(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sentences for the planned comparisons of protocols that bring words of their own."""
    order = {"primary": 0, "secondary": 1, "exploratory": 2}
    estimates = [
        estimate
        for block in blocks
        if block["mode"] == "recommended"
        for estimate in block["estimates"]
        if estimate["settings"].get("words") and contrast_of(estimate).get("is_planned")
    ]
    found = []
    for estimate in sorted(estimates, key=lambda e: order[contrast_of(e)["role"]]):
        contrast, words, null = contrast_of(estimate), estimate["settings"]["words"], estimate["settings"]["null"]
        outcome = recovered(contrast["expected"], found_direction(estimate, null, False))
        claim, text = _claimed(estimate, words, null)
        meant = {">": words["more"], "<": words["less"], "~": f"{words['same']}."}.get(contrast["expected"], "")
        found.append(
            {
                "contrast": f"{contrast['key']}, {estimate['settings']['key']}", "role": contrast["role"], "claim": claim,
                "text": text + _expectation(contrast["expected"], outcome, meant, estimate["detail"].get("verdict")),
                "apa": _line(estimate, words["symbol"], "number") if estimate["estimate"] is not None else "",
                "verdict": estimate["detail"].get("verdict"), "status": estimate["status"], "recovered": outcome,
            }
        )  # fmt: skip
    return found


def _claimed(estimate: Envelope, words: Mapping[str, str], null: float) -> tuple[str, str]:
    """(what may be claimed, the numbers that it rests on)."""
    value, contrast = estimate["estimate"], contrast_of(estimate)
    if value is None:
        return words["open"], f"Nothing can be estimated: {estimate['reason']}."
    printed = apa.percent if words["kind"] == "percent" else apa.number
    ends = apa.ends_of(estimate)
    level = f"{100 * estimate['interval']['level']:g} %" if ends else ""
    middle, low, high = apa.in_words(value, ends, words["kind"])
    numbers = f"{words['what']} is {middle}"
    numbers += f"; {level} confidence interval {low} to {high}" if ends else ""
    numbers += f"; {apa.tested(estimate['test'])}" if estimate["test"] else ""
    numbers += f"; {_units(estimate)}.{_apart(estimate)}"
    if estimate["test"] is None:
        return words["open"], f"{numbers} No test: {estimate['reason'] or _too_few(estimate)}."
    verdict = estimate["detail"].get("verdict")
    margin = f" within ±{printed(contrast['margin'])}" if contrast["margin"] else ""
    if verdict in ("different", "different_but_trivial"):
        claim = words["more"] if value > null else words["less"]
        return (f"{claim[:-1]}, but by less than matters{margin}." if verdict != "different" else claim), numbers
    if verdict == "equivalent":
        return f"{words['same']}{margin}.", numbers
    detectable = estimate["detail"].get("detectable")
    numbers += " No difference was shown, which is no evidence that there is none."
    if detectable is not None:
        numbers += f" One of {printed(detectable)} would have been found in 8 of 10 such studies."
    return words["open"], numbers


def _pair(estimate: Envelope, is_spa: bool) -> tuple[str, str]:
    """(what it comes to, the numbers that it rests on)."""
    contrast = contrast_of(estimate)
    x, y = contrast["x"], contrast["y"]
    about = f" on {contrast['criterion']}" if contrast["criterion"] else ""
    value = estimate["estimate"]
    if value is None:
        return (
            f"Nothing can be said of {x} and {y}{about}.",
            f"{estimate['reason'][:1].upper()}{estimate['reason'][1:]}.",
        )
    numbers = _numbers(estimate, x, y, is_spa)
    if estimate["status"] != "ok" or estimate["test"] is None:
        why = estimate["reason"] or f"{_too_few(estimate)} for a test"
        return f"No test was possible for {x} and {y}{about}.", f"{numbers} No test: {why}."
    verdict = estimate["detail"].get("verdict")
    better, other = (x, y) if value > 0.5 else (y, x)
    verb = "was preferred to" if is_spa else "was rated higher than"
    margin = f"±{apa.percent(contrast['margin'])}".replace(" %", " percentage points") if contrast["margin"] else ""
    if verdict == "different":
        head = f"{better} {verb} {other}{about}."
    elif verdict == "different_but_trivial":
        head = f"{better} {verb} {other}{about}, but by less than matters ({margin})."
    elif verdict == "equivalent":
        head = f"{x} and {y} are indistinguishable{about} within {margin}."
    else:
        head = f"It remains open whether {x} or {y} is {'preferred' if is_spa else 'rated higher'}{about}."
        if margin:
            numbers += f" The data show neither a difference nor equivalence within {margin}."
        else:
            numbers += " No difference was shown, which is no evidence that there is none."
        detectable = estimate["detail"].get("detectable_difference")
        if detectable is not None:
            so_many = "annotators and prompts" if is_apart(estimate) else "annotators"
            numbers += f" With so many {so_many} a preference {100 * detectable:.0f} points from 50 % is found in 8 of 10 studies."
    meant = {">": f"{x} is better.", "<": f"{y} is better.", "~": "the two are equivalent."}.get(
        contrast["expected"], ""
    )
    outcome = recovered(contrast["expected"], found_direction(estimate, 0.5, False))
    return head, numbers + _expectation(contrast["expected"], outcome, meant, verdict)


def _numbers(estimate: Envelope, x: str, y: str, is_spa: bool) -> str:
    ends = apa.ends_of(estimate)
    level = f"{100 * estimate['interval']['level']:g} %" if ends else ""
    middle, low, high = apa.in_words(estimate["estimate"], ends)
    between = f"; {level} confidence interval {low} to {high}" if ends else ""
    p = f"; {apa.tested(estimate['test'])}" if estimate["test"] else ""
    n = f"; {_units(estimate)}"
    if is_apart(estimate):
        said = f"The chance that a rating of {x} is above a rating of {y} is {middle}, ties counting half"
    elif is_spa:
        said = f"On average annotators put the chance that {x} is better than {y} at {middle}"
    else:
        said = f"The chance that an annotator rates {x} above {y} is {middle}, ties counting half"
    return f"{said}{between}{p}{n}.{_apart(estimate)}"


def is_apart(estimate: Envelope) -> bool:
    """Whether two systems were compared that nobody judged side by side (``analysis.stats.unpaired``)."""
    return estimate["settings"].get("comparison") == "not side by side"


def _units(estimate: Envelope) -> str:
    """n and its unit; where the systems were not judged side by side, prompts are the second sample."""
    said = apa.units(estimate["n"], estimate["unit"])
    return f"{said}, {apa.units(estimate['detail']['n_prompts'], 'prompt')}" if is_apart(estimate) else said


def _apart(estimate: Envelope) -> str:
    """Between whom the comparison is, where it is not side by side; '' where it is."""
    if not is_apart(estimate):
        return ""
    detail, contrast = estimate["detail"], contrast_of(estimate)
    both = detail["n_annotators_both"]
    judged = f"{detail['n_annotators_x']} judged {contrast['x']} and {detail['n_annotators_y']} judged {contrast['y']}"
    if not both:
        return f" The comparison is between different annotators, not side by side: {judged}."
    beside = detail["n_annotators_side_by_side"]
    who = (
        f"{beside} judged both for the same prompt, too few for a test"
        if beside
        else "nobody judged both for the same prompt"
    )
    return f" The comparison is not side by side: of {detail['n_annotators']} annotators {judged}; {who}."


def _too_few(estimate: Envelope) -> str:
    """Of what there are too few for a test."""
    few = {
        warning["detail"].get("cluster")
        for warning in estimate["warnings"]
        if warning["code"] == "few_clusters" and warning["severity"] == "block"
    }
    return "too few prompts" if few == {"prompt"} else "too few annotators"


def _expectation(expected: str, outcome: str, meant: str, verdict: str | None) -> str:
    """What was expected, as a sentence (``meant``), and what became of it; '' where nothing was expected or nothing is known."""
    if not outcome:
        return ""
    opposite = "A difference was found." if expected == "~" else "The opposite was found."
    if verdict == "different_but_trivial":
        opposite = f"{opposite[:-1]}, by less than matters."
    ending = {"recovered": "That was found.", "not shown": "That was not shown.", "contradicted": opposite}
    return f" Expected: {meant} {ending[outcome]}"


def _apa(estimate: Envelope, is_spa: bool) -> str:
    contrast = contrast_of(estimate)
    if estimate["estimate"] is None:
        return ""
    symbol = f"P[{contrast['x']} > {contrast['y']}]" if is_spa else f"PS({contrast['x']}, {contrast['y']})"
    return _line(estimate, symbol)


def _line(estimate: Envelope, symbol: str, kind: str = "proportion") -> str:
    prompts = f", {apa.units(estimate['detail']['n_prompts'], 'prompt')}" if is_apart(estimate) else ""
    return f"{apa.result(estimate, symbol, kind)}{prompts}"


def summary(blocks: Sequence[Mapping[str, Any]], table_1: Mapping[str, Any] | None) -> list[str]:
    """How many expectations each way of counting recovers, and whether ratings point the same way as stated chances."""
    lines = []
    rows = table_1["rows"] if table_1 else []
    expected = [row for row in rows if row["expected"]]
    if expected:
        counts = []
        for key, value, words in (
            ("recovered", "p_xy", "stated chances (recommended)"), ("paper_recovered", "paper", "stated chances (as in the paper)"),
            ("above_recovered", "above", "ratings (rated higher)"), ("delta_recovered", "delta", "ratings (difference, as in the paper)"),
        ):  # fmt: skip
            usable = [row for row in expected if row[value] is not None]
            if usable:
                counts.append(f"{words} {sum(row[key] == 'recovered' for row in usable)} of {len(usable)}")
        if counts:
            lines.append(f"Expectations recovered: {'; '.join(counts)}.")
    both = [row for row in rows if row["p_xy"] is not None and row["above"] is not None]
    if both:
        same = sum(
            (row["p_xy"] > 0.5) == (row["above"] > 0.5) for row in both if 0.5 not in (row["p_xy"], row["above"])
        )
        lines.append(f"Stated chances and ratings point the same way in {same} of {len(both)} comparisons.")
    gaps = [e for e in estimates_of(blocks, "spa.order") if e["estimate"] is not None]
    if gaps:
        worst = max(gaps, key=lambda e: abs(e["estimate"]))
        p = pvalue_of(worst)
        lines.append(
            f"Naming order: the largest gap between the two directions of a pair is {apa.number(100 * worst['estimate'], 1)} points "
            f"({label_of(contrast_of(worst))}{'; ' + apa.equation('p', apa.pvalue(p)) if p is not None else ''}; "
            f"{apa.units(worst['n'], worst['unit'])})."
        )
    return lines


def methods(facts: Mapping[str, Any]) -> list[str]:
    """The methods section, from the facts of the report alone."""
    flow, design = facts["flow"], facts["design"]
    lines = [
        f"Version {design['versions'][-1]['version']} of the design was frozen before answers came (SHA-256 {design['versions'][-1]['sha256']})."
        if design["versions"]
        else "The study was not launched; its design is not frozen.",
        f"{flow['arrived']} assignments were made, {flow['submitted']} submitted, {flow['kept']} remain after all primary rules.",
    ]
    applied = [step for step in flow["rules"] if step["role"] != "sensitivity"]
    if applied:
        lines.append(
            "Exclusion rules, in order: "
            + "; ".join(f"{step['label']} ({step['n_excluded']})" for step in applied)
            + "."
        )
    for section in facts["sections"]:
        lines.append(
            f"Section {section['position']} ({section['protocol']}, {section['purpose']}, m = {section['m']}) asked {section['questions']} question{'' if section['questions'] == 1 else 's'}."
        )
    for family in facts["families"]:
        tests = "test" if family["size"] == 1 else "tests"
        lines.append(
            f"p-values of the family {family['family']} ({family['size']} {tests}) are adjusted by {apa.ADJUSTED[family['adjust']][1]}."
        )
    level = facts["parameters"]["level"]
    lines += [
        f"Intervals have a confidence level of {100 * level:g} %. Resampling draws annotators {facts['parameters']['resamples']} times; the seed "
        f"{facts['seed']} follows from study, design, parameters and data.",
        "Computed by heval "
        + facts["code_version"]
        + " with "
        + ", ".join(f"{k} {v}" for k, v in facts["libraries"].items())
        + ".",
    ]
    return lines
