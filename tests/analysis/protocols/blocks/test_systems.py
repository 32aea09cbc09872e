"""The sentence over all systems says what comparisons and sets of ranks say, for all orders of a few systems, and nothing more."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from analysis.protocols.blocks.systems import Ranks, SystemOrder, answer_sentences, comparisons_sentence
from analysis.stats.ranks import RankSets, rank_confidence_sets_from_rows
from analysis.stats.results import Estimate, Interval

NAMES = "ABCD"
PLACES = ("first", "second", "third", "fourth")


def sets_of(ranges, **changes) -> RankSets:
    low, high = zip(*ranges, strict=True)
    n = len(ranges)
    return RankSets(
        systems=tuple(NAMES[:n]),
        scores=tuple(float(n - one) for one in range(n)),
        ranks=tuple(range(1, n + 1)),
        low=low,
        high=high,
        clusters=(),
        level=0.95,
        **changes,
    )


def possible(n):
    """All ways in which n systems in the order of their names may be distinguished, with the sets of ranks of each."""
    pairs = [(one, other) for one in range(n) for other in range(one + 1, n)]
    for apart in product((False, True), repeat=len(pairs)):
        beats = {pair for pair, is_apart in zip(pairs, apart, strict=True) if is_apart}
        better = frozenset((NAMES[one], NAMES[other]) for one, other in beats)
        ranges = [
            (1 + sum((other, one) in beats for other in range(n)), n - sum((one, other) in beats for other in range(n)))
            for one in range(n)
        ]
        yield better, ranges


def test_every_statement_of_the_sentence_is_in_the_comparisons():
    seen = 0
    for n in (2, 3, 4):
        for better, ranges in possible(n):
            ranks = Ranks(tuple(NAMES[:n]), better)
            said = ranks.sentence()
            of = dict(zip(NAMES, ranges, strict=False))
            assert {name: ranks.range(name) for name in of} == of
            best = {name for name, (low, _) in of.items() if low == 1}
            seen += 1
            if found := re.match(r"^(\w) is better than (\w)$", said):
                assert (found[1], found[2]) in better
                continue
            if said.startswith("it remains open"):
                assert not better, (said, better)
                continue
            first, *others = said.split("; ")
            assert set(re.findall(r"\b[A-D]\b", first)) == best, (said, better)
            named = set(best)
            for part in others:
                members = re.findall(r"\b[A-D]\b", part)
                named |= set(members)
                if place := re.search(r" is (\w+)$", part):
                    assert of[members[0]] == (PLACES.index(place[1]) + 1,) * 2, (said, better)
                elif places := re.search(r"places (\d) to (\d)$", part):
                    assert of[members[0]] == (int(places[1]), int(places[2]))
                else:
                    alike = not any({one, other} <= set(members) for one, other in better)
                    assert ("cannot be distinguished" in part) == alike, (said, better)
            assert named == set(of), (said, better)
    assert seen == 2 + 8 + 64


@pytest.mark.parametrize(
    ("ranges", "claims", "said"),
    [
        ([(1, 1), (2, 3), (2, 3)], (), "By mean rating: A is best; B and C cannot be distinguished."),
        ([(1, 1), (2, 2), (3, 3)], (), "By mean rating: A is best; B is second; C is third."),
        ([(1, 3), (1, 3), (1, 3)], (), "By mean rating: it remains open which of A, B and C is best."),
        # The sets tell A from B, and the planned comparison of the two does not: the sentence says no more than this one.
        (
            [(1, 1), (2, 2), (3, 3)],
            [("A", "B", "?")],
            "By mean rating and the planned comparisons: A or B is best, and it remains open which; C is third.",
        ),
        (
            [(1, 3), (1, 3), (1, 3)],
            [("B", "A", "<")],
            "By mean rating and the planned comparisons: A or C is best, and it remains open which; B can be in the places 2 to 3.",
        ),
        (
            [(1, 1), (2, 2), (3, 3)],
            [("A", "B", "?"), ("A", "C", ">"), ("C", "B", "<")],
            "By the planned comparisons: A or B is best, and it remains open which; C is third.",
        ),
        # Two estimands that disagree say nothing of the pair.
        (
            [(1, 1), (2, 2)],
            [("A", "B", ">"), ("A", "B", "<")],
            "By the planned comparisons: it remains open whether A or B is better.",
        ),
        (
            [(1, 1), (2, 2), (3, 3)],
            [("A", "B", ">"), ("B", "C", ">"), ("C", "A", ">")],
            "By the planned comparisons: the comparisons form a circle, so none of A, B and C is best.",
        ),
    ],
)
def test_sentences(ranges, claims, said):
    estimates = [estimate(name, -float(n)) for n, name in enumerate(NAMES[: len(ranges)])]
    order = SystemOrder(measure="mean rating", estimates=estimates, sets=sets_of(ranges), claims=tuple(claims))
    assert order.sentence() == said
    by_name = {row["system"]: row["places"] for row in order.table()["rows"]}
    assert by_name == {name: order.ranks.places(name) for name in NAMES[: len(ranges)]}


def test_without_sets_only_comparisons_of_all_pairs_give_an_order():
    estimates = [estimate(name, -float(n)) for n, name in enumerate("ABC")]
    some = SystemOrder(measure="strength", estimates=estimates, claims=(("A", "B", ">"), ("B", "C", ">")))
    assert some.ranks is None and some.sentence() == "" and {row["places"] for row in some.table()["rows"]} == {""}
    everything = replace(some, claims=(*some.claims, ("A", "C", ">")))
    assert everything.sentence() == "By the planned comparisons: A is best; B is second; C is third."


def test_without_sets_the_sentence_says_why():
    sets = sets_of([(1, 1), (2, 2)])
    undefined = RankSets(
        systems=sets.systems,
        scores=sets.scores,
        ranks=sets.ranks,
        low=None,
        high=None,
        clusters=(),
        level=0.95,
        status="n_lt_2",
        reason="one annotator is no sample",
    )
    order = SystemOrder(measure="mean rating", estimates=[estimate("A", 1.0), estimate("B", 0.0)], sets=undefined)
    said = "By mean rating: it is not known how sure the order is, because one annotator is no sample."
    assert order.sentence() == said and order.table()["note"] == "No places: one annotator is no sample."


def estimate(system, value, population="people and prompts"):
    return Estimate(
        analysis="rating.mean",
        estimand="mean",
        unit="annotator",
        n=20,
        estimate=value,
        interval=Interval(0.95, value - 0.1, value + 0.1, "t"),
        settings={"system": system, "population": population},
    )


def test_the_table_has_the_best_first_with_its_places():
    rng = np.random.default_rng(3)
    people, systems = np.repeat(np.arange(30), 3), np.tile(["a", "b", "c"], 30)
    values = rng.normal(size=90) + np.tile([0.0, 3.0, 0.1], 30)
    sets = rank_confidence_sets_from_rows(values, people, systems, population="people")
    order = SystemOrder(
        measure="mean rating",
        estimates=[estimate(name, value, "people") for name, value in (("a", 0.0), ("b", 3.0), ("c", 0.1))],
        sets=sets,
    )
    table = order.table()
    assert [(row["system"], row["places"]) for row in table["rows"]] == [("b", "1"), ("c", "2 to 3"), ("a", "2 to 3")]
    assert order.sentence() == "By mean rating: b is best; a and c cannot be distinguished, for exactly these prompts."
    lower = SystemOrder(measure="mean rank", estimates=order.estimates, is_lower_better=True).table()
    assert [row["system"] for row in lower["rows"]] == ["a", "c", "b"] and "Place" not in lower["note"]


@pytest.mark.parametrize(
    ("decided", "said"),
    [
        ([("b", "a", ">")], ""),
        ([("b", "a", "?"), ("c", "a", "?")], "None of the 2 planned comparisons is decided."),
        ([("b", "a", ">"), ("c", "a", ">")], "All 2 planned comparisons are decided: b > a; c > a."),
        (
            [("b", "a", ">"), ("b", "c", "<")],
            "All 2 planned comparisons are decided: c > b > a. Only neighbours in this order were compared.",
        ),
        ([("b", "a", ">"), ("c", "a", "~")], "All 2 planned comparisons are decided: b > a; c ~ a (equivalent)."),
        (
            [("a", "b", ">"), ("b", "c", ">"), ("c", "a", ">")],
            "All 3 planned comparisons are decided: a > b; b > c; c > a.",
        ),
    ],
)
def test_planned_comparisons_together(decided, said):
    assert comparisons_sentence(decided) == said


def test_each_subject_has_its_sentence_over_the_comparisons():
    pairs = {"fluency": [("b", "a", ">"), ("c", "b", "?")], "facts": [("b", "a", ">"), ("b", "c", ">")]}
    assert answer_sentences([], pairs) == [
        "fluency: 1 of 2 planned comparisons is decided: b > a. It remains open which is better for c and b.",
        "facts: All 2 planned comparisons are decided: b > a; b > c.",
    ]
