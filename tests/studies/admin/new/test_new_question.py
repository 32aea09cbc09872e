"""The page Question: each card makes a draft that lacks nothing of its design, one returns to it, and the preview writes nothing."""

import re

import pytest
from django.apps import apps
from django.urls import reverse

from analysis.metrics.store import MetricDescription, store_computed_scores
from studies.design import checklist
from studies.models import AuditEvent, Contrast, Output, Question, Section, Study, System
from studies.protocols import REGISTRY
from studies.services import drafts
from tests.builders import add_spa, draft_study, launched, spa_draft, user

pytestmark = pytest.mark.django_db
CARDS = [slug for slug, protocol in REGISTRY.items() if protocol.card]
# What the next pages ask: people, pay and texts.
LATER = {"public_title", "consent", "contact", "target_n", "reward", "minutes"}
TEXTS = {
    "public_title": "",
    "consent": "",
    "contact": "",
    "instructions": "",
    "target_n": None,
    "reward": None,
    "minutes": None,
}


@pytest.fixture
def study(client):
    client.force_login(user())
    return draft_study(systems=("alpha", "beta", "human"), owner=user(), guide={}, **TEXTS)


def address(study):
    return reverse("new_study_question", args=[study.pk])


def choose(client, study, card, **fields):
    return client.post(address(study), {"card": card, "criterion": "overall"} | fields)


def rows() -> dict[str, int]:
    return {model.__name__: model._base_manager.count() for model in apps.get_models() if model._meta.managed}


@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize("card", CARDS)
def test_a_card_makes_a_design_that_lacks_nothing(client, study, card, baseline):
    reference = study.systems.get(name="beta")
    response = choose(client, study, card, baseline=reference.pk if baseline else "")
    assert response.status_code == 302
    study.refresh_from_db()
    section = study.sections.get()
    assert section.protocol == card and section.m >= REGISTRY[card].card.fewest_items and study.instructions
    problems = checklist.find_design_problems(study)
    assert {problem.field for problem in problems if problem.is_blocking} <= LATER, problems
    named = [problem.text for problem in problems if not problem.is_blocking and problem.field not in LATER]
    assert not named
    if REGISTRY[card].card.estimand:
        assert [contrast.x for contrast in study.contrasts.all()] == [None]
        return
    pairs = {(one.x.name, one.y.name) for one in study.contrasts.all()}
    assert pairs == (
        {("alpha", "beta"), ("human", "beta")}
        if baseline
        else {("alpha", "beta"), ("alpha", "human"), ("beta", "human")}
    )
    assert [one.name for one in study.systems.filter(reference="reference")] == (["beta"] if baseline else [])
    assert all(one.section == section for one in study.contrasts.all())


@pytest.mark.parametrize("card", CARDS)
def test_a_card_can_be_launched_after_the_texts(client, study, card):
    choose(client, study, card)
    for name, value in {
        "public_title": "T",
        "consent": "C",
        "contact": "c@example.org",
        "target_n": 6,
        "reward": "2",
        "minutes": 10,
    }.items():
        setattr(study, name, value)
        Study.objects.filter(pk=study.pk).update(**{name: value})
    study.refresh_from_db()
    assert not [problem.text for problem in checklist.find_design_problems(study) if problem.is_blocking]


def test_ratings_take_several_criteria_with_words_for_each_point(client, study):
    choose(client, study, "rating", criterion="fluency", more=["clarity", "fluency"], m="3")
    section = study.sections.get()
    asked = list(section.questions.order_by("position"))
    assert [one.key for one in asked] == ["fluency", "clarity"] and section.m == 3
    assert all(len(set(one.scale["labels"])) == 5 and "{label}" in one.text for one in asked)
    assert "**Clarity**" in section.settings["explanation"]
    assert study.contrasts.count() == 6 and set(study.contrasts.values_list("criterion", flat=True)) == {
        "fluency",
        "clarity",
    }


def test_stated_chances_are_asked_in_both_directions(client, study):
    choose(client, study, "spa", criterion="clarity")
    section = study.sections.get()
    assert section.questions.count() == 6 and section.m == 5 or section.m >= 4
    assert all("{x}" in one.text and "are clearer than" in one.text and one.help for one in section.questions.all())
    assert set(study.contrasts.values_list("population", flat=True)) == {Contrast.Population.PEOPLE}


def test_the_system_that_comes_first_in_the_file_is_compared_with_the_others(client):
    client.force_login(user())
    study = draft_study(systems=("ours", "baseline"), owner=user(), guide={}, **TEXTS)
    choose(client, study, "rating")
    (comparison,) = study.contrasts.all()
    assert (comparison.x.name, comparison.y.name) == ("ours", "baseline")


def test_the_judge_takes_the_questions_of_its_template_and_gives_them_back(client, study):
    response = choose(client, study, "judge_check")
    assert response.url == reverse("judge_check", args=[study.pk])
    study.refresh_from_db()
    assert [one.key for one in study.sections.get().questions.all()] == ["verdict", "reason"]
    assert (study.annotators_per_batch, study.batches_per_annotator) == (3, 10)
    choose(client, study, "two_choice")
    study.refresh_from_db()
    assert (study.annotators_per_batch, study.batches_per_annotator) == (1, 1)


def test_the_pages_of_a_judge_are_steps_of_a_new_study(client, study):
    choose(client, study, "judge_check")
    judge = store_computed_scores(
        study,
        study.owner,
        "strict",
        MetricDescription("judge", "v1", scale_low=1, scale_high=5),
        {output.pk: output.pk % 5 + 1.0 for output in Output.objects.filter(system__study=study)},
        "upload",
    )
    people = f'href="{reverse("new_study_people", args=[study.pk])}">Continue</a>'
    for name in ("judge_check", "study_metrics"):
        page = client.get(reverse(name, args=[study.pk])).content.decode()
        assert '<span aria-current="step">2. Question</span>' in page and people not in page
    sent = {"judge": judge.pk, "question": "verdict", "n_test": 10, "n_development": 0, "people_per_output": 3}
    sent |= {"certainty_ratio": 1, "min_agreement": 0.5, "epsilon": 0.1}
    drawn = client.post(reverse("judge_check_draw", args=[study.pk]), sent)
    assert drawn.status_code == 302 and people in client.get(drawn.url).content.decode()
    draft = draft_study(owner=study.owner, title="without a guide")
    assert 'aria-current="step"' not in client.get(reverse("study_metrics", args=[draft.pk])).content.decode()


OWN = {"criterion": "own", "own_name": "Suspense", "own_definition": "You want to read on."}


def test_a_criterion_of_ones_own(client, study):
    choose(client, study, "rating", own_low="boring", own_high="gripping", **OWN)
    question = study.sections.get().questions.get()
    assert (
        question.criterion == "suspense" and question.scale["low"] == "boring" and question.scale["high"] == "gripping"
    )
    choose(client, study, "two_choice", own_question="Which one keeps you reading?", **OWN)
    question = study.sections.get().questions.get()
    assert question.text == "Which one keeps you reading?" and question.help == "You want to read on."


@pytest.mark.parametrize(
    ("card", "fields", "name", "said"),
    [
        ("", {}, "card", "Choose one of the cards"),
        ("nothing", {}, "card", "not one of the available choices"),
        ("rating", OWN, "own_low", "Your own wording needs this"),
        ("two_choice", OWN | {"own_definition": ""}, "own_definition", "Your own wording needs this"),
        ("spa", OWN | {"own_question": "Is it better?"}, "own_question", "does not contain {x} and {y}"),
        ("two_choice", {"more": ["clarity"]}, "more", "This card asks by one criterion"),
        (
            "rating",
            OWN | {"own_low": "a", "own_high": "b", "own_name": "Clarity", "more": ["clarity"]},
            "more",
            "the same name",
        ),
        (
            "rating",
            {"more": ["clarity", "fluency", "order", "grammar", "spelling", "truth"]},
            "more",
            "At most 6 criteria",
        ),
        ("two_choice", {"m": "13"}, "m", "Only 12 prompts"),
        ("two_choice", {"m": "0"}, "m", "greater than or equal to 1"),
        ("two_choice", {"baseline": "999999"}, "baseline", "not one of the available choices"),
    ],
)
def test_a_refusal_names_the_field_keeps_what_was_typed_and_writes_nothing(client, study, card, fields, name, said):
    before = rows()
    response = choose(client, study, card, **fields)
    text = response.content.decode()
    assert response.status_code == 400 and said in text and f'href="#id_{name}"' in text
    assert rows() == before
    assert "Suspense" in text or "own_name" not in fields or fields["own_name"] != "Suspense"


def test_humanlike_needs_a_person_and_every_comparison_a_second_system(client, study):
    study.systems.update(is_human=False)
    page = client.get(address(study)).content.decode()
    assert "It needs texts written by a person" in page
    assert choose(client, study, "humanlike").status_code == 400 and not study.sections.exists()
    alone = draft_study(systems=("alpha",), owner=user(), guide={}, **TEXTS)
    for card in ("two_choice", "spa", "ranking", "best_worst"):
        response = choose(client, alone, card)
        assert response.status_code == 400 and "and the study has 1" in response.content.decode(), card
    assert choose(client, alone, "rating").status_code == 302


def test_each_person_gets_as_many_human_texts_as_there_are(client, study):
    study.systems.get(name="human").outputs.filter(prompt__key__gt="p002").delete()
    assert "Only 6 prompts" in choose(client, study, "humanlike", m="7").content.decode()
    choose(client, study, "humanlike")
    study.refresh_from_db()
    assert study.sections.get().m == 6
    assert {one.field for one in checklist.find_design_problems(study) if one.is_blocking} <= LATER


def test_marks_need_plain_text_and_a_prompt_needs_all_outputs(client, study):
    System.objects.get(study=study, name="alpha").outputs.update(format="markdown")
    assert "errors are marked in plain text" in choose(client, study, "marks").content.decode()
    for output in System.objects.get(study=study, name="beta").outputs.all():
        output.delete()
    assert "No prompt has an output of every system" in choose(client, study, "two_choice").content.decode()


def test_one_returns_to_what_is_stored_and_changes_it(client, study):
    beta = study.systems.get(name="beta")
    choose(client, study, "two_choice", criterion="fluency", baseline=beta.pk, m="4")
    page = client.get(address(study)).content.decode()
    assert (
        'value="two_choice" id="card-two_choice"' in page
        and "checked" in page.partition('id="card-two_choice"')[2][:200]
    )
    assert (
        '<option value="fluency" selected>' in page
        and f'<option value="{beta.pk}" selected>' in page
        and 'value="4"' in page
    )
    choose(client, study, "ranking", criterion="clarity")
    assert Section.objects.get(study=study).protocol == "ranking" and study.contrasts.count() == 3
    assert Question.objects.filter(section__study=study).count() == 1
    assert not study.systems.filter(reference="reference").exists()


def test_the_plans_number_of_items_is_no_edit_and_stays(client, study):
    choose(client, study, "two_choice")
    study.sections.update(m=7)
    assert 'value="7"' in client.get(address(study)).content.decode()
    assert choose(client, study, "two_choice", m="7").status_code == 302


EDITS = {
    "a question": lambda study: Question.objects.filter(section__study=study).update(text="Another one?"),
    "a comparison": lambda study: study.contrasts.update(margin=0.1),
    "another section": lambda study: add_spa(study, position=2),
    "a setting": lambda study: study.sections.update(settings={}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_another_hand_changed_is_not_replaced(client, study, edit):
    choose(client, study, "two_choice")
    EDITS[edit](study)
    page = client.get(address(study)).content.decode()
    assert "under All settings. Change it there" in page and "question-form" not in page
    before = rows()
    assert choose(client, study, "rating").status_code == 409 and rows() == before


def test_instructions_that_somebody_wrote_stay(client, study):
    choose(client, study, "two_choice")
    study.refresh_from_db()
    made = study.instructions
    choose(client, study, "rating")
    study.refresh_from_db()
    assert study.instructions != made
    drafts.update_draft(study, user(), {"instructions": "Mine."})
    choose(client, study, "ranking")
    study.refresh_from_db()
    assert study.instructions == "Mine."


@pytest.mark.parametrize("card", [*CARDS, "judge_check"])
def test_the_preview_shows_the_page_and_leaves_no_row(client, study, card):
    before, version = rows(), study.version
    response = choose(client, study, card, preview="1")
    text = response.content.decode()
    assert response.status_code == 200 and "The tale number" in text and "<script" not in text
    assert (
        response["X-Frame-Options"] == "SAMEORIGIN" and "frame-ancestors 'self'" in response["Content-Security-Policy"]
    )
    assert "alpha" not in text and "human" not in text.replace("human-written", "").replace("human?", "").replace(
        "human-like", ""
    )
    study.refresh_from_db()
    assert rows() == before and study.version == version and study.guide == {}
    # Also beside what is stored.
    choose(client, study, "two_choice" if card != "two_choice" else "rating")
    before = rows()
    choose(client, study, card, preview="1")
    assert rows() == before


def test_a_preview_that_is_not_possible_says_why(client, study):
    response = choose(client, study, "", preview="1")
    assert response.status_code == 200 and "Choose one of the cards" in response.content.decode()
    assert response["X-Frame-Options"] == "SAMEORIGIN"


def test_the_page_itself_may_not_be_framed(client, study):
    assert client.get(address(study))["X-Frame-Options"] == "DENY"


def test_the_costs_are_those_of_the_plan(client, study):
    page = client.get(address(study)).content.decode()
    assert len(re.findall(r"Example: about \d+ people, \d+ minutes each\.", page)) == len(CARDS)
    assert "Example with 200 outputs: 30 parts of 20 minutes" in page


def test_an_empty_draft_leads_to_the_file(client):
    client.force_login(user())
    empty = draft_study(systems=(), prompts=0, owner=user(), guide={}, **TEXTS)
    page = client.get(address(empty)).content.decode()
    assert reverse("new_study_file", args=[empty.pk]) in page and "question-form" not in page
    assert choose(client, empty, "rating").status_code == 400


def test_a_launched_study_is_sent_to_its_page(client):
    client.force_login(user())
    study = launched(spa_draft(prompts=12, owner=user()))
    assert choose(client, study, "rating").url == reverse("admin:studies_study_change", args=[study.pk])


def test_each_choice_is_in_the_log(client, study):
    choose(client, study, "two_choice")
    event = AuditEvent.objects.filter(verb="edit").first()
    assert event.data["protocol"] == "two_choice" and event.by == user()


def test_a_bare_scale_blocks_drafts_of_these_pages_and_warns_elsewhere(client, study):
    choose(client, study, "rating")
    question = Question.objects.filter(section__study=study)

    def found(**scale):
        question.update(scale=scale)
        draft = Study.objects.get(pk=study.pk)
        return [one for one in checklist.find_design_problems(draft) if "have no words" in one.text]

    for scale in (
        {"kind": "likert"},
        {"kind": "likert", "minimum": 1, "maximum": 7, "low": "bad"},
        {"kind": "continuous", "minimum": 0, "maximum": 100},
        {"kind": "likert", "labels": ["", "b", "c"]},
    ):
        assert [one.is_blocking for one in found(**scale)] == [True], scale
    assert not found(kind="likert", minimum=1, maximum=7, low="bad", high="good")
    Study.objects.filter(pk=study.pk).update(guide=None)
    assert [one.is_blocking for one in found(kind="likert")] == [False]
    study.sections.update(purpose="screening")
    assert not found(kind="likert")
