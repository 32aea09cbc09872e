"""The budget of a plan, by hand."""

from dataclasses import replace

import pytest

from analysis.stats.planning.inputs import StudySize
from analysis.stats.planning.sizes import Pace, Prices, minutes_each, plan_budget

SIZE = StudySize(protocol="rating", people=18, prompts=20, prompts_each=9)
PACE = Pace(words_per_prompt=40, words_per_output=100, words_per_minute=240, seconds_per_answer=15, other_minutes=2)


def test_minutes_are_those_of_reading_and_of_answers():
    # Each prompt: 240 words in a minute, two answers in half a minute.
    assert minutes_each(SIZE, PACE) == pytest.approx(9 * 1.5 + 2)
    assert minutes_each(SIZE, PACE, test_share=0.1) == pytest.approx(10 * 1.5 + 2)
    assert minutes_each(replace(SIZE, protocol="spa"), PACE) == pytest.approx(9 * 1 + 0.5 + 2)
    assert minutes_each(replace(SIZE, protocol="humanlike"), PACE) == pytest.approx(9 * (140 / 240 + 0.25) + 2)


def test_everybody_who_is_lost_is_recruited_and_those_who_work_are_paid():
    prices = Prices(
        wage_per_hour=12,
        fee_rate=0.25,
        excluded_share=0.1,
        dropped_out_share=0.2,
        screened_out_share=0.5,
        screen_out_pay=0.1,
    )
    budget = plan_budget(SIZE, PACE, prices)
    assert (budget.finishing, budget.starting, budget.arriving) == (20, 25, 50)
    assert budget.reward == pytest.approx(15.5 / 5) and budget.hours == pytest.approx(20 * 15.5 / 60)
    assert budget.total == pytest.approx(1.25 * (20 * 3.1 + 25 * 0.1))
    assert plan_budget(SIZE, PACE, Prices(reward=4)).reward == 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pace(words_per_minute=0), "words_per_minute: 0"),
        (lambda: Pace(other_minutes=-1), "other_minutes: -1"),
        (lambda: Prices(test_share=1), "test_share: 1 is not a share below 1"),
        (lambda: Prices(fee_rate=float("inf")), "fee_rate: inf"),
    ],
)
def test_impossible_prices_say_what_to_change(make, message):
    with pytest.raises(ValueError, match=message):
        make()
