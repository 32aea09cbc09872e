"""What best-worst answers say: counted by hand, robots' strengths found again, and what cannot be said."""

from math import log

import pandas as pd
import pytest

from analysis.data.planned_labels import PlannedLabels
from analysis.report.build import build_report
from annotators.participation.simulate import record_simulated_answers
from studies.models import Contrast, Study
from studies.services import lifecycle
from tests.analysis.protocols.analysed import analysed
from tests.builders import add_section, draft_study, launched

pytestmark = pytest.mark.django_db
NAMES = ("alpha", "beta", "gamma", "delta")


def draft(*, m=3, systems=NAMES, settings=None, **columns) -> Study:
    study = draft_study(instructions="", systems=systems, **columns)
    add_section(study, "best_worst", m=m, settings=settings)
    x, y = (study.systems.get(name=name) for name in ("delta", "alpha"))
    Contrast.objects.create(study=study, x=x, y=y, role="primary", expected=">")
    return study


def rows_of(section, people, *, kept=lambda person: True):
    """``people``: of each the answers (shown, best, worst), an item each. The rows, and what the items show."""
    rows, items, number = [], [], 0
    for person, answers in enumerate(people):
        for shown, best, worst in answers:
            number += 1
            items.append((section.position, number, "\x1f".join(shown)))
            for question, chosen in (("best", best), ("worst", worst)):
                rows.append(
                    {
                        "assignment": person,
                        "annotator": f"a{person}",
                        "section": section.position,
                        "question": question,
                        "item": f"s1.{number}",
                        "prompt": f"p{number % 5}",
                        "chosen_system": chosen,
                        "is_kept": True,
                        "is_kept_paper": kept(person),
                    }
                )
    return pd.DataFrame(rows), PlannedLabels(pd.DataFrame(), tuple(items))


def blocks_of(section, people, **options):
    rows, claims = rows_of(section, people, **options)
    return {block.name: block for block in analysed("best_worst", rows, [section], claims=claims)}


PEOPLE = [
    [(NAMES[:3], "gamma", "alpha"), (NAMES, "delta", "beta")],
    [(NAMES[1:], "delta", "beta"), (NAMES, "gamma", "alpha")],
    [(NAMES, "alpha", "delta"), (NAMES[:3], "beta", "gamma")],
    [(NAMES[1:], "gamma", "beta"), (NAMES, "delta", "alpha")],
    [(NAMES, "delta", "alpha"), (NAMES[:3], "gamma", "beta")],
    [(NAMES, "beta", "gamma"), (NAMES[1:], "delta", "gamma")],
]


def test_the_counts_are_those_of_the_hand():
    section = draft().sections.get()
    (table,) = blocks_of(section, PEOPLE)["best_worst.counts"].tables
    by_hand = {}
    for name in NAMES:
        answers = [answer for mine in PEOPLE for answer in mine if name in answer[0]]
        best, worst = (sum(answer[place] == name for answer in answers) for place in (1, 2))
        by_hand[name] = (len(answers), best, worst, pytest.approx((best - worst) / len(answers)))
    assert {row["system"]: (row["shown"], row["best"], row["worst"], row["score"]) for row in table["rows"]} == by_hand
    assert [row["system"] for row in table["rows"]][0] == "delta"


def test_the_paper_counts_those_whom_all_rules_keep():
    section = draft().sections.get()
    blocks = blocks_of(section, PEOPLE, kept=lambda person: person < 4)
    assert {one.n for one in blocks["best_worst.counts"].estimates if one.estimate is not None} == {4}
    assert blocks["best_worst.counts"].mode == "paper" and blocks["best_worst.strengths"].mode == "recommended"
    assert {one.n for one in blocks["best_worst.strengths"].estimates} == {6}


def test_two_systems_chosen_between_are_a_log_odds():
    """Sets of two are a paired choice: 9 of 12 is log 3, for any people."""
    section = draft().sections.get()
    people = [
        [(("alpha", "delta"), *(("delta", "alpha") if (2 * n + k) % 4 else ("alpha", "delta"))) for k in (0, 1)]
        for n in range(6)
    ]
    one = blocks_of(section, people)["best_worst.strength"].estimates[0]
    assert one.estimate == pytest.approx(log(3), rel=1e-6) and (one.n, one.n_rows, one.unit) == (6, 12, "annotator")


def test_planned_and_unplanned_comparisons_are_families_of_their_own():
    section = draft().sections.get()
    block = blocks_of(section, PEOPLE)["best_worst.strength"]
    pairs = {(e.settings["contrast"]["x"], e.settings["contrast"]["y"]): e.test.family for e in block.estimates}
    assert pairs.pop(("delta", "alpha")) == "best_worst.strength.primary"
    assert len(pairs) == 5 and set(pairs.values()) == {"best_worst.strength.not planned"}
    (conclusion,) = block.conclusions
    assert conclusion.wording.above_claim == "delta was picked as better than alpha."
    (table,), (figure,) = block.tables, block.figures
    assert len(table["rows"]) == 6 and len(figure["rows"]) == 6 and figure["reference"] == 0


def test_an_answer_with_one_choice_or_another_output_does_not_count():
    section = draft().sections.get()
    rows, claims = rows_of(section, PEOPLE)
    whole = {block.name: block for block in analysed("best_worst", rows, [section], claims=claims)}
    extra, more = rows_of(
        section, [*PEOPLE, [(NAMES[:3], "delta", "alpha"), (NAMES, "beta", "alpha"), (NAMES, "beta", "beta")]]
    )
    lonely = extra[~((extra["item"] == "s1.14") & (extra["question"] == "worst"))]
    found = {block.name: block for block in analysed("best_worst", lonely, [section], claims=more)}
    assert [e.estimate for e in found["best_worst.counts"].estimates] == [
        e.estimate for e in whole["best_worst.counts"].estimates
    ]


def test_a_system_that_always_wins_has_no_finite_strength_and_the_report_says_why():
    section = draft().sections.get()
    people = [
        [(NAMES, "delta", "alpha"), (NAMES, "delta", "beta")],
        [(NAMES, "delta", "gamma"), (NAMES, "delta", "alpha")],
    ] * 4
    blocks = blocks_of(section, people)
    assert blocks["best_worst.strengths"].other_results["status"] == "separation"
    assert {(e.estimate, e.status) for e in blocks["best_worst.strength"].estimates} == {(None, "separation")}
    assert all(e.reason for e in blocks["best_worst.strength"].estimates)
    assert {e.settings["system"]: e.estimate for e in blocks["best_worst.counts"].estimates}["delta"] == 1


def test_a_planned_comparison_with_a_system_that_nobody_saw_says_so():
    section = draft().sections.get()
    people = [[(("beta", "gamma", "delta"), "delta", "beta"), (("beta", "gamma", "delta"), "gamma", "beta")]] * 4
    (planned, *_) = blocks_of(section, people)["best_worst.strength"].estimates
    assert (planned.status, planned.n, planned.estimate) == ("no_data", 0, None)
    assert planned.reason == "one of the two was never shown" and "delta is chosen over alpha" in planned.estimand


def test_nothing_answered_makes_no_block():
    section = draft().sections.get()
    rows, claims = rows_of(section, PEOPLE)
    assert analysed("best_worst", rows[rows["section"] == 9], [section], claims=claims) == []
    assert analysed("best_worst", rows, [section]) == []


@pytest.mark.slow
def test_robots_that_prefer_are_found_out(same_orders):
    study = launched(draft(target_n=40, prompts=16, m=6, systems=(*NAMES, "epsilon", "zeta"), settings={"set_size": 4}))
    record_simulated_answers(
        study, 40, {"alpha": 0.0, "beta": 0.0, "gamma": 0.0, "delta": 1.5, "epsilon": 0.0, "zeta": -1.5}
    )
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 99, "origins": ["robot"]})
    assert not result["problems"]
    tables = {one["name"]: one["rows"] for one in result["tables"]}
    systems = tables["best_worst_systems"]
    assert (systems[0]["system"], systems[0]["lowest"]) == ("delta", 1) and (
        systems[-1]["system"],
        systems[-1]["highest"],
    ) == ("zeta", 6)
    assert sum(row["strength"] for row in systems) == pytest.approx(0)
    assert {row["pair"]: row["verdict"] for row in tables["best_worst_pairs"]}["delta > alpha"] == "different"
    assert result["conclusions"][0]["claim"] == "delta was picked as better than alpha, for prompts like these."
    assert {"best_worst_pairs", "best_worst_systems", "best_worst_counts"} <= {one["name"] for one in result["figures"]}
