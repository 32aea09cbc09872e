"""How large a preference is beside its probability: by hand, and a whole study that robots play."""

import random

import numpy as np
import pytest
from scipy import stats

from analysis.data.export_codebook import build_export_codebook
from analysis.data.flat_rows import Selection
from analysis.protocols.spa import SPAScorer
from analysis.report.build import build_report
from analysis.stats import spa
from annotators.models import PageVisit, Response
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from studies.design.checklist import find_design_problems
from studies.models import Study
from studies.services.questions import SIZE_SCALE, add_missing_questions, select_system_pairs
from tests.analysis.api.rest import api_of
from tests.analysis.data.exported import export, json_rows
from tests.analysis.protocols.analysed import analysed, block
from tests.analysis.protocols.stated import frame_of
from tests.builders import add_spa, draft_study, launched, spa_draft, user

pytestmark = pytest.mark.django_db

SIZE_TEXT = "How much better is writer {x} than writer {y}?"
CHANCES = [70, 80, 65, 30, 50, 90, 60, 55]
SIZES = [1, 2, 0, -1, 0, 3, -2, 1]


def ask_for_sizes(section, **options):
    pairs = select_system_pairs(section, "planned")
    add_missing_questions(section, pairs, "Is {x} better than {y}?", by=None, size_text=SIZE_TEXT, **options)
    section.refresh_from_db()
    return section


def with_sizes(section, sizes, *, is_reversed=False):
    """Rows as the frame has them: a size has the key of its question, and names no systems."""
    key = section.questions.get(
        scale=SIZE_SCALE, x__name="alpha" if is_reversed else "beta", y__name="beta" if is_reversed else "alpha"
    ).key
    percents = [None if size is None else 100 * (size + 3) / 6 for size in sizes]
    answers = [(n, None, None, percent) for n, percent in enumerate(percents) if percent is not None]
    return frame_of(section, answers, question=key)


def sizes_of(section, *frames):
    import pandas as pd

    chances = frame_of(
        section, [(n, "beta", "alpha", chance) for n, chance in enumerate(CHANCES)], question="beta-alpha"
    )
    return block(analysed("spa", pd.concat([chances, *frames]), [section]), "spa.sizes")


@pytest.fixture
def section():
    return ask_for_sizes(add_spa(draft_study(systems=("alpha", "beta")), m=4))


def test_a_size_is_the_mean_over_annotators_and_stands_beside_the_chance(section):
    found = sizes_of(section, with_sizes(section, SIZES))
    size, agreement = found.estimates
    # The interval is that of stated chances, on another scale.
    as_chances = [100 * (size + 3) / 6 for size in SIZES]
    of_chance = spa.pair_preferences_recommended(
        np.reshape(as_chances, (-1, 1)),
        np.full((8, 1), np.nan),
        pair_names=["a"],
        batches=np.arange(8),
        rng=np.random.default_rng(0),
    )["a"].interval
    assert (size.estimate, size.n, size.unit, size.test) == (pytest.approx(np.mean(SIZES)), 8, "annotator", None)
    assert (size.interval.low, size.interval.high) == pytest.approx((6 * of_chance.low - 3, 6 * of_chance.high - 3))
    # 65 with 0 has one answer in the middle, 60 with -2 are opposite, 50 with 0 both favour neither.
    assert (agreement.estimate, agreement.n) == (6 / 8, 8)
    assert (agreement.detail["opposite"], agreement.detail["one_neutral"]) == (1, 1)
    assert agreement.detail["correlation"] == pytest.approx(stats.spearmanr(CHANCES, SIZES).statistic)
    (row,) = found.tables[0]["rows"]
    assert row["chance"] == pytest.approx(np.mean(CHANCES) / 100) and row["estimate"] == size.estimate
    assert row["same"] == 6 / 8 and row["n"] == row["n_both"] == 8


def test_both_directions_are_combined_and_a_missing_one_is_left_out(section):
    turned = [-size for size in SIZES[:-2]] + [None, None]
    more = with_sizes(section, turned, is_reversed=True)
    assert sizes_of(section, with_sizes(section, SIZES), more).estimates[0].estimate == pytest.approx(np.mean(SIZES))
    more = with_sizes(section, [size + 1 if size < 3 else size for size in turned[:6]], is_reversed=True)
    combined = [(SIZES[n] + SIZES[n] - (1 if -SIZES[n] < 3 else 0)) / 2 for n in range(6)] + SIZES[6:]
    assert sizes_of(section, with_sizes(section, SIZES), more).estimates[0].estimate == pytest.approx(np.mean(combined))


def test_nobody_who_answered_is_null_with_a_reason(section):
    size, agreement = sizes_of(section, with_sizes(section, [None] * 8)).estimates
    assert (size.estimate, size.status, size.n) == (None, "no_data", 0) and size.reason
    assert (agreement.estimate, agreement.detail.get("correlation")) == (None, None)


def test_a_board_refuses_sizes_and_prompts_of_their_own(section):
    shared = {"prompts": "shared"}
    assert "Delete the questions" in SPAScorer().find_problem(section, shared)
    section.questions.filter(scale=SIZE_SCALE).delete()
    assert SPAScorer().find_problem(section, shared) == ""
    assert "the same prompts" in SPAScorer().find_problem(section, {"prompts": "own"})


def test_the_checklist_wants_a_chance_beside_each_size_and_one_scale(section):
    def blocking():
        return [one.text for one in find_design_problems(section.study) if one.is_blocking]

    assert blocking() == []
    size = section.questions.filter(scale=SIZE_SCALE).first()
    section.questions.filter(pk=size.pk).update(scale=SIZE_SCALE | {"maximum": 4, "minimum": -4})
    assert any("need the same scale" in one for one in blocking())
    section.questions.filter(pk=size.pk).update(scale=SIZE_SCALE | {"minimum": 1})
    assert any("points or numbers such as" in one for one in blocking())
    section.questions.filter(pk=size.pk).update(scale=SIZE_SCALE, criterion="plot")
    assert any("no question asks for the chance" in one for one in blocking())


def test_a_whole_study_asks_exports_and_reports_both(same_orders):
    draft = spa_draft(owner=user(), systems=("alpha", "beta"), with_rating=False, with_surveys=False, target_n=24)
    section = ask_for_sizes(draft.sections.get())
    assert ask_for_sizes(section).questions.count() == 4, "each question is written once"
    of_draft = api_of(draft.owner).get(f"studies/{draft.code}/design/").json()["canonical"]
    assert "size-beta-alpha" in of_draft and SIZE_TEXT in of_draft
    study = launched(draft)
    crowd = CrowdSettings(screened_out=0, acquiescent=0)
    record_simulated_answers(study, 24, {"alpha": 0.0, "beta": 1.5}, random.Random(1), crowd=crowd)
    # Each size is asked right behind the chance in its direction, on one page.
    asked = Response.objects.filter(assignment__study=study).order_by("assignment", "position")
    keys = list(asked.values_list("question__key", flat=True))
    assert len(keys) == 24 * 4
    assert set(PageVisit.objects.values_list("key", flat=True)) == {"start", "s1.read", "s1.ask"}
    assert all(size == f"size-{chance}" for chance, size in zip(keys[::2], keys[1::2], strict=True))
    result = build_report(Study.objects.get(pk=study.pk), {"origins": ["robot"], "resamples": 99})
    (table,) = [one for one in result["tables"] if one["name"] == "sizes"]
    (row,) = table["rows"]
    values = asked.filter(question__scale=SIZE_SCALE).values_list("question__x__name", "value")
    assert row["estimate"] == pytest.approx(np.mean([float(v) * (1 if x == "beta" else -1) for x, v in values]))
    assert row["estimate"] > 0.5 and row["chance"] > 0.6 and row["same"] > 0.7 and row["n"] == 24
    # The chances alone are tested, ranked and checked by tau.
    (pairs,) = [one for one in result["blocks"] if one["name"] == "spa.pairs" and one["mode"] == "recommended"]
    assert [(one["n"], one["n_rows"]) for one in pairs["estimates"]] == [(24, 48)]
    exported = json_rows(export("responses", "jsonl", Selection(study, origins=("robot",))))
    sizes = [one for one in exported if one["question"].startswith("size-")]
    assert len(sizes) == 48 and {(one["x"], one["y"]) for one in sizes} == {("alpha", "beta"), ("beta", "alpha")}
    described = {one["question"]: one["scale"] for one in build_export_codebook(study)["questions"]}
    assert (
        described["size-beta-alpha"]["minimum"] == -3 and described["size-beta-alpha"]["points"]["3"] == "much better"
    )
