import dataclasses
import importlib
import inspect
import json
import math
import pkgutil
import typing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import analysis.stats
from analysis.stats.plain_records import PlainRecord
from analysis.stats.results import SCHEMA, Effect, Estimate, HypothesisTest, Interval, Record, ResultWarning, json_safe
from tools.reference.statistics import PUBLIC

MODULES = [module.name for module in pkgutil.walk_packages(analysis.stats.__path__, "analysis.stats.")]
DATACLASSES = {
    member
    for name in MODULES
    for member in vars(importlib.import_module(name)).values()
    if inspect.isclass(member) and dataclasses.is_dataclass(member) and member.__module__.startswith("analysis.stats")
}
RECORDS = {member for member in DATACLASSES if issubclass(member, Record | PlainRecord)}


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
        warnings=(ResultWarning("w", "info", {"q": np.nan}),),
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
        ResultWarning("code", "loud")


def test_what_has_no_plain_form_is_refused_rather_than_printed():
    with pytest.raises(TypeError, match="object"):
        json_safe({"a": object()})


def test_records_are_frozen():
    with pytest.raises(AttributeError):
        estimate().estimate = 0.7


def test_every_dataclass_is_frozen():
    mutable = {one.__name__ for one in DATACLASSES if not one.__dataclass_params__.frozen}
    assert {name for name in mutable if not name.startswith("_")} == set()


def test_what_public_functions_return_is_a_record():
    returned = set()
    for module, functions in PUBLIC.items():
        for name in functions:
            function = getattr(importlib.import_module(f"analysis.stats.{module}"), name)
            hint = typing.get_type_hints(function)["return"]
            returned |= {one for one in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(one)}
    assert Estimate in returned and len(returned) >= 8
    assert [one.__name__ for one in returned - RECORDS] == []


@pytest.mark.parametrize("record", sorted(RECORDS, key=lambda one: one.__name__), ids=lambda one: one.__name__)
def test_every_record_loses_no_field_on_the_way_to_json(record):
    # An empty dict replaces every type: it can be iterated, and is JSON. Only that each field arrives is asked.
    made = object.__new__(record)
    for field in dataclasses.fields(record):
        object.__setattr__(made, field.name, {})
    body = made.as_dict()
    json.dumps(body, allow_nan=False)
    assert {field.name for field in dataclasses.fields(record) if not field.name.startswith("_")} <= set(body)


def back(body):
    """The estimate that a JSON envelope was made of, by the names of its fields alone."""
    body = {name: value for name, value in body.items() if name != "schema"}
    for name, kind in (("interval", Interval), ("test", HypothesisTest), ("effect", Effect)):
        body[name] = None if body[name] is None else kind(**body[name])
    body["warnings"] = tuple(ResultWarning(**one) for one in body["warnings"])
    body["sensitivity"] = tuple(back(one) for one in body["sensitivity"])
    return Estimate(**body)


finite = st.floats(allow_nan=False, allow_infinity=False)
shares = st.floats(0, 1)
words = st.text(max_size=8)
details = st.dictionaries(words, st.one_of(st.none(), st.booleans(), st.integers(), finite, words, st.lists(finite)))
intervals = st.builds(Interval, level=shares, low=finite, high=finite, method=words, clipped=st.booleans())
effects = st.builds(Effect, name=words, value=finite, hedges_g=st.none() | finite, low=st.none() | finite)
tests = st.builds(
    HypothesisTest,
    name=words,
    null=st.none() | finite,
    statistic=st.none() | finite,
    pvalue=shares,
    df=st.none() | finite,
    pvalue_adjusted=st.none() | shares,
    adjust=st.none() | words,
    family_size=st.none() | st.integers(),
)
warnings = st.builds(ResultWarning, code=words, severity=st.sampled_from(["info", "warn", "block"]), detail=details)
flat = {
    "analysis": words,
    "estimand": words,
    "unit": words,
    "n": st.integers(0),
    "mode": st.sampled_from(["recommended", "paper"]),
    "n_clusters": st.none() | st.integers(0),
    "n_rows": st.none() | st.integers(0),
    "estimate": st.none() | finite,
    "interval": st.none() | intervals,
    "test": st.none() | tests,
    "effect": st.none() | effects,
    "warnings": st.lists(warnings, max_size=2).map(tuple),
    "detail": details,
    "settings": details,
}
estimates = st.builds(Estimate, sensitivity=st.lists(st.builds(Estimate, **flat), max_size=2).map(tuple), **flat)


@given(estimates)
def test_the_envelope_holds_all_that_the_estimate_said(made):
    body = json.loads(json.dumps(made.as_dict(), allow_nan=False))
    assert body["schema"] == SCHEMA and not any("schema" in one for one in body["sensitivity"])
    assert back(body) == made


def test_a_label_is_given_to_sensitivities_that_shared_it():
    other = estimate(unit="prompt", mode="recommended")
    labelled = estimate(sensitivity=(other,)).labelled(analysis="b", unit="person")
    assert (labelled.analysis, labelled.unit) == ("b", "person")
    assert [(one.analysis, one.unit) for one in labelled.sensitivity] == [("b", "prompt")]
    with pytest.raises(TypeError, match="n: not a label"):
        labelled.labelled(n="4")
