"""Each cell: a promise, a world in which its truth is known, and whether one run kept it."""

from tools.proofs.calibration.cells.agreement import agreement_and_rank_cells
from tools.proofs.calibration.cells.best_worst import best_worst_cells
from tools.proofs.calibration.cells.cell import Cell
from tools.proofs.calibration.cells.choices import choice_cells
from tools.proofs.calibration.cells.human_likeness import human_likeness_cells
from tools.proofs.calibration.cells.means import mean_cells, rating_cells
from tools.proofs.calibration.cells.spa import spa_cells


def cells() -> list[Cell]:
    return [
        *spa_cells(),
        *rating_cells(),
        *mean_cells(),
        *human_likeness_cells(),
        *choice_cells(),
        *best_worst_cells(),
        *agreement_and_rank_cells(),
    ]
