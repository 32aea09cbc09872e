"""What a program asks of a report: yes, no or open, about each planned comparison and about one claim in words."""

import pytest

from analysis.report.runs import run_analysis
from analysis.report.verdicts import NO, OPEN, YES, planned_claims_of, verdict_of, verdicts_of
from studies.services.lifecycle import FieldsRefused
from studies.services.questions import add_missing_comparisons
from tests.analysis.api.rest import api_of
from tests.analysis.protocols.answers import answer
from tests.analysis.report.reported import QUICK, closed, report
from tests.builders import add_rating, draft_study, launched, user

pytestmark = pytest.mark.django_db


def compared():
    draft = draft_study(systems=("alpha", "beta", "gamma"), owner=user(), target_n=24, prompts=24)
    add_rating(draft, position=1, m=3)
    add_missing_comparisons(draft, draft.owner)
    return launched(draft, draft.owner)


@pytest.fixture
def study():
    """Gamma is rated far better than the two others, and these two alike."""
    study = compared()
    answer(study, 24, rating=lambda person, system: 5 if system == "gamma" else 1 + person % 3)
    return closed(study)


def test_verdicts_are_what_the_report_says(study):
    planned = {one["claim"] for one in planned_claims_of(study)}
    result = report(study)
    assert planned == {one["claim"] for one in verdicts_of(result)}
    found = {(one["x"], one["y"]): one for one in verdicts_of(result)}
    assert len(found) == len(result["conclusions"]) == 3
    for (x, y), one in found.items():
        assert one["sentence"] in {conclusion["claim"] for conclusion in result["conclusions"]}
        wanted = OPEN if "gamma" not in (x, y) else YES if x == "gamma" else NO
        assert one["verdict"] == wanted, one
        # The claim may be asked from either side, with or without what it is about.
        for words in (one["claim"], f"  {x.upper()} beats  {y}"):
            assert verdict_of(verdicts_of(result), words)["verdict"] == wanted
        opposite = {YES: NO, NO: YES, OPEN: OPEN}[wanted]
        turned = verdict_of(verdicts_of(result), f"{y} beats {x}")
        assert (turned["verdict"], turned["x"], turned["y"]) == (opposite, y, x)
    for words, advice in {
        "Gamma beats alpah": "Write “gamma beats alpha” instead",
        "Delta wins": "claim. Remove it",
    }.items():
        with pytest.raises(FieldsRefused, match=f"{advice}.*The claims are: “"):
            verdict_of(verdicts_of(result), words)


def stored(**changes):
    """A conclusion as a report stores it."""
    claimed = {
        "hypothesis": "difference",
        "limit": None,
        "above": None,
        "below": None,
        "is_lower_better": False,
        "pvalue": 0.2,
    }
    claimed |= {name: changes.pop(name) for name in list(changes) if name in claimed}
    row = {"x": "new", "y": "old", "about": "", "side": "?", "role": "primary", "claim": "", "text": "", "warnings": []}
    return row | changes | {"claimed": claimed}


@pytest.mark.parametrize(
    ("claimed", "verdict"),
    [
        ({"above": 0.45}, YES),
        ({"above": 0.5}, YES),
        ({"above": 0.3}, OPEN),
        ({"below": 0.44}, NO),
        ({"below": 0.5}, OPEN),
        ({}, OPEN),
        ({"is_lower_better": True, "below": 0.45}, YES),
        ({"is_lower_better": True, "above": 0.45}, NO),
    ],
)
def test_a_claim_by_a_margin_is_decided_at_its_limit(claimed, verdict):
    conclusion = stored(hypothesis="noninferiority", limit=0.45, **claimed)
    (one,) = verdicts_of({"conclusions": [conclusion]})
    assert (one["claim"], one["verdict"]) == ("new is not worse than old", verdict)
    with pytest.raises(FieldsRefused):
        verdict_of([one], "old is not worse than new")


def test_systems_that_are_shown_to_be_equally_good_do_not_beat_each_other():
    verdicts = verdicts_of({"conclusions": [stored(side="~")]})
    assert [verdict_of(verdicts, claim)["verdict"] for claim in ("new beats old", "old beats new")] == [NO, NO]


def test_a_claim_that_fits_two_questions_must_be_named_whole():
    verdicts = verdicts_of({"conclusions": [stored(about="fluency"), stored(about="truth", side=">")]})
    with pytest.raises(FieldsRefused, match="“new beats old on fluency”; “new beats old on truth”"):
        verdict_of(verdicts, "new beats old")
    assert verdict_of(verdicts, "new beats old on truth")["verdict"] == YES


def test_a_claim_is_checked_while_its_outcome_is_hidden():
    study = compared()
    run_analysis(study, QUICK, by=None)
    api, at = api_of(study.owner), f"studies/{study.code}/verdict/"
    found = api.get(f"{at}?claim=gamma+beats+alpha").json()
    assert (found["analysis"], found["claims"]) == (1, []) and "still collecting" in found["reason"]
    assert api.get(f"{at}?claim=gamma+beats+delta").status_code == 400


def test_a_study_without_planned_comparisons_has_no_claim():
    draft = draft_study(owner=user())
    refused = api_of(draft.owner).get(f"studies/{draft.code}/verdict/?claim=new+beats+old")
    assert "no planned comparison" in refused.json()["errors"][0]["message"]


def test_a_verdict_over_rest(study):
    api, at = api_of(study.owner), f"studies/{study.code}/verdict/"
    none = api.get(at).json()
    assert (none["analysis"], none["claims"], none["state"]) == (None, [], "closed") and "no analysis" in none["reason"]
    assert api.get(f"{at}?claim=gamma+beats+alpha").json() == none
    assert api.get(f"{at}?claim=gamma+beats+delta").json()["errors"][0]["field"] == "claim"
    run_analysis(study, QUICK, by=None)
    found = api.get(at).json()
    assert (found["analysis"], len(found["claims"]), found["reason"]) == (1, 3, "")
    (one,) = api.get(f"{at}?claim=gamma+beats+alpha&analysis=1").json()["claims"]
    assert one["verdict"] == YES, one
    assert one["pvalue"] < 0.05
    refused = api.get(f"{at}?claim=alpha+beats+delta")
    assert refused.status_code == 400 and refused.json()["errors"][0]["field"] == "claim"
    assert refused.json()["detail"].startswith("The request is not valid."), "a read stores nothing anyway"
    assert api.get(f"{at}?analysis=2").status_code == 404
