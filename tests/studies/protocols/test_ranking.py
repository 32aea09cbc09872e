"""Rankings: what is missing, what a page asks, refuses and stores, and what the report makes of it."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from analysis.report import build_report
from analysis.simulate import simulate_answers
from annotators.models import PageVisit, Response
from annotators.record import record_page
from annotators.show import shown_page, stored_texts
from studies import lifecycle
from studies.design import problems
from studies.fields import Answer
from studies.models import Question, Study
from studies.protocols import REGISTRY, LaidSection, PageItem, PageQuestion
from studies.protocols.ranking.analysis import analyse
from studies.scales import read_scale
from tests.builders import add_ranking, draft_study, launched
from tests.players import claimed, form, open_page, submitted

pytestmark = pytest.mark.django_db
ATTRS = {"seed": "00", "level": 0.95, "resamples": 199, "star_scheme": "10/5/1"}
RANKING = REGISTRY["ranking"]
QUESTION = PageQuestion(1, 1, "place", "The place of {label}", "", read_scale({"kind": "number"}))
ITEM = PageItem(1, 1, (("A", 1), ("B", 2)))
A, B, C = (f"s1.q1.i1.{label}" for label in "ABC")


def draft(*, m=2, settings=None, **columns) -> Study:
    study = draft_study(instructions="", **columns)
    add_ranking(study, m=m, **(settings or {}))
    return study


def found(study, blocking=True):
    return {problem.key for problem in problems(study) if problem.is_blocking == blocking}


# What is missing


def test_a_sound_draft_has_no_problem():
    assert not found(draft())


@pytest.mark.parametrize(
    "columns, words",
    [
        ({"scale": {"kind": "percent"}}, "must be asked as a whole number"),
        ({"scale": {"kind": "number", "minimum": 1, "maximum": 2}}, "numbers from 1 to 3"),
        ({"scale": {"kind": "number", "minimum": 2, "maximum": 9}}, "numbers from 1 to 3"),
        ({"skip_reasons": [{"key": "no", "label": "I cannot"}]}, "offers ways not to answer"),
    ],
)
def test_a_question_that_takes_no_places_is_named(columns, words):
    study = draft()
    Question.objects.filter(section__study=study).update(**columns)
    assert any(words in problem for problem in found(study)), found(study)


def test_too_few_and_too_many_systems_are_named():
    assert any("nothing to rank" in problem for problem in found(draft(systems=("alpha",))))
    assert "many_to_rank:1" in found(draft(systems=[f"s{n}" for n in range(8)]), blocking=False)


def test_settings_of_any_kind_from_a_file_end_in_words():
    study = draft()
    section = study.sections.get()
    for name in ("allows_ties", "labels", "layout", "noun"):
        for wrong in ([], {}, "x", None, 4, "\u2028", 1e300):
            section.settings = {name: wrong}
            section.save()
            list(problems(study))
            (page,) = RANKING.pages(LaidSection(1, 1, section.settings, (QUESTION,)), [ITEM], {})
            data = {"s1.q1.i1.A": Answer(Decimal(1), text="1"), "s1.q1.i1.B": Answer(Decimal(1), text="1")}
            RANKING.clean(page, data), RANKING.asks(page)


# A page


def send(assignment, *places, **more):
    key = open_page(assignment)[1].key
    typed = {slot: place for slot, place in zip((A, B, C), places, strict=False) if place is not None}
    return record_page(assignment, key, form(**typed, **more))


@pytest.mark.parametrize(
    "typed, ranks",
    [
        (("2", "1", "3"), ("2", "1", "3")),
        (("1", "2", "2"), ("1", "2.5", "2.5")),
        (("1", "3", "3"), ("1", "2.5", "2.5")),  # a gap says nothing
        (("1", "1", "3"), ("1.5", "1.5", "3")),
        (("3", "3", "3"), ("2", "2", "2")),
    ],
)
def test_a_ranking_is_stored_as_typed_and_as_mid_ranks(typed, ranks):
    assignment = claimed(launched(draft()), "w")
    _, page, asks = open_page(assignment)
    assert send(assignment, *typed).sent is None
    stored = list(Response.objects.order_by("slot"))
    assert [(r.slot, r.value, r.text) for r in stored] == [
        (slot, Decimal(rank), place) for slot, rank, place in zip((A, B, C), ranks, typed, strict=True)
    ]
    assert [(r.label, r.exposure_id) for r in stored] == list(page.items[0].exposures)
    assert stored_texts(asks, page, stored) == dict(zip((A, B, C), typed, strict=True))
    send_again = record_page(assignment, "s1.p1", form(**dict(zip((A, B, C), typed, strict=True))))
    assert send_again.sent is None and Response.objects.count() == 3


def test_a_place_that_is_none_is_refused_naming_its_output():
    assignment = claimed(launched(draft()), "w")
    wanted = "Please give a whole number from 1 to 3."
    for wrong in ("1.5", "", "0", "4", "-1", "first", "1e0", " ", "1\x00"):
        outcome = send(assignment, "1", wrong, "2")
        why = "This scale takes whole numbers only. " if wrong == "1.5" else ""
        assert outcome.sent.errors == {B: why + wanted}, wrong
    shown = shown_page(assignment, outcome.step.page, outcome.asks, sent=outcome.sent)
    assert [(where, field.text) for where, field in shown.located_errors] == [("Story B", "The place of B")]
    assert not Response.objects.exists()


def test_without_ties_two_in_one_place_are_told_of_each_other():
    assignment = claimed(launched(draft(settings={"allows_ties": False})), "w")
    assert send(assignment, "1", "2", "2").sent.errors == {
        B: "Story C has the same place. Please decide.", C: "Story B has the same place. Please decide.",
    }  # fmt: skip
    # What is wrong with one place hides nothing about the others, and keeps its own words.
    assert send(assignment, "2", "9", "2").sent.errors == {
        A: "Story C has the same place. Please decide.", B: "Please give a whole number from 1 to 3.",
        C: "Story A has the same place. Please decide.",
    }  # fmt: skip
    assert send(assignment, "1", "3", "2").sent is None


def test_a_prompt_may_be_left_empty_where_that_is_allowed_but_not_in_part():
    study = draft()
    Question.objects.filter(section__study=study).update(required=False)
    assignment = claimed(launched(study), "w")
    assert send(assignment, "1", None, "2").sent.errors == {B: "Please give every story a place, or none."}
    assert send(assignment).sent is None and not Response.objects.exists()


def test_more_than_the_page_asks_and_two_of_one_field_are_refused():
    assignment = claimed(launched(draft()), "w")
    assert send(assignment, "1", "2", "3", **{"s1.q1.i1.D": "1"}).sent.general
    assert send(assignment, "1", ["2", "3"], "3").sent.errors == {B: "Please give one answer only."}


def test_fixed_letters_stand_for_the_same_system_everywhere():
    study = launched(draft(settings={"labels": "fixed"}, target_n=3))
    for person in "abc":
        submitted(study, person)
    letters = Response.objects.values_list("exposure__output__system__name", "label").distinct()
    assert set(letters) == {("alpha", "A"), ("beta", "B"), ("gamma", "C")}
    assert PageVisit.objects.count() == 6


# The report


def frame_of(section, rankings, items=None):
    """``rankings``: of each annotator the ranks of alpha, beta, gamma, one tuple an item."""
    rows = [
        {
            "assignment": person, "annotator": f"a{person}", "section": section.position, "question": "place", "system": system,
            "item": items[number] if items else f"s1.{person}-{number}", "label": "ABC"[(place + person) % 3], "value": (rank - 1) / 25,
            "is_kept": True, "is_kept_paper": True,
        }
        for person, mine in enumerate(rankings)
        for number, ranks in enumerate(mine)
        for place, (system, rank) in enumerate(zip(("alpha", "beta", "gamma"), ranks, strict=True))
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    frame.attrs = ATTRS
    return frame


RANKINGS = [
    [(3, 2, 1), (3, 1, 2)], [(2.5, 2.5, 1), (3, 2, 1)], [(1, 2, 3), (3, 1.5, 1.5)], [(3, 2, 1), (2, 2, 2)], [(3, 2, 1), (2, 3, 1)],
    [(3, 1, 2), (3, 2, 1)],
]  # fmt: skip


def test_the_report_counts_by_hand():
    section = draft().sections.get()
    blocks = {block.name: block for block in analyse(frame_of(section, RANKINGS), [section])}
    by_pair = {(e.settings["contrast"]["x"], e.settings["contrast"]["y"]): e for e in blocks["ranking.share"].estimates}
    assert list(by_pair) == [("beta", "alpha"), ("gamma", "beta"), ("alpha", "gamma")]
    beta = by_pair["beta", "alpha"]
    # Of 12 rankings beta stands above alpha in 8, beside it in 2.
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
    blocks = {block.name: block for block in analyse(same, [section])}
    alpha = next(e for e in blocks["ranking.checks"].estimates if "krippendorff" in e.analysis)
    assert alpha.estimate == pytest.approx(1) and (alpha.n, alpha.unit) == (3, "output")
    assert blocks["ranking.friedman"].estimates[0].estimate == pytest.approx(1)
    assert blocks["ranking.strengths"].verdict["status"] == "separation"


def test_the_interval_of_agreement_is_over_prompts():
    """Who puts alpha last puts another first: two outputs of a prompt are disputed together or not at all."""
    section = draft().sections.get()
    apart = [(3, 2, 1) if prompt % 3 == 0 else (1, 2, 3) for prompt in range(36)]
    frame = frame_of(section, [[(1, 2, 3)] * 36, apart], items=[f"s1.{prompt}" for prompt in range(36)])
    blocks = {block.name: block for block in analyse(frame, [section])}
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
    (block,) = analyse(alone[alone["section"] == 9], [section])
    assert {e.status for e in block.estimates} == {"no_data"}
    alone = {block.name: block for block in analyse(alone, [section])}
    assert {e.status for e in alone["ranking.share"].estimates} == {"n_lt_2"}


def test_robots_that_prefer_are_found_out(same_orders):
    study = launched(draft(target_n=30, prompts=12, m=3))
    simulate_answers(study, 30, {"alpha": 0.0, "beta": 0.0, "gamma": 2.0})
    assert Response.objects.filter(value=Decimal("1.5")).exists(), "robots tie"
    lifecycle.close(study, by=None)
    lifecycle.finish(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 99, "origins": ["robot"]})
    assert not result["problems"]
    tables = {one["name"]: one["rows"] for one in result["tables"]}
    assert tables["ranking_systems"][0]["system"] == "gamma" and tables["ranking_systems"][0]["lowest"] == 1
    verdicts = {row["pair"]: row["verdict"] for row in tables["ranking_pairs"]}
    assert verdicts["gamma > beta"] == "different" and verdicts["beta > alpha"] == "inconclusive"
    assert result["conclusions"][1]["claim"] == "gamma was ranked above beta."
    assert {"ranking_pairs", "ranking_means"} <= {one["name"] for one in result["figures"]}


def test_planted_references_stand_apart_and_move_nobody():
    """A maximal reference above all and a minimal one amid them: the systems' figures are those of the rankings without both."""
    study = draft()
    section = study.sections.get()
    alone = {block.name: block for block in analyse(frame_of(section, RANKINGS), [section])}
    frame = frame_of(section, RANKINGS)
    best = frame.drop_duplicates(["annotator", "item"]).assign(system="best", value=0.0, label="D")
    worst = best.assign(system="worst", value=2.5 / 25, label="E")
    frame = pd.concat([frame.assign(value=frame["value"] + 1 / 25), best, worst], ignore_index=True)
    frame.attrs = ATTRS
    study.systems.create(name="best", reference="maximal")
    study.systems.create(name="worst", reference="minimal")
    found = {block.name: block for block in analyse(frame, [section])}
    assert {"best", "worst"}.isdisjoint(
        name
        for e in found["ranking.share"].estimates
        for name in (e.settings["contrast"]["x"], e.settings["contrast"]["y"])
    )
    for name in ("ranking.share", "ranking.means", "ranking.strengths", "ranking.friedman"):
        assert [(e.estimand, e.estimate, e.n) for e in found[name].estimates] == [
            (e.estimand, e.estimate, e.n) for e in alone[name].estimates
        ], name
    assert found["ranking.means"].verdict == alone["ranking.means"].verdict
    (table,) = found["ranking.references"].tables
    above = {row["system"]: (row["reference"], row["share"], row["n"], row["rankings"]) for row in table["rows"]}
    # The worst stands beside those whose rank is 2.5 without the best, and above the last.
    below = sum((rank > 2.5) + (rank == 2.5) / 2 for mine in RANKINGS for ranks in mine for rank in ranks) / 36
    assert above == {"best": ("maximal", 1, 6, 12), "worst": ("minimal", pytest.approx(below), 6, 12)}
    assert "ranking.references" not in alone


def test_a_planned_comparison_may_name_a_planted_reference_and_one_system_may_stand_alone():
    study = draft()
    section = study.sections.get()
    study.systems.filter(name="gamma").update(reference="maximal")
    pairs = {
        (e.settings["contrast"]["x"], e.settings["contrast"]["y"]): e.estimate
        for block in analyse(frame_of(section, RANKINGS), [section])
        if block.name == "ranking.share"
        for e in block.estimates
    }
    assert set(pairs) == {("beta", "alpha"), ("gamma", "beta")}
    study.systems.filter(name="beta").update(reference="minimal")
    blocks = {block.name: block for block in analyse(frame_of(section, RANKINGS), [section])}
    assert [(e.settings["system"], e.estimate) for e in blocks["ranking.means"].estimates] == [("alpha", 1.0)]
    assert len(blocks["ranking.references"].estimates) == 2
