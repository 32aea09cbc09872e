"""Two choices in a report: sentences, tables and the rows of a figure, from the blocks whose names begin with ``choice.``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import apa
from .tables import Table, contrast_of, estimates_of, found_direction, label_of, pvalue_of, recovered, table

Envelope = Mapping[str, Any]
Blocks = Sequence[Mapping[str, Any]]
OUTCOMES = {
    "a_better": "x is better", "b_better": "y is better", "equivalent": "equivalent within the margin",
    "different_but_trivial": "different, by less than the margin", "budget_exhausted": "budget exhausted", "inconclusive": "open",
}  # fmt: skip
READINGS = {"first": "first crossing", "stays": "crossing that stays (hindsight)"}


def conclusions(blocks: Blocks) -> list[dict[str, Any]]:
    """A sentence for each planned comparison, primary ones first."""
    planned = [one for one in estimates_of(blocks, "choice.preference") if contrast_of(one)["is_planned"]]
    several = _are_several(planned)
    order = {"primary": 0, "secondary": 1, "exploratory": 2}
    found = []
    for one in sorted(planned, key=lambda one: order[contrast_of(one)["role"]]):
        contrast = contrast_of(one)
        head, rest = _said(one)
        where = f" (section {contrast['section']})" if several else ""
        symbol = f"P({contrast['x']} chosen over {contrast['y']})"
        found.append(
            {
                "contrast": contrast["key"], "role": contrast["role"], "claim": head + where, "text": rest,
                "apa": "" if one["estimate"] is None else apa.result(one, symbol), "verdict": one["detail"].get("verdict"),
                "status": one["status"], "recovered": recovered(contrast["expected"], found_direction(one, 0.5, False)),
            }
        )  # fmt: skip
    return found


def _are_several(estimates: Iterable[Envelope]) -> bool:
    """Whether they are of more sections than one, so that each must say of which."""
    return len({contrast_of(one)["section"] for one in estimates}) > 1


def _said(one: Envelope) -> tuple[str, str]:
    contrast = contrast_of(one)
    x, y = contrast["x"], contrast["y"]
    about = f" on {contrast['criterion']}" if contrast["criterion"] else ""
    if one["estimate"] is None:
        return f"Nothing can be said of {x} and {y}{about}.", f"{one['reason'].capitalize()}."
    numbers = _numbers(one, x, y)
    if one["status"] != "ok" or one["test"] is None:
        return (
            f"No test was possible for {x} and {y}{about}.",
            f"{numbers} No test: {one['reason'] or 'too few annotators'}.",
        )
    better, other = (x, y) if one["estimate"] > 0.5 else (y, x)
    margin = f"±{apa.percent(contrast['margin'])}".replace(" %", " percentage points") if contrast["margin"] else ""
    match one["detail"].get("verdict"):
        case "different":
            head = f"{better} was chosen over {other}{about}."
        case "different_but_trivial":
            head = f"{better} was chosen over {other}{about}, but by less than matters ({margin})."
        case "equivalent":
            head = f"{x} and {y} are indistinguishable{about} within {margin}."
        case _:
            head = f"It remains open whether {x} or {y} is chosen more often{about}."
            if margin:
                numbers += f" The data show neither a difference nor equivalence within {margin}."
            else:
                numbers += " No difference was shown, which is no evidence that there is none."
    return head, numbers + _stopping(one)


def _numbers(one: Envelope, x: str, y: str) -> str:
    ends = apa.ends_of(one)
    level = apa.level_of(one)
    kind = "confidence sequence" if _is_sequential(one) else "confidence interval"
    middle, low, high = apa.in_words(one["estimate"], ends)
    between = f"; {level} {kind} {low} to {high}" if ends else ""
    test = f"; {apa.tested(one['test'])}" if one["test"] else ""
    return (
        f"Annotators chose {x} over {y} in {middle} of their choices on average{between}{test}; "
        f"{apa.units(one['n'], one['unit'])}."
    )


def _stopping(one: Envelope) -> str:
    if not _is_sequential(one):
        return ""
    detail = one["detail"]
    if detail.get("stopped_at"):
        overrun = detail.get("labels_overrun") or 0
        after = f" {overrun} label{'s' if overrun != 1 else ''} came after that and change nothing." if overrun else ""
        return f" The stopping rule decided after {detail['stopped_at']} {one['unit']}s.{after}"
    if detail.get("outcome") == "budget_exhausted":
        return " The budget was exhausted before the stopping rule decided."
    return " The stopping rule has not decided."


def _is_sequential(one: Envelope) -> bool:
    return bool(one["analysis"].endswith(".sequential"))


def tables(blocks: Blocks) -> list[Table]:
    """What was decided and by which rule, what it cost, what each strategy would have cost, agreement and sides."""
    made = [_decisions(blocks), _effort(blocks), _replays(blocks), _agreement(blocks), _sides(blocks)]
    return [one for one in made if one is not None]


def _decisions(blocks: Blocks) -> Table | None:
    paper = {contrast_of(one)["key"]: one for one in estimates_of(blocks, "choice.preference", "paper")}
    logged = {
        told["comparison"]: told
        for block in blocks if block["name"] == "choice.effort" and (told := (block["verdict"] or {}).get("decided"))
    }  # fmt: skip
    found = estimates_of(blocks, "choice.preference")
    several = _are_several(found)
    rows = []
    for one in found:
        contrast, detail = contrast_of(one), one["detail"]
        theirs = paper.get(contrast["key"])
        expected = contrast["expected"]
        told = logged.get(contrast["key"])
        rows.append(
            {
                "x": contrast["x"], "y": contrast["y"], "criterion": contrast["criterion"], "section": contrast["section"] if several else None,
                "expected": {"": "", ">": "x > y", "<": "x < y", "~": "x ~ y"}[expected],
                "rule": "anytime-valid" if _is_sequential(one) else "fixed n", "share": one["estimate"], "interval": apa.ends_of(one),
                "level": apa.level_of(one), "p": pvalue_of(one), "n": one["n"],
                "outcome": OUTCOMES.get(detail.get("outcome") or "", "") or _fixed_words(one),
                "stopped": detail.get("stopped_at"), "recovered": recovered(expected, found_direction(one, 0.5, False)),
                "logged": OUTCOMES.get(told["verdict"], "") if told else "",
                **_paper_cells(theirs), "reason": one["reason"],
            }
        )  # fmt: skip
    if not rows:
        return None
    return table(
        "choices", "Which was chosen, and by which rule that was decided",
        "x|System x|text; y|System y|text; criterion|Criterion|text; section|Section|integer; outcome|Outcome|text; share|P(x chosen)|probability; "
        "interval|CI|interval; level|CI at|text; p|p|p; n|n annotators|integer; rule|Rule|text; stopped|Decided after|integer; expected|Expected|text; "
        "recovered|As expected?|text; logged|As logged|text; paper|Items for x, paper|probability; paper_outcome|First crossing, paper|text; "
        "paper_n|Items to it|integer; stays|Crossing that stays, paper|text; stays_n|Items to that|integer; reason|Undefined because|text",
        rows, "first",
        "P(x chosen) weighs annotators alike. The level of an interval is that of its rule, divided where a rule decides about several "
        "comparisons. An anytime-valid rule keeps its error however often one looked; the paper's bound does not, "
        "and the crossing that stays is known in hindsight alone. A fixed n assumes that nobody looked.",
    )  # fmt: skip


def _fixed_words(one: Envelope) -> str:
    verdict = one["detail"].get("verdict")
    if verdict == "different" and one["estimate"] is not None:
        return OUTCOMES["a_better" if one["estimate"] > 0.5 else "b_better"]
    return OUTCOMES.get(verdict or "inconclusive", "open")


def _paper_cells(theirs: Envelope | None) -> dict[str, Any]:
    if theirs is None:
        return {}
    stays = next(iter(theirs["sensitivity"]), None)
    return {
        "paper": theirs["estimate"], "paper_outcome": _winner(theirs), "paper_n": theirs["detail"].get("n_decision"),
        "stays": _winner(stays) if stays else "", "stays_n": stays["detail"].get("n_decision") if stays else None,
    }  # fmt: skip


def _winner(one: Envelope) -> str:
    return {"a": OUTCOMES["a_better"], "b": OUTCOMES["b_better"]}.get(one["detail"].get("winner") or "", "not decided")


def _effort(blocks: Blocks) -> Table | None:
    rows = []
    for block in blocks:
        if block["name"] != "choice.effort":
            continue
        by = {one["analysis"].rpartition(".")[2]: one for one in block["estimates"]}
        paid = by["labels"]
        overrun = by.get("overrun")
        rows.append(
            {
                "contrast": label_of(contrast_of(paid), True), "strategy": paid["detail"]["strategy"].replace("_", " "), "items": paid["detail"]["items"],
                "answered": paid["detail"]["items_answered"], "open": paid["detail"]["items_open"], "labels": paid["detail"]["labels"],
                "each": paid["estimate"], "first": _whole(by["first"]["estimate"]), "stays": _whole(by["stays"]["estimate"]),
                "overrun": None if overrun is None else _whole(overrun["estimate"]),
            }
        )  # fmt: skip
    if not rows:
        return None
    return table(
        "choice_effort", "What it cost",
        "contrast|Comparison|text; strategy|Strategy|text; items|Items|integer; answered|Items with an answer|integer; open|Still open|integer; "
        "labels|Labels paid|integer; each|Labels an item|number; first|Labels to the first crossing, paper|integer; "
        "stays|Labels to the crossing that stays, paper|integer; overrun|Labels after the decision|integer",
        rows, "sure", "An item that lacks labels, has no majority, or ties alone, has no answer. Labels after the decision were paid and change nothing.",
    )  # fmt: skip


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _replays(blocks: Blocks) -> Table | None:
    paper = {_replay_key(one): one for one in estimates_of(blocks, "choice.replay", "paper")}
    rows = []
    for one in estimates_of(blocks, "choice.replay"):
        theirs = paper.get(_replay_key(one))
        rows.append(
            {
                "contrast": label_of(contrast_of(one), True), "strategy": one["settings"]["system"], "items": one["settings"]["items"],
                "mean": one["estimate"],
                "interval": apa.ends_of(one), "decided": one["detail"].get("share_decided"), "median": one["detail"].get("median"),
                "paper": theirs and theirs["estimate"], "paper_interval": apa.ends_of(theirs),
                "paper_decided": theirs and theirs["detail"].get("share_decided"), "reason": one["reason"],
            }
        )  # fmt: skip
    if not rows:
        return None
    return table(
        "choice_replays", "Labels that each strategy would have needed",
        "contrast|Comparison|text; strategy|Strategy|text; items|Items|integer; mean|Mean labels, first crossing|number; interval|99% CI|wide_interval; "
        "decided|Runs that decide|percent; median|Median|number; paper|Mean labels as in the paper|number; paper_interval|99% CI, paper|wide_interval; "
        "paper_decided|Runs that decide, paper|percent; reason|Undefined because|text",
        rows, "more",
        "Each strategy drawn a thousand times from these labels under the paper's bound, ties left out. All are drawn on the same items: those with "
        "as many labels as the last strategy here may want, which half of the items must have. A run that does not decide counts with all that its "
        "items cost, so that the mean is less than decisions would have taken. As in the paper: the crossing that stays, averaged over "
        "runs that decide alone, which is too low where some do not. The intervals are about these items: other items would differ by more.",
    )  # fmt: skip


def _replay_key(one: Envelope) -> tuple[str, str]:
    return contrast_of(one)["key"], one["settings"]["system"]


def _agreement(blocks: Blocks) -> Table | None:
    rows = [
        {
            "contrast": label_of(contrast_of(one), True), "what": one["estimand"], "estimate": one["estimate"], "interval": apa.ends_of(one),
            "observed": one["detail"]["observed_by_side" if "side" in one["estimand"] else "observed_by_system"], "n": one["n"], "unit": one["unit"],
            "reason": one["reason"],
        }
        for one in estimates_of(blocks, "choice.agreement")
    ]  # fmt: skip
    if not rows:
        return None
    return table(
        "choice_agreement", "Agreement, by side and by system",
        "contrast|Comparison|text; what|Measure|text; estimate|Estimate|number; interval|95% CI|wide_interval; observed|Observed agreement|percent; "
        "n|n|integer; unit|Unit|text; reason|Undefined because|text",
        rows, "sure",
        "The paper prints kappa by side of the screen. Third labels, asked for where two differ, are left out. Intervals resample items, not people: they are about these annotators. Low agreement about preferences is information about people, and no rule may use it.",
    )  # fmt: skip


def _sides(blocks: Blocks) -> Table | None:
    rows = [
        {
            "contrast": label_of(contrast_of(one), True), "effect": one["estimate"], "interval": apa.ends_of(one), "p": pvalue_of(one),
            "first": one["detail"].get("share_first"), "balanced": one["detail"].get("balanced_share"), "n": one["n"], "reason": one["reason"],
        }
        for one in estimates_of(blocks, "choice.position")
    ]  # fmt: skip
    if not rows:
        return None
    return table(
        "choice_sides", "Did the side matter?",
        "contrast|Comparison|text; effect|Chosen more often for being first|fine_probability; interval|95% CI|fine_interval; p|p|p; "
        "first|Choices of the first side|percent; balanced|P(x chosen), sides balanced|probability; n|n annotators|integer; reason|Undefined because|text",
        rows, "sure", "P(x chosen | x first) less P(x chosen | x second), annotators as clusters. Sides are drawn, so it does not bias the share.",
    )  # fmt: skip


def points(blocks: Blocks) -> Iterable[dict[str, Any]]:
    """The rows of the figure: recommended and paper under each other."""
    several = _are_several(estimates_of(blocks, "choice.preference"))
    for mode, words in (
        ("recommended", "choices (recommended)"),
        ("paper", "items (paper)"),
    ):
        for one in estimates_of(blocks, "choice.preference", mode):
            yield {
                "label": label_of(contrast_of(one), several), "series": words, "estimate": one["estimate"], "n": one["n"], "unit": one["unit"],
                "low": (one["interval"] or {}).get("low"), "high": (one["interval"] or {}).get("high"),
            }  # fmt: skip
