"""Numbers, texts and settings that programs, forms and commands give to the analysis: refused by name, or meant as they say.

What the tests of the interface try already is not tried again. And data that are not yet whole.
"""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from analysis.models import AnalysisRun
from analysis.report.build import build_report
from studies.models import Arm, Contrast, Job, Output, Study
from studies.services import lifecycle
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.builders import draft_study, launched, spa_draft, user
from tests.players import submitted
from tests.study_command import connection_stays

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return draft_study(owner=user(), prompts=2)


@pytest.fixture
def api(study):
    return api_of(study.owner)


def named(answered) -> list[tuple]:
    """(row, field) of everything that was refused, each with words."""
    errors = answered.json()["errors"]
    assert all(error["message"] for error in errors)
    return [(error["row"], error["field"]) for error in errors]


# Numbers over REST: a number is a JSON number, and a whole one has no other spelling

NO_WHOLE = ["3", "٣", "３", "1.0", "", " 3 ", "0x3", "NaN", 1.0, 3.5, 1e300, True, [3], {"n": 3}, 10**30, -(10**30), -1]
NO_DECIMAL = ["NaN", "sNaN", "Infinity", "1e309", "1,50", "0x1", "1.1.1", "", True, [1], {"n": 1}, 1e300, -1]


@pytest.mark.parametrize("value", NO_WHOLE, ids=ascii)
def test_a_whole_number_is_a_json_number_and_whole(study, api, value):
    before = Study.objects.filter(pk=study.pk).values().get()
    for field in ("target_n", "seed", "minutes", "start_window_seconds"):
        refused = api.patch(f"studies/{study.code}/", {field: value})
        assert (refused.status_code, named(refused)) == (400, [(None, field)])
    assert Study.objects.filter(pk=study.pk).values().get() == before


@pytest.mark.parametrize("value", [*NO_WHOLE, None, 32_768], ids=ascii)
def test_the_number_of_a_sample_is_named_with_its_row_and_no_row_is_stored(study, api, value):
    rows = [{"system": "alpha", "prompt": "p000", "sample": n, "text": "Words."} for n in (1, 2)]
    refused = api.post(f"studies/{study.code}/outputs/", [rows[0], rows[1] | {"sample": value}])
    assert (refused.status_code, named(refused)) == (400, [(2, "sample")])
    assert not Output.objects.filter(sample__gt=0).exists()


@pytest.mark.parametrize("value", NO_DECIMAL, ids=ascii)
def test_money_is_a_number_from_0(study, api, value):
    for field in ("reward", "wage_per_hour"):
        refused = api.patch(f"studies/{study.code}/", {field: value})
        assert (refused.status_code, named(refused)) == (400, [(None, field)])
    study.refresh_from_db()
    assert (str(study.reward), study.wage_per_hour) == ("2.50", None)


ROWS = {
    "nothing": ({"text": ""}, "text"),
    "blank": ({"text": " \n"}, "text"),
    "nothing that is seen": ({"text": "\u200b\u0301"}, "text"),
    "empty beside a text": ({"is_empty": True}, "text"),
    "no text": ({"text": None}, "text"),
    "a number": ({"text": 7}, "text"),
    "control character": ({"text": "a\u001bb"}, "text"),
    "another system": ({"system": "delta"}, "system"),
    "hidden in a name": ({"system": "al\u200bpha"}, "system"),
    "another prompt": ({"prompt": "p999"}, "prompt"),
    "a list": ({"prompt": ["p000"]}, "prompt"),
    "format unknown": ({"format": "html"}, "format"),
    "description too long": ({"alt": "x" * 301}, "alt"),
    "yes in words": ({"is_empty": "yes"}, "is_empty"),
    "a column of nobody": ({"owner__password": "x"}, "owner__password"),
}


@pytest.mark.parametrize(("changes", "field"), ROWS.values(), ids=ROWS)
def test_an_output_that_cannot_be_is_named_with_its_row_and_no_row_is_stored(study, api, changes, field):
    good = {"system": "alpha", "prompt": "p000", "sample": 1, "text": "Words."}
    refused = api.post(f"studies/{study.code}/outputs/", [good, good | {"sample": 2} | changes, good | {"sample": 3}])
    assert refused.status_code == 400 and named(refused) == [(2, field)], refused.content
    assert not Output.objects.filter(sample__gt=0).exists()


# What a report is asked for with

PARAMETERS = {
    "level in words": ({"level": "0.95"}, "level"),
    "level 1": ({"level": 1}, "level"),
    "level below": ({"level": 0.49}, "level"),
    "level true": ({"level": True}, "level"),
    "level a list": ({"level": [0.9]}, "level"),
    "level null": ({"level": None}, "level"),
    "resamples in words": ({"resamples": "199"}, "resamples"),
    "too few": ({"resamples": 98}, "resamples"),
    "too many": ({"resamples": 10**5}, "resamples"),
    "resamples 1e3": ({"resamples": 1e3}, "resamples"),
    "resamples true": ({"resamples": True}, "resamples"),
    "an origin alone": ({"origins": "live"}, "origin"),
    "no origin": ({"origins": []}, "origin"),
    "origin unknown": ({"origins": ["mars"]}, "origin"),
    "origin a number": ({"origins": [1]}, "origin"),
    "origin a list": ({"origins": [["live"]]}, "origin"),
    "origins an object": ({"origins": {"a": 1}}, "origin"),
    "stars unknown": ({"star_scheme": "***"}, "star_scheme"),
    "stars a number": ({"star_scheme": 5}, "star_scheme"),
    "stars a list": ({"star_scheme": ["5/1/0.1"]}, "star_scheme"),
    "deltas a number": ({"deltas": 0.01}, "deltas"),
    "delta too large": ({"deltas": [0.5]}, "deltas"),
    "delta in words": ({"deltas": ["0.01"]}, "deltas"),
    "delta true": ({"deltas": [True]}, "deltas"),
    "six deltas": ({"deltas": [0.1, 0.11, 0.12, 0.13, 0.14, 0.15]}, "deltas"),
    "no such parameter": ({"assignment__annotator": "x"}, "assignment__annotator"),
    "a list": ([], None),
    "a text": ("x", None),
}


@pytest.mark.parametrize(("sent", "name"), PARAMETERS.values(), ids=PARAMETERS)
def test_a_report_over_rest_is_asked_for_with_what_it_knows_or_not_at_all(study, api, sent, name):
    refused = api.post(f"studies/{study.code}/analyses/", sent)
    said = refused.json()
    assert refused.status_code == 400 and (name is None or name in json.dumps(said)), said
    assert not Job.objects.exists()


FORM = {"origins": ["live"], "level": "0.95", "resamples": "199", "star_scheme": "10/5/1"}
TYPED = {
    "level NaN": ({"level": "NaN"}, "Confidence level"),
    "level 1e309": ({"level": "1e309"}, "Confidence level"),
    "level 0,95": ({"level": "0,95"}, "Confidence level"),
    "level 1": ({"level": "1"}, "Confidence level"),
    "level ٣": ({"level": "٣"}, "Confidence level"),
    "level NUL": ({"level": "0.9\x00"}, "Confidence level"),
    "resamples 98": ({"resamples": "98"}, "Resamples"),
    "resamples 1e3": ({"resamples": "1e3"}, "Resamples"),
    "resamples long": ({"resamples": "9" * 5000}, "Resamples"),
    "resamples ³": ({"resamples": "³"}, "Resamples"),
    "no origin": ({"origins": []}, "Answers of"),
    "origin unknown": ({"origins": ["mars"]}, "Answers of"),
    "origin test": ({"origins": ["test"]}, "Answers of"),
    "stars unknown": ({"star_scheme": "\x00"}, "Stars at"),
    "nothing": (dict.fromkeys(FORM, ""), "Resamples"),
}


@pytest.mark.parametrize(("changes", "label"), TYPED.values(), ids=TYPED)
def test_a_report_on_its_page_is_asked_for_with_what_it_knows_or_not_at_all(study, changes, label):
    response = logged_in(study.owner).post(reverse("analysis_start", args=[study.pk]), FORM | changes)
    assert response.status_code == 400 and f"{label}:" in response.content.decode() and not Job.objects.exists()


@pytest.mark.parametrize("token", ["", "\x00", "x" * 5000, "a b", "'", "٣" * 40])
def test_a_token_of_a_form_that_is_none_asks_all_the_same(study, token):
    assert (
        logged_in(study.owner).post(reverse("analysis_start", args=[study.pk]), FORM | {"token": token}).status_code
        == 302
    )
    assert Job.objects.count() == 1


COMMANDS = {
    "level": (["study", "report", "{study}", "--level", "nan"], "level"),
    "level infinite": (["study", "report", "{study}", "--level", "inf"], "level"),
    "resamples": (["study", "report", "{study}", "--resamples", "98"], "resamples"),
    "stars": (["study", "report", "{study}", "--star-scheme", "x"], "star_scheme"),
    "deltas": (["study", "report", "{study}", "--deltas", "nan"], "deltas"),
    "origins": (["study", "report", "{study}", "--origins", "mars"], "mars"),
    "no origin": (["study", "report", "{study}", "--origins", ""], "origins"),
    "origins of an export": (["study", "export", "{study}", "responses.csv", "--origins", "live,mars"], "origins: "),
    "no study": (["study", "report", "%00"], "no study %00"),
    "no code": (["study", "simulate", "\0"], "no study"),
    "no robots": (["study", "simulate", "{study}", "--robots", "0"], "--robots"),
    "no number of robots": (["study", "simulate", "{study}", "--robots", "٣.0"], "--robots"),
    "strength NaN": (["study", "simulate", "{study}", "--prefer", "alpha=nan"], "alpha=nan"),
    "strength infinite": (["study", "simulate", "{study}", "--prefer", "alpha=1e309"], "alpha=1e309"),
    "strength of nobody": (["study", "simulate", "{study}", "--prefer", "=1"], "=1"),
    "share NaN": (["study", "simulate", "{study}", "--acquiescent", "nan"], "--acquiescent"),
    "share above 1": (["study", "simulate", "{study}", "--abandoning", "1.1"], "--abandoning"),
}


@pytest.mark.parametrize(("words", "said"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_names_what_it_cannot_take_and_does_nothing(study, words, said):
    with connection_stays(), pytest.raises(CommandError, match=said):
        call_command(*(word.format(study=study.code) for word in words), stdout=StringIO(), stderr=StringIO())
    assert not AnalysisRun.objects.exists() and not study.assignments.exists()


# Data that are not yet whole


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 3])
def test_an_arm_in_which_nobody_answered_leaves_a_report_without_a_number_that_is_none(n):
    study = spa_draft(target_n=8, prompts=8, with_surveys=False)
    Arm.objects.create(study=study, name="shown examples", condition="examples")
    contrast = Contrast.objects.create(study=study, x_condition="examples", y_condition="none")
    # This protocol compares systems, so the checklist refuses a comparison of conditions.
    with pytest.raises(lifecycle.NotReady, match="this comparison names none"):
        launched(study)
    contrast.delete()
    study = launched(study)
    first = study.arms.get(name="all")
    for person in range(n):
        submitted(study, f"p{person}", arms=[first.pk])
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
    json.dumps(result, allow_nan=False)
    assert result["n"]["submitted"] == n and not result["problems"]
    found = [e for block in result["blocks"] for e in block["estimates"] if block["name"] == "spa.pairs"]
    assert found and all((e["estimate"] is None) is (n == 0) and (n > 1 or e["reason"]) for e in found)
