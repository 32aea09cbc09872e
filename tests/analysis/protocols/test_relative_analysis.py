"""What relative points say: turned toward x, tested with margins, and with nothing to go by."""

import pandas as pd
import pytest

from analysis.data.planned_labels import PlannedLabels
from tests.analysis.protocols.analysed import analysed
from tests.builders import add_relative, draft_study

pytestmark = pytest.mark.django_db


def draft(*, systems=("alpha", "beta", "gamma"), scale=None, **options):
    study = draft_study(systems=systems, prompts=6, target_n=3, instructions="")
    section = add_relative(study, **options)
    if scale is not None:
        section.questions.update(scale=scale)
    return study


def frame_of(rows):
    """``rows``: (annotator, item, who stood first, points from 1 to 5)."""
    return pd.DataFrame(
        {
            "assignment": who,
            "annotator": f"a{who}",
            "section": 1,
            "question": "better",
            "system": first,
            "prompt": f"p{item}",
            "item": f"s1.{item}",
            "label": "A",
            "value": (points - 1) / 4,
            "is_kept": True,
            "is_kept_paper": True,
        }
        for who, item, first, points in rows
    )


def analyse(frame, sections, items=()):
    numbers = sorted({int(item.partition(".")[2]) for item in items or frame["item"]})
    claims = PlannedLabels(pd.DataFrame(), tuple((1, number, "alpha\x1fbeta") for number in numbers))
    return analysed("relative", frame, sections, claims=claims)


def of(blocks, name, mode="recommended"):
    return next(block for block in blocks if block.name == name and block.mode == mode).estimates


def test_points_are_turned_toward_x_and_hand_computed():
    section = draft(systems=("alpha", "beta")).sections.get()
    # beta is x. Points toward beta: +2, +1, 0, -1 (first alpha: 5 means alpha much better).
    rows = [
        (0, 1, "beta", 5),
        (0, 2, "alpha", 2),
        (1, 1, "alpha", 3),
        (1, 2, "beta", 2),
        (2, 1, "beta", 4),
        (2, 2, "alpha", 1),
    ]
    blocks = analyse(frame_of(rows), [section])
    (score,) = of(blocks, "relative.score")
    assert score.estimate == pytest.approx((2 + 1 + 0 - 1 + 1 + 2) / 6) and score.n == 3 and score.unit == "annotator"
    (above,) = of(blocks, "relative.superiority")
    assert above.estimate == pytest.approx((1 + 1 + 0.5 + 0 + 1 + 1) / 6)
    (paper,) = of(blocks, "relative.score", "paper")
    assert paper.estimate == pytest.approx(score.estimate) and paper.n == 6 and paper.unit == "answer"
    checks = {one.analysis: one for one in of(blocks, "relative.checks")}
    assert checks["relative.ties"].estimate == pytest.approx(1 / 6)
    # beta first: 2, -1, 1; alpha first, toward beta: 1, 0, 2. Half the difference of the means leans to the first.
    assert checks["relative.side"].estimate == pytest.approx((2 / 3 - 1) / 2)
    assert score.settings["contrast"]["x"] == "beta" and paper.test.family_size == 1


def test_a_margin_is_tested_with_one_answer_each_and_with_five_annotators_not_at_all():
    section = draft(systems=("alpha", "beta"), margin=0.5).sections.get()
    one_each = [(who, who % 3, "beta", 3 + (who % 5 == 0) - (who % 5 == 1)) for who in range(40)]
    (score,) = of(analyse(frame_of(one_each), [section]), "relative.score")
    tost = next(one for one in score.sensitivity if one.analysis == "relative.score.equivalence")
    assert tost.pvalue < 0.001 and score.detail["verdict"] == "equivalent"
    few = [(who, item, "beta", 3 + (item == who) - (item == who + 1)) for who in range(5) for item in range(8)]
    few[0] = (0, 0, "beta", 3)
    (score,) = of(analyse(frame_of(few), [section]), "relative.score")
    tost = next(one for one in score.sensitivity if one.analysis == "relative.score.equivalence")
    assert score.status == "ok" and score.test is None and tost.test is None and tost.interval is not None
    assert score.detail["verdict"] == "inconclusive"


def test_a_pair_that_was_not_planned_is_reported_as_such():
    study = draft(systems=("alpha", "beta"))
    study.contrasts.all().delete()
    blocks = analyse(frame_of([(0, 1, "beta", 5), (1, 1, "beta", 4)]), [study.sections.get()])
    (score,) = of(blocks, "relative.score")
    assert score.settings["contrast"]["x"] == "alpha" and score.estimate == -1.5
    assert not score.settings["contrast"]["is_planned"]
    tables = {one["name"]: one for block in blocks for one in block.tables}
    for name in ("relative", "relative_checks"):
        assert [row["role"] for row in tables[name]["rows"]] == ["not planned"]
        assert "Role" in [column["label"] for column in tables[name]["columns"]]


@pytest.mark.parametrize("rows", [[], [(0, 1, "beta", 3)], [(n, 1, "beta", 3) for n in range(8)]])
def test_nothing_one_answer_and_all_the_same_are_no_error(rows):
    section = draft(systems=("alpha", "beta")).sections.get()
    frame = frame_of(rows or [(0, 1, "beta", 3)])
    (score,) = of(analyse(frame[: len(rows)], [section], ["s1.1"]), "relative.score") if rows else [None]
    assert score is None or (score.estimate == 0 and score.test is None) or len(rows) == 8
    if len(rows) == 8:
        # Answers that are all the same are evidence against other means, and none against their own.
        assert score.test.name == "independent_units_betting" and score.pvalue == 1.0
        assert -2 < score.interval.low < 0 < score.interval.high < 2
        assert score.settings["population"] == "people" and score.detail["n_prompts"] == 1
