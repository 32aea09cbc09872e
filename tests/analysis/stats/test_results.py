import json
import math

import numpy as np
import pytest

from analysis.stats.results import Effect, Estimate, HypothesisTest, Interval, Warning, plain


def estimate(**changes):
    fields = {"analysis": "a", "estimand": "mean", "unit": "annotator", "n": 3, "estimate": 0.5} | changes
    return Estimate(**fields)


def test_the_envelope_has_the_same_keys_whether_or_not_a_number_is_defined():
    full = estimate(
        interval=Interval(0.95, 0.4, 0.6, "t"),
        test=HypothesisTest(name="t", null=0.5, statistic=1.0, df=2, pvalue=0.4),
        effect=Effect(name="d_z", value=0.1),
    )
    empty = estimate(status="no_data", reason="nothing", estimate=None, n=0)
    assert list(full.as_dict()) == list(empty.as_dict())
    assert list(full.as_dict()["interval"]) == ["level", "low", "high", "method", "clipped"]
    assert {"pvalue", "pvalue_adjusted", "statistic", "df", "family_size"} <= set(full.as_dict()["test"])
    assert empty.as_dict()["test"] is None


def test_json_has_no_nan_and_no_infinity_even_inside_details():
    dirty = estimate(
        interval=Interval(0.95, -math.inf, 0.6, "t"),
        detail={"x": np.array([np.nan, 1.0]), "y": {"z": (np.float64(np.inf), np.int64(3))}, "b": np.True_},
        warnings=(Warning("w", "info", {"q": np.nan}),),
    )
    text = json.dumps(dirty.as_dict(), allow_nan=False)
    back = json.loads(text)
    assert back["detail"] == {"x": [None, 1.0], "y": {"z": [None, 3]}, "b": True}
    assert back["interval"]["low"] is None
    assert back["warnings"][0]["detail"] == {"q": None}


def test_an_undefined_number_is_refused_where_one_is_claimed():
    with pytest.raises(ValueError, match="estimate"):
        estimate(estimate=math.nan)
    with pytest.raises(ValueError, match="pvalue"):
        HypothesisTest(name="t", null=0.5, statistic=1.0, pvalue=math.nan)


def test_a_status_other_than_ok_has_a_reason_and_no_test():
    test = HypothesisTest(name="t", null=0.5, statistic=1.0, pvalue=0.1)
    with pytest.raises(ValueError, match="has no test"):
        estimate(status="zero_variance", reason="constant", test=test)
    with pytest.raises(ValueError, match="must be explained"):
        estimate(status="zero_variance")


@pytest.mark.parametrize("field,value", [("status", "fine"), ("mode", "best")])
def test_words_outside_the_vocabulary_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        estimate(**{field: value})
    with pytest.raises(ValueError, match="severity"):
        Warning("code", "loud")


def test_what_has_no_plain_form_is_refused_rather_than_printed():
    with pytest.raises(TypeError, match="object"):
        plain({"a": object()})


def test_records_are_frozen():
    with pytest.raises(AttributeError):
        estimate().estimate = 0.7
