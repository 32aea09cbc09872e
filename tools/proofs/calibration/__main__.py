"""``python -m tools.proofs.calibration [--processes 2] [--new | --page-only]``: measure every promise, keep the numbers, write the page.

The numbers lie in tests/golden/calibration.json; the page and its figure are made from them alone.
"""

import argparse
import json
import math
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256

import numpy as np

from .cells import Cell, cells
from .page import RECORD, write


def measured(place: int) -> dict:
    cell = cells()[place]
    kept = outcomes(cell, cell.runs)
    return {
        "name": cell.name, "group": cell.group, "promise": cell.promise, "procedure": cell.procedure, "world": cell.world,
        "n": cell.n, "nominal": cell.nominal, "is_ours": cell.is_ours, "is_anytime": cell.is_anytime, "warned": cell.warned,
        "runs": cell.runs, "answered": len(kept), "rate": round(float(np.mean(kept)), 4) if kept else None,
        "error": round(math.sqrt(float(np.mean(kept)) * (1 - float(np.mean(kept))) / len(kept)), 4) if kept else None,
    }  # fmt: skip


def outcomes(cell: Cell, runs: int) -> list[bool]:
    """The answers of so many runs; a cell has its own seed, so that adding a cell changes no other."""
    rng = np.random.default_rng(int(sha256(cell.name.encode()).hexdigest()[:12], 16))
    return [bool(kept) for kept in (cell.run(rng) for _ in range(runs)) if kept is not None]


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tools.proofs.calibration")
    arguments.add_argument("--processes", type=int, default=2)
    arguments.add_argument("--page-only", action="store_true")
    arguments.add_argument("--new", action="store_true", help="keep what was measured; a row's seed is its own")
    given = arguments.parse_args()
    if not given.page_only:
        kept = {row["name"]: row for row in json.loads(RECORD.read_text())["rows"]} if given.new else {}
        places = [place for place, cell in enumerate(cells()) if cell.name not in kept]
        with ProcessPoolExecutor(given.processes) as pool:
            for row in pool.map(measured, places):
                kept[row["name"]] = row
                print(f"{row['rate']:.3f}  {row['name']}", flush=True)
        found = [kept[cell.name] for cell in cells()]
        record = {"source": "python -m tools.proofs.calibration; fixed seeds, one for each row", "rows": found}
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    write()


if __name__ == "__main__":
    main()
