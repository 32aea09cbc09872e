"""Attention checks work in every protocol, only the second wrong answer ends an assignment, and no page marks them."""

import re

import pytest
from django.test import Client

from analysis.data.frames import assignments_frame, responses_frame
from analysis.data.rule_input import build_rule_input
from analysis.exclusions import FAIL, PASS, UNKNOWN
from analysis.exclusions.screening import exclusion_flow
from annotators.models import Response
from annotators.pages.record import full_page_state
from annotators.pay.evidence import measure_work_evidence
from annotators.pay.ledger import compute_amount_owed
from annotators.pay.promises import get_pay_terms, pay_obstacles
from annotators.places import assign
from studies.models.design import REGISTRY as RULES
from studies.protocols import REGISTRY
from tests.attention import add_attention, check_pages, fresh, play, study_with_checks, wrong_answers
from tests.builders import launched, panel, promised, recruitment, spa_draft
from tests.leaks import all_bytes
from tests.players import answered, claimed
from tests.robots import Robot
from tests.samples import blocking

pytestmark = pytest.mark.django_db
SLUGS = sorted(REGISTRY)


@pytest.mark.parametrize("slug", SLUGS)
def test_the_second_wrong_answer_ends_an_assignment_of_any_protocol(slug):
    study = study_with_checks(slug)
    once, twice = claimed(study, "once"), claimed(study, "twice")
    once, twice = play(once, 1), play(twice, 2)
    assert once.submitted_at and not once.released_at
    assert twice.released_reason == "failed_checks" and not twice.submitted_at
    # The page that held the second mistake is stored, and nothing after it.
    stored = twice.responses.filter(question__section__purpose="attention")
    assert stored.count() >= 2 and once.responses.filter(question__section__purpose="attention").count() == 3
    assert twice.batch.claimed == 0


def test_checks_are_spread_and_not_on_the_last_page_and_differ_between_people():
    study = study_with_checks("rating", m=12, target_n=4)
    drawn = []
    for number in range(4):
        assignment = claimed(study, f"p{number}")
        keys = list(full_page_state(assignment).steps)
        places = [keys.index(key) for key in check_pages(assignment)]
        assert len(places) == 3 and max(places) < len(keys) - 1 and min(places) < 4 and max(places) >= 7
        drawn.append(tuple(places))
    assert len(set(drawn)) > 1


@pytest.mark.parametrize("slug", SLUGS)
def test_no_page_marks_a_check(slug):
    """The right answer has no mark, the names of inputs follow the page's pattern, and no word tells the kind of question."""
    study = study_with_checks(slug)
    robot = Robot(f"/e/{recruitment(study).key}/?who=ann&session=s")
    robot.play()
    sent = all_bytes(robot.responses)
    assert b"Strongly agree" in sent and study.assignments.get().submitted_at
    for word in (b"attention", b"is_right", b"right_key", b"says_agree"):
        assert word not in sent.lower(), word
    for body in (response.content.decode() for response in robot.responses):
        boxes = re.findall(r'<input type="radio"[^>]*value="(?:strongly_)?(?:dis)?agree"[^>]*>', body)
        shapes = {re.sub(r'="[^"]*"', "", box).replace(" checked", "") for box in boxes}
        assert len(shapes) <= 1


def test_a_check_is_among_the_questions_of_a_survey_or_spa_page():
    study = spa_draft(target_n=2, with_surveys=False, with_rating=False)
    add_attention(study, position=5, words=["Agree", "Disagree"])
    study = launched(study)
    assignment = claimed(study, "p", recruitment(study))
    (key,) = check_pages(assignment)
    while (now := full_page_state(fresh(assignment)).next_key) != key:
        answered(fresh(assignment), now)
    body = Client().get(f"/p/{assignment.code}/{key}/").content.decode()
    n = len(re.findall(r'class="nth"', body))
    assert n == len(full_page_state(assignment).steps[key].page.questions) + 2
    assert f"{n} of {n}" in body


def test_the_outcome_has_its_own_code_and_pay_and_a_form_to_object():
    study = study_with_checks("rating", reward=2)
    link = promised(panel(study), failed_checks="0.80", screened_out="0.30")
    link.settings["return_failed_checks"] = "FAILED-7"
    link.save()
    page = Client().get(f"/e/{link.key}/?who=a&session=1").content.decode()
    assert "<b>0.80 USD</b>: if two of your answers are wrong to questions that say which answer to give" in page
    assert "the first answers show" not in page
    assignment = play(claimed(study, "twice", link), 2)
    owed = compute_amount_owed(assignment, 2, get_pay_terms(link))
    assert (owed.outcome, str(owed.amount)) == ("failed_checks", "0.80")
    done = Client().get(f"/p/{assignment.code}/done/").content.decode()
    assert "FAILED-7" in done and "You are paid 0.80 USD" in done.replace("<b>", "").replace("</b>", "")
    assert f'action="/p/{assignment.code}/appeal/"' in done
    # A person who failed cannot come back for another place.
    again = Client().get(f"/e/{link.key}/?who=twice&session=2", follow=True).content.decode()
    assert "Strongly agree" not in again


@pytest.mark.parametrize(
    ("rules", "is_refused"),
    [
        ({"failed_checks": "nothing"}, True),
        ({"failed_checks": "0.20", "screened_out": "0.30"}, True),
        ({"failed_checks": "0.30", "screened_out": "0.30"}, False),
        ({"failed_checks": "share", "screened_out": "0.30"}, False),
        ({"failed_checks": "all"}, False),
    ],
)
def test_failing_checks_is_paid_at_least_as_screening_out(rules, is_refused):
    link = promised(panel(study_with_checks("rating", reward=2)), **rules)
    assert any("fail attention checks" in problem for problem in pay_obstacles(link)) is is_refused


def test_the_analysis_knows_the_outcome_and_never_counts_the_answers():
    study = study_with_checks("rating", target_n=3)
    once, twice, never = (play(claimed(study, str(n)), n) for n in (1, 2, 0))
    rows, assignments = responses_frame(study).rows, assignments_frame(study).rows
    assert set(rows["purpose"]) == {"live", "attention"}
    assert len(responses_frame(study, purposes=["live"]).rows) == (rows["purpose"] == "live").sum()
    flags = RULES["failed_attention_checks"].flag(build_rule_input(study, rows, assignments))
    assert flags.states == {once.pk: FAIL, never.pk: PASS}
    assert flags.evidence == {once.pk: "1 of 3 attention checks wrong"}
    assert set(
        RULES["failed_attention_checks"].flag(build_rule_input(study, rows, assignments), failed=2).states.values()
    ) == {PASS}
    unasked = build_rule_input(study, rows[rows["purpose"] == "live"], assignments)
    assert set(RULES["failed_attention_checks"].flag(unasked).states.values()) == {UNKNOWN}
    assert exclusion_flow([], assignments)["released"] == {"failed_checks": 1}
    evidence = measure_work_evidence(once)
    assert evidence.checks == 3 and len(evidence.failed) == 1
    (check,) = evidence.failed
    assert check.expected in ("Strongly agree", "Disagree", "Agree") and check.answered != check.expected
    assert Response.objects.filter(assignment=twice, question__section__purpose="live").exists()


def test_a_late_failure_is_stored_and_keeps_its_reason():
    """The place was released and taken by another person before the second wrong answer came."""
    study = study_with_checks("rating", target_n=1)
    assignment = claimed(study, "late")
    first, second, _ = check_pages(assignment)
    for key in list(full_page_state(assignment).steps):
        if key == second:
            break
        answered(fresh(assignment), key, **(wrong_answers(fresh(assignment), key) if key == first else {}))
    assign.release_assignment(assignment.pk, "expired")
    claimed(study, "other")
    answered(fresh(assignment), second, **wrong_answers(fresh(assignment), second))
    assert fresh(assignment).released_reason == "failed_checks"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scale": {"kind": "text"}}, "Give it several answers to choose from"),
        (
            {"scale": {"kind": "choice", "options": [{"key": "a", "label": "A"}, {"key": "b", "label": "B"}]}},
            "mark exactly one as right",
        ),
        ({"required": False}, "Make it required"),
        ({"skip_reasons": [{"key": "no", "label": "No"}]}, "remove its reasons to skip"),
    ],
)
def test_the_checklist_names_what_a_check_lacks(change, words):
    study = spa_draft(target_n=2)
    section = add_attention(study, position=9)
    assert not blocking(study)
    question = section.questions.first()
    for name, value in change.items():
        setattr(question, name, value)
    question.save()
    assert any(words in text for text in blocking(study))
