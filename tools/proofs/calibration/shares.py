"""Coverage and power of two choices with a true share of .75 to .97, in each size of the grid of claims.

``python -m tools.proofs.calibration.shares`` simulates 2,000 studies of every cell and stores it in tests/golden/shares.json when it is
finished; with ``--continue`` it keeps the cells of this size. The method of the reports is compared with the plain two-way t test,
which has the power that nobody should lose where it is valid.
"""

import argparse
import itertools
import json
import math
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy import special

from analysis.stats import cluster_variances, clusters
from analysis.stats.confidence import BettingCurve, TCurve
from tests import ROOT
from tools.proofs.calibration.claims import LEVEL, SETTINGS, ClaimCell, limit, misses, simulated

RECORD = ROOT / "tests" / "golden" / "shares.json"
SHARES = (0.75, 0.85, 0.92, 0.97)
# The sizes of the grid, and three of which readers asked.
SIZES = (*itertools.product(SETTINGS["people"], SETTINGS["prompts"]), (20, 12), (40, 10), (6, 200))
# How much people and prompts differ, on the latent scale where one answer has a standard deviation of 1.
SPREADS = ((0.3, 0.3), (0.8, 0.6), (0.3, 1.2))
T = "two-way t"
USED = "reports"
SECTION = """### Clear effects

Near 1, the answers of two choices vary little, and few people or prompts often show none that differ. {n_sizes} sizes were simulated with true
shares of {shares} and three spreads of people and prompts, {studies} times each; every person judges ten prompts at most. *Missed* is the
largest share of studies of a size whose interval misses the truth; it fails above {limit}. *Found* is the share of studies that claim a difference, for
people and prompts with standard deviations of .3. Each cell has the reports' number first, and then that of the plain two-way t test, whose claims
are no measure where it misses the truth. Bets: how many studies of the size use them.

"""


def cells() -> list[tuple[ClaimCell, float]]:
    """Return each cell with its true share."""
    found = []
    for (people, prompts), (of_people, of_prompts), share in itertools.product(SIZES, SPREADS, SHARES):
        shift = float(special.ndtri(share)) * math.sqrt(1 + of_people**2 + of_prompts**2)
        design = "some of the prompts"
        found.append(
            (
                ClaimCell(people, prompts, design, "equal", of_people, of_prompts, False, "choice", "answers", shift),
                share,
            )
        )
    return found


def name_of(cell: ClaimCell, share: float) -> str:
    return (
        f"{cell.people} people, {cell.prompts} prompts, sd {cell.sd_people:g} and {cell.sd_prompts:g}, share {share:g}"
    )


def measure(place: int, studies: int) -> dict[str, Any]:
    """Simulate the studies of one cell."""
    cell, share = cells()[place]
    rng = np.random.default_rng([11, place])
    missed, claims = ({USED: 0, T: 0} for _ in range(2))
    bets, width = 0, 0.0
    for _ in range(studies):
        study = simulated(rng, cell)
        assert study is not None, "every size of the grid has enough prompts"
        values, annotators, prompts, weights = study
        used = clusters.two_way_clustered_mean(
            values, annotators, prompts, weights=weights, null=0.5, bounds=(0.0, 1.0)
        )
        assert used.estimate is not None
        ways = [np.unique(labels, return_inverse=True)[1] for labels in (annotators, prompts)]
        spread, df = cluster_variances.two_way_jackknife(values, weights, *ways)
        # Answers that are all alike have no t test.
        plain = TCurve(used.estimate, math.sqrt(spread.variance), df) if spread.variance > 1e-18 else None
        for method, curve in ((USED, used.curve), (T, plain)):
            missed[method] += int(misses(curve, share))
            claims[method] += int(used.test is not None and curve is not None and curve.pvalue(0.5) < 1 - LEVEL)
        bets += int(isinstance(used.curve, BettingCurve))
        assert used.interval is not None
        width += used.interval.high - used.interval.low
    return {
        "name": name_of(cell, share),
        "share": share,
        "simulated": studies,
        "missed": missed,
        "claims": claims,
        "bets": bets,
        "width": round(width / studies, 3),
    }


def uncovered(row: Mapping[str, Any], method: str = USED) -> bool:
    """Whether the intervals of a cell miss its share more often than .06 and two standard errors."""
    return bool(row["missed"][method] / row["simulated"] > limit(row["simulated"]))


def weak(row: Mapping[str, Any]) -> bool:
    """Whether the t test is valid in a cell, and the reports have less than .9 of its power, by more than two standard errors."""
    power = row["claims"][T] / row["simulated"]
    error = math.sqrt(power * (1 - power) / row["simulated"])
    return not uncovered(row, T) and row["claims"][USED] / row["simulated"] < 0.9 * power - 2 * error


def stored_rows() -> list[dict[str, Any]]:
    return list(json.loads(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else []


def of_sizes(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the cells of each size."""
    n = len(SPREADS) * len(SHARES)
    return [rows[start : start + n] for start in range(0, len(rows), n)]


def section() -> str:
    """Return the part of the page "What you may rely on" about these cells."""
    rows = stored_rows()
    studies = rows[0]["simulated"]

    def two(values: Mapping[str, float]) -> str:
        return ", ".join(f"{values[name] / studies:.3f}".removeprefix("0") for name in (USED, T))

    lines = ["| size | missed | bets |" + "".join(f" found {share:g} |".replace("0.", ".") for share in SHARES)]
    lines.append("|---|--:|--:|" + "--:|" * len(SHARES))
    for of_size in of_sizes(rows):
        worst = {name: max(row["missed"][name] for row in of_size) for name in (USED, T)}
        bets = sum(row["bets"] for row in of_size) / studies / len(of_size)
        found = " | ".join(two(row["claims"]) for row in of_size[: len(SHARES)])
        size = of_size[0]["name"].partition(", sd")[0]
        lines.append(f"| {size} | {two(worst)} | {f'{bets:.2f}'.removeprefix('0')} | {found} |")
    introduction = SECTION.format(
        n_sizes=len(SIZES),
        shares=", ".join(f"{share:g}".removeprefix("0") for share in SHARES),
        studies=f"{studies:,}",
        limit=f"{limit(studies):.3f}".removeprefix("0"),
    )
    again = "`python -m tools.proofs.calibration.shares` measures this again."
    return introduction + "\n".join(lines) + f"\n\n{again}\n\n"


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tools.proofs.calibration.shares")
    arguments.add_argument("--studies", type=int, default=2000)
    arguments.add_argument("--processes", type=int, default=2)
    arguments.add_argument("--continue", dest="is_continued", action="store_true", help="keep the cells of this size")
    given = arguments.parse_args()
    names = [name_of(*one) for one in cells()]
    rows = {row["name"]: row for row in stored_rows()} if given.is_continued else {}
    places = [place for place, name in enumerate(names) if rows.get(name, {}).get("simulated") != given.studies]
    with ProcessPoolExecutor(given.processes) as pool:
        for row in pool.map(measure, places, itertools.repeat(given.studies)):
            rows[row["name"]] = row
            lines = [json.dumps(rows[name]) for name in names if name in rows]
            RECORD.write_text("[\n" + ",\n".join(lines) + "\n]\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
