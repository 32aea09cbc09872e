"""Five categories in one arm and two in another, as the Genie paper compares them: the board scores both side by side."""

import pytest

from boards.services import rounds, snapshots
from studies.design.checklist import find_design_problems
from studies.models import Arm, Question, Section, SectionArm
from tests.boards import builders
from tests.builders import user

pytestmark = pytest.mark.django_db


def template_of_two_arms(owner, *, reuses=False):
    """A draft whose people see either five categories or yes and no."""
    template = builders.rating_template(owner)
    first = template.sections.get()
    categories, binary = template.arms.get(), Arm.objects.create(study=template, name="binary")
    second = Section.objects.create(
        study=template,
        position=2,
        protocol="rating",
        m=first.m,
        settings=first.settings,
        reuses=first if reuses else None,
    )
    Question.objects.create(
        section=second,
        position=1,
        key="binary",
        text="Is text {label} good?",
        scale={"kind": "likert", "labels": ["no", "yes"]},
    )
    SectionArm.objects.create(section=first, arm=categories)
    SectionArm.objects.create(section=second, arm=binary)
    return template


def test_both_scales_have_all_their_labels_and_stand_side_by_side(client):
    owner = user()
    board = builders.open_board(owner, template_of_two_arms(owner), labels_per_output=3)
    builders.submit(board, builders.team_of(board)[0], "good")
    # Of 2 systems, 12 prompts and 3 labels, 6 items each: 12 places for either scale.
    assert rounds.plan_round(board).places == 24
    study = builders.play_round(board).study
    snapshot = snapshots.take_snapshot(board, owner)
    assert [one["key"] for one in snapshot.result["criteria"]] == ["overall", "binary"]
    people = dict.fromkeys(("overall", "binary"), 12)
    for row in snapshot.result["rows"]:
        assert {key: score["labels"] for key, score in row["scores"].items()} == {"overall": 36, "binary": 36}
        assert {key: score["annotators"] for key, score in row["scores"].items()} == people
    rows = snapshots.read_board_rows(board)
    # Nobody answers on both scales.
    assert rows.groupby("annotator")["criterion"].nunique().max() == 1 and study.batches.count() == 24
    assert set(rows.loc[rows["criterion"] == "binary", "value"]) == {0, 1}
    found = {(one["criterion"], one["aggregate"]) for one in snapshot.result["paper"]}
    assert found == {(key, aggregate) for key in ("overall", "binary") for aggregate in ("mean", "majority")}
    text = client.get(f"/boards/tales/{snapshot.number}/paper/").text
    assert "binary, majority vote, round 1" in text and "overall, mean, round 1" in text


def test_a_section_cannot_reuse_items_that_its_arms_do_not_see():
    template = template_of_two_arms(user(), reuses=True)
    words = "asks about the items of a section that some of its arms do not see"
    assert any(words in problem.text for problem in find_design_problems(template))
    first, second = template.sections.order_by("position")
    SectionArm.objects.filter(section=second).update(arm=first.arms.get())
    assert not any(words in problem.text for problem in find_design_problems(template))
