"""The page of a new study about its texts: the model text, the facts about the researcher, the question about AI tools, the preview."""

import pytest

from studies.design.checklist import find_design_problems
from studies.design.workload import estimate_stored_or_trial_batch_workloads, median_workload
from studies.imports.study_templates import TEMPLATES_BY_SLUG, create_draft_from_template
from studies.models import AuditEvent, ResearcherFacts, Study
from studies.services.copying import clone_study
from studies.services.drafts import create_draft_with_default_arm
from studies.services.questions import AI_TOOLS_REQUEST
from tests.admin_pages import changed, errors_of, form_of, logged_in
from tests.builders import add_choice, add_rating, add_survey, draft_study, launched, user

pytestmark = pytest.mark.django_db
FACTS = {
    "facts-institution": "University of Graz",
    "facts-responsible": "Ada Lovelace, Elisabethstraße 1",
    "facts-contact": "study@example.org",
    "facts-ethics_contact": "ethics@example.org",
    "facts-storage": "on a server in Graz",
    "facts-retention": "for ten years.",
}


@pytest.fixture
def owner():
    return user("owner")


def url(study) -> str:
    return f"/admin/studies/study/{study.pk}/new/texts/"


def new_draft(owner) -> Study:
    study = create_draft_with_default_arm(Study(title="Mine"), owner)
    add_choice(study)
    return study


def sent(client, study, facts=FACTS, **changes):
    form = form_of(client.get(url(study)), "texts-form")
    return client.post(url(study), changed(form, **facts, **changes))


def unfilled(study) -> set[str]:
    return {problem.field for problem in find_design_problems(study) if problem.name.startswith("unfilled")}


def test_facts_are_entered_once_and_fill_in_this_study_and_the_next(owner):
    client = logged_in(owner)
    first, second = new_draft(owner), new_draft(owner)
    page = client.get(url(first)).content.decode()
    assert "[… the institution]" in page and "6 not known yet" in page
    assert sent(client, first).status_code == 302
    first.refresh_from_db()
    assert "University of Graz carries out this study." in first.consent and "[…" not in first.consent
    assert "kept for ten years." in first.consent and "for ten years.." not in first.consent
    assert (first.contact, first.institution, first.retention) == (
        "study@example.org",
        "University of Graz",
        "for ten years.",
    )
    facts = ResearcherFacts.objects.get(user=owner)
    assert facts.responsible == "Ada Lovelace, Elisabethstraße 1"
    assert AuditEvent.objects.get(verb="edit facts").by == owner
    # The next study asks for nothing of it.
    again = client.get(url(second))
    assert not again.context["facts_missing"] and "Ada Lovelace" in form_of(again, "texts-form")["consent"][0]
    assert sent(client, second, facts={}).status_code == 302
    second.refresh_from_db()
    assert second.consent == first.consent and not unfilled(second)
    assert AuditEvent.objects.filter(verb="edit facts").count() == 1


def test_the_model_text_names_what_a_board_asks_for(owner):
    text = form_of(logged_in(owner).get(url(new_draft(owner))), "texts-form")["consent"][0]
    for words in (
        "responsible",
        "pay",
        "risk",
        "voluntary",
        "without a reason",
        "legal basis",
        "stored",
        "kept",
        "ethics board",
        "publish",
        "train",
    ):
        assert words in text, words


def test_the_model_text_follows_the_pay_until_somebody_edits_it(owner):
    client, study = logged_in(owner), new_draft(owner)
    sent(client, study)
    study.refresh_from_db()
    paid = study.consent
    assert "We need it to pay you" in paid and "separate box" not in paid
    people = f"/admin/studies/study/{study.pk}/new/people/"
    client.post(people, changed(form_of(client.get(people), "plan-form"), reward="0", target_n=8))
    study.refresh_from_db()
    assert " pay" not in study.consent and "Nobody is paid for taking part." in study.consent
    assert "University of Graz carries out" in study.consent and "encrypted, and delete it afterwards" in study.consent
    Study.objects.filter(pk=study.pk).update(asks_to_share_preferences=True, reward=2)
    shown = form_of(client.get(url(study)), "texts-form")["consent"][0]
    assert "unless you allow it in a separate box" in shown and "We need it to pay you" in shown
    edited = paid.replace("voluntary", "your free choice")
    Study.objects.filter(pk=study.pk).update(consent=edited, reward=0)
    assert form_of(client.get(url(study)), "texts-form")["consent"][0].replace("\r\n", "\n") == edited.replace(
        "\r\n", "\n"
    )
    client.post(people, changed(form_of(client.get(people), "plan-form"), target_n=9))
    study.refresh_from_db()
    assert study.consent == edited and study.target_n == 9


def test_the_address_that_is_typed_is_the_one_in_the_consent(owner):
    type(owner).objects.filter(pk=owner.pk).update(email="owner@example.org")
    study = new_draft(owner)
    sent(logged_in(owner), study)
    study.refresh_from_db()
    assert "Write to study@example.org." in study.consent and "owner@example.org" not in study.consent


def test_a_fact_that_is_corrected_is_corrected_in_the_consent(owner):
    client, study = logged_in(owner), new_draft(owner)
    sent(client, study, facts=FACTS | {"facts-contact": "first@example.org", "facts-storage": ""})
    study.refresh_from_db()
    assert "Write to first@example.org." in study.consent
    sent(client, study)
    study.refresh_from_db()
    assert "Write to study@example.org." in study.consent and "first@" not in study.consent
    # What was written in the text itself stays.
    own = study.consent.replace("Write to study@example.org", "Write to lab@example.org")
    sent(client, study, facts={"facts-contact": "new@example.org"}, consent=own)
    study.refresh_from_db()
    assert "Write to lab@example.org." in study.consent and study.contact == "new@example.org"


def test_a_place_that_is_left_is_said_and_blocks_nothing_else(owner):
    client, study = logged_in(owner), new_draft(owner)
    response = sent(client, study, facts=FACTS | {"facts-ethics_contact": ""})
    assert response.status_code == 302
    study.refresh_from_db()
    assert "[… the ethics board and its contact]" in study.consent and unfilled(study) == {"consent"}
    said = client.get(url(study)).content.decode()
    assert "The consent still has 1 place to fill in" in said
    # An omission in a quotation is a place, too; a link of Markdown is not.
    Study.objects.filter(pk=study.pk).update(
        consent="See [our page …](https://x.example). Yours.", purpose="Read “a […] b”."
    )
    assert unfilled(Study.objects.get(pk=study.pk)) == {"purpose"}


def test_people_are_asked_about_ai_tools_in_new_drafts_only(owner):
    client, study = logged_in(owner), new_draft(owner)
    clone = clone_study(draft_study(owner=owner, consent=""), owner)
    template = create_draft_from_template(TEMPLATES_BY_SLUG["two_choice_sentences"], owner)
    for draft, is_on in ((study, True), (clone, False), (template, False)):
        form = form_of(client.get(url(draft)), "texts-form")
        assert ("asks_about_ai_tools" in form) is is_on, draft
    before = draft_study(owner=owner, title="with texts")
    add_choice(before)
    minutes = median_workload(estimate_stored_or_trial_batch_workloads(before)).minutes
    assert sent(client, before, asks_about_ai_tools="on").status_code == 302
    before.refresh_from_db()
    question = before.sections.last().questions.get()
    assert question.key == "used_ai_tools" and "Your pay does not change" in question.text
    assert before.instructions.endswith(AI_TOOLS_REQUEST) and before.instructions.startswith("Read every story")
    longer = median_workload(estimate_stored_or_trial_batch_workloads(before)).minutes
    assert longer == pytest.approx(minutes + 0.25)
    # Sent again, nothing is asked twice. Without the tick both are gone.
    sent(client, before)
    assert before.sections.filter(questions__key="used_ai_tools").count() == 1
    sent(client, before, asks_about_ai_tools=None)
    before.refresh_from_db()
    assert AI_TOOLS_REQUEST not in before.instructions and before.instructions.startswith("Read every story")
    assert [section.position for section in before.sections.all()] == [1]
    # Instructions that need no change keep their last blanks, too.
    Study.objects.filter(pk=before.pk).update(instructions="Read every story.  \n")
    sent(client, before)
    before.refresh_from_db()
    assert before.instructions == "Read every story.  \n"


def test_the_question_comes_last_again_after_other_sections_were_added(owner):
    client, study = logged_in(owner), new_draft(owner)
    sent(client, study)
    add_rating(study, position=3)
    add_survey(study, position=4, questions=[{"key": "c", "text": "Anything?", "scale": {"kind": "text"}}])
    sent(client, study)
    asked = [(section.position, section.questions.first().key) for section in study.sections.all()]
    assert asked == [(1, "better"), (2, "overall"), (3, "c"), (4, "used_ai_tools")]
    sent(client, study, asks_about_ai_tools=None)
    assert [section.position for section in study.sections.all()] == [1, 2, 3]


def test_what_is_wrong_is_named_and_nothing_is_stored(owner):
    client, study = logged_in(owner), new_draft(owner)
    response = sent(client, study, public_title="", purpose="My own purpose")
    assert response.status_code == 422 and "required" in errors_of(response)
    assert form_of(response, "texts-form")["purpose"] == ["My own purpose"]
    too_long = sent(client, study, facts={"facts-institution": "x" * 201})
    assert too_long.status_code == 422 and "at most 200 characters" in errors_of(too_long)
    study.refresh_from_db()
    assert not study.consent and not ResearcherFacts.objects.exists()


def test_the_first_page_is_shown_in_frames_of_this_site_only(owner):
    client = logged_in(owner)
    study = draft_study(owner=owner)
    add_choice(study)
    page = client.get(url(study)).content.decode()
    preview = f"/admin/studies/study/{study.pk}/preview/landing/"
    assert page.count(f'src="{preview}?bare=1"') == 2 and f'href="{preview}"' in page
    framed = client.get(f"{preview}?bare=1")
    assert framed.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in framed.headers["Content-Security-Policy"]
    assert (
        "You take part of your own free will." in framed.content.decode()
        and "preview-bar" not in framed.content.decode().split("<body")[1]
    )
    assert "bare=1" in framed.content.decode()
    assert "preview-bar" in client.get(preview).content.decode().split("<body")[1]
    # Without a question there is nothing to show yet, in a frame as on the page.
    study.sections.first().questions.all().delete()
    study.sections.all().delete()
    assert client.get(f"{preview}?bare=1").status_code == 200
    assert "The first page can be shown when the study has a question" in client.get(url(study)).content.decode()


def test_the_facts_have_a_page_of_the_account(owner):
    client, address = logged_in(owner), "/admin/studies/study/facts/"
    assert (
        client.post(
            address, changed(form_of(client.get(address), "facts-form"), **FACTS, **{"facts-full_pay": "0.10"})
        ).status_code
        == 302
    )
    assert str(ResearcherFacts.objects.get(user=owner).full_pay) == "0.10"
    assert client.post(address, form_of(client.get(address), "facts-form")).status_code == 302
    assert AuditEvent.objects.filter(verb="edit facts").count() == 1  # nothing was edited the second time
    refused = client.post(address, changed(form_of(client.get(address), "facts-form"), **{"facts-full_pay": "-1"}))
    assert refused.status_code == 422 and "greater than or equal to 0" in errors_of(refused)
    assert not ResearcherFacts.objects.filter(user=user("other")).exists()
    assert "University" not in logged_in(user("other")).get(address).content.decode()


def test_strangers_see_no_texts_and_a_launched_study_leads_to_its_page(owner):
    study = draft_study(owner=owner)
    add_rating(study, position=1)
    assert logged_in(user("stranger")).get(url(study)).status_code == 404
    running = launched(study, owner)
    assert logged_in(owner).get(url(running)).url == f"/admin/studies/study/{running.pk}/change/"
