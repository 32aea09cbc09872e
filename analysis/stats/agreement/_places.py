"""Agreement on choices, coded by the place on the screen and by the system."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.agreement._kappa import fleiss_kappa, gwet_ac1
from analysis.stats.agreement._tables import as_label_list, category_counts_by_unit
from analysis.stats.arrays import label_codes
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionSystemAgreement(Record):
    """The same choices coded twice: by the chosen place on the screen, and by the system in that place.

    The two kappas differ at the same agreement. If places are randomised, the prevalence of a place is one half. The
    prevalence of a system depends on the preferences, and so does its chance agreement. `percent_agreement` (P-bar)
    is the same in both if a place holds the same system for all annotators. The prevalences map each place and system
    to its share (the mean over items).
    """

    n_items: int
    n_annotators: int
    n_rows: int
    n_unpairable: int
    percent_agreement_position: float | None
    percent_agreement_system: float | None
    kappa_position: Estimate
    kappa_system: Estimate
    ac1_position: Estimate
    ac1_system: Estimate
    prevalence_position: dict[str, float]
    prevalence_system: dict[str, float]


def agreement_by_position_and_by_system(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    chosen_positions: Sequence[Any] | npt.NDArray[Any],
    chosen_systems: Sequence[Any] | npt.NDArray[Any],
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> PositionSystemAgreement:
    """Estimate kappa, AC1 and agreement of choices between two systems, coded by place on the screen and by system.

    Each row is one annotator's choice about an item, the pair of outputs shown: the chosen place (A, B, or a tie) and
    the system in that place, both None without a choice. It is an error if an annotator judged an item twice, or if a
    choice is coded in one way only. Use the function for one pair of systems at a time, because chance agreement over
    systems that were not compared has no meaning. Thorleiksdottir et al. 2021 print the kappa by place, .69; by system
    it is .28 at the same agreement of .84, so both are needed to interpret either.

    >>> record = agreement_by_position_and_by_system([1, 1, 2, 2], list("abab"), list("AABB"), list("xxxx"),
    ...                              rng=np.random.default_rng(0))
    >>> record.kappa_position.estimate, record.kappa_system.status, record.ac1_system.detail["percent_agreement"]
    (1.0, 'not_identified', 1.0)
    """
    places, chosen = as_label_list(chosen_positions), as_label_list(chosen_systems)
    if len(places) != len(chosen):
        raise ValueError(f"systems: {len(chosen)} choices where positions has {len(places)}")
    item_codes, n_items = label_codes(np.asarray(items), "items", len(places))
    annotator_codes, n_annotators = label_codes(np.asarray(annotators), "annotators", len(places))
    has_place, coded = (np.array([label is not None and label == label for label in side]) for side in (places, chosen))
    has_place, coded = has_place.astype(np.bool_), coded.astype(np.bool_)
    halved = np.flatnonzero(has_place != coded)
    if len(halved):
        raise ValueError(f"systems: row {int(halved[0])} has a place without a system, or a system without a place")
    keys = (annotator_codes * n_items + item_codes)[has_place]
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        twice = int(np.flatnonzero(has_place)[np.setdiff1d(np.arange(len(keys)), first)[0]])
        raise ValueError(f"annotators: row {twice} judges an item that this annotator judged before")
    by_place, place_names = category_counts_by_unit(item_codes, places)
    by_system, system_names = category_counts_by_unit(item_codes, chosen)
    options: dict[str, Any] = {"level": level, "resamples": resamples, "rng": rng}
    kappa_position = fleiss_kappa(by_place, **options).labelled(analysis="fleiss_kappa.by_position")
    kappa_system = fleiss_kappa(by_system, **options).labelled(analysis="fleiss_kappa.by_system")
    return PositionSystemAgreement(
        n_items=kappa_position.n,
        n_annotators=len(np.unique(annotator_codes[has_place])) if has_place.any() else 0,
        n_rows=kappa_position.n_rows or 0,
        n_unpairable=n_items - kappa_position.n,
        percent_agreement_position=kappa_position.detail.get("percent_agreement"),
        percent_agreement_system=kappa_system.detail.get("percent_agreement"),
        kappa_position=kappa_position,
        kappa_system=kappa_system,
        ac1_position=gwet_ac1(by_place, **options).labelled(analysis="gwet_ac1.by_position"),
        ac1_system=gwet_ac1(by_system, **options).labelled(analysis="gwet_ac1.by_system"),
        prevalence_position=_named_shares(place_names, kappa_position),
        prevalence_system=_named_shares(system_names, kappa_system),
    )


def _named_shares(names: tuple[Any, ...], kappa: Estimate) -> dict[str, float]:
    shares = kappa.detail.get("prevalence")
    return {} if shares is None else {str(name): float(share) for name, share in zip(names, shares, strict=True)}
