"""What more exposure changes, computed once more from the exported table."""

import io
from itertools import pairwise

import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.data.exports import csv_blocks
from analysis.data.flat_rows import Selection
from analysis.report.build import build_report
from studies.models import Study
from studies.services import lifecycle
from tests.builders import exposures_draft, launched
from tests.players import play

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]


@pytest.mark.slow
def test_the_same_comparison_after_more_and_more(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    study = launched(exposures_draft(tmp_path, target_n=12))
    for n in range(12):
        play(study, n, strengths={"raw": 0.8, "scrambled": 0.0})
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    report = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
    assert not report["problems"]
    data = b"".join(csv_blocks("responses", Selection(study)))
    rows = pd.read_csv(io.BytesIO(data), keep_default_na=False)
    rows = rows[(rows["x"] != "") & (rows["is_submitted"] == 1)].assign(value=lambda t: pd.to_numeric(t["value"]) / 100)
    rows["m"] = rows["section"].map({1: 1, 2: 2, 3: 4, 4: 8})
    by_order = rows.pivot_table(index="annotator", columns=["m", "x"], values="value")
    both = pd.DataFrame({m: (by_order[m, "raw"] + 1 - by_order[m, "scrambled"]) / 2 for m in (1, 2, 4, 8)})
    blocks = {block["name"]: block["estimates"] for block in report["blocks"]}
    levels = {e["settings"]["m"]: e for e in blocks["spa.exposure_levels"]}
    assert list(levels) == list(both.columns) and (levels[1]["settings"]["x"], levels[1]["n"]) == ("raw", 12)

    def holm(pvalues):
        return multipletests(pvalues, method="holm")[1]

    raw = [stats.ttest_1samp(both[m], 0.5).pvalue for m in both]
    for m, p, adjusted in zip(both, raw, holm(raw), strict=True):
        assert levels[m]["estimate"] == pytest.approx(both[m].mean())
        assert (levels[m]["test"]["pvalue"], levels[m]["test"]["pvalue_adjusted"]) == pytest.approx((p, adjusted))
        assert levels[m]["detail"]["conviction"] == pytest.approx(abs(both[m].mean() - 0.5))
    for order, system in (("xy", "raw"), ("yx", "scrambled")):
        told = holm([stats.ttest_1samp(by_order[m, system], 0.5).pvalue for m in both])
        for m, adjusted in zip(both, told, strict=True):
            (mine,) = (one for one in levels[m]["sensitivity"] if one["analysis"].endswith(f".{order}"))
            assert mine["estimate"] == pytest.approx(by_order[m, system].mean())
            assert mine["test"]["pvalue_adjusted"] == pytest.approx(adjusted)
    steps = [e for e in blocks["spa.exposures"] if "m_after" in e["settings"]]
    raw = [stats.ttest_rel(both[after], both[before]).pvalue for before, after in pairwise(both)]
    for step, (before, after), p, adjusted in zip(steps, pairwise(both), raw, holm(raw), strict=True):
        assert step["estimate"] == pytest.approx((both[after] - both[before]).mean())
        assert (step["test"]["pvalue"], step["test"]["pvalue_adjusted"]) == pytest.approx((p, adjusted))
    more = [e for e in blocks["spa.exposures"] if "m_after" not in e["settings"]]
    slopes = both.apply(lambda one: stats.linregress([0, 1, 2, 3], one).slope, axis=1)
    (slope,) = (e for e in more if e["analysis"].endswith("slope"))
    assert slope["estimate"] == pytest.approx(slopes.mean())
