"""What the pages say about minutes and pay: the study's, an arm's own, or a range before anybody knows which arm is theirs."""

from decimal import Decimal

import pytest

from annotators.models import RecruitmentArm
from annotators.places.places import arm_offer, offer_range
from studies.design.wording import wording_of
from tests.builders import humanlike_draft, launched, panel
from tests.players import claimed, submitted
from tests.robots import Robot

pytestmark = pytest.mark.django_db
PAY = {"none": (None, None), "examples": ("1.75", 8), "comparison": ("2.25", 11)}


@pytest.fixture
def study():
    study = humanlike_draft(conditions=tuple(PAY), domains=("news",), reward="1.25", minutes=5, target_n=6)
    for arm in study.arms.all():
        arm.reward, arm.minutes = PAY[arm.condition]
        arm.save()
    return launched(study)


def seen(address):
    return Robot(address, None).get(address).content.decode()


def test_the_landing_page_tells_from_what_to_what(study):
    page = seen(f"/e/{panel(study).key}/?who=w")
    assert "about 5 to 11 minutes" in page and "1.25 to 2.25 USD" in page and "you see it then" in page
    # 1.25 for 5 minutes is 15.00 an hour, 1.75 for 8 is 13.12, 2.25 for 11 is 12.27.
    assert "at least 12.27 USD an hour" in page


def test_a_recruitment_of_one_arm_tells_that_arms(study):
    door = panel(study)
    RecruitmentArm.objects.create(recruitment=door, arm=study.arms.get(condition="examples"))
    page = seen(f"/e/{door.key}/?who=w")
    assert "about 8 minutes" in page and "1.75 USD" in page and "told then" not in page


def test_what_a_recruitment_pays_it_pays_whatever_the_arm(study):
    page = seen(f"/e/{panel(study, reward='3.00').key}/?who=w")
    assert "3.00 USD" in page and "2.25" not in page


@pytest.mark.slow
def test_the_first_page_and_the_end_tell_ones_own_part(study):
    people = {}
    for n in range(3):
        assignment = claimed(study, f"w{n}")
        people[assignment.batch.arm.condition] = (assignment, f"w{n}")
    assert set(people) == set(PAY)
    for condition, (reward, minutes) in PAY.items():
        assignment, person = people[condition]
        first = seen(f"/p/{assignment.code}/")
        assert ("Your part takes about" in first) == (reward is not None)
        if reward:
            assert f"Your part takes about {minutes} minutes. Your part pays {reward} USD." in first
        submitted(study, person, comment="because")
        end = seen(f"/p/{assignment.code}/done/")
        assert (f"Your part pays {reward} USD" in end) if reward else ("Your part pays" not in end)


def test_pay_by_the_hour_is_that_of_each_arm(study):
    wording = wording_of(study, study.designs.get().pk)
    hourly = {arm["condition"]: arm_offer(wording, arm).per_hour for arm in wording.arms.values()}
    assert hourly == {"none": Decimal("15.00"), "examples": Decimal("13.12"), "comparison": Decimal("12.27")}
    one = offer_range(wording, ["news gpt3 examples"])
    assert (one.minutes, one.reward, one.per_hour, one.is_one) == ("8", "1.75", "13.12", True)
