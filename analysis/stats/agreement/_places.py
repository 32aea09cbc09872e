"""Choices coded by the place on the screen and by the system that stood there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.agreement._kappa import fleiss_kappa, gwet_ac1
from analysis.stats.agreement._tables import as_label_list, category_table
from analysis.stats.arrays import codes
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionSystemAgreement(Record):
    """The same choices coded twice: by the place on the screen that was chosen, and by the system that stood there.

    The two `kappa` differ although nobody agreed more or less: where places are randomised their prevalence is one
    half, that of the systems is whatever the annotators prefer, and chance agreement with it. `percent_agreement`
    (P-bar) is one number where a place holds the same system for everybody. The prevalences map each place and each
    system to its share (the mean over items of the share of answers).
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


def position_system_agreement(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    positions: Sequence[Any] | npt.NDArray[Any],
    systems: Sequence[Any] | npt.NDArray[Any],
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
    unit: str = "item",
    mode: str = "recommended",
) -> PositionSystemAgreement:
    """Agreement on choices between two systems, coded by place on the screen and by system, in one record.

    All arrays have shape (n_rows,), one row a choice: the item (the pair of outputs shown), who chose, the place that
    was chosen ("A", "B", a tie if there was one) and the system that stood there; None in both where no choice was
    made. One pair of systems at a time: chance agreement among systems that never met means nothing. Raises
    ValueError, naming the row, for an annotator who judged an item twice and for a choice coded only one way.

    Source: Thorleiksdottir et al. 2021 printed kappa by place (.69 where by system it is .28, at one and the same
    agreement of .84); both are needed to read either.

    >>> record = position_system_agreement([1, 1, 2, 2], list("abab"), list("AABB"), list("xxxx"),
    ...                              rng=np.random.default_rng(0))
    >>> record.kappa_position.estimate, record.kappa_system.status, record.ac1_system.detail["percent_agreement"]
    (1.0, 'not_identified', 1.0)
    """
    places, chosen = as_label_list(positions), as_label_list(systems)
    if len(places) != len(chosen):
        raise ValueError(f"systems: {len(chosen)} choices where positions has {len(places)}")
    item_codes, n_items = codes(np.asarray(items), "items", len(places))
    who, n_annotators = codes(np.asarray(annotators), "annotators", len(places))
    made, coded = (np.array([label is not None and label == label for label in side]) for side in (places, chosen))
    made, coded = made.astype(np.bool_), coded.astype(np.bool_)
    halved = np.flatnonzero(made != coded)
    if len(halved):
        raise ValueError(f"systems: row {int(halved[0])} has a place without a system, or a system without a place")
    keys = (who * n_items + item_codes)[made]
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        twice = int(np.flatnonzero(made)[np.setdiff1d(np.arange(len(keys)), first)[0]])
        raise ValueError(f"annotators: row {twice} judges an item that this annotator judged before")
    by_place, place_names = category_table(item_codes, places)
    by_system, system_names = category_table(item_codes, chosen)
    more: dict[str, Any] = {"level": level, "resamples": resamples, "rng": rng, "unit": unit, "mode": mode}
    kappa_position = fleiss_kappa(by_place, analysis="fleiss_kappa.by_position", **more)
    kappa_system = fleiss_kappa(by_system, analysis="fleiss_kappa.by_system", **more)
    return PositionSystemAgreement(
        n_items=kappa_position.n,
        n_annotators=len(np.unique(who[made])) if made.any() else 0,
        n_rows=kappa_position.n_rows or 0,
        n_unpairable=n_items - kappa_position.n,
        percent_agreement_position=kappa_position.detail.get("percent_agreement"),
        percent_agreement_system=kappa_system.detail.get("percent_agreement"),
        kappa_position=kappa_position,
        kappa_system=kappa_system,
        ac1_position=gwet_ac1(by_place, analysis="gwet_ac1.by_position", **more),
        ac1_system=gwet_ac1(by_system, analysis="gwet_ac1.by_system", **more),
        prevalence_position=_named_shares(place_names, kappa_position),
        prevalence_system=_named_shares(system_names, kappa_system),
    )


def _named_shares(names: tuple[Any, ...], kappa: Estimate) -> dict[str, float]:
    shares = kappa.detail.get("prevalence")
    return {} if shares is None else {str(name): float(share) for name, share in zip(names, shares, strict=True)}
