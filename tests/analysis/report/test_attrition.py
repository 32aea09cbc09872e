"""The report compares how many people each arm lost, and when arms were filled."""

from datetime import timedelta

import pytest

from annotators.models import Assignment
from studies.models import Arm
from tests.analysis.protocols.answers import answer
from tests.analysis.report.reported import closed, report, table
from tests.builders import launched, spa_draft, spa_study

pytestmark = pytest.mark.django_db


def two_arms(lost: dict[str, int], target_n=24):
    """A launched study with two arms, and so many people in each who began and left."""
    study = spa_draft(target_n=target_n, prompts=20, with_rating=False, with_surveys=False)
    Arm.objects.create(study=study, name="longer")
    study = launched(study)
    for assignment in answer(study, target_n, percent=lambda person, x, y: 40 + person % 20):
        arm = assignment.batch.arm.name
        if lost.get(arm, 0) > 0:
            lost[arm] -= 1
            Assignment.objects.filter(pk=assignment.pk).update(
                submitted_at=None, released_at=assignment.submitted_at, released_reason="returned"
            )
    return study


def test_arms_that_lose_different_shares_are_reported():
    result = report(closed(two_arms({"longer": 9})))
    lost = table(result, "attrition")
    rows = {row["arm"]: row for row in lost["rows"] if row["lost"] == "left before the last page"}
    assert {arm: (row["n_lost"], row["n"]) for arm, row in rows.items()} == {"all": (0, 12), "longer": (9, 12)}
    assert rows["longer"]["difference"] == pytest.approx(0.75) and rows["longer"]["p"] < 0.001
    assert (
        "left before the last page: p = .001" in lost["note"] or "left before the last page: p < .001" in lost["note"]
    )


def test_arms_that_lose_nobody_have_nothing_to_test():
    rows = table(report(closed(two_arms({}))), "attrition")["rows"]
    assert {row["n_lost"] for row in rows} == {0} and {row["p"] for row in rows} == {None}
    assert all(row["reason"] for row in rows if row["arm"] != "all")


def test_one_arm_has_no_attrition_to_compare():
    result = report(closed(spa_study(target_n=4, with_surveys=False)))
    assert not [one for one in result["tables"] if one["name"] == "attrition"]


def test_arms_that_were_filled_at_different_times_are_noticed():
    study = closed(two_arms({}))
    result = report(study)
    places = {row["arm"]: (row["n"], row["place"]) for row in table(result, "arrival")["rows"]}
    assert places.keys() == {"all", "longer"} and {n for n, _ in places.values()} == {12}
    assert sum(place for _, place in places.values()) == pytest.approx(1)
    assert "arrival" not in {notice["code"] for notice in result["notices"]}
    for row in Assignment.objects.filter(study=study, batch__arm__name="longer"):
        Assignment.objects.filter(pk=row.pk).update(claimed_at=row.claimed_at + timedelta(hours=3))
    result = report(study)
    places = {row["arm"]: row["place"] for row in table(result, "arrival")["rows"]}
    assert places == {"all": 0.25, "longer": 0.75}
    assert "Arms were filled at different times" in next(n["text"] for n in result["notices"] if n["code"] == "arrival")
    assert "p < .001" in table(result, "arrival")["note"]


def test_only_first_assignments_of_people_who_count_have_a_place():
    study = closed(two_arms({"longer": 9}))
    rows = table(report(study), "arrival")["rows"]
    assert {row["arm"]: row["n"] for row in rows} == {"all": 12, "longer": 3}


def test_one_arm_has_no_arrival_to_compare():
    result = report(closed(spa_study(target_n=4, with_surveys=False)))
    assert not [one for one in result["tables"] if one["name"] == "arrival"]
