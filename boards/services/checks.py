"""What a snapshot says about its own results: claims over submissions, probes, and how much a first place rests on."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from analysis.data.frames import SECOND_SAMPLE
from analysis.protocols.blocks.populations import population_of
from boards.models import Board

from .rounds import samples_of_rounds

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from pandas import DataFrame

# The samples that each round scored: their numbers and prompts.
Samples = Mapping[int, Sequence[tuple[int, Sequence[str]]]]

ALPHA = 0.05
RESAMPLES = 1999


def answer_arrays(rows: "DataFrame") -> tuple[Any, ...]:
    """Return values, systems, prompts and annotators, as the statistics take them."""
    return (
        rows["value"].to_numpy(float),
        rows["system"].to_numpy(),
        rows["prompt"].to_numpy(),
        rows["annotator"].to_numpy(),
    )


def renewed_samples(board: Board) -> Samples | None:
    """Return the samples that each round scored, by number and with their prompts; None if no sample was renewed."""
    of_rounds = samples_of_rounds(board)
    if not any(one.previous for one in of_rounds.values()):
        return None
    return {
        number: [(sample.number, sample.keys) for sample in (one.previous, one.sample) if sample is not None]
        for number, one in of_rounds.items()
    }


def count_in_samples(rows: "DataFrame", samples: Samples | None) -> tuple["DataFrame", "npt.NDArray[np.int64] | None"]:
    """Return the rows as often as samples count them, and the sample of each; the rows as they are, if none was renewed."""
    from analysis.stats import board_rounds

    if samples is None:
        return rows, None
    places, numbers = board_rounds.rows_of_samples(
        rows["system"].to_numpy(), rows["prompt"].to_numpy(), rows["round"].to_numpy(), samples
    )
    return rows.iloc[places], numbers


def _with_occasions(rows: "DataFrame", samples: Samples | None) -> tuple["DataFrame", "npt.NDArray[np.int64]"]:
    """Return the rows as samples count them, and a number for each pair of round and sample, in their order."""
    import numpy as np

    counted, numbers = count_in_samples(rows, samples)
    of_rows = counted["round"].to_numpy(dtype=np.int64)
    return counted, of_rows if numbers is None else of_rows * (int(numbers.max(initial=0)) + 1) + numbers


def _on_common_prompts(rows: "DataFrame", samples: Samples | None) -> "DataFrame":
    if samples is None:
        return rows
    common = set.intersection(*(set(keys) for of_round in samples.values() for _, keys in of_round))
    return rows[rows["prompt"].isin(common)]


def better_than_best_before(
    rows: "DataFrame",
    new_in_round: Mapping[int, int],
    is_new_prompts: bool,
    decided: Sequence[Mapping[str, Any]] = (),
    samples: Samples | None = None,
) -> list[dict[str, Any]]:
    """Return, for each submission in the order of rounds and numbers, whether it is better than the best before it.

    Each is compared with all systems that were scored in earlier rounds or came earlier to the same round. Over all submissions of
    the board, at most 5 % of boards ever make a false claim. ``decided``: the verdicts of the last snapshot. They stay as they
    are, because later rounds and withdrawals must not change what was said.
    """
    from analysis.stats import leaderboard

    rows, occasions = _with_occasions(rows, samples)
    found = [dict(one) for one in decided]
    known = {one["submission"] for one in found}
    for number in sorted(set(new_in_round.values())):
        until, of_rows = rows[rows["round"] <= number], occasions[(rows["round"] <= number).to_numpy()]
        scored = set(until["system"].unique().tolist())
        new = sorted(one for one in scored - known if new_in_round.get(one) == number)
        # Systems of the template and other anchors that no round scored as new were there before.
        earlier = sorted(scored - set(new))
        if not earlier and new:
            earlier, new = new[:1], new[1:]  # nothing came before the first submission
        if not new:
            continue
        estimates = leaderboard.compare_each_with_best_before(
            *answer_arrays(until),
            item_groups=until[SECOND_SAMPLE].to_numpy(),
            new=new,
            earlier=earlier,
            was_better=[one["is_better"] for one in found],
            alpha=ALPHA,
            rounds=of_rows if len(set(of_rows.tolist())) > 1 else None,
            items_sampled=is_new_prompts,
        )
        found += [
            {
                "submission": one,
                "round": number,
                "alpha": estimate.settings["alpha"],
                "is_better": bool(estimate.detail.get("is_better", False)),
                "best_before": None if estimate.detail.get("best") is None else int(estimate.detail["best"]),
                "estimate": estimate.estimate,
                "low": estimate.interval.low if estimate.interval else None,
                "high": estimate.interval.high if estimate.interval else None,
                "pvalue": estimate.pvalue,
                "status": estimate.status,
                "reason": estimate.reason,
                "n": estimate.n,
                "unit": estimate.unit,
                "population": population_of(estimate),
            }
            for one, estimate in zip(new, estimates, strict=True)
        ]
    return found


def audit_of_scores(
    rows: "DataFrame", is_new_prompts: bool, rng: "np.random.Generator", samples: Samples | None = None
) -> list[dict[str, Any]]:
    """Return the probes of a board of scores, each with its verdict, its number and its limit."""
    from analysis.stats import board_audit

    if rows.empty:
        return []
    rows, sample_of_row = count_in_samples(rows, samples)
    positions = rows["is_first"]
    probes = board_audit.audit_scores(
        *answer_arrays(rows),
        item_groups=rows[SECOND_SAMPLE].to_numpy(),
        rng=rng,
        positions=positions.astype(float).to_numpy() if positions.notna().all() else None,
        rounds=rows["round"].to_numpy() if rows["round"].nunique() > 1 else None,
        samples=sample_of_row,
        alpha=ALPHA,
        items_sampled=is_new_prompts,
        resamples=RESAMPLES,
    )
    return [probe_fields(probe) for probe in probes]


def probe_fields(probe: Any) -> dict[str, Any]:
    """Return the fields of a probe that pages show."""
    estimate = probe.estimate
    return {
        "name": probe.name,
        "fires": bool(probe.fires),
        "limit": float(probe.limit),
        "estimate": estimate.estimate,
        "pvalue": estimate.pvalue,
        "estimand": estimate.estimand,
        "status": estimate.status,
        "reason": estimate.reason,
        "unit": estimate.unit,
        "n": estimate.n,
        "population": population_of(estimate),
    }


def sensitivity_of_first_place(rows: "DataFrame", samples: Samples | None = None) -> dict[str, Any] | None:
    """Return how few answers, and how few people, decide the first place; None with one system.

    After a renewal it is about prompts that all samples have: elsewhere the systems have answered different prompts.
    """
    from analysis.stats import first_place

    rows = _on_common_prompts(rows, samples)
    if rows.empty or rows["system"].nunique() < 2:
        return None
    return sensitivity_fields(first_place.first_place_sensitivity(*answer_arrays(rows)))


def sensitivity_fields(found: Any, systems: Sequence[int] | None = None) -> dict[str, Any]:
    """Return how few answers and people decide a first place. ``systems``: the submissions, if ``found`` numbers them from 0."""

    def number_of(system: Any) -> int | None:
        if system is None:
            return None
        return int(system) if systems is None else systems[int(system)]

    return {
        "first": number_of(found.first),
        **{
            name: {
                "unit": removal.unit,
                "n": removal.n,
                "total": removal.total,
                "share": removal.share,
                "is_confirmed": removal.is_confirmed,
                "challenger": number_of(removal.challenger),
                "status": removal.status,
                "reason": removal.reason,
            }
            for name, removal in (("answers", found.answers), ("people", found.people))
        },
    }


def effects_of_days(rows: "DataFrame", rng: "np.random.Generator", samples: Samples | None = None) -> dict[str, Any]:
    """Return how answers about the same systems differ between days, and between weekdays, each with a joint test.

    After a renewal they are those on prompts that all samples have, because days differ in the others.
    """
    from analysis.stats import board_rounds

    rows = _on_common_prompts(rows, samples)
    known = rows[rows["day"].notna()]
    found: dict[str, Any] = {}
    for name, labels in (("day", known["day"].astype(str)), ("weekday", known["day"].map(_weekday))):
        if labels.nunique() < 2:
            continue
        values, systems, prompts, people = answer_arrays(known)
        estimates, joint = board_rounds.day_effects(
            values, systems, prompts, people, labels.to_numpy(), rng=rng, resamples=RESAMPLES
        )
        found[name] = {
            "pvalue": joint.pvalue,
            "status": joint.status,
            "reason": joint.reason,
            "unit": joint.unit,
            "n": joint.n,
            "population": population_of(joint),
            "effects": [
                {
                    "name": label,
                    "estimate": one.estimate,
                    "low": one.interval.low if one.interval else None,
                    "high": one.interval.high if one.interval else None,
                    "status": one.status,
                    "reason": one.reason,
                    "population": population_of(one),
                }
                for label, one in zip(sorted(labels.unique().tolist()), estimates, strict=True)
            ],
        }
    return found


def _weekday(day: str) -> str:
    """Return a weekday with its number, so that weekdays sort by their order.

    >>> _weekday("2026-11-27")
    '5 Friday'
    """
    return date.fromisoformat(day).strftime("%u %A")
