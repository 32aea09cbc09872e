"""`heval power` beside statsmodels, the published tables and wrong input."""

import json

import pytest
from django.core.management import CommandError, call_command
from statsmodels.stats.power import FTestAnovaPower, TTestIndPower, TTestPower


def asked(capsys, *words):
    call_command("power", *words, "--json")
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["mean", "--difference", "0.1", "--sd", "0.3", "--n", "90"], TTestPower().power(1 / 3, 90, 0.05)),
        (
            ["two_means", "--difference", "0.25", "--sd", "1", "--n", "130", "--tests", "15"],
            TTestIndPower().power(0.25, 130, 0.05 / 15),
        ),
        (["groups", "--effect", "0.25", "--groups", "3", "--n", "53"], FTestAnovaPower().power(0.25, 159, 0.05, 3)),
    ],
)
def test_the_power_is_that_of_statsmodels(capsys, words, wanted):
    assert asked(capsys, *words)["power"] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize(
    ("words", "n"),
    [
        (["mean", "--difference", "0.35", "--sd", "1"], 67),
        (["two_means", "--difference", "0.05", "--sd", "0.224"], 317),
        (["share", "--share", "0.6"], 210),
        (["two_shares", "--share", "0.5", "--other", "0.7"], 103),
        (["paired_shares", "--only-x", "0.25", "--only-y", "0.1"], 129),
        (["equivalence", "--sd", "0.25", "--margin", "0.05"], 216),
        (["groups", "--effect", "0.25", "--groups", "4"], 45),
    ],
)
def test_the_least_number_of_people_has_the_wanted_power(capsys, words, n):
    found = asked(capsys, *words)
    assert found["n"] == pytest.approx(n, abs=4) and found["power"] >= 0.8
    assert asked(capsys, *words, "--n", str(found["n"] - 1))["power"] < 0.8


def test_it_speaks_to_people(capsys):
    call_command("power", "mean", "--difference", "0.1", "--sd", "0.3", "--n", "90")
    assert "90 people: power 0.8" in (said := capsys.readouterr().out)
    assert "Smallest difference found with power 0.8: 0.0" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mean", "--difference", "0", "--sd", "0.3"], "effect of 0"),
        (["mean", "--difference", "0.1", "--sd", "0", "--n", "9"], "--sd: 0 is not a number above 0"),
        (["share", "--share", "1.5", "--n", "9"], "--share: 1.5"),
        (["mean", "--difference", "0.1", "--sd", "1", "--n", "1"], "--n: 1"),
        (["mean", "--difference", "0.1", "--sd", "1", "--tests", "0"], "--tests: 0 is less than 1"),
    ],
)
def test_impossible_input_says_what_to_change(words, message):
    with pytest.raises(CommandError, match=message):
        call_command("power", *words)
