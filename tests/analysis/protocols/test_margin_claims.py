"""Claims by a margin in a report: the test in its family, the sentence, the tables, and both directions of "better"."""

import numpy as np
import pandas as pd
import pytest

from analysis.protocols.blocks import sentences
from analysis.protocols.blocks.cells import verdict_direction_symbol, verdict_text
from analysis.protocols.spa_and_rating import _comparison_row
from analysis.protocols.two_choice.layouts import _outcome
from analysis.stats.results import Estimate, HypothesisTest
from studies.models import Contrast
from tests.analysis.protocols.analysed import analysed, block, claims_of
from tests.analysis.stats.comparisons import score_t
from tests.builders import add_marks, add_rating, draft_study

pytestmark = pytest.mark.django_db
SIZE = 2
NI, SUPERIORITY = Contrast.Hypothesis.NONINFERIORITY, Contrast.Hypothesis.SUPERIORITY_BY_MARGIN


def rating_section(**columns):
    study = draft_study(systems=("alpha", "beta"))
    section = add_rating(study, position=1)
    Contrast.objects.create(
        study=study,
        x=study.systems.get(name="beta"),
        y=study.systems.get(name="alpha"),
        estimand="difference",
        **columns,
    )
    return section


def rated(section, differences, *, family_size=SIZE, middle=3):
    """Return the block of differences: each annotator rates one prompt of alpha in the middle, and beta as much above it."""
    rows = [
        {
            "assignment": person, "annotator": f"a{person}", "section": section.position, "question": "overall",
            "system": system, "prompt": "p0", "sample": 0, "label": "AB"[place], "value": (value - 1) / 4,
            "is_kept": True, "is_kept_paper": True,
        }
        for person, difference in enumerate(differences)
        for place, (system, value) in enumerate({"alpha": middle, "beta": middle + difference}.items())
    ]  # fmt: skip
    blocks = analysed(
        "rating",
        pd.DataFrame(rows),
        [section],
        planned=claims_of("rating", section, family_size),
    )
    return block(blocks, "rating.difference"), blocks


LITTLE = [-1, 0, 0, 0, 1, 0, 0, 0, 0, 0] * 4
BETTER = [1, 1, 0, 1, 1, 1, 0, 1, 1, 1] * 4


def said(found):
    (sentence,) = sentences.build_conclusion_sentences([found])
    return sentence


def test_the_limit_takes_the_place_of_no_difference_in_the_family():
    section = rating_section(hypothesis=NI, margin=0.5)
    found, _ = rated(section, LITTLE)
    (estimate,) = found.estimates
    # The mean is above the limit, so twice the one-sided p is the two-sided one.
    expected = score_t(LITTLE, -0.5, (-4, 4))[0]
    assert estimate.test.pvalue == pytest.approx(expected)
    assert (estimate.test.null, estimate.test.alternative) == (-0.5, "greater")
    assert estimate.test.pvalue_adjusted == pytest.approx(SIZE * expected) and estimate.test.family_size == SIZE
    assert not any(other.analysis.endswith(".equivalence") for other in estimate.sensitivity)
    sentence = said(found)
    assert sentence["claim"] == "beta is not worse than alpha by more than 0.50, for exactly this prompt."
    assert "Bonferroni-adjusted p < .001 against −0.50; n = 40" in sentence["text"]
    assert "The whole interval is above −0.50, the limit that the margin sets." in sentence["text"]
    assert (sentence["verdict"], sentence["hypothesis"], sentence["recovered"]) == ("noninferior", "noninferiority", "")
    assert "H0: M(beta) − M(alpha) ≤ −0.50, t(23)" in sentence["apa"]


@pytest.mark.parametrize(
    ("hypothesis", "margin", "differences", "claim", "reason", "outcome"),
    [
        (
            NI, 0.5, BETTER,
            "beta has a higher mean rating than alpha, so beta is not worse by more than 0.50, for exactly this prompt.",
            "above −0.50, the limit that the margin sets, and above 0.00. One interval decides both, so “better” needs no further adjustment.",
            "recovered",
        ),
        (
            NI, 0.5, [-one for one in BETTER],
            "beta is worse than alpha by more than 0.50, for exactly this prompt.",
            "The whole interval is below −0.50, the limit that the margin sets, and below 0.00.",
            "contradicted",
        ),
        (
            NI, 0.8, [-one for one in BETTER],
            "beta has a lower mean rating than alpha, for exactly this prompt.",
            "The whole interval is below 0.00, and not wholly above −0.80, the limit that the margin sets.",
            "contradicted",
        ),
        (
            SUPERIORITY, 1.5, BETTER,
            "beta has a higher mean rating than alpha, but by less than 1.50, for exactly this prompt.",
            "The whole interval is below 1.50, the limit that the margin sets, but above 0.00.",
            "recovered",
        ),
        (
            SUPERIORITY, 0.5, LITTLE,
            "beta is not better than alpha by more than 0.50, and it remains open which of the two is better, for exactly this prompt.",
            "The whole interval is below 0.50, the limit that the margin sets.",
            "not shown",
        ),
        (
            SUPERIORITY, 0.1, LITTLE,
            "It remains open whether beta is better than alpha by more than 0.10, for exactly this prompt.",
            "The interval is not wholly above 0.10, the limit that the margin sets.",
            "not shown",
        ),
        (
            NI, 1.5, [-one for one in BETTER],
            "beta has a lower mean rating than alpha, but by less than the margin of 1.50, for exactly this prompt.",
            "above −1.50, the limit that the margin sets, but below 0.00.",
            "contradicted",
        ),
        (
            NI, 0.1, LITTLE,
            "It remains open whether beta is worse than alpha by more than 0.10, for exactly this prompt.",
            "The interval is not wholly above −0.10, the limit that the margin sets.",
            "not shown",
        ),
        (
            SUPERIORITY, 0.5, BETTER,
            "beta is better than alpha by more than 0.50, for exactly this prompt.",
            "The whole interval is above 0.50, the limit that the margin sets.",
            "recovered",
        ),
        (
            SUPERIORITY, 0.75, BETTER,
            "beta has a higher mean rating than alpha, but it remains open whether by more than 0.75, for exactly this prompt.",
            "The whole interval is above 0.00, but not above 0.75, the limit that the margin sets.",
            "recovered",
        ),
    ],
)  # fmt: skip
def test_the_sentence_says_what_the_interval_shows(hypothesis, margin, differences, claim, reason, outcome):
    found, _ = rated(rating_section(hypothesis=hypothesis, margin=margin, expected=">"), differences)
    sentence = said(found)
    assert sentence["claim"] == claim
    assert reason in sentence["text"]
    assert sentence["recovered"] == outcome


@pytest.mark.parametrize("hypothesis", [NI, SUPERIORITY])
@pytest.mark.parametrize("differences", [LITTLE, BETTER, [-one for one in BETTER]])
def test_where_lower_ratings_are_better_everything_is_mirrored(hypothesis, differences):
    higher, _ = rated(rating_section(hypothesis=hypothesis, margin=0.5), differences)
    section = rating_section(hypothesis=hypothesis, margin=0.5)
    question = section.questions.get()
    question.scale |= {"is_lower_better": True}
    question.save()
    lower, _ = rated(section, [-one for one in differences])
    (above,), (below,) = higher.estimates, lower.estimates
    assert below.test.alternative == "less" and below.test.null == -above.test.null
    assert below.test.pvalue == pytest.approx(above.test.pvalue)
    assert below.detail["verdict"] == above.detail["verdict"]
    one, other = said(higher)["claim"], said(lower)["claim"]
    swapped = {" higher ": " lower ", " lower ": " higher "}
    for word, mirrored in swapped.items():
        if word in one:
            assert other == one.replace(word, mirrored)
            break
    else:
        assert other == one


def test_fewer_errors_are_better():
    study = draft_study(systems=("alpha", "beta"))
    section = add_marks(study, margin=1.0)
    study.contrasts.update(hypothesis=NI)
    rng = np.random.default_rng(3)
    # beta has about one error less than alpha, so x = beta is better.
    rows = []
    for person in range(20):
        for system, mean in (("alpha", 2.0), ("beta", 1.0)):
            base = {
                "assignment": person, "annotator": f"a{person}", "section": 1, "item": "s1.1", "prompt": "p001", "system": system,
                "sample": 0, "is_kept": True, "is_kept_paper": True,
            }  # fmt: skip
            penalty = int(rng.poisson(mean))
            rows += [base | {"question": "errors", "choice": "style", "value": penalty / 100, "part": "1"}]
            rows += [base | {"question": "score", "choice": "", "value": (90 - 10 * penalty) / 100, "part": ""}]
    blocks = analysed("marks", pd.DataFrame(rows), [section], planned=claims_of("marks", section, 2))
    for name in ("marks.penalty", "marks.score"):
        (estimate,) = block(blocks, name).estimates
        assert estimate.estimate > 0 and estimate.test.null == -1.0 and estimate.test.alternative == "greater"
        assert estimate.detail["verdict"] in ("noninferior", "better")
        assert (
            "p tests the limit that the margin sets in beta > alpha: -1, by the 97.5 % interval."
            in block(blocks, name).tables[0]["note"]
        )


def test_a_comparison_of_another_estimand_keeps_its_test_of_difference():
    found, blocks = rated(rating_section(hypothesis=NI, margin=0.5), BETTER)
    (chance,) = block(blocks, "rating.superiority").estimates
    assert chance.test.null == 0.5 and chance.test.alternative == "two-sided"
    assert chance.settings["contrast"]["hypothesis"] == "difference"
    (paper,) = block(blocks, "rating.difference", "paper").estimates
    assert paper.test.null == 0.0 and "claim" not in paper.settings
    assert found.estimates[0].settings["claim"]["limit"] == -0.5


def test_too_few_annotators_or_a_margin_to_the_end_of_the_scale_give_no_claim():
    found, _ = rated(rating_section(hypothesis=NI, margin=0.5), [0, 1, 0])
    assert said(found)["claim"].startswith("It remains open whether beta or alpha has the higher mean rating")
    assert found.estimates[0].test is None
    found, _ = rated(rating_section(hypothesis=NI, margin=4.0), LITTLE)
    assert found.estimates[0].status == "not_applicable"
    assert "No test: the margin 4 reaches the end of the scale." in said(found)["text"]


def test_the_methods_text_says_how_such_claims_are_tested():
    found, _ = rated(rating_section(hypothesis=NI, margin=0.5), LITTLE)
    report = {
        "flow": {"arrived": 1, "submitted": 1, "rules": []},
        "design": {"versions": []},
        "confirmatory": {"is_confirmatory": True, "reasons": []},
        "n": {"kept": 1, "kept_paper": 1},
        "missing_answers": {"planned": 0},
        "sections": [],
        "families": [],
        "blocks": [],
        "parameters": {"level": 0.95, "resamples": 99},
        "seed": "0",
        "code_version": "1",
        "libraries": {},
        "conclusions": sentences.build_conclusion_sentences([found]),
    }
    line = (
        "The two-sided interval decides such a claim, so half of the significance level is spent on the claimed side."
    )
    assert any(line in text for text in sentences.methods_section_lines(report))
    report["conclusions"] = [{"hypothesis": "difference", "claimed": {"withheld": ""}}]
    assert not any(line in text for text in sentences.methods_section_lines(report))


@pytest.mark.parametrize(
    ("verdict", "limit", "text", "outcome", "symbol"),
    [
        ("noninferior", 0.45, "not worse by more than the margin", "not worse by more than the margin", "?"),
        ("noninferior_but_worse", 0.45, "worse, by less than the margin", "worse, by less than the margin", "<"),
        ("superior_by_margin", 0.55, "better by more than the margin", "better by more than the margin", ">"),
        ("better", 0.45, "better", "x is better", ">"),
        ("worse", 0.45, "worse", "y is better", "<"),
        ("inconclusive", 0.45, "inconclusive", "open", "?"),
    ],
)
def test_tables_name_the_verdict(verdict, limit, text, outcome, symbol):
    test = HypothesisTest(name="t", null=limit, statistic=1.0, pvalue=0.01, alternative="greater")
    hypothesis = NI if limit < 0.5 else SUPERIORITY
    claim = {"hypothesis": hypothesis, "null": 0.5, "margin": 0.05, "is_lower_better": False, "limit": limit}
    estimate = Estimate(
        analysis="a", estimand="b", unit="annotator", n=9, estimate=0.5, test=test, detail={"verdict": verdict}, settings={"claim": claim}
    )  # fmt: skip
    assert verdict_text(estimate) == text
    assert _outcome(estimate) == outcome
    assert verdict_direction_symbol(estimate) == symbol


def test_the_table_of_stated_chances_says_what_was_found():
    contrast = {"x": "a", "y": "b", "criterion": "", "section": 1, "expected": "", "key": "a > b", "level": 0.05}
    test = HypothesisTest(name="t", null=0.45, statistic=1.0, pvalue=0.01, alternative="greater")
    estimate = Estimate(
        analysis="spa.pair",
        estimand="b",
        unit="annotator",
        n=9,
        estimate=0.5,
        test=test,
        detail={"verdict": "noninferior"},
        settings={"contrast": contrast, "claim": {"limit": 0.45}},
    )
    assert _comparison_row(contrast, estimate, None, None, {})["found"] == "not worse by more than the margin"
