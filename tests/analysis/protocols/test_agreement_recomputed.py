"""Agreement about two choices and what the labels cost, computed once more from the exported table."""

import io
import math
import random

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.inter_rater import fleiss_kappa

from analysis.data.exports import csv_blocks
from analysis.data.flat_rows import Selection
from analysis.report.build import build_report
from annotators.places import monitor
from annotators.places.exclusions import exclude_assignments
from studies.models import Study
from studies.protocols.base.fields import TIE
from studies.services import lifecycle
from tests.annotators.places.claiming import outcome
from tests.builders import choice_study, user
from tests.players import MAX_THREE, choosing

DELTA = 0.03
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]


@pytest.fixture
def study():
    """Coins are thrown: two labels an item, and a third where they differ."""
    study = choice_study(prompts=24, m=4, target_n=12, **MAX_THREE)
    rng = random.Random(5)
    for n in range(12):
        choosing(study, f"p{n}", lambda item: rng.choice(["alpha", "beta"]))
    monitor.settle_or_top_up_study_items(study)
    n = 100
    while outcome(study, f"look {n}") == "claimed" and n < 112:
        choosing(study, f"look {n}", lambda item: rng.choice(["alpha", "beta"]))
        monitor.settle_or_top_up_study_items(study)
        n += 1
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return Study.objects.get(pk=study.pk)


@pytest.mark.slow
def test_third_labels_do_not_make_people_agree(study):
    rows = pd.read_csv(io.BytesIO(b"".join(csv_blocks("responses", Selection(study)))), keep_default_na=False)
    rows = rows[rows["is_submitted"] == 1].sort_values(["received_at", "slot"], kind="stable")
    rows["place"] = rows.groupby("item").cumcount()
    disputed = (rows[rows["place"] < 2].groupby("item")["chosen_system"].nunique() == 2).sum()
    assert 5 < disputed < 20 and (rows["place"] == 2).sum() == disputed
    first = rows[rows["place"] < 2]
    report = build_report(study, {"resamples": 9999})
    found = {e["estimand"]: e for b in report["blocks"] if b["name"] == "choice.agreement" for e in b["estimates"]}
    for words, column, key in (
        ("by system", "chosen_system", "observed_by_system"),
        ("by side of the screen", "label", "observed_by_side"),
    ):
        counts = first.groupby(["item", column]).size().unstack(fill_value=0)
        kappa = found[f"Fleiss' kappa {words}"]
        observed = ((counts**2).sum(axis=1) - 2).mean() / 2
        assert kappa["detail"][key] == pytest.approx(observed)
        assert kappa["estimate"] == pytest.approx(fleiss_kappa(counts.to_numpy()))
        share = counts.to_numpy().mean(axis=0) / 2
        by_chance = (share * (1 - share)).sum()
        assert found[f"Gwet's AC1 {words}"]["estimate"] == pytest.approx((observed - by_chance) / (1 - by_chance))
        drawn = np.random.default_rng(0)
        resampled = [fleiss_kappa(counts.to_numpy()[drawn.integers(0, len(counts), len(counts))]) for _ in range(9999)]
        low, high = np.quantile(resampled, [0.025, 0.975])
        assert (kappa["interval"]["low"], kappa["interval"]["high"]) == pytest.approx((low, high), abs=0.06)
    efforts = {e["analysis"]: e for b in report["blocks"] if b["name"] == "choice.effort" for e in b["estimates"]}
    paid = efforts["choice.effort.labels"]
    assert paid["detail"]["labels"] == len(rows) == 48 + disputed and paid["estimate"] == pytest.approx(len(rows) / 24)
    assert paid["detail"]["items_open"] == 0 and paid["detail"]["items_answered"] == 24


@pytest.fixture
def labelled():
    """Mostly three labels an item, in some more, and ties among them; somebody leaves one person out."""
    study = choice_study(
        prompts=48,
        m=6,
        target_n=27,
        annotators_per_batch=3,
        settings={"strategy": "any", "stopping": "none", "allows_tie": True, "delta": DELTA},
    )
    rng = random.Random(8)
    for n in range(27):
        made = choosing(study, f"p{n}", lambda item: rng.choice(["beta"] * 13 + ["alpha"] * 7 + [TIE]))
    exclude_assignments([made], "technical", user("administrator", is_superuser=True))
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return Study.objects.get(pk=study.pk)


def evaluation(items, workers, reading, delta, rng):
    """One evaluation after the paper's sections 4 and 5.5: (labels paid, which side was decided for, 0 where none was).

    Of each item as many labels as the strategy asks for, without replacement; "stays": the last time that the bound is
    crossed for good, which only the end tells.
    """
    sums, paid, sides, costs = 0, 0, [], []
    for n, labels in enumerate(items, 1):
        if workers == "max three":
            first, second, third = rng.sample(labels, 3)
            answer, cost = (first, 2) if first == second else (third, 3)
        else:
            answer, cost = int(sum(rng.sample(labels, workers)) > workers / 2), workers
        sums, paid = sums + answer, paid + cost
        t = math.sqrt(-math.log(delta) / (2 * n))
        sides.append(1 if sums / n - t > 0.5 else -1 if sums / n + t < 0.5 else 0)
        costs.append(paid)
    if reading == "first":
        where = next((n for n, side in enumerate(sides) if side), None)
    else:
        changed = max((n for n, side in enumerate(sides) if side != sides[-1]), default=-1)
        where = changed + 1 if sides[-1] else None
    return (paid, 0) if where is None else (costs[where], sides[where])


@pytest.mark.slow
def test_what_each_strategy_would_have_paid(labelled):
    rows = pd.read_csv(io.BytesIO(b"".join(csv_blocks("responses", Selection(labelled)))), keep_default_na=False)
    rows = rows[(rows["is_submitted"] == 1) & (rows["exclusion"] == "") & (rows["chosen_system"] != "")]
    rows["number"] = rows["item"].str.rpartition(".")[2].astype(int)
    labels = [(mine == "beta").astype(int).tolist() for _, mine in rows.groupby("number")["chosen_system"]]
    report = build_report(labelled, {"resamples": 99})
    (table,) = [table for table in report["tables"] if table["name"] == "choice_replays"]
    told = {row["strategy"]: row for row in table["rows"]}
    assert {"one worker", "max three workers", "3 workers"} == set(told)
    found = {
        (e["settings"]["system"], e["settings"]["reading"]): e
        for b in report["blocks"]
        if b["name"] == "choice.replay"
        for e in b["estimates"]
    }
    # On the same items: with seven labels or five there are too few, and all the others have three.
    items = [mine for mine in labels if len(mine) >= 3]
    assert len(items) < len(labels)
    rng, runs = random.Random(1), 800
    for words, workers in (("one worker", 1), ("max three workers", "max three"), ("3 workers", 3)):
        assert told[words]["items"] == len(items)
        for reading in ("first", "stays"):
            estimate = found[words, reading]
            made = [evaluation(items, workers, reading, DELTA, rng) for _ in range(runs)]
            decided = np.array([side != 0 for _, side in made])
            paid = np.array([cost for cost, side in made if side or reading == "first"])
            # Of a thousand runs and of these: five standard errors of the difference of their means.
            few = 5 * (1 / 1000 + 1 / runs) ** 0.5
            assert 0.2 < decided.mean() < 0.5 or workers != 1
            assert estimate["detail"]["share_decided"] == pytest.approx(decided.mean(), abs=few * decided.std() + 0.01)
            room = few * paid.std() / (1 if reading == "first" else decided.mean() ** 0.5)
            assert estimate["estimate"] == pytest.approx(paid.mean(), abs=room), (words, reading)
            assert (estimate["n_rows"], estimate["interval"]["level"]) == (1000, 0.99)
            assert estimate["n"] == (1000 if reading == "first" else round(1000 * estimate["detail"]["share_decided"]))
            # The interval of a mean: its width varies with the spread of the runs, and with a thousand resamples.
            width = estimate["interval"]["high"] - estimate["interval"]["low"]
            varies = (stats.kurtosis(paid) + 2) / 4 * (1 / estimate["n"] + 1 / len(paid)) + 0.042**2
            expected = 2 * stats.norm.ppf(0.995) * paid.std() / estimate["n"] ** 0.5
            assert width == pytest.approx(expected, rel=5 * varies**0.5)
