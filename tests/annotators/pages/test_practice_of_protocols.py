"""Practice items of every protocol with known answers: asked on the study's own page, scored, and explained only afterwards."""

import pytest
from django.test import Client

from annotators.models import Assignment, QualificationAttempt
from annotators.pages.record import full_page_state
from studies.models import Expected
from studies.protocols.base.known_answers import practice_answer
from tests import builders
from tests.annotators.pages.practised import CASES, SYSTEMS, practised_draft
from tests.players import answered, claimed, open_page
from tests.samples import blocking

pytestmark = pytest.mark.django_db
# What a page says before the right answer: the question, and which of several texts it is about.
QUESTIONS = {
    "rating": ('<p dir="auto">How good is ',),
    "relative": ('<p dir="auto">Which of the two is better',),
    "ranking": ('<p dir="auto">The place of ',),
    "best_worst": ('<p dir="auto">Which one is the best?', '<p dir="auto">Which one is the worst?'),
}


def fresh(assignment):
    return Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)


def answer_page(assignment, is_right: bool):
    """Answer one page of practice items, rightly or wrongly."""
    _, page, asks = open_page(assignment)
    scales = {question.id: question.scale for question in page.questions}
    right = {
        (row.item_id, row.question_id): practice_answer(row, scales[row.question_id])
        for row in Expected.objects.filter(item__in=[item.id for item in page.items])
    }
    sent = {}
    (item,) = page.items
    letters = {exposure: label for label, exposure in item.exposures}
    for slot, ask in asks.items():
        known = right[item.id, ask.question_id]
        if known.better and ask.answer_column == "chosen":
            others = [label for pk, label in letters.items() if pk != known.better]
            # Best and worst must differ, so a wrong page swaps the two.
            wrong = next(
                (letters[other.better] for (i, q), other in right.items() if i == item.id and q != ask.question_id),
                others[0],
            )
            sent[slot] = letters[known.better] if is_right else wrong
        elif known.better:
            sent[slot] = "5" if (ask.exposure_id == known.better) is is_right else "1"
        elif ask.exposure_id == known.about:
            low = is_right if known.high < 3 else not is_right
            sent[slot] = "1" if low else ("3" if known.high < 3 else "5")
        else:
            sent[slot] = "3" if known.high >= 3 else "2"
    answered(assignment, **sent)
    return page.key


def look(assignment, key):
    return Client().get(f"/p/{assignment.code}/{key}/").content.decode()


def begin(assignment):
    """Go on to the first page of practice items."""
    while full_page_state(fresh(assignment)).next_key == "start" or not open_page(fresh(assignment))[1].items:
        answered(fresh(assignment))


@pytest.mark.parametrize("protocol", CASES)
def test_a_test_asks_practice_items_on_the_studys_page_and_shows_no_truth(protocol):
    study, _ = practised_draft(protocol)
    assert not blocking(study)
    study = builders.launched(study)
    good, bad = claimed(study, "good"), claimed(study, "bad")
    for assignment, is_right in ((good, True), (bad, False)):
        begin(assignment)
        for _ in range(4):
            key = full_page_state(fresh(assignment)).next_key
            page = look(assignment, key)
            answer_page(fresh(assignment), is_right)
            shown = page + look(assignment, f"{key}t") + look(assignment, full_page_state(fresh(assignment)).next_key)
            assert not any(word in shown for word in (*SYSTEMS, "gold", "Because", "That is right."))
            if fresh(assignment).released_reason:
                break
            if full_page_state(fresh(assignment)).next_key.endswith("again"):
                answered(fresh(assignment))
            if not full_page_state(fresh(assignment)).steps[full_page_state(fresh(assignment)).next_key].attempt:
                break
    n = 2 * len(CASES[protocol][1])
    rows = QualificationAttempt.objects.order_by("pk").values_list("assignment", "number", "n_right", "n_asked")
    assert list(rows) == [(good.pk, 1, n, n), (bad.pk, 1, 0, n), (bad.pk, 2, 0, n)]
    assert fresh(bad).released_reason == "screened_out" and not fresh(good).released_at


@pytest.mark.parametrize("protocol", CASES)
def test_practice_explains_each_page_only_after_its_answer(protocol):
    study = builders.launched(practised_draft(protocol, pass_mark=None)[0])
    for name, is_right in (("good", True), ("bad", False)):
        assignment = claimed(study, name)
        begin(assignment)
        key = full_page_state(fresh(assignment)).next_key
        page = look(assignment, key) + look(assignment, f"{key}t")
        assert "gold" not in page and "Because" not in page
        answer_page(fresh(assignment), is_right)
        after = look(assignment, f"{key}t")
        assert "Because gold" in after and ("That is right." in after) is is_right
        assert not any(name in page + after for name in SYSTEMS)
        assert all(words in after for words in QUESTIONS.get(protocol, ())), after


def test_feedback_on_one_of_several_texts_names_it():
    draft, section = practised_draft("rating", pass_mark=None)
    section.questions.update(text="How good is it?")
    assignment = claimed(builders.launched(draft), "person")
    begin(assignment)
    key = full_page_state(fresh(assignment)).next_key
    answer_page(fresh(assignment), True)
    page = open_page(fresh(assignment), key)[1]
    about = Expected.objects.get(item=page.items[0].id).about_id
    letter = {exposure: label for label, exposure in page.items[0].exposures}[about]
    assert f'<p dir="auto">Text {letter}: How good is it?</p>' in look(assignment, f"{key}t")
