"""What pages of metrics, judges and boards claim follows from the interval, or the p-value, that they print beside it."""

import re
from itertools import product

import pytest

from analysis.metrics.calibrated import views as calibrated
from analysis.metrics.judge_check import views as judge_check
from boards.views import table as boards

# Middle and half width of an interval around 0; the last four have an end close to 0.
PLACES = [(m, h) for m, h in product((-0.2, -0.05, 0.0, 0.05, 0.2), (0.02, 0.1))] + [
    (sign * 0.05, 0.05 + change) for sign in (-1, 1) for change in (-2e-4, 2e-4)
]
ENDS = re.compile(r"interval ([+−]?[\d.]+)(?: %)? to ([+−]?[\d.]+)")


def interval(middle, half):
    return {"low": middle - half, "high": middle + half}


def difference(middle, half):
    return {"estimate": middle, "interval": interval(middle, half) if half else None, "reason": ""}


def printed(text):
    return tuple(float(end.replace("−", "-")) for end in ENDS.search(text).groups())


def assert_words_follow(text, place, *, more, less, is_open):
    """Exactly one of the three wordings, the one that the printed interval allows, and the printed ends on their sides of 0."""
    low, high = printed(text)
    middle, half = place
    assert (low > 0, high < 0) == (middle - half > 0, middle + half < 0), text
    allowed = more if low > 0 else less if high < 0 else is_open
    assert [words for words in (more, less, is_open) if words in text] == [allowed], text


@pytest.mark.parametrize("place", PLACES)
def test_probes_of_a_judge(place):
    probes = {"repeat": None, "order": None, "length": difference(*place), "family": {"difference": difference(*place)}}
    length, family = judge_check.probe_sentences(probes, "gpt")
    assert_words_follow(length, place, more="rises by", less="falls by", is_open="It remains open")
    assert_words_follow(family, place, more="is higher by", less="is lower by", is_open="It remains open")


def test_a_probe_without_an_interval_claims_nothing():
    probes = {
        "repeat": None,
        "order": None,
        "length": difference(0.2, None),
        "family": {"difference": difference(0.2, None)},
    }
    for text in judge_check.probe_sentences(probes, "gpt"):
        assert text.startswith("It remains open") and "(no interval)" in text


@pytest.mark.parametrize("place", PLACES)
def test_minimums_of_a_judge(place):
    middle, half = place
    one = {"name": "agreement", "minimum": 0.725, "estimate": 0.725 + middle, "reason": ""}
    one |= {"low": 0.725 + middle - half, "high": 0.725 + middle + half, "is_met": middle - half > 0}
    (text,) = judge_check.criterion_sentences({"criteria": [one]})
    low, _ = printed(text)
    declared = float(re.search(r"the declared ([\d.]+) %", text).group(1))
    assert declared == pytest.approx(72.5) and (low > declared) == one["is_met"], text
    assert f"is {'above' if one['is_met'] else 'not above'} the declared" in text


@pytest.mark.parametrize("place", PLACES)
def test_groups_that_a_judge_favours(place):
    favour = difference(*place) | {"interval_adjusted": interval(*place)}
    row = {"judge": "J", "group": "g", "is_own_family": False, "favour": favour}
    said = calibrated.bias_sentences({"bias_by_system": [row], "bias_by_domain": []})
    low, high = (float(end.replace("−", "-")) for end in calibrated.span(interval(*place), 0.0).split(" to "))
    wanted = ["favours"] if low > 0 else ["disfavours"] if high < 0 else []
    assert [text.split()[1] for text in said] == wanted
    assert (low > 0, high < 0) == (place[0] - place[1] > 0, place[0] + place[1] < 0)


@pytest.mark.parametrize("place", PLACES)
def test_samples_of_a_board(place):
    middle, half = 100 * place[0], 100 * place[1]
    equating = {"offsets": [{"sample": 2, "estimate": middle, "low": middle - half, "high": middle + half}]}
    (text,) = boards._equating(equating)
    assert_words_follow(text, place, more="points more than", less="points less than", is_open="It remains open")


@pytest.mark.parametrize("pvalue", [0.0001, 0.01, 0.0496, 0.05, 0.0504, 0.3, 1.0])
def test_anchors_of_a_board(pvalue):
    (text,) = boards._equating({"drift": {"pvalue": pvalue}})
    sign, value = re.search(r"p (=|<|>) (\.\d+)", text).groups()
    assert text.startswith(
        "Anchors scored differently" if sign == "<" or (sign == "=" and float(value) <= 0.05) else "It is not shown"
    )
