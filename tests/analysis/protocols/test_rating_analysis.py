"""The analysis of ratings against hand-computed numbers."""

import pandas as pd
import pytest

from analysis.protocols.blocks import sentences
from studies.design import checklist
from studies.models import Contrast, System
from tests.analysis.protocols.analysed import analysed
from tests.builders import add_rating, draft_study, warnings_of

pytestmark = pytest.mark.django_db

RATINGS = {"alpha": [3, 2, 2, 4, 1, 3, 2, 5], "beta": [4, 2, 3, 5, 3, 3, 1, 5]}


@pytest.fixture
def section():
    study = draft_study(systems=("alpha", "beta"))
    one = add_rating(study, position=1)
    systems = {system.name: system for system in study.systems.all()}
    Contrast.objects.create(study=study, x=systems["beta"], y=systems["alpha"], expected=">")
    return one


def frame_of(section, ratings=RATINGS, prompts=1, **columns):
    rows = [
        {
            "assignment": person,
            "annotator": f"a{person}",
            "section": section.position,
            "question": "overall",
            "system": system,
            "prompt": f"p{prompt if prompts > 1 else person}",
            "sample": 0,
            "label": "ABCD"[place],
            "value": (value - 1) / 4,
            "is_kept": True,
            "is_kept_paper": True,
            **columns,
        }
        for place, (system, values) in enumerate(ratings.items())
        for person, value in enumerate(values)
        for prompt in range(prompts)
    ]
    frame = pd.DataFrame(rows)
    return frame


def rows_of(blocks, *names):
    return [row for block in blocks for table in block.tables if table["name"] in names for row in table["rows"]]


def one(blocks, name, mode="recommended"):
    return next(block for block in blocks if block.name == name and block.mode == mode).estimates[0]


def test_the_papers_difference_and_its_safe_companions(section):
    blocks = analysed("rating", frame_of(section), [section])
    differences = [x - y for x, y in zip(RATINGS["beta"], RATINGS["alpha"], strict=True)]
    paper = one(blocks, "rating.difference", "paper")
    assert paper.estimate == pytest.approx(sum(differences) / 8) and paper.n == 8
    above = one(blocks, "rating.superiority")
    assert above.estimate == pytest.approx(sum(1 if d > 0 else 0.5 if d == 0 else 0 for d in differences) / 8)
    names = [other.analysis for other in above.sensitivity]
    assert {"rating.sign_test", "rating.wilcoxon", "rating.cumulative_logit"} <= set(names)
    guard = one(blocks, "rating.difference").detail["reversal_guard"]
    assert guard["is_reversal_possible"] and guard["low"] == pytest.approx(paper.estimate - 1)
    assert above.settings["key"] == "superiority" and paper.settings["key"] == "difference"
    assert above.test.family_size == paper.test.family_size == 1


def test_a_margin_is_on_the_scale_of_the_estimand_that_its_comparison_names(section):
    # Of twenty annotators one in four rates beta a point higher, one in four a point lower.
    ratings = {"alpha": [3] * 20, "beta": [4, 2, 3, 3] * 5}
    contrasts = Contrast.objects.filter(study=section.study)
    contrasts.update(margin=0.45, expected="~", estimand="difference")
    blocks = analysed("rating", frame_of(section, ratings), [section])
    above, apart = one(blocks, "rating.superiority"), one(blocks, "rating.difference")
    tost = next(each for each in apart.sensitivity if each.analysis == "rating.mean_difference.equivalence")
    assert (tost.detail["low_bound"], tost.detail["high_bound"]) == (-0.45, 0.45) and tost.interval.high < 0.45
    assert apart.detail["verdict"] == "equivalent" and above.detail["verdict"] is None
    assert above.settings["contrast"]["margin"] is None and apart.settings["contrast"]["margin"] == 0.45
    said = {each["claim"]: each["recovered"] for each in sentences.build_conclusion_sentences(blocks)}
    assert said["beta and alpha have equivalent mean ratings within ±0.45, for prompts like these."] == "recovered"
    # Beside it one of superiority, whose margin is a share: each keeps its own.
    x, y = (System.objects.get(study=section.study, name=name) for name in ("beta", "alpha"))
    Contrast.objects.create(study=section.study, x=x, y=y, estimand="superiority", margin=0.2)
    blocks = analysed("rating", frame_of(section, ratings), [section])
    margins = [one(blocks, name).settings["contrast"]["margin"] for name in ("rating.superiority", "rating.difference")]
    assert margins == [0.2, 0.45]
    tost = next(
        each
        for each in one(blocks, "rating.superiority").sensitivity
        if each.analysis == "rating.superiority.equivalence"
    )
    assert tost.detail["high_bound"] == 0.7


def test_the_same_in_standard_deviations_of_each_annotators_own_ratings(section):
    frame = frame_of(section, prompts=6)
    generous = frame["annotator"] == "a3"
    frame.loc[generous, "value"] = frame.loc[generous, "value"] / 4 + 0.75  # somebody who uses a fourth of the scale
    apart = one(analysed("rating", frame, [section]), "rating.difference")
    z = next(other for other in apart.sensitivity if other.analysis == "rating.mean_difference.z")
    # Six ratings each of two systems: all equal for the three who gave both the same, whose scale is then unknown.
    assert z.n == 5 and z.n_rows == 30
    d = (12 / 11) ** -0.5 * 2  # x and y one standard deviation of 12 values above and below their mean
    assert z.estimate == pytest.approx((4 * d - d) / 5)
    few = one(analysed("rating", frame_of(section, prompts=4), [section]), "rating.difference")
    assert "rating.mean_difference.z" not in [other.analysis for other in few.sensitivity]


def test_ranks_come_with_all_that_they_may_be(section):
    ratings = {"alpha": [1, 2, 1, 2, 1, 2, 1, 2], "beta": [4, 5, 5, 4, 5, 4, 4, 5]}
    (block,) = [b for b in analysed("rating", frame_of(section, ratings), [section]) if b.name == "rating.means"]
    ranks = block.other_results["ranks"]
    assert ranks["systems"] == ["alpha", "beta"] and ranks["ranks"] == ranks["low"] == ranks["high"] == [2, 1]
    (close,) = [b for b in analysed("rating", frame_of(section), [section]) if b.name == "rating.means"]
    assert close.other_results["ranks"]["low"] == [1, 1] and close.other_results["ranks"]["high"] == [2, 2]
    rows = rows_of([block], "means")
    assert [(row["system"], row["rank"], row["highest"], row["lowest"]) for row in rows] == [
        ("beta", 1, 1, 1),
        ("alpha", 2, 2, 2),
    ]


def test_superiority_does_not_depend_on_the_distances_of_the_points(section):
    stretched = {1: 1, 2: 1.5, 3: 4.5, 4: 4.6, 5: 5}
    ratings = {system: [stretched[value] for value in values] for system, values in RATINGS.items()}
    before, after = (
        one(analysed("rating", frame_of(section, given), [section]), "rating.superiority")
        for given in (RATINGS, ratings)
    )
    assert before.estimate == after.estimate and before.pvalue == after.pvalue


def test_a_system_that_somebody_did_not_rate_drops_that_pair(section):
    frame = frame_of(section)
    frame.loc[(frame["system"] == "alpha") & (frame["annotator"] == "a0"), "value"] = float("nan")
    blocks = analysed("rating", frame, [section])
    assert one(blocks, "rating.difference", "paper").n == 7


def test_several_prompts_keep_the_annotator_as_the_unit(section):
    blocks = analysed("rating", frame_of(section, prompts=3), [section])
    assert one(blocks, "rating.difference", "paper").n == 8
    above = one(blocks, "rating.superiority")
    assert above.n == 8 and above.n_rows == 24
    # Three prompts are no sample of prompts.
    assert (above.settings["population"], above.detail["n_prompts"]) == ("people", 3)
    checks = next(block for block in blocks if block.name == "rating.checks").estimates
    assert {"krippendorff_alpha", "split_half_reliability", "rating.position_effect"} == {e.analysis for e in checks}


def test_means_weigh_every_annotator_the_same_and_are_not_called_utilities(section):
    blocks = analysed("rating", frame_of(section), [section])
    means = {e.settings["system"]: e for e in next(b for b in blocks if b.name == "rating.means").estimates}
    assert means["alpha"].estimate == pytest.approx(sum(RATINGS["alpha"]) / 8)
    assert means["alpha"].estimand == "mean rating (not EEU)" and means["alpha"].test is None


@pytest.mark.parametrize("people", [0, 1])
def test_hardly_anybody_is_no_error(section, people):
    frame = frame_of(section)
    frame = frame[frame["assignment"] < people]
    blocks = analysed("rating", frame, [section])
    assert one(blocks, "rating.superiority").test is None
    assert one(blocks, "rating.superiority").status in ("no_data", "n_lt_2")


def test_all_equal_ratings_are_a_tie(section):
    blocks = analysed("rating", frame_of(section, {"alpha": [3] * 8, "beta": [3] * 8}), [section])
    above = one(blocks, "rating.superiority")
    assert above.estimate == 0.5 and above.test.name == "independent_units_betting" and above.pvalue == 1.0
    assert above.interval.method == "betting" and 0 < above.interval.low < 0.5 < above.interval.high < 1


def test_points_may_be_scored_as_parts_of_the_scale(section):
    section.settings["scores"] = "unit"
    blocks = analysed("rating", frame_of(section), [section])
    points = one(
        analysed("rating", frame_of(section), [add_rating(draft_of(section), position=1)]), "rating.difference", "paper"
    )
    unit = one(blocks, "rating.difference", "paper")
    assert unit.estimate == pytest.approx(points.estimate / 4) and unit.test.pvalue == pytest.approx(points.test.pvalue)
    # Five points are .25 apart: a difference beyond that cannot have been turned by rounding.
    guard = one(blocks, "rating.difference").detail["reversal_guard"]
    assert guard["high"] == pytest.approx(unit.estimate + 0.25)
    rows = rows_of(blocks, "ratings", "means")
    assert {row["scored"] for row in rows} == {"points, 0 to 1"}
    means = {e.settings["system"]: e for e in next(b for b in blocks if b.name == "rating.means").estimates}
    assert means["alpha"].estimate == pytest.approx((sum(RATINGS["alpha"]) / 8 - 1) / 4)
    assert means["alpha"].settings["question"] == "overall (0 to 1)"


def draft_of(section):
    study = draft_study(systems=("alpha", "beta"))
    systems = {system.name: system for system in study.systems.all()}
    Contrast.objects.create(study=study, x=systems["beta"], y=systems["alpha"], expected=">")
    return study


PLANTED = {**RATINGS, "best": [5, 5, 5, 5, 5, 5, 1, 5], "worst": [1, 1, 1, 1, 1, 1, 3, 5]}


def test_an_annotator_who_reverses_the_references_has_no_utilities(section):
    for name, reference in (("best", "maximal"), ("worst", "minimal")):
        System.objects.create(study=section.study, name=name, reference=reference)
    blocks = analysed("rating", frame_of(section, PLANTED), [section])
    utility = next(block for block in blocks if block.name == "rating.utility")
    alpha, beta = utility.estimates
    assert (alpha.settings["system"], beta.settings["system"]) == ("alpha", "beta") and alpha.n == 6
    assert alpha.estimate == pytest.approx(sum((r - 1) / 4 for r in RATINGS["alpha"][:6]) / 6)
    assert alpha.estimand == "expected expected utility (EEU)"
    (row,) = next(table for table in utility.tables if table["name"] == "references")["rows"]
    # Seven and eight: one turned them round, one kept them at the same point.
    assert (row["n"], row["kept"], row["extremum_violation"], row["who"]) == (8, 6, 2, "a6, a7")
    assert "extremum_violation" in {warning.code for warning in alpha.warnings}
    means = next(block for block in blocks if block.name == "rating.means")
    assert {e.estimand for e in means.estimates} == {"mean rating (not EEU)"}
    assert not means.estimates[0].has_warning("no_references")
    assert means.other_results["ranks"]["systems"] == ["alpha", "beta"]


def test_missing_references_are_named_in_the_checklist(section):
    study, x, y = section.study, *section.study.systems.order_by("-name")
    x.reference = "maximal"
    x.save()
    Contrast.objects.create(study=study, x=x, y=y, estimand="utility")
    assert "one_end:1" in warnings_of(study)
    blocking = [problem.text for problem in checklist.find_design_problems(study) if problem.is_blocking]
    assert any("need a maximal and a minimal reference" in text for text in blocking)
    System.objects.create(study=study, name="worst", reference="minimal")
    assert "ends_on_points:1" in warnings_of(study)
    assert not any("need a maximal" in problem.text for problem in checklist.find_design_problems(study))
