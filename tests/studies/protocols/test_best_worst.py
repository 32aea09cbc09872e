"""Best and worst: what is missing in a design, what is drawn, and what a page refuses and stores."""

from collections import Counter
from itertools import combinations

import pytest

from annotators.models import PageVisit, Response
from annotators.pages.presentation import build_shown_page
from annotators.pages.record import record_page_answers
from studies.design.checklist import find_design_problems
from studies.models import Exposure, Question, Study, System
from studies.protocols import REGISTRY, PageItem, PageQuestion, PageSection
from studies.protocols.base.fields import parse_scale
from tests.builders import add_section, draft_study, launched
from tests.players import claimed, form, open_page, submitted

pytestmark = pytest.mark.django_db
PROTOCOL = REGISTRY["best_worst"]
SIX = tuple(f"s{n}" for n in range(6))
BEST, WORST = "s1.q1.i1", "s1.q2.i1"


def draft(*, m=3, settings=None, systems=SIX, **columns) -> Study:
    study = draft_study(instructions="", systems=systems, **{"prompts": 24} | columns)
    add_section(study, "best_worst", m=m, settings={"noun": "story"} | (settings or {}))
    return study


def found(study, blocking=True):
    return {problem.key for problem in find_design_problems(study) if problem.is_blocking == blocking}


# What is missing


def test_a_sound_draft_has_no_problem():
    assert not found(draft())


@pytest.mark.parametrize(
    "keys, columns, words",
    [
        (
            ["best", "worst"],
            {"scale": {"kind": "percent"}},
            "Question best must have the scale “one of the outputs shown”",
        ),
        (["worst"], {"key": "last"}, "The question with the key “worst” is missing"),
        (["worst"], {"key": "last"}, "Question last is neither “best” nor “worst”"),
        (["best"], {"skip_reasons": [{"key": "no", "label": "I cannot"}]}, "Question best has reasons to skip"),
        (["best"], {"criterion": "fluency"}, "two different criteria"),
        (["best"], {"required": False}, "Make both required, or neither"),
    ],
)
def test_questions_that_make_no_best_and_worst_are_named(keys, columns, words):
    study = draft()
    Question.objects.filter(section__study=study, key__in=keys).update(**columns)
    assert any(words in problem for problem in found(study)), found(study)


def test_too_few_systems_are_named_in_the_study_and_in_an_arm():
    assert any("the study has 2" in problem for problem in found(draft(systems=("a", "b"))))
    study = draft()
    study.arms.get().systems.set(study.systems.all()[:2])
    assert any("Arm all shows the outputs of fewer than 3 systems" in problem for problem in found(study))


def test_planted_references_are_refused():
    study = draft()
    study.systems.filter(name="s0").update(reference=System.Reference.MAXIMAL)
    assert any("s0 would always be chosen" in problem for problem in found(study))


def test_settings_of_any_kind_from_a_file_end_in_words():
    study = draft()
    section = study.sections.get()
    asked = tuple(
        PageQuestion(n, n, key, f"The {key}", "", parse_scale({"kind": "output"}))
        for n, key in enumerate(("best", "worst"), 1)
    )
    item = PageItem(1, 1, (("A", 1), ("B", 2), ("C", 3)))
    for name in ("set_size", "labels", "layout", "noun"):
        for wrong in ([], {}, "x", None, True, 2, 99, "\u2028", 1e300):
            section.settings = {name: wrong}
            section.save()
            list(find_design_problems(study))
            (page,) = PROTOCOL.pages(PageSection(1, 3, section.settings, asked), [item], {})
            assert PROTOCOL.complete_data_and_find_errors(
                page, {BEST: 1, WORST: 1}
            ) and not PROTOCOL.complete_data_and_find_errors(page, {BEST: 1, WORST: 2})
            PROTOCOL.page_fields(page)


def test_a_preview_without_one_of_the_questions_is_no_fault():
    page = PageSection(1, 1, {}, (PageQuestion(1, 1, "best", "", "", parse_scale({"kind": "output"})),))
    (page,) = PROTOCOL.pages(page, [PageItem(1, 1, (("A", 1), ("B", 2)))], {})
    assert PROTOCOL.complete_data_and_find_errors(page, {BEST: 1}) == {}


# What is drawn


def test_each_page_shows_so_many_systems_and_each_pair_meets_about_as_often():
    launched(draft(m=8, settings={"set_size": 4}, target_n=60))
    shown: dict[int, set[str]] = {}
    for item, system in Exposure.objects.values_list("item", "output__system__name"):
        shown.setdefault(item, set()).add(system)
    assert {len(mine) for mine in shown.values()} == {4} and len(shown) > 100
    pairs = Counter(pair for mine in shown.values() for pair in combinations(sorted(mine), 2))
    assert len(pairs) == 15
    # Of 15 pairs an item shows 6: each meets in .4 of the items, give or take five standard errors.
    spread = 5 * (0.4 * 0.6 / len(shown)) ** 0.5
    assert all(abs(n / len(shown) - 0.4) < spread for n in pairs.values())


def test_where_there_are_fewer_systems_all_are_shown():
    launched(draft(m=2, settings={"set_size": 7}, systems=("a", "b", "c")))
    assert set(Counter(Exposure.objects.values_list("item", flat=True)).values()) == {3}


# A page


def send(assignment, best=None, worst=None, **more):
    key = open_page(assignment)[1].key
    typed = {slot: letter for slot, letter in ((BEST, best), (WORST, worst)) if letter is not None}
    return record_page_answers(assignment, key, form(**typed, **more))


def test_both_choices_are_stored_with_the_letters_that_were_seen():
    assignment = claimed(launched(draft()), "w")
    _, page, _ = open_page(assignment)
    assert send(assignment, "B", "D").sent is None
    exposures = dict(page.items[0].exposures)
    stored = list(Response.objects.order_by("slot"))
    assert [(r.slot, r.question.key, r.chosen_id, r.label) for r in stored] == [
        (BEST, "best", exposures["B"], "B"),
        (WORST, "worst", exposures["D"], "D"),
    ]
    again = record_page_answers(assignment, page.key, form(**{BEST: "B", WORST: "D"}))
    assert again.sent is None and Response.objects.count() == 2


def test_one_output_cannot_be_both_and_the_page_says_which():
    assignment = claimed(launched(draft()), "w")
    outcome = send(assignment, "B", "B")
    assert outcome.sent.errors == {
        WORST: "B cannot be the best and the worst. Please choose another one here or above."
    }
    shown = build_shown_page(assignment, outcome.step.page, outcome.asks, form=outcome.sent)
    assert len(shown.located_errors) == 1 and not Response.objects.exists()


def test_a_choice_that_is_missing_or_not_on_the_page_is_refused():
    assignment = claimed(launched(draft()), "w")
    assert send(assignment, "B").sent.errors == {WORST: "Please choose one of them."}
    assert send(assignment, "B", "F").sent.errors == {WORST: "Please choose one of them."}
    assert send(assignment, "B", ["C", "D"]).sent.errors == {WORST: "Please give only one answer."}
    assert not Response.objects.exists()


def test_a_prompt_may_be_left_empty_where_that_is_allowed_but_not_in_part():
    study = draft()
    Question.objects.filter(section__study=study).update(required=False)
    assignment = claimed(launched(study), "w")
    assert send(assignment, best="B").sent.errors == {
        WORST: "Please choose the best one and the worst one, or neither."
    }
    assert send(assignment, worst="B").sent.errors == {
        BEST: "Please choose the best one and the worst one, or neither."
    }
    assert send(assignment).sent is None and not Response.objects.exists()


def test_robots_finish_a_study():
    study = launched(draft(target_n=3))
    for person in "abc":
        submitted(study, person)
    assert Response.objects.count() == 18 and PageVisit.objects.count() == 9
    by_item: dict[tuple, set] = {}
    for response in Response.objects.all():
        by_item.setdefault((response.assignment_id, response.item_id), set()).add(response.chosen_id)
    assert {len(chosen) for chosen in by_item.values()} == {2}
