"""A report says how few answers and people each claim rests on, in every protocol."""

import pytest
from django.urls import reverse

from analysis.models import AnalysisRun
from analysis.protocols.blocks.cells import claim_of
from analysis.report import build, fragility
from analysis.report.build import build_report
from analysis.report.runs import run_analysis
from annotators.models import Annotator
from tests.analysis.protocols.answers import answer
from tests.analysis.report.compared_studies import PROTOCOLS, ROBOTS, WITHOUT, rated, simulated
from tests.analysis.report.reported import report
from tests.builders import (
    spa_study,
    user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def judged_again(monkeypatch):
    """The claims of a report beside the same claims by a refit without leaving out anybody."""
    pairs = []
    original = fragility._fragility

    def compare(blocks, estimate, claim, refits):
        if estimate.answers is not None:
            whole = estimate.answers.refit(estimate.answers.annotators == estimate.answers.annotators)
            others = fragility._others_of_family(blocks, estimate)
            pairs.append((claim_of(estimate), fragility._judge_again(estimate, whole, others)))
        return original(blocks, estimate, claim, refits)

    monkeypatch.setattr(fragility, "_fragility", compare)
    return pairs


@pytest.mark.parametrize("adjustment", ["bonferroni", "hommel"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_claim_has_numbers_and_a_refit_of_all_answers_is_the_same_claim(protocol, adjustment, judged_again):
    study = simulated(PROTOCOLS[protocol], families=[("primary", adjustment)])
    result = build_report(study, ROBOTS)
    assert not result["problems"]
    claims = [one for one in result["conclusions"] if one["verdict"] not in (None, "inconclusive")]
    assert [one["claim"] for one in claims] == [one["claim"] for one in result["fragility"]] != []
    for one in result["fragility"]:
        for removal in (one["answers"], one["people"]):
            assert removal["n"] is None or (removal["is_confirmed"] and 0 < removal["n"] <= removal["total"] / 2)
            assert removal["n"] is not None or removal["reason"]
        assert one["people"]["total"] <= 16 and one["sentence"].endswith(".")
    assert judged_again
    for claim, again in judged_again:
        assert again.pvalue == pytest.approx(claim.pvalue)
        assert (again.verdict, again.above, again.below) == (claim.verdict, claim.above, claim.below)


@pytest.mark.parametrize(
    ("contrast", "verdicts"),
    [
        ({"hypothesis": "noninferiority", "margin": 0.1}, {"better", "noninferior", "worse"}),
        ({"hypothesis": "superiority_by_margin", "margin": 0.05}, {"superior_by_margin", "better", "worse"}),
        ({"margin": 0.45}, {"different_but_trivial", "different", "equivalent"}),
    ],
)
def test_claims_by_a_margin_are_judged_as_in_the_report(contrast, verdicts, judged_again):
    result = build_report(simulated(PROTOCOLS["ranking"], contrast=contrast), ROBOTS)
    assert judged_again and {claim.verdict for claim, _ in judged_again} <= verdicts
    for claim, again in judged_again:
        assert (again.verdict, again.above, again.below) == (claim.verdict, claim.above, claim.below)
    assert all(one["answers"]["total"] for one in result["fragility"])


@pytest.mark.parametrize("protocol", WITHOUT)
def test_what_cannot_be_refitted_has_a_reason(protocol):
    result = build_report(simulated(WITHOUT[protocol], people=24), ROBOTS)
    for one in result["fragility"]:
        assert one["people"]["status"] == "not_applicable" and one["people"]["reason"] in one["sentence"]
    assert len(result["fragility"]) == sum(
        one["verdict"] not in (None, "inconclusive") for one in result["conclusions"]
    )


def test_without_the_named_people_the_report_itself_claims_nothing():
    study = rated()
    result = report(study)
    (one,), (conclusion,) = result["fragility"], result["conclusions"]
    assert conclusion["verdict"] == "different" and one["people"]["challenger"] == "inconclusive"
    n = one["people"]["n"]
    assert one["sentence"] == f"Without {n} of 14 people ({100 * n / 14:.1f} %), it would remain open."
    frame = build.read_report_data(study, ["live"]).assignments
    rows = frame.loc[frame["annotator"].isin(one["people"]["removed"]), "assignment"].tolist()
    assert len(rows) == n
    for left_out, verdict in ((rows[:-1], "different"), (rows, None)):
        study.assignments.filter(pk__in=left_out).update(submitted_at=None)
        assert report(study)["conclusions"][0]["verdict"] == verdict


def test_while_outcomes_are_hidden_nothing_is_computed():
    study = spa_study(target_n=12)
    answer(study, 10, percent=lambda person, x, y: 90)
    assert report(study)["fragility"] == []


def test_an_error_in_the_search_leaves_the_report(monkeypatch):
    monkeypatch.setattr(fragility, "_fragility", None)
    result = report(rated())
    assert result["fragility"] == [] and result["conclusions"]
    assert [one["row"] for one in result["problems"]] == ["part fragility"] and result["n_problems"] == 1


def test_the_page_has_the_sentences_and_says_what_an_older_report_lacks(client):
    owner = user()
    study = rated()
    study.members.create(user=owner, role="owner")
    run = run_analysis(study, {"resamples": 99}, by=owner)
    client.force_login(owner)
    address = reverse("analysis", args=[study.pk, run.number])
    (one,) = run.result["fragility"]
    text = client.get(address).content.decode()
    assert one["sentence"] in text and one["people"]["removed"][0] not in text.partition("Everything")[0]
    old = {name: value for name, value in run.result.items() if name != "fragility"}
    AnalysisRun.objects.bulk_create(
        [
            AnalysisRun(
                **{
                    name: getattr(run, name)
                    for name in (
                        "study_id",
                        "parameters",
                        "responses_n",
                        "responses_sha256",
                        "design_sha256s",
                        "code_version",
                        "seed",
                        "result_sha256",
                    )
                },
                number=2,
                result=old,
            )
        ]
    )
    text = client.get(reverse("analysis", args=[study.pk, 2])).content.decode()
    assert "was not computed in this version" in text and one["sentence"] not in text


def test_people_are_named_by_pseudonym_only():
    result = report(rated())
    external = set(Annotator.objects.values_list("external_id", flat=True))
    assert not external & {str(name) for one in result["fragility"] for name in one["people"]["removed"]}
