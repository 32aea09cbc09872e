"""Which resource is short: the sentences agree with the power of the sizes that they name."""

import re

import pytest

from analysis.planning.advice import advice_sentences, reach_sentence, simulated_advice
from analysis.planning.inputs import PlanInputs
from analysis.planning.results import design_curves
from analysis.stats.planning.inputs import StudySize, Target
from analysis.stats.planning.study_plans import assemble_plan, plan_parts, simulate_part


def inputs(people, prompts, each, *, protocol="two_choice", **target) -> PlanInputs:
    return PlanInputs(StudySize(protocol=protocol, people=people, prompts=prompts, prompts_each=each), Target(**target))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (inputs(100, 200, 20), "The size is enough: its power is "),
        (inputs(36, 60, 20), "Or more prompts with as many answers: 68 prompts with the same 36 people reach 80 %."),
        (
            inputs(12, 10, 10, difference=0.65),
            "More people alone are not enough: with 10 prompts the power stays below 49 %.",
        ),
        (
            inputs(200, 10, 10, difference=0.65),
            "More people will not help: with 10 prompts the power stays below 49 %.",
        ),
        (inputs(12, 24, 10, difference=0.65), "More prompts alone are not enough: with the same 12 people"),
        (inputs(12, 10, 10), "Both together are: "),
        (inputs(12, 12, 12, difference=0.5001), "no study that heval can plan reaches 80 %"),
        (inputs(4, 10, 10, difference=0.9), "With fewer than 6 people the report makes no test."),
        (inputs(36, 60, 20, population="people"), "exactly these prompts"),
        (inputs(40, 10, 5, protocol="spa"), "People read the same prompts"),
        (inputs(36, 60, 20), "a difference of 7.2 points would still be possible"),
    ],
)
def test_the_advice_says_what_is_short(asked, said):
    assert said in " ".join(advice_sentences(asked))


@pytest.mark.parametrize(
    ("asked", "smallest", "power", "said"),
    [
        (
            inputs(12, 10, 10, difference=0.65),
            0.78,
            0.4,
            "The smallest difference that it finds with 80 % power is 78.0 % against 50 % (approximate). If you expect one as large, you can",
        ),
        # More people would help, so the size is not all that the prompts can show.
        (
            inputs(12, 60, 20, difference=0.65),
            0.7,
            0.5,
            "The smallest difference that it finds with 80 % power is 70.0 %",
        ),
        (
            inputs(100, 200, 20),
            0.58,
            0.9,
            "The smallest difference that it finds with 80 % power is 58.0 % against 50 %",
        ),
        (inputs(4, 10, 10), None, 0.0, "It finds no difference with 80 % power, however large."),
    ],
)
def test_a_design_says_which_difference_it_finds(asked, smallest, power, said):
    assert reach_sentence(asked, smallest, power).startswith(said)


@pytest.mark.parametrize(
    "asked", [inputs(36, 60, 20), inputs(24, 24, 5, protocol="spa"), inputs(12, 10, 10, difference=0.65)]
)
def test_a_curve_holds_the_design_and_rises(asked):
    for curve in design_curves(asked, "USD"):
        assert any(row["is_planned"] for row in curve["rows"])
        for label in {row["label"] for row in curve["rows"]} - {"people and prompts"}:
            people = [
                float(re.match(r"[\d.]+|more", row["power"])[0].replace("more", "99.9"))
                for row in curve["rows"]
                if row["label"] == label
            ]
            assert people == sorted(people), "more of a resource lowers the power"


@pytest.mark.slow
def test_the_simulated_advice_names_simulated_powers():
    asked = inputs(12, 40, 10, difference=0.65)
    design = (asked.size, asked.target, asked.variation)
    parts = plan_parts(*design, seed=1, runs=200, other_runs=100)
    plan = assemble_plan(*design, [simulate_part(part, asked.variation) for part in parts]).as_dict()
    said = " ".join(simulated_advice(asked, plan))
    assert f"The power is {plan_power(plan['planned'])}" in said
    enough = [
        one for one in (*plan["people"], plan["needed_people"]) if one["power"] >= 0.8 and one["size"]["people"] > 12
    ]
    smallest = min(enough, key=lambda one: one["size"]["people"])
    assert (
        f"{smallest['size']['people']} people with the same 40 prompts reach it: their power is {plan_power(smallest)}"
        in said
    )


def plan_power(one) -> str:
    return f"{100 * one['power']:.0f} % (±"
