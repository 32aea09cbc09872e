"""The pieces of a plan. Each is computed from its own arguments, in any order and by any process, with the same result."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.stats.planning.inputs import StudySize, Target, Variation

from .inputs import PlanInputs

if TYPE_CHECKING:
    from analysis.stats.planning.study_plans import SimulatedSize

# A piece > its result, both as JSON.
Piece = dict[str, Any]
# Computes all pieces and returns their results in the same order.
ComputePieces = Callable[[Sequence[Piece]], list[Any]]


def plan_pieces(inputs: PlanInputs, seed: int, draws: Sequence[Variation] = ()) -> list[Piece]:
    """Return the pieces: sequential designs, several comparisons, and each simulated size. The longest come first."""
    from analysis.stats.planning.study_plans import plan_parts

    parts = plan_parts(inputs.size, inputs.target, inputs.variation, seed=seed)
    shared = {
        "variation": inputs.variation.as_dict(),
        # Only these two differ between draws.
        "draws": [[draw.sd_people, draw.sd_prompts] for draw in draws],
    }
    return [
        {"sequential": {"inputs": inputs.as_json(), "seed": seed}},
        {"claims": {"inputs": inputs.as_json(), "seed": seed}} | shared,
        *({"size": part.as_dict()} | shared for part in parts),
    ]


def compute_piece(piece: Piece) -> Any:
    """Return the result of a piece."""
    from analysis.stats.planning.study_plans import PlanPart, simulate_part

    from .results import compare_claims, compare_sequential

    if asked := piece.get("sequential"):
        return compare_sequential(PlanInputs.from_json(asked["inputs"]), seed=asked["seed"])
    variation = Variation(**piece["variation"])
    draws = [replace(variation, sd_people=people, sd_prompts=prompts) for people, prompts in piece["draws"]]
    if asked := piece.get("claims"):
        return compare_claims(PlanInputs.from_json(asked["inputs"]), draws, seed=asked["seed"])
    part = piece["size"]
    return simulate_part(
        PlanPart(
            kind=part["kind"],
            size=StudySize(**part["size"]),
            target=Target(**part["target"]),
            runs=part["runs"],
            seed=tuple(part["seed"]),
        ),
        draws or variation,
    ).as_dict()


def simulated_size(result: dict[str, Any]) -> "SimulatedSize":
    """Return the record of a simulated size from the result of its piece."""
    from analysis.stats.planning.study_plans import SimulatedSize

    return SimulatedSize(**result | {"size": StudySize(**result["size"])})


def compute_here(pieces: Sequence[Piece]) -> list[Any]:
    """Compute all pieces in this process, one after the other."""
    return [compute_piece(piece) for piece in pieces]
