"""What rankings say: counted by hand, over items and prompts, with planted references apart."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from analysis.report.build import build_report
from annotators.models import Response
from annotators.participation.simulate import record_simulated_answers
from studies.models import Study
from studies.services import lifecycle
from tests.analysis.protocols.analysed import analysed
from tests.builders import add_ranking, draft_study, launched

pytestmark = pytest.mark.django_db


def draft(*, m=2, settings=None, **columns) -> Study:
    study = draft_study(instructions="", **columns)
    add_ranking(study, m=m, **(settings or {}))
    return study


def frame_of(section, rankings, items=None):
    """``rankings``: of each annotator the ranks of alpha, beta, gamma, one tuple an item."""
    rows = [
        {
            "assignment": person,
            "annotator": f"a{person}",
            "section": section.position,
            "question": "place",
            "system": system,
            "item": items[number] if items else f"s1.{person}-{number}",
            "prompt": f"p{items[number] if items else f'{person}-{number}'}",
            "label": "ABC"[(place + person) % 3],
            "value": (rank - 1) / 25,
            "is_kept": True,
            "is_kept_paper": True,
        }
        for person, mine in enumerate(rankings)
        for number, ranks in enumerate(mine)
        for place, (system, rank) in enumerate(zip(("alpha", "beta", "gamma"), ranks, strict=True))
    ]
    frame = pd.DataFrame(rows)
    return frame


RANKINGS = [
    [(3, 2, 1), (3, 1, 2)],
    [(2.5, 2.5, 1), (3, 2, 1)],
    [(1, 2, 3), (3, 1.5, 1.5)],
    [(3, 2, 1), (2, 2, 2)],
    [(3, 2, 1), (2, 3, 1)],
    [(3, 1, 2), (3, 2, 1)],
]


def test_the_report_counts_by_hand():
    section = draft().sections.get()
    blocks = {block.name: block for block in analysed("ranking", frame_of(section, RANKINGS), [section])}
    by_pair = {(e.settings["contrast"]["x"], e.settings["contrast"]["y"]): e for e in blocks["ranking.share"].estimates}
    assert list(by_pair) == [("beta", "alpha"), ("gamma", "beta"), ("alpha", "gamma")]
    beta = by_pair["beta", "alpha"]
    # Of 12 rankings beta is above alpha in 8, beside it in 2.
    assert (beta.detail["n_above"], beta.detail["n_ties"], beta.detail["n_below"]) == (8, 2, 2)
    assert beta.estimate == pytest.approx(9 / 12) and (beta.n, beta.n_rows, beta.unit) == (6, 12, "annotator")
    assert beta.test.family == "ranking.share.primary" and beta.test.family_size == 2
    assert by_pair["alpha", "gamma"].test.family == "ranking.share.not planned"
    means = {e.settings["system"]: e.estimate for e in blocks["ranking.means"].estimates}
    assert means == pytest.approx(
        {
            name: np.mean([ranks[n] for mine in RANKINGS for ranks in mine])
            for n, name in enumerate(("alpha", "beta", "gamma"))
        }
    )
    assert sum(means.values()) == pytest.approx(6)
    strengths = {e.detail["system"]: e.estimate for e in blocks["ranking.strengths"].estimates if e.detail["system"]}
    assert strengths["gamma"] > strengths["beta"] > strengths["alpha"] and sum(strengths.values()) == pytest.approx(0)
    friedman = blocks["ranking.friedman"]
    assert friedman.mode == "paper" and friedman.estimates[0].n == 6 and friedman.estimates[0].test.df == 2
    assert "krippendorff" not in str([e.analysis for e in blocks["ranking.checks"].estimates])


def test_agreement_is_over_items_that_several_ranked():
    section = draft().sections.get()
    same = frame_of(section, [[(3, 2, 1)], [(3, 2, 1)], [(3, 2, 1)]], items=["s1.1"])
    blocks = {block.name: block for block in analysed("ranking", same, [section])}
    alpha = next(e for e in blocks["ranking.checks"].estimates if "krippendorff" in e.analysis)
    assert alpha.estimate == pytest.approx(1) and (alpha.n, alpha.unit) == (3, "output")
    assert blocks["ranking.friedman"].estimates[0].estimate == pytest.approx(1)
    assert blocks["ranking.strengths"].other_results["status"] == "separation"


def test_the_interval_of_agreement_is_over_prompts():
    """Who puts alpha last puts another first: two outputs of a prompt are disputed together or not at all."""
    section = draft().sections.get()
    apart = [(3, 2, 1) if prompt % 3 == 0 else (1, 2, 3) for prompt in range(36)]
    frame = frame_of(section, [[(1, 2, 3)] * 36, apart], items=[f"s1.{prompt}" for prompt in range(36)])
    blocks = {block.name: block for block in analysed("ranking", frame, [section])}
    alpha = next(e for e in blocks["ranking.checks"].estimates if "krippendorff" in e.analysis)
    ranks = np.array([[(1, 2, 3)] * 36, apart], float)  # annotators, prompts, systems

    def alpha_of(prompts):
        mine = ranks[:, prompts].reshape(2, -1)
        every = mine.ravel()
        expected = ((every[:, None] - every[None, :]) ** 2).sum() / (len(every) * (len(every) - 1))
        return 1 - ((mine[0] - mine[1]) ** 2).mean() / expected

    assert alpha.estimate == pytest.approx(alpha_of(np.arange(36))) and (alpha.n, alpha.n_clusters) == (108, 36)
    rng = np.random.default_rng(0)
    drawn = np.quantile([alpha_of(rng.integers(0, 36, 36)) for _ in range(999)], [0.025, 0.975])
    # Over outputs both ends would be nearer by .08 and .13.
    assert (alpha.interval.low, alpha.interval.high) == pytest.approx(tuple(drawn), abs=0.06)


def test_a_report_on_nothing_or_on_one_ranking_says_so():
    section = draft().sections.get()
    alone = frame_of(section, [[(3, 2, 1)]])
    (block,) = analysed("ranking", alone[alone["section"] == 9], [section])
    assert {e.status for e in block.estimates} == {"no_data"}
    alone = {block.name: block for block in analysed("ranking", alone, [section])}
    assert {e.status for e in alone["ranking.share"].estimates} == {"n_lt_2"}


@pytest.mark.slow
def test_robots_that_prefer_are_found_out(same_orders):
    study = launched(draft(target_n=30, prompts=60, m=4))
    record_simulated_answers(study, 30, {"alpha": 0.0, "beta": 0.0, "gamma": 2.0})
    assert Response.objects.filter(value=Decimal("1.5")).exists(), "robots tie"
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 99, "origins": ["robot"]})
    assert not result["problems"]
    tables = {one["name"]: one["rows"] for one in result["tables"]}
    assert tables["ranking_systems"][0]["system"] == "gamma" and tables["ranking_systems"][0]["lowest"] == 1
    verdicts = {row["pair"]: row["verdict"] for row in tables["ranking_pairs"]}
    assert verdicts["gamma > beta"] == "different" and verdicts["beta > alpha"] == "inconclusive"
    assert result["conclusions"][1]["claim"] == "gamma was ranked above beta, for prompts like these."
    assert {"ranking_pairs", "ranking_means"} <= {one["name"] for one in result["figures"]}


def test_planted_references_stand_apart_and_move_nobody():
    """A maximal reference above all and a minimal one amid them: the systems' figures are those of the rankings without both."""
    study = draft()
    section = study.sections.get()
    alone = {block.name: block for block in analysed("ranking", frame_of(section, RANKINGS), [section])}
    frame = frame_of(section, RANKINGS)
    best = frame.drop_duplicates(["annotator", "item"]).assign(system="best", value=0.0, label="D")
    worst = best.assign(system="worst", value=2.5 / 25, label="E")
    frame = pd.concat([frame.assign(value=frame["value"] + 1 / 25), best, worst], ignore_index=True)
    study.systems.create(name="best", reference="maximal")
    study.systems.create(name="worst", reference="minimal")
    found = {block.name: block for block in analysed("ranking", frame, [section])}
    assert {"best", "worst"}.isdisjoint(
        name
        for e in found["ranking.share"].estimates
        for name in (e.settings["contrast"]["x"], e.settings["contrast"]["y"])
    )
    for name in ("ranking.share", "ranking.means", "ranking.strengths", "ranking.friedman"):
        assert [(e.estimand, e.estimate, e.n) for e in found[name].estimates] == [
            (e.estimand, e.estimate, e.n) for e in alone[name].estimates
        ], name
    assert found["ranking.means"].other_results == alone["ranking.means"].other_results
    (table,) = found["ranking.references"].tables
    above = {row["system"]: (row["reference"], row["share"], row["n"], row["rankings"]) for row in table["rows"]}
    # The worst is beside those whose rank is 2.5 without the best, and above the last.
    below = sum((rank > 2.5) + (rank == 2.5) / 2 for mine in RANKINGS for ranks in mine for rank in ranks) / 36
    assert above == {"best": ("maximal", 1, 6, 12), "worst": ("minimal", pytest.approx(below), 6, 12)}
    assert "ranking.references" not in alone


def test_a_planned_comparison_may_name_a_planted_reference_and_one_system_may_stand_alone():
    study = draft()
    section = study.sections.get()
    study.systems.filter(name="gamma").update(reference="maximal")
    pairs = {
        (e.settings["contrast"]["x"], e.settings["contrast"]["y"]): e.estimate
        for block in analysed("ranking", frame_of(section, RANKINGS), [section])
        if block.name == "ranking.share"
        for e in block.estimates
    }
    assert set(pairs) == {("beta", "alpha"), ("gamma", "beta")}
    study.systems.filter(name="beta").update(reference="minimal")
    blocks = {block.name: block for block in analysed("ranking", frame_of(section, RANKINGS), [section])}
    assert [(e.settings["system"], e.estimate) for e in blocks["ranking.means"].estimates] == [("alpha", 1.0)]
    assert len(blocks["ranking.references"].estimates) == 2
