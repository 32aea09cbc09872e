"""SPA's analysis against hand-computed numbers: which answers go where, who is left out of what, which tests make a family."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.protocols.spa.answers import read_section_answers_by_annotator
from studies.models import Contrast, Section
from tests.analysis.protocols.analysed import analysed, block
from tests.analysis.protocols.stated import frame_of
from tests.builders import add_spa, draft_study

pytestmark = pytest.mark.django_db

XY = [70, 80, 65, 30, 55, 90]
YX = [30, 25, 45, 20, 50, 40]


@pytest.fixture
def section():
    return add_spa(draft_study(), m=4)


def both(section):
    pairs = [("beta", "alpha", n) for n in XY], [("alpha", "beta", n) for n in YX]
    return frame_of(section, [(person, *answer) for answers in pairs for person, answer in enumerate(answers)])


def test_answers_are_put_by_comparison_and_direction(section):
    answers = read_section_answers_by_annotator(both(section), section)
    assert [one.key for one in answers.comparisons] == ["beta > alpha, section 1", "gamma > beta, section 1"]
    assert answers.xy[:, 0].tolist() == XY and answers.yx[:, 0].tolist() == YX
    assert pd.isna(answers.xy[:, 1]).all()


def test_a_person_counts_once_at_their_last_batch(section):
    first = frame_of(section, [(1, "beta", "alpha", 10)])
    second = frame_of(section, [(2, "beta", "alpha", 90)], annotator="a1", ordinal=2)
    frame = pd.concat([second, first])
    assert read_section_answers_by_annotator(frame, section).xy[:, 0].tolist() == [90]


def test_the_last_batch_that_counts_is_taken(section):
    """Whoever came once too often, or was late with a second batch, stays in the analysis with the first."""
    first = frame_of(section, [(1, "beta", "alpha", 10)])
    second = frame_of(
        section, [(2, "beta", "alpha", 90)], annotator="a1", ordinal=2, is_kept=False, is_kept_paper=False
    )
    frame = pd.concat([second, first])
    assert read_section_answers_by_annotator(frame, section).xy[:, 0].tolist() == [10]
    for mode in ("recommended", "paper"):
        estimate = block(analysed("spa", frame, [section]), "spa.pairs", mode).estimates[0]
        assert (estimate.n, estimate.estimate) == (1, pytest.approx(0.1))


def test_recommended_combines_both_orders_and_the_paper_takes_one(section):
    blocks = analysed("spa", both(section), [section])
    recommended, paper = (block(blocks, "spa.pairs", mode).estimates[0] for mode in ("recommended", "paper"))
    combined = [(x + 100 - y) / 200 for x, y in zip(XY, YX, strict=True)]
    assert recommended.estimate == pytest.approx(sum(combined) / 6)
    assert paper.estimate == pytest.approx(sum(XY) / 600)
    assert recommended.settings["contrast"]["expected"] == ">" and recommended.settings["key"] == "preference"
    gap = block(blocks, "spa.order").estimates[0]
    assert gap.estimate == pytest.approx(sum(x + y - 100 for x, y in zip(XY, YX, strict=True)) / 600)


def test_each_estimate_is_made_from_those_kept_for_it(section):
    frame = both(section)
    frame.loc[frame["assignment"] == 0, "is_kept"] = False
    frame.loc[frame["assignment"].isin([0, 1]), "is_kept_paper"] = False
    frame["kept:late"] = frame["assignment"] != 0
    blocks = analysed("spa", frame, [section])
    assert block(blocks, "spa.pairs").estimates[0].n == 5 and block(blocks, "spa.pairs", "paper").estimates[0].n == 4
    change = next(e for e in block(blocks, "spa.before_after").estimates if e.settings["rule"] == "late")
    assert (change.detail["n_before"], change.detail["n_after"]) == (6, 5)
    assert change.sensitivity[0].analysis == "spa.excluded_against_kept"


def test_pairs_that_nobody_planned_are_no_part_of_the_family(section):
    Contrast.objects.filter(x__name="gamma").delete()
    blocks = analysed("spa", both(section), [section])
    planned, unplanned = block(blocks, "spa.pairs").estimates
    assert planned.test.family_size == 1 and planned.settings["contrast"]["is_planned"]
    assert unplanned.settings["contrast"]["family"] == "not planned" and unplanned.status == "no_data"


def test_the_question_asked_the_other_way_round_alone_is_turned(section):
    section.questions.filter(key="beta-alpha").delete()
    frame = frame_of(section, [(person, "alpha", "beta", percent) for person, percent in enumerate(YX)])
    paper = block(analysed("spa", frame, [section]), "spa.pairs", "paper").estimates[0]
    assert paper.estimate == pytest.approx(1 - sum(YX) / 600) and "y named first" in paper.estimand


def of_two_exposures():
    """Two sections on the same two systems, after one prompt and after two."""
    study = draft_study(systems=("alpha", "beta"))
    one = add_spa(study, position=1, m=1)
    contrast = Contrast.objects.get(study=study)
    two = Section.objects.create(study=study, position=2, protocol="spa", m=2)
    for position, (x, y) in enumerate([(contrast.x, contrast.y), (contrast.y, contrast.x)], 1):
        two.questions.create(position=position, key=f"q{position}", x=x, y=y, text="{x} {y}", scale={"kind": "percent"})
    return one, two


def test_sections_of_different_exposure_share_a_family_and_are_compared_within_people():
    one, two = of_two_exposures()
    answers = [(p, "beta", "alpha", n) for p, n in enumerate(XY)]
    more = [(p, "beta", "alpha", min(100, n + 5 + p)) for p, n in enumerate(XY)]
    frame = pd.concat([frame_of(one, answers), frame_of(two, more)])
    blocks = analysed("spa", frame, [one, two])
    estimates = block(blocks, "spa.pairs").estimates
    assert [e.test.family_size for e in estimates] == [2, 2]
    step = block(blocks, "spa.exposures").estimates[0]
    differences = [min(100, n + 5 + p) - n for p, n in enumerate(XY)]
    assert step.estimate == pytest.approx(sum(differences) / 600) and step.n == 6
    first, second = block(blocks, "spa.exposure_levels").estimates
    assert (first.settings["m"], second.settings["m"]) == (1, 2) and first.test.family_size == 2
    assert second.estimate - first.estimate == pytest.approx(step.estimate)
    assert first.detail["conviction"] == pytest.approx(abs(sum(XY) / 600 - 0.5))
    slope = block(blocks, "spa.exposures").estimates[1]
    assert slope.analysis == "spa.exposure.slope" and slope.estimate == pytest.approx(step.estimate)  # one doubling
    assert len(block(blocks, "spa.exposures").estimates) == 2  # two exposures have no second step to compare


def test_sections_that_ask_in_another_direction_first_are_turned():
    one, two = of_two_exposures()
    Contrast.objects.all().delete()
    for question, position in zip(two.questions.order_by("position"), (4, 3), strict=True):
        two.questions.filter(pk=question.pk).update(position=position)
    answers = [(p, "beta", "alpha", n) for p, n in enumerate(XY)]
    more = [(p, "alpha", "beta", 100 - min(100, n + 5 + p)) for p, n in enumerate(XY)]
    frame = pd.concat([frame_of(one, answers), frame_of(two, more)])
    blocks = analysed("spa", frame, [one, two])
    directions = [e.settings["contrast"]["x"] for e in block(blocks, "spa.pairs").estimates]
    assert directions == ["beta", "alpha"]
    step = block(blocks, "spa.exposures").estimates[0]
    differences = [min(100, n + 5 + p) - n for p, n in enumerate(XY)]
    assert step.settings["x"] == "beta" and step.estimate == pytest.approx(sum(differences) / 600)


def test_people_who_answered_at_one_exposure_alone_are_not_compared_with_others():
    one, two = of_two_exposures()
    frame = pd.concat(
        [
            frame_of(one, [(p, "beta", "alpha", n) for p, n in enumerate(XY[:3])]),
            frame_of(two, [(p + 10, "beta", "alpha", n) for p, n in enumerate(XY[3:])]),
        ]
    )
    blocks = analysed("spa", frame, [one, two])
    assert block(blocks, "spa.exposures").estimates[0].status == "not_identified"
    assert [e.n for e in block(blocks, "spa.exposure_levels").estimates] == [3, 3]


def test_ranking_follows_the_answers_and_coherence_needs_a_triangle():
    study = draft_study()
    section = add_spa(study, pairs=[("beta", "alpha"), ("gamma", "beta"), ("gamma", "alpha")], both=False)
    answers = [
        (p, x, y, n + p)
        for p in range(8)
        for x, y, n in (("beta", "alpha", 60), ("gamma", "beta", 65), ("gamma", "alpha", 75))
    ]
    blocks = analysed("spa", frame_of(section, answers), [section])
    strengths = {e.detail["system"]: e.estimate for e in block(blocks, "spa.ranking").estimates if "system" in e.detail}
    assert strengths["alpha"] == 0 < strengths["beta"] < strengths["gamma"]
    coherence = block(blocks, "spa.coherence")
    assert coherence.other_results["cycles"] == [] and coherence.estimates[0].estimate == 0


# How far an overall answer moves with each criterion; what is left where none decides.
DRIVEN = {"interest": 0.7, "grammar": 0.2}
LEFT = 0.05


def of_criteria(people=40):
    """Overall answers made of two criteria with known weights, on two pairs, asked in both orders."""
    section = add_spa(draft_study(), m=4)
    Contrast.objects.filter(x__name="gamma").delete()
    rng = np.random.default_rng(5)
    asked = [(one.x, one.y) for one in section.questions.select_related("x", "y").order_by("position")]
    position = len(asked)
    for criterion in DRIVEN:
        # Nobody planned the second pair, and each criterion asks about it the other way round first.
        for x, y in reversed(asked):
            position += 1
            section.questions.create(
                position=position,
                key=f"q{position}",
                criterion=criterion,
                x=x,
                y=y,
                text="{x} {y}",
                scale={"kind": "percent"},
            )
    frames = []
    for person in range(people):
        for x, y in (("beta", "alpha"), ("gamma", "beta")):
            said = {criterion: rng.uniform(0.2, 0.8) for criterion in DRIVEN}
            overall = 0.5 + LEFT + sum(DRIVEN[name] * (value - 0.5) for name, value in said.items())
            said[""] = min(1.0, max(0.0, overall + rng.normal(0, 0.01)))
            for criterion, value in said.items():
                both = [(person, x, y, 100 * value), (person, y, x, 100 - 100 * value)]
                frames.append(frame_of(section, both, criterion=criterion))
    frame = pd.concat(frames)
    return section, frame


def test_what_the_overall_answers_go_with_is_found_again():
    section, frame = of_criteria()
    found = block(analysed("spa", frame, [section]), "spa.drivers")
    slopes = {e.settings["criterion"]: e for e in found.estimates}
    assert list(slopes) == [*DRIVEN, ""]
    for criterion, truth in (*DRIVEN.items(), ("", LEFT)):
        each = slopes[criterion]
        assert each.estimate == pytest.approx(truth, abs=0.02), criterion
        assert each.interval.low < truth < each.interval.high and each.test is None
        assert (each.unit, each.n, each.n_rows) == ("annotator", 40, 80)
    (table,) = found.tables
    assert [row["what"] for row in table["rows"]] == [*DRIVEN, "remainder if no criterion decides"]
    assert table["rows"][2]["slope"] == pytest.approx(100 * LEFT, abs=1) and "describe: 9" in table["note"]
    # Whoever is left out takes all pairs along.
    frame.loc[frame["assignment"] == 0, "is_kept"] = False
    assert block(analysed("spa", frame, [section]), "spa.drivers").estimates[0].n_rows == 78


def test_one_criterion_alone_or_no_overall_question_is_not_regressed():
    section, frame = of_criteria(people=4)
    section.questions.filter(criterion="grammar").delete()
    assert not [one for one in analysed("spa", frame, [section]) if one.name == "spa.drivers"]
    section, frame = of_criteria(people=4)
    section.questions.filter(criterion="").delete()
    assert not [one for one in analysed("spa", frame, [section]) if one.name == "spa.drivers"]


def test_criteria_asked_about_different_pairs_say_that_they_cannot_be_compared():
    section, frame = of_criteria(people=4)
    frame = frame[(frame["criterion"] != "interest") | (frame["x"].isin(["alpha"]) | frame["y"].isin(["alpha"]))]
    frame = frame[(frame["criterion"] != "grammar") | (frame["x"].isin(["gamma"]) | frame["y"].isin(["gamma"]))]
    found = block(analysed("spa", frame, [section]), "spa.drivers")
    assert {e.status for e in found.estimates} == {"no_data"}
    assert found.tables[0]["rows"][0]["reason"] == "no row has all answers"


def test_nobody_is_no_error(section):
    empty = both(section).iloc[:0]
    blocks = analysed("spa", empty, [section])
    assert {e.status for e in block(blocks, "spa.pairs").estimates} == {"no_data"}


def table(blocks, name):
    return next(one for made in blocks for one in made.tables if one["name"] == name)


def test_the_result_is_shown_over_values_of_tau(section):
    """Sums of the six people: 100, 105, 110, 50, 105 and 130."""
    blocks = analysed("spa", both(section), [section])
    rows = {row["tau"]: row for row in table(blocks, "tau_values")["rows"]}
    sums = [x + y for x, y in zip(XY, YX, strict=True)]
    assert {tau: row["n"] for tau, row in rows.items()} == {1.0: 2, 1.05: 4, 1.1: 5, 1.2: 5, 1.3: 6, 1.5: 6, 2.0: 6}
    for tau, row in rows.items():
        kept = [(x, y) for x, y, total in zip(XY, YX, sums, strict=True) if total <= round(100 * tau)]
        assert row["share"] == pytest.approx(len(kept) / 6)
        assert row["one_order"] == pytest.approx(sum(x for x, _ in kept) / len(kept) / 100)
        assert row["estimate"] == pytest.approx(sum(x + 100 - y for x, y in kept) / len(kept) / 200)


def test_one_direction_alone_has_no_values_of_tau(section):
    frame = frame_of(section, [(person, "beta", "alpha", n) for person, n in enumerate(XY)])
    assert not [one for one in analysed("spa", frame, [section]) if one.name == "spa.tau_values"]


def test_both_directions_by_the_number_of_examples_before_and_after_tau():
    """Figures 1 and 5: who is above tau in one section is left out of both."""
    one, two = of_two_exposures()
    two_xy, two_yx = [75, 70, 60, 40, 60, 80], [20, 30, 45, 95, 40, 15]
    frames = [
        frame_of(
            section,
            [(p, "beta", "alpha", n) for p, n in enumerate(xy)] + [(p, "alpha", "beta", n) for p, n in enumerate(yx)],
        )
        for section, xy, yx in ((one, XY, YX), (two, two_xy, two_yx))
    ]
    blocks = analysed("spa", pd.concat(frames), [one, two])
    first, second = table(blocks, "exposure_tau")["rows"]
    kept = (0, 1, 2, 4)  # the last is above 110 after one example, the fourth after two
    assert (first["before_n"], first["after_n"], second["after_n"]) == (6, 4, 4)
    for row, xy, yx in ((first, XY, YX), (second, two_xy, two_yx)):
        assert (row["before_xy"], row["before_yx"]) == (pytest.approx(sum(xy) / 600), pytest.approx(sum(yx) / 600))
        assert row["after_xy"] == pytest.approx(sum(xy[n] for n in kept) / 400)
        assert row["after_yx"] == pytest.approx(sum(yx[n] for n in kept) / 400)
        gaps = np.array([x + y - 100 for x, y in zip(xy, yx, strict=True)])
        assert row["before_p"] == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
        assert row["after_p"] == pytest.approx(stats.ttest_1samp(gaps[list(kept)], 0).pvalue)
    paper = block(blocks, "spa.exposure_tau", "paper")
    assert "proves nothing" in paper.note
    series = {row["series"] for row in paper.figures[0]["rows"]}
    assert series == {"P[x > y]", "P[y > x]", "P[x > y], after tau", "P[y > x], after tau"}


def test_a_tau_that_leaves_nobody_has_no_numbers_after_it():
    one, two = of_two_exposures()
    answers = [(p, x, y, n) for p, n in enumerate((90, 80)) for x, y in (("beta", "alpha"), ("alpha", "beta"))]
    blocks = analysed("spa", pd.concat([frame_of(one, answers), frame_of(two, answers)]), [one, two])
    for row in table(blocks, "exposure_tau")["rows"]:
        assert (row["before_n"], row["before_xy"], row["after_n"]) == (2, pytest.approx(0.85), 0)
        assert row["after_xy"] is row["after_yx"] is row["after_p"] is None
    strictest = table(blocks, "tau_values")["rows"][0]
    assert (strictest["n"], strictest["share"], strictest["estimate"]) == (0, 0, None) and strictest["reason"]
