"""Families over several protocols: their methods, their order, and what a report says of both."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.protocols.blocks.comparisons import Comparison
from analysis.protocols.families import adjust_comparisons
from analysis.report.build import _adjust_what_can_be, build_report
from analysis.stats import basic, multiplicity
from studies.models import ComparisonFamily, Contrast, Study
from studies.services import lifecycle
from tests.builders import add_ranking, add_relative, draft_study, launched
from tests.players import play

SPA, RELATIVE = "spa.pairs", "relative.score"


def family(name, adjustment="bonferroni", after=""):
    return SimpleNamespace(name=name, adjustment=adjustment, after=after)


def compared(x, effect, family="primary", n=30, **settings):
    """A planned comparison with an estimate: a mean of ``effect`` standard deviations, tested against 0."""
    comparison = Comparison(1, x, "z", role="primary", family=family, is_planned=True, **settings)
    values = np.random.default_rng(len(x) + ord(x[0])).normal(0, 1, n)
    values = (values - values.mean()) / values.std(ddof=1) + effect
    estimate = basic.one_sample_t_test(values, null=0.0)
    tost = comparison.equivalence_tests(estimate, null=0.0)
    return comparison, comparison.tag_estimate(replace(estimate, sensitivity=tost), "mean")


def adjusted(declared, *, missing=(), **pairs_by_block):
    names = {"spa": SPA, "relative": RELATIVE}
    pairs = {names[block]: pairs for block, pairs in pairs_by_block.items()}
    claims = {block: [comparison for comparison, _ in rows] for block, rows in pairs.items()}
    claims.setdefault(SPA, []).extend(missing)
    results = adjust_comparisons(pairs, claims, declared)
    return {estimate.settings["contrast"]["x"]: estimate for estimates in results.values() for estimate in estimates}


@pytest.mark.parametrize("method", ["bonferroni", "holm", "hommel"])
def test_a_family_spans_protocols_and_a_missing_claim_counts_as_one(method):
    spa, relative = [compared("a", 0.5), compared("b", 0.45)], [compared("c", 0.42), compared("d", 0.1)]
    missing = Comparison(1, "e", "z", role="primary", family="primary", is_planned=True)
    found = adjusted([family("primary", method)], missing=[missing], spa=spa, relative=relative)
    pvalues = [estimate.pvalue for _, estimate in (*spa, *relative)]
    wanted = multiplicity.METHODS[method]([*pvalues, None])[:4]
    assert_allclose([found[x].test.pvalue_adjusted for x in "abcd"], wanted)
    assert {found[x].test.family_size for x in "abcd"} == {5} and {found[x].test.adjust for x in "abcd"} == {method}
    assert [found[x].interval_adjusted is None for x in "abcd"] == [method != "bonferroni"] * 4


def test_without_a_declared_family_bonferroni_adjusts_it():
    found = adjusted([], spa=[compared("a", 0.5)], relative=[compared("c", 0.42)])
    assert (
        found["a"].test.adjust == "bonferroni" and found["a"].test.family_size == 2 and "gate" not in found["a"].detail
    )


def test_an_open_gate_lets_the_next_family_use_its_full_level():
    first, second = compared("a", 0.6), compared("b", 0.5, "secondary")
    found = adjusted([family("secondary", after="primary")], spa=[second], relative=[first])
    assert found["b"].detail["verdict"] == "different" and found["b"].detail["gate"]["is_open"]
    assert found["b"].test.pvalue_adjusted == max(first[1].pvalue, second[1].pvalue) == second[1].pvalue
    assert found["b"].test.stars and found["b"].test.family_size == 1


def test_a_closed_gate_leaves_the_next_families_untested():
    rows = [family("secondary", after="primary"), family("third", "hommel", "secondary")]
    pairs = [compared("a", 0.6), compared("c", 0.1), compared("b", 0.9, "secondary"), compared("d", 0.9, "third")]
    found = adjusted(rows, spa=pairs[::-1])
    for x in "bd":
        assert found[x].detail["verdict"] == "not_tested" and found[x].test.stars is None
        assert found[x].test.pvalue_adjusted == found["c"].test.pvalue_adjusted > 0.05
        assert found[x].interval_adjusted is None
    assert found["a"].detail["verdict"] == "different"


def test_a_gate_needs_each_comparison_at_its_own_level():
    rows = [family("secondary", after="primary")]
    second = compared("b", 0.9, "secondary")
    strict, wide = (compared("a", 0.45, level=level) for level in (0.01, 0.05))
    assert 0.01 < strict[1].pvalue < 0.05
    assert adjusted(rows, spa=[strict, second])["b"].detail["verdict"] == "not_tested"
    assert adjusted(rows, spa=[wide, second])["b"].detail["verdict"] == "different"


def test_an_expected_equivalence_is_shown_by_its_own_test():
    rows = [family("secondary", after="primary")]
    second = compared("b", 0.9, "secondary")
    same = compared("a", 0.02, expected="~", margin=0.5)
    found = adjusted(rows, spa=[same, second])
    (tost,) = found["a"].sensitivity
    assert found["a"].detail["verdict"] == "equivalent" and found["b"].detail["verdict"] == "different"
    assert found["b"].test.pvalue_adjusted == tost.test.pvalue_adjusted > second[1].pvalue
    # A difference that was expected is not shown by equivalence.
    found = adjusted(rows, spa=[compared("a", 0.02, expected=">", margin=0.5), second])
    assert found["a"].detail["verdict"] == "equivalent" and found["b"].detail["verdict"] == "not_tested"


def test_a_claim_by_a_margin_opens_the_gate_of_the_next_family():
    rows = [family("secondary", after="primary")]
    second = compared("b", 0.9, "secondary")
    not_worse = compared("a", 0.05, hypothesis="noninferiority", margin=0.5)
    found = adjusted(rows, spa=[not_worse, second])
    assert found["a"].detail["verdict"] == "noninferior" and found["a"].test.null == -0.5
    assert found["b"].detail["verdict"] == "different" and found["b"].detail["gate"]["is_open"]
    # A difference does not show a claim by a larger margin.
    found = adjusted(rows, spa=[compared("a", 0.5, hypothesis="superiority_by_margin", margin=0.9), second])
    assert found["a"].detail["verdict"] == "inconclusive" and found["b"].detail["verdict"] == "not_tested"


def test_a_family_that_is_a_gate_shows_its_claim_alone():
    """The level that "better" would use goes to the next family."""
    better = compared("a", 0.9, hypothesis="noninferiority", margin=0.5)
    second = compared("b", 0.9, "secondary")
    assert adjusted([], spa=[better, second])["a"].detail["verdict"] == "better"
    rows = [family("secondary", after="primary")]
    assert adjusted(rows, spa=[better, second])["a"].detail["verdict"] == "noninferior"


def test_behind_a_closed_gate_a_claim_by_a_margin_is_not_tested():
    rows = [family("secondary", after="primary")]
    claim = compared("b", 0.9, "secondary", hypothesis="noninferiority", margin=0.5)
    found = adjusted(rows, spa=[compared("a", 0.0), claim])
    assert found["b"].detail["verdict"] == "not_tested"


def test_equivalence_is_adjusted_by_the_same_method_and_waits_too():
    same = [compared(x, 0.02, "secondary", margin=0.5, expected="~") for x in "bc"]
    rows = [family("secondary", "hommel", "primary")]
    found = adjusted(rows, spa=[compared("a", 0.6), *same])
    tosts = [found[x].sensitivity[0].test for x in "bc"]
    assert {test.adjust for test in tosts} == {"hommel"} and {test.family for test in tosts} == {
        "secondary.equivalence"
    }
    assert {found[x].detail["verdict"] for x in "bc"} == {"equivalent"}
    found = adjusted(rows, spa=[compared("a", 0.1), *same])
    assert {found[x].detail["verdict"] for x in "bc"} == {"not_tested"}


@pytest.mark.parametrize(
    "rows",
    [
        [family("primary", after="nobody")],
        [family("primary", after="secondary"), family("secondary", after="primary")],
    ],
    ids=["of a family without comparisons", "in a circle"],
)
def test_a_gate_that_nothing_can_open_is_closed(rows):
    found = adjusted(rows, spa=[compared("a", 0.9), compared("b", 0.9, "secondary")])
    assert found["a"].detail["verdict"] == "not_tested"


def test_a_missing_claim_closes_the_gate():
    missing = Comparison(1, "e", "z", role="primary", family="primary", is_planned=True)
    rows = [family("secondary", after="primary")]
    found = adjusted(rows, missing=[missing], spa=[compared("a", 0.9), compared("b", 0.9, "secondary")])
    assert found["a"].detail["verdict"] == "different" and found["b"].detail["verdict"] == "not_tested"
    assert found["b"].test.pvalue_adjusted == 1.0


def decided(x, pvalue, verdict, level=0.975, **settings):
    """What a stopping rule decided, with its own interval and anytime-valid p."""
    comparison, estimate = compared(x, 0.6, **settings)
    return comparison, replace(
        estimate,
        analysis="choice.preference.sequential",
        test=replace(estimate.test, pvalue=pvalue),
        interval=replace(estimate.interval, level=level),
        detail={**estimate.detail, "verdict": verdict},
    )


def test_what_a_stopping_rule_decided_shares_the_level_and_opens_the_gate():
    rows = [family("primary", "hommel"), family("secondary", after="primary")]
    pairs = [decided("a", 0.01, "different"), compared("b", 0.5), compared("c", 0.9, "secondary")]
    found = adjusted(rows, spa=pairs)
    assert found["a"].test.pvalue_adjusted == 0.02 and found["a"].detail["verdict"] == "different"
    # For the others of its family it counts as 1.
    assert_allclose(found["b"].test.pvalue_adjusted, 2 * pairs[1][1].pvalue)
    assert found["c"].detail["verdict"] == "different"
    assert found["c"].test.pvalue_adjusted == max(0.02, found["b"].test.pvalue_adjusted)
    found = adjusted(rows, spa=[decided("a", 0.3, "inconclusive"), *pairs[1:]])
    assert found["c"].detail["verdict"] == "not_tested"
    # A family is declared by a row of its own, or as the one before another.
    found = adjusted(rows[1:], spa=[pairs[0], pairs[2]])
    assert found["a"].test.pvalue_adjusted == found["c"].test.pvalue_adjusted == 0.01
    assert found["c"].detail["verdict"] == "different"


def test_a_stopping_rule_without_a_declared_family_says_what_it_does_not_count():
    alone = adjusted([], spa=[decided("a", 0.01, "different", level=0.95)])
    assert "family_not_counted" not in alone["a"].detail
    shared = adjusted([], spa=[decided("a", 0.01, "different", level=0.975), compared("b", 0.5)])
    assert "family_not_counted" not in shared["a"].detail
    beside = adjusted([], spa=[decided("a", 0.01, "different", level=0.97), compared("b", 0.5)])
    assert beside["a"].detail["family_not_counted"] == ["primary", 2]
    assert beside["a"].test.pvalue_adjusted is None and beside["a"].detail["verdict"] == "different"


# Whole reports.

PEOPLE = 16


@pytest.fixture
def report_of(same_orders):
    def made(primary, declared):
        """Beta and gamma are much better than alpha, and alike. Rankings and relative points are two protocols."""
        study = draft_study(prompts=160, target_n=PEOPLE, instructions="")
        add_ranking(study, position=1, m=3)
        study.contrasts.all().delete()
        add_relative(study, position=2, m=4)
        Contrast.objects.filter(study=study).update(role="secondary")
        Contrast.objects.filter(study=study, x__name=primary).update(role="primary")
        for columns in declared:
            ComparisonFamily.objects.create(study=study, **columns)
        launched(study)
        for n in range(PEOPLE):
            play(study, n, strengths={"alpha": 0.0, "beta": 3.0, "gamma": 3.0})
        for step in (lifecycle.start_closing, lifecycle.end_grace_period):
            step(Study.objects.get(pk=study.pk), by=None)
        result = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
        assert not result["problems"], result["problems"]
        by_role = {"primary": [], "secondary": []}
        for one in result["conclusions"]:
            by_role[one["role"]].append(one)
        return result, by_role

    return made


GATED = ({"name": "primary", "adjustment": "hommel"}, {"name": "secondary", "adjustment": "holm", "after": "primary"})


@pytest.mark.slow
@pytest.mark.django_db
def test_a_report_whose_gate_is_open(report_of):
    result, said = report_of("beta", GATED)
    assert [len(rows) for rows in said.values()] == [2, 2]
    assert {one["verdict"] for one in said["primary"]} == {"different"}
    for one in said["primary"]:
        assert "Hommel-adjusted p" in one["text"] and "confidence interval" not in one["text"]
        assert "Hommel's method gives no interval that agrees with p; the table has" in one["text"]
        assert "CI" not in one["apa"] and "Hommel-adjusted p" in one["apa"]
    assert "not_tested" not in {one["verdict"] for one in said["secondary"]}
    assert "Holm-adjusted p" in said["secondary"][0]["text"]
    families = {one["family"]: one for one in result["families"]}
    assert families["primary"] == {"family": "primary", "size": 2, "adjust": "hommel"}
    assert families["secondary"] == {
        "family": "secondary", "size": 2, "adjust": "holm", "after": "primary", "is_tested": True,
    }  # fmt: skip
    methods = " ".join(result["methods"])
    assert (
        "The family secondary is tested only if all comparisons of the family primary were shown; it was tested."
        in methods
    )
    (table,) = [one for one in result["tables"] if one["name"] == "relative"]
    assert "In families with Holm's or Hommel's method" in table["note"] and "was not tested" not in table["note"]
    assert all(row["score_interval"] for row in table["rows"])


@pytest.mark.slow
@pytest.mark.django_db
def test_a_report_whose_gate_is_closed(report_of):
    result, said = report_of("gamma", GATED)
    assert "different" not in {one["verdict"] for one in said["primary"]}
    for one in said["secondary"]:
        assert one["verdict"] == "not_tested" and one["recovered"] == ""
        assert one["claim"].endswith("not tested, because not all comparisons of the family “primary” were shown.")
        assert one["text"].startswith("These numbers only describe. ") and "p " not in one["text"].split(";")[2]
        assert "95 % confidence interval" in one["text"] and "Expected" not in one["text"]
        assert "not tested" in one["apa"] and "p <" not in one["apa"] and "CI" in one["apa"]
    (table,) = [one for one in result["tables"] if one["name"] == "relative"]
    rows = {row["role"]: row for row in table["rows"]}
    assert rows["secondary"]["score_p"] is None and rows["secondary"]["score_interval"]
    assert "A comparison without p was not tested" in table["note"]
    (ranked,) = [one for one in result["tables"] if one["name"] == "ranking_pairs"]
    assert {row["role"]: row["verdict"] for row in ranked["rows"]}["secondary"] == "not tested"
    estimates = [
        e for b in result["blocks"] if b["name"] == RELATIVE and b["mode"] == "recommended" for e in b["estimates"]
    ]
    assert {e["detail"]["verdict"] for e in estimates if e["settings"]["contrast"]["role"] == "secondary"} == {
        "not_tested"
    }
    assert "it was not tested" in " ".join(result["methods"])


def test_comparisons_that_cannot_be_adjusted_cost_their_protocol_alone():
    class Broken:
        df = None
        bounds = None

        def interval(self, level):
            raise FloatingPointError("no such interval")

    def analysis(pairs):
        return SimpleNamespace(compared={pairs[0]: pairs[1]})

    good, (comparison, estimate) = compared("a", 0.6), compared("b", 0.6)
    started = {
        "spa": analysis((SPA, [good])),
        "relative": analysis((RELATIVE, [(comparison, replace(estimate, _curve=Broken()))])),
    }
    claims = {SPA: [good[0]], RELATIVE: [comparison]}
    problems = []
    sound, results = _adjust_what_can_be(started, problems, {"claims": claims, "star_scheme": "10/5/1"})
    assert list(sound) == ["spa"] and [problem["row"] for problem in problems] == ["protocol relative"]
    # The claim that is lost still counts.
    assert results[SPA][0].test.family_size == 2 and results[SPA][0].detail["verdict"] == "different"
