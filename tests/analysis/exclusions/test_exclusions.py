"""Rules find whom they say, and whom they keep does not depend on their order."""

import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.exclusions import FAIL, PASS, UNKNOWN, AssignmentFlags, RuleInput, load_rules, rules
from analysis.exclusions.rules.answers import AnswerSettings, TauSettings
from analysis.exclusions.screening import AppliedRule, exclusion_flow, kept_assignment_ids
from studies.models.design import REGISTRY
from tests.analysis.exclusions.frames import assignments, responses


def pair(assignment, xy, yx, x="a", y="b"):
    return [
        {"assignment": assignment, "x": x, "y": y, "value": xy / 100, "question": f"{x}-{y}"},
        {"assignment": assignment, "x": y, "y": x, "value": yx / 100, "question": f"{y}-{x}"},
    ]


def states(rule, material, **options):
    return REGISTRY[rule].flag(material, **options).states


def test_tau_compares_whole_percentages_strictly():
    material = RuleInput(
        responses(
            *pair(1, 65, 45), *pair(2, 65, 46), *pair(3, 40, 40), {"assignment": 4, "x": "a", "y": "b", "value": 0.9}
        ),
        assignments({}, {}, {}, {}),
    )
    assert states("incoherent", material) == {1: PASS, 2: FAIL, 3: PASS, 4: UNKNOWN}
    assert states("incoherent", material, tau=1.15) == {1: PASS, 2: PASS, 3: PASS, 4: UNKNOWN}
    assert states("incoherent", material, tau=1.1, symmetric=True) == {1: PASS, 2: FAIL, 3: FAIL, 4: UNKNOWN}
    assert states("incoherent", material, tau=0) == {1: FAIL, 2: FAIL, 3: FAIL, 4: UNKNOWN}
    assert set(states("incoherent", material, tau=2).values()) == {PASS, UNKNOWN}


def test_one_pair_above_tau_is_enough_and_the_evidence_names_it():
    material = RuleInput(
        responses(*pair(1, 50, 50), *pair(1, 80, 70, "c", "d"), *pair(1, 40, 50, "e", "f")), assignments({})
    )
    flags = REGISTRY["incoherent"].flag(material)
    assert flags.states == {1: FAIL}
    assert "add up to 150 %" in flags.evidence[1]


def test_an_answer_to_a_named_question_decides():
    rows = [
        {"assignment": 1, "question": "english", "choice": "native"},
        {"assignment": 2, "question": "english", "choice": "learnt"},
        {"assignment": 3, "question": "english", "choice": "", "is_erased": True},
        {"assignment": 4, "question": "other", "choice": "native"},
    ]
    material = RuleInput(responses(*rows), assignments({}, {}, {}, {}))
    assert states("not_native", material, question="english", options=["native"]) == {
        1: PASS,
        2: FAIL,
        3: UNKNOWN,
        4: UNKNOWN,
    }
    assert states("answered", material, question="english", options=["native"]) == {
        1: FAIL,
        2: PASS,
        3: UNKNOWN,
        4: UNKNOWN,
    }


def test_a_person_who_submitted_twice_is_dropped_or_kept_once():
    material = RuleInput(
        responses({"assignment": 1}), assignments({"annotator": "p"}, {"annotator": "q"}, {"annotator": "p"})
    )
    assert states("repeated", material, policy="drop_all") == {1: FAIL, 2: PASS, 3: FAIL}
    assert states("repeated", material, policy="keep_first") == {1: PASS, 2: PASS, 3: FAIL}
    allowed = RuleInput(material.responses, material.assignments, allowed=2)
    assert set(states("repeated", allowed).values()) == {PASS}


def test_late_manual_and_unverified_read_what_is_recorded():
    rows = assignments({"is_late": True, "released_reason": "expired"}, {"trust": "claimed"}, {"is_identified": False})
    material = RuleInput(responses({"assignment": 1}), rows, decisions={3: "wrote to us"})
    assert states("late", material) == {1: FAIL, 2: PASS, 3: PASS}
    assert states("manual", material) == {1: PASS, 2: PASS, 3: FAIL}
    assert states("unverified", material) == {1: PASS, 2: FAIL, 3: FAIL}


def test_incomplete_counts_against_what_others_of_the_arm_were_asked():
    rows = [{"assignment": a, "question": f"q{n}", "value": 0.5} for a in (1, 2) for n in range(4)]
    rows[7]["value"] = float("nan")
    rows[7]["skip_reason"] = "cannot"
    rows += [{"assignment": 1, "question": "comment", "text": "hello"}]
    material = RuleInput(responses(*rows), assignments({}, {}, {}))
    assert states("incomplete", material) == {1: PASS, 2: FAIL, 3: FAIL}
    assert states("incomplete", material, share=0.75) == {1: PASS, 2: PASS, 3: FAIL}


def test_too_fast_is_faster_than_reading_or_far_from_the_others():
    rows = assignments(
        *({"seconds": 900.0 + 10 * n} for n in range(20)),
        {"seconds": 60.0},
        {"seconds": 500.0},
        {"seconds": float("nan")},
    )
    material = RuleInput(responses({"assignment": 1}), rows, words_by_batch=lambda: {1: 1400})
    found = states("too_fast", material)
    assert (found[1], found[21], found[22], found[23]) == (PASS, FAIL, FAIL, UNKNOWN)
    assert states("too_fast", material, z=None)[22] == PASS


def test_straight_lining_needs_a_contradiction():
    same = [
        {"assignment": 1, "x": x, "y": y, "value": 0.8, "position": n}
        for n, (x, y) in enumerate(("ab", "ba", "cd", "dc") * 3)
    ]
    middle = [row | {"assignment": 2, "value": 0.5} for row in same]
    ratings = [{"assignment": 3, "section": 2, "value": 0.75, "position": n} for n in range(12)]
    varied = [{"assignment": 4, "section": 2, "value": n % 3 / 4, "position": n} for n in range(12)]
    material = RuleInput(responses(*same, *middle, *ratings, *varied), assignments({}, {}, {}, {}))
    flags = REGISTRY["straight_lining"].flag(material)
    assert flags.states == {1: FAIL, 2: PASS, 3: UNKNOWN, 4: PASS}
    assert "12 times" in flags.evidence[3]


def test_copied_text_needs_eight_words_in_a_row_and_most_of_the_explanation():
    story = "Once upon a time there was a king who had three daughters and no gold at all."
    rows = [
        {"assignment": 1, "text": "once upon a time, there was a KING who had three daughters"},
        {
            "assignment": 2,
            "text": "I think it copies fairy tales: once upon a time there was a king who had three, is what they all say in the end",
        },
        {"assignment": 3, "text": "once upon a time"},
    ]
    material = RuleInput(responses(*rows), assignments({}, {}, {}, {}), texts_by_batch=lambda: {1: [story]})
    assert states("copied_text", material) == {1: FAIL, 2: PASS, 3: PASS, 4: UNKNOWN}
    # A rewritten text keeps words of the original.
    rewritten = replace(material, rewriting_questions=lambda: {(1, "q")})
    assert states("copied_text", rewritten) == {1: UNKNOWN, 2: UNKNOWN, 3: UNKNOWN, 4: UNKNOWN}


def applied(slug, failed, everybody, role="primary", is_blind=True):
    return AppliedRule(
        slug, slug, role, {}, is_blind, AssignmentFlags({a: FAIL if a in failed else PASS for a in everybody})
    )


subsets = st.lists(
    st.tuples(st.sets(st.integers(1, 12)), st.sampled_from(["primary", "sensitivity", "always"]), st.booleans()),
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(found=subsets, order=st.randoms(use_true_random=False))
def test_the_kept_set_does_not_depend_on_the_order_and_every_step_adds_up(found, order):
    everybody = list(range(1, 13))
    rows = assignments(*({"arm": "ab"[n % 2]} for n in everybody))
    applied_rules = [applied(f"r{n}", failed, everybody, role, blind) for n, (failed, role, blind) in enumerate(found)]
    flow = exclusion_flow(applied_rules, rows)
    n = len(everybody)
    for step in flow["rules"]:
        assert step["n_in"] == n and step["n_out"] == step["n_in"] - step["n_excluded"]
        assert step["n_excluded"] <= step["n_flagged"]
        assert sum(arm["n_excluded"] for arm in step["by_arm"].values()) == step["n_excluded"]
        assert sum(arm["n_in"] for arm in step["by_arm"].values()) == step["n_in"]
        n = step["n_out"]
    assert flow["kept"] == n == len(kept_assignment_ids(applied_rules, everybody, include_outcome_rules=True))
    assert sum(one["n"] for one in flow["overlaps"]) == len(flow["excluded_assignments"]) == 12 - n
    for is_paper in (True, False):
        before = kept_assignment_ids(applied_rules, everybody, include_outcome_rules=is_paper)
        shuffled = list(applied_rules)
        order.shuffle(shuffled)
        assert kept_assignment_ids(shuffled, everybody, include_outcome_rules=is_paper) == before


def test_unknown_never_excludes_and_rules_that_see_outcomes_spare_the_recommended():
    flags = AssignmentFlags({1: UNKNOWN, 2: FAIL, 3: PASS})
    applied_rules = [AppliedRule("r", "r", "primary", {}, False, flags)]
    assert kept_assignment_ids(applied_rules, [1, 2, 3], include_outcome_rules=True) == [1, 3]
    assert kept_assignment_ids(applied_rules, [1, 2, 3]) == [1, 2, 3]


def test_a_module_among_the_rules_is_found_without_a_list(tmp_path, monkeypatch):
    (tmp_path / "of_nobody.py").write_text(
        "from studies.models.design import register\n\n\n@register('of_nobody', 'of nobody')\ndef of_nobody(material): ...\n"
    )
    monkeypatch.setattr(rules, "__path__", [*rules.__path__, str(tmp_path)])
    try:
        load_rules()
        assert REGISTRY["of_nobody"].label == "of nobody"
    finally:
        REGISTRY.pop("of_nobody", None)
        sys.modules.pop("analysis.exclusions.rules.of_nobody", None)


@pytest.mark.parametrize("slug", sorted(REGISTRY))
def test_every_rule_bears_nobody_and_nothing(slug):
    empty = RuleInput(responses({"assignment": 1}).iloc[:0], assignments({}).iloc[:0])
    options = {"question": "q", "options": ["a"]} if slug in ("not_native", "answered") else {}
    assert REGISTRY[slug].flag(empty, **options).states == {}
    assert REGISTRY[slug].help


def test_settings_are_checked_by_their_forms():
    good = TauSettings({"tau": "1.1", "symmetric": ""})
    assert good.is_valid() and good.cleaned_data == {"tau": 1.1, "symmetric": False}
    assert not TauSettings({"tau": "2.5"}).is_valid()
    listed = AnswerSettings({"question": "q", "options": "yes, no,"})
    assert listed.is_valid() and listed.cleaned_data["options"] == ["yes", "no"]
    for keys in (["yes"], ["yes", "no"], ["of age, or nearly", "no"], ['"so" to say', 'a "b", c'], ["ja/nein", "何か"]):
        field = listed.fields["options"]
        assert field.clean(field.prepare_value(keys)) == field.clean(keys) == keys
        assert not field.has_changed(keys, field.prepare_value(keys))
    assert AnswerSettings({"question": "q", "options": ["yes"]}).is_valid()
    assert not AnswerSettings({"question": "q", "options": " , "}).is_valid()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("rule", "settings", "said"),
    [
        ("not_native", {"question": "fluent", "options": ["yes"]}, []),
        ("answered", {"question": "fluent", "options": ["yes", "no"]}, []),
        (
            "not_native",
            {"question": "fluent", "options": ["['yes']"]},
            ["not native", "“fluent”", "“['yes']”", "yes, no"],
        ),
        ("answered", {"question": "fluent", "options": ["yes", "maybe"]}, ["answered", "the key “maybe”", "yes, no"]),
        (
            "answered",
            {"question": "english", "options": ["yes"]},
            ["answered", "no question with the key “english”", "fluent"],
        ),
        (
            "answered",
            {"question": "comment", "options": ["yes"]},
            ["answered", "“comment” has no answers to choose from"],
        ),
        ("not_native", {}, ["not native", "Question: ", "required"]),
        ("too_fast", {"words_per_minute": 1}, ["too fast", "words per minute", "100"]),
        ("gone", {}, ["“gone” is not installed"]),
    ],
)
def test_the_launch_refuses_a_rule_that_names_what_does_not_exist(rule, settings, said):
    from studies.design import checklist
    from studies.services import lifecycle
    from tests import builders

    study = builders.spa_draft(rules=[(rule, settings)])
    found = [problem for problem in checklist.find_design_problems(study) if problem.field == "exclusion_rules"]
    if not said:
        assert not found and builders.launched(study).state == "launched"
        return
    assert all(problem.is_blocking and "elete" in problem.text for problem in found)
    assert all(part in " ".join(problem.text for problem in found) for part in said), found
    with pytest.raises(lifecycle.NotReady, match="rule"):
        builders.launched(study)
    # Answers that were given elsewhere are analysed by the same rules.
    with pytest.raises(lifecycle.NotReady, match="rule"):
        lifecycle.freeze_and_close(study, by=None)


@pytest.mark.django_db
@pytest.mark.postgres
def test_each_protocol_knows_the_keys_that_its_answers_store():
    """A rule may name the tie of two choices and the error categories, which are no options of a scale."""
    from studies.models import Section
    from studies.protocols import REGISTRY as PROTOCOLS
    from tests import builders

    study = builders.draft_study()
    choice = builders.add_choice(study, allows_tie=True)
    marks = builders.add_marks(study, position=2)

    def keys(section: Section, key: str) -> tuple[str, ...]:
        return PROTOCOLS[section.protocol].answer_keys(section, section.questions.get(key=key))

    assert keys(choice, choice.questions.get().key) == ("tie",)
    assert "accuracy" in " ".join(keys(marks, "errors")).lower() and keys(marks, "score") == ()
    choice.settings["allows_tie"] = False
    assert keys(choice, choice.questions.get().key) == ()
