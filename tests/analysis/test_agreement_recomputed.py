"""Agreement about two choices and what the labels cost, computed once more from the exported table."""

import io
import random

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa

from analysis.exports import csv_blocks
from analysis.flat import Selection
from analysis.report import build_report
from annotators import settle
from studies import lifecycle
from studies.models import Study
from tests.annotators.test_settle import MAX_THREE, choosing, outcome
from tests.builders import choice_study

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]


@pytest.fixture
def study():
    """Coins are thrown: two labels an item, and a third where they differ."""
    study = choice_study(prompts=24, m=4, target_n=12, **MAX_THREE)
    rng = random.Random(5)
    for n in range(12):
        choosing(study, f"p{n}", lambda item: rng.choice(["alpha", "beta"]))
    settle.settle(study)
    n = 100
    while outcome(study, f"look {n}") == "claimed" and n < 112:
        choosing(study, f"look {n}", lambda item: rng.choice(["alpha", "beta"]))
        settle.settle(study)
        n += 1
    lifecycle.close(Study.objects.get(pk=study.pk))
    lifecycle.finish(Study.objects.get(pk=study.pk))
    return Study.objects.get(pk=study.pk)


def test_third_labels_do_not_make_people_agree(study):
    rows = pd.read_csv(io.BytesIO(b"".join(csv_blocks("responses", Selection(study)))), keep_default_na=False)
    rows = rows[rows["is_submitted"] == 1].sort_values(["received_at", "slot"], kind="stable")
    rows["place"] = rows.groupby("item").cumcount()
    disputed = (rows[rows["place"] < 2].groupby("item")["chosen_system"].nunique() == 2).sum()
    assert 5 < disputed < 20 and (rows["place"] == 2).sum() == disputed
    first = rows[rows["place"] < 2]
    report = build_report(study, {"resamples": 999})
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
        resampled = [fleiss_kappa(counts.to_numpy()[drawn.integers(0, len(counts), len(counts))]) for _ in range(999)]
        low, high = np.quantile(resampled, [0.025, 0.975])
        assert (kappa["interval"]["low"], kappa["interval"]["high"]) == pytest.approx((low, high), abs=0.06)
    efforts = {e["analysis"]: e for b in report["blocks"] if b["name"] == "choice.effort" for e in b["estimates"]}
    paid = efforts["choice.effort.labels"]
    assert paid["detail"]["labels"] == len(rows) == 48 + disputed and paid["estimate"] == pytest.approx(len(rows) / 24)
    assert paid["detail"]["items_open"] == 0 and paid["detail"]["items_answered"] == 24
