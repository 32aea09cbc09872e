"""Intervals of people and judges together: do they hold the truth, and what do judges save?

``python -m tools.proofs.calibration.judges`` simulates 1,000 studies of each cell and stores them in tests/golden/judges.json. Then
``python -m tools.proofs.calibration.judges --page-only`` writes the table of the page again. A cell is an estimate (a mean, a difference of two systems, a preference), a kind of
judge, and a size. People rate outputs on five points; how much people, prompts, and outputs differ is as measured in WMT 2023 (translation into German),
and preferences are as in a public study of two neighbouring systems.
"""

import argparse
import itertools
import json
import math
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

import numpy as np

from analysis.stats.judge_assisted import (
    prediction_powered_differences,
    prediction_powered_mean,
    prediction_powered_preferences,
)
from analysis.stats.prediction_powered import CombinedEstimate
from tests import ROOT

RECORD = ROOT / "tests" / "golden" / "judges.json"
PAGE = ROOT / "templates" / "docs" / "explanation" / "people-and-judges.md"
RUNS, LEAST = 1000, 0.94
# Standard deviations of prompts, outputs, people, a person's taste for a system, and of single ratings.
PROMPTS, OUTPUTS, PEOPLE, TASTES, LABELS = 0.83, 0.44, 0.57, 0.15, 0.81
# The same of preferences, on the logit scale.
PAIRS, LEANINGS = 1.27, 0.33
SHIFT = 0.3
ESTIMATES = ("mean", "difference", "preference")
KINDS = ("good", "biased", "useless", "favours one system", "three judges", "good, in strata")
# Scores without ends: two in a hundred of the first system's are 50 instead of what they should be, or the score is e to the power of the quality.
UNBOUNDED_KINDS = ("rare huge scores", "log-normal scores")
HUGE, SHARE_OF_HUGE, POWER = 50.0, 0.02, 1.5
# Domains of prompts: their shares, how hard they are, and what the first system gains in them. Both means are 0.
SHARES, HARDNESS, GAINS = (0.5, 0.3, 0.2), (0.6, -0.2, -1.2), (-0.4, 0.2, 0.7)
# People, labelled prompts, and all prompts.
SIZES = ((8, 20, 300), (20, 60, 300), (60, 150, 1000))
UNBOUNDED_SIZES = ((8, 20, 1000), *SIZES[1:])
EACH = 2


@dataclass(frozen=True, slots=True)
class JudgeCell:
    """An estimate, a kind of judge, and a size."""

    estimate: str
    kind: str
    people: int
    labelled: int
    prompts: int

    @property
    def name(self) -> str:
        """The settings in words."""
        size = f"{self.people} people, {self.labelled} of {self.prompts} prompts"
        return f"{self.estimate}, {self.kind}, {size}"


def cells() -> tuple[JudgeCell, ...]:
    """Return all combinations. The verdicts of preferences have ends."""
    bounded = itertools.product(ESTIMATES, KINDS, SIZES)
    unbounded = itertools.product(ESTIMATES[:2], UNBOUNDED_KINDS, UNBOUNDED_SIZES)
    return tuple(JudgeCell(*one, *size) for *one, size in itertools.chain(bounded, unbounded))


def _scores(rng: np.random.Generator, kind: str, truth: np.ndarray, is_first: np.ndarray, spread: float) -> np.ndarray:
    """Return the judges' scores of outputs of this true quality."""
    noise = spread * rng.normal(size=(len(truth), 3))
    one = {
        "good": truth + 0.6 * noise[:, 0],
        "biased": 0.5 * truth + 0.8 * spread + 0.3 * noise[:, 0],
        "useless": noise[:, 0],
        # It knows the outputs of the favoured system less well, and gives it more.
        "good, in strata": truth + 0.6 * noise[:, 0],
        "favours one system": truth + np.where(is_first, 0.8 * spread + 1.2 * noise[:, 0], 0.4 * noise[:, 0]),
    }
    if kind == "three judges":
        return np.stack([truth + noise[:, 0], 0.5 * truth + 0.5 * noise[:, 1], noise[:, 2]], axis=1)
    if kind == "rare huge scores":
        return np.where(is_first & (rng.random(len(truth)) < SHARE_OF_HUGE), HUGE, one["good"])[:, None]
    if kind == "log-normal scores":
        return np.exp(POWER * one["good"] / np.std(one["good"]))[:, None]
    return one[kind][:, None]


def _raters(rng: np.random.Generator, cell: JudgeCell) -> tuple[np.ndarray, np.ndarray]:
    """Return the person and the prompt of each judgement."""
    who = np.argsort(rng.random((cell.labelled, cell.people)), axis=1)[:, :EACH]
    return who.ravel(), np.repeat(np.arange(cell.labelled), EACH)


def _strata(rng: np.random.Generator, cell: JudgeCell) -> np.ndarray | None:
    """Return the domain of each prompt, if the cell has domains."""
    return rng.choice(len(SHARES), cell.prompts, p=SHARES) if cell.kind == "good, in strata" else None


def _points(latent: np.ndarray) -> np.ndarray:
    return np.clip(np.round(3 + latent), 1, 5)


def _ratings(rng: np.random.Generator, cell: JudgeCell) -> CombinedEstimate:
    n = cell.prompts
    prompts, is_first = np.tile(np.arange(n), 2), np.arange(2 * n) < n
    truth = SHIFT * is_first + np.tile(PROMPTS * rng.normal(size=n), 2) + OUTPUTS * rng.normal(size=2 * n)
    strata = _strata(rng, cell)
    both = None if strata is None else np.tile(strata, 2)
    if both is not None:
        truth = truth + np.array(HARDNESS)[both] + np.array(GAINS)[both] * is_first
    spread = math.hypot(PROMPTS, OUTPUTS) if cell.estimate == "mean" else OUTPUTS
    judges = _scores(rng, cell.kind, truth, is_first, spread)
    who, judged = _raters(rng, cell)
    leniency, tastes = PEOPLE * rng.normal(size=cell.people), TASTES * rng.normal(size=(2, cell.people))
    values = [
        _points(truth[judged + place * n] + leniency[who] + tastes[place, who] + LABELS * rng.normal(size=len(who)))
        for place in range(2)
    ]
    if cell.estimate == "mean":
        return prediction_powered_mean(
            values[0], who, judged, judges=judges[:n], prompts=prompts[:n], bounds=(1, 5), null=3.0, strata=strata
        )
    (pair,) = prediction_powered_differences(
        np.concatenate(values),
        np.tile(who, 2),
        np.concatenate([judged, judged + n]),
        judges=judges,
        systems=np.where(is_first, "a", "b"),
        prompts=prompts,
        bounds=(1, 5),
        strata=both,
    )
    return pair.result


def _preferences(rng: np.random.Generator, cell: JudgeCell) -> CombinedEstimate:
    n = cell.prompts
    lean = 2 * SHIFT + PAIRS * rng.normal(size=n)
    strata = _strata(rng, cell)
    if strata is not None:
        lean = lean + np.array(HARDNESS)[strata]
    who, judged = _raters(rng, cell)
    chances = 1 / (1 + np.exp(-(lean[judged] + LEANINGS * rng.normal(size=cell.people)[who])))
    values = (rng.random(len(who)) < chances).astype(float)
    scores = _scores(rng, cell.kind, lean, rng.random(n) < 0.5, PAIRS)
    (pair,) = prediction_powered_preferences(
        values,
        who,
        judged,
        judges=(scores > 0).astype(float),
        firsts=["a"] * n,
        seconds=["b"] * n,
        prompts=np.arange(n),
        strata=strata,
    )
    return pair.result


def simulate(rng: np.random.Generator, cell: JudgeCell) -> CombinedEstimate:
    """Return the estimates of one study."""
    return _preferences(rng, cell) if cell.estimate == "preference" else _ratings(rng, cell)


@cache
def truth_of(estimate: str, has_strata: bool = False, n: int = 4_000_000) -> float:
    """Return the true value, by one judgement each of independent people and outputs."""
    rng = np.random.default_rng(1)
    spread = math.sqrt(sum(part**2 for part in (PROMPTS, OUTPUTS, PEOPLE, TASTES, LABELS)))
    if estimate == "preference":
        spread = math.hypot(PAIRS, LEANINGS)
    latent = spread * rng.normal(size=n)
    hardness, gains = 0.0, 0.0
    if has_strata:
        strata = rng.choice(len(SHARES), n, p=SHARES)
        hardness, gains = np.array(HARDNESS)[strata], np.array(GAINS)[strata]
    if estimate == "preference":
        return float(np.mean(1 / (1 + np.exp(-(2 * SHIFT + latent + hardness)))))
    first = float(np.mean(_points(latent + SHIFT + hardness + gains)))
    return first if estimate == "mean" else first - float(np.mean(_points(latent + hardness)))


def measured(cell: JudgeCell, runs: int = RUNS) -> dict:
    """Return how often the intervals of a cell hold the truth, how wide they are, and what the judge saves."""
    rng = np.random.default_rng(int(sha256(cell.name.encode()).hexdigest()[:12], 16))
    truth = truth_of(cell.estimate, cell.kind == "good, in strata")
    held, ratios, widths, n_fallbacks = [], [], [], 0
    for _ in range(runs):
        found = simulate(rng, cell)
        human, combined = found.human.interval, found.combined.interval
        if human is None or combined is None:
            continue
        held.append([human.low <= truth <= human.high, combined.low <= truth <= combined.high])
        ratios.append(found.saved.se_ratio)
        widths.append((combined.high - combined.low) / (human.high - human.low))
        n_fallbacks += bool(found.fallback)
    alone, both = np.mean(held, axis=0)
    return {
        "name": cell.name,
        "studies": len(held),
        "people_alone": round(float(alone), 4),
        "with_judges": round(float(both), 4),
        "se_ratio": round(float(np.mean(ratios)), 4),
        "widest": round(float(np.max(widths)), 4),
        "fallbacks": round(n_fallbacks / len(held), 4),
    }


def least(studies: int) -> float:
    """Return the least acceptable share of intervals that hold the truth: .94 less two standard errors."""
    return LEAST - 2 * math.sqrt(LEAST * (1 - LEAST) / studies)


def table() -> str:
    """Return the table of the page."""
    lines = [
        "| Estimate | Judge | People, labelled prompts, all prompts | Coverage, people alone | Coverage, with judges | Standard errors' ratio | Human interval kept |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    for cell, row in zip(cells(), json.loads(RECORD.read_text())["rows"], strict=True):
        size = f"{cell.people}, {cell.labelled}, {cell.prompts}"
        numbers = (
            f"{row['people_alone']:.3f} | {row['with_judges']:.3f} | {row['se_ratio']:.2f} | {row['fallbacks']:.0%}"
        )
        lines.append(f"| {cell.estimate} | {cell.kind} | {size} | {numbers} |")
    return "\n".join(lines)


def page() -> str:
    """Return the page with the table of the stored numbers."""
    text = PAGE.read_text(encoding="utf-8")
    return re.sub(r"\| Estimate \| Judge .*?\n(?!\|)", lambda _: table() + "\n", text, count=1, flags=re.DOTALL)


def main() -> None:
    """Measure all cells, or write the page."""
    arguments = argparse.ArgumentParser(prog="python -m tools.proofs.calibration.judges")
    arguments.add_argument("--processes", type=int, default=2)
    arguments.add_argument("--runs", type=int, default=RUNS)
    arguments.add_argument("--page-only", action="store_true")
    arguments.add_argument("--only", default="", help="measure the cells with these words, and keep the other rows")
    given = arguments.parse_args()
    if not given.page_only:
        chosen = [cell for cell in cells() if given.only in cell.name]
        stored = {row["name"]: row for row in json.loads(RECORD.read_text())["rows"]} if given.only else {}
        with ProcessPoolExecutor(given.processes) as pool:
            for row in pool.map(measured, chosen, itertools.repeat(given.runs)):
                stored[row["name"]] = row
                print(json.dumps(row), flush=True)
        rows = [stored[cell.name] for cell in cells()]
        source = "python -m tools.proofs.calibration.judges; fixed seeds, one for each row"
        RECORD.write_text(json.dumps({"source": source, "rows": rows}, indent=1) + "\n")
    if PAGE.exists():
        PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
