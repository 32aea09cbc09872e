"""What annotators' pages say and hold, from the first page to the last one with questions."""

import re

import pytest

from annotators.models import Assignment, PageVisit, Response
from studies.models import Output, Prompt
from tests.annotators.pages.elements import at, seen
from tests.builders import COMMENT, add_spa, add_survey, draft_study, launched, panel, recruitment, spa_draft, spa_study
from tests.players import claimed, submitted


@pytest.mark.django_db
def test_the_landing_page_says_what_a_person_must_know_before_they_start(client):
    study = spa_study(
        institution="University of Tests",
        approval_number="IRB 12",
        retention="Kept for ten years.",
        content_warning="Wolves.",
    )
    page = seen(client.get(f"/e/{recruitment(study).key}/"))
    for words in (
        "Reading short stories",
        "You read a few short stories",
        "about 12 minutes",
        "2.50 USD",
        "12.50 USD an hour",
        "University of Tests",
        "IRB 12",
        "Kept for ten years.",
        "research@example.org",
        "Wolves.",
        "You take part of your own free will.",
    ):
        assert words in page.words
    assert page.named("agree") and page.named("decline") and page.named("start")
    assert "checked" not in page.named("agree")[0]
    assert not Assignment.objects.exists()


@pytest.mark.django_db
def test_a_study_without_pay_says_so_and_one_without_consent_text_has_no_box(client):
    study = spa_study(reward="0", consent="")
    page = seen(client.get(f"/e/{recruitment(study).key}/"))
    assert "it is voluntary" in page.words and "an hour" not in page.words
    assert page.named("start") and not page.named("agree") and not page.named("decline")


@pytest.mark.django_db
def test_a_visitor_who_does_not_tick_the_box_is_asked_again_and_the_panels_words_in_the_address_are_kept(client):
    address = f"/e/{panel(spa_study()).key}/?who=p%261&session=s"
    page = seen(client.get(address))
    assert page.of("form")[0]["action"] == "?who=p%261&session=s"
    refused = client.post(address, {"start": "1"})
    assert refused.status_code == 422
    page = seen(refused)
    # On top, and once more at the box: it may be screens below.
    assert page.words.count("Please tick the box") == 2
    assert page.named("agree")[0]["aria-describedby"] in {attrs.get("id") for _, attrs in page.tags}
    assert not Assignment.objects.exists()


@pytest.mark.django_db
def test_a_preview_and_a_broken_link_cannot_start(client):
    study = spa_study()
    preview = seen(client.get(f"/e/{recruitment(study, 'prolific').key}/", {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}))
    assert "This is a preview" in preview.words and not preview.of("form")
    broken = seen(client.get(f"/e/{panel(study).key}/"))
    assert "The link is not complete" in broken.words and not broken.of("form")


@pytest.mark.django_db
def test_a_returning_person_continues(client):
    address = f"/e/{panel(spa_study()).key}/?who=anna"
    client.post(address, {"start": "1", "agree": "1"})
    page = seen(client.get(address))
    assert "Welcome back" in page.words and "Go on here" in page.words
    assert not page.named("agree") and not page.named("decline")


@pytest.mark.django_db
def test_every_page_shows_where_one_is_how_much_is_left_and_who_can_help(client):
    assignment = claimed(spa_study(), is_consented=True)
    for key in ("s1", "start", "s2.read"):
        page = seen(client.get(at(assignment, key)))
        assert re.search(r"\d of 6 · about \d+ minutes? left", page.words)
        assert page.of("progress")[0]["max"] == "6"
        links = [attrs.get("href") for attrs in page.of("a")]
        assert f"{at(assignment)}question/?page={key}" in links and f"{at(assignment)}withdraw/" in links
        assert f"{at(assignment)}consent/" in links
        assert "research@example.org" in page.words
        assert "Your place is kept for" in page.words
        client.post(at(assignment, key), {"go": "1", "s1.q1": "yes"} if key == "s1" else {"go": "1"})


@pytest.mark.django_db
def test_more_time_keeps_what_is_typed_and_gives_it(client):
    assignment = claimed(spa_study())
    client.get(at(assignment, "s1"))
    button = next(attrs for attrs in seen(client.get(at(assignment, "s1"))).of("button") if attrs.get("formaction"))
    assert "formnovalidate" in button and button["form"] == "answers"
    before = Assignment.objects.get().reserved_until
    client.post(button["formaction"], {"s1.q1": "yes"})
    assert Assignment.objects.get().reserved_until > before
    assert PageVisit.objects.get(key="s1").draft == {"s1.q1": ["yes"]}
    assert "checked" in seen(client.get(at(assignment, "s1"))).named("s1.q1")[0]


@pytest.mark.django_db
def test_what_is_missing_is_listed_on_top_with_links_and_the_rest_is_kept(client):
    assignment = submitted(spa_study(), until="s2.ask")
    fields = [
        attrs["name"] for attrs in seen(client.get(at(assignment, "s2.ask"))).of("input") if "data-has-range" in attrs
    ]
    answers = dict.fromkeys(fields, "40") | {fields[0]: "", fields[1]: "140", "go": "1"}
    refused = client.post(at(assignment, "s2.ask"), answers)
    assert refused.status_code == 422
    page = seen(refused)
    assert "2 answers are missing or not right" in page.words
    links = [attrs["href"] for attrs in page.of("a") if attrs.get("href", "").startswith("#s2")]
    assert links == ["#" + name.replace(".", "-") for name in fields[:2]]
    assert {link[1:] for link in links} <= {attrs.get("id") for _, attrs in page.tags}
    assert [page.named(name)[0]["value"] for name in fields] == ["", "140", "40", "40"]
    assert [page.named(name)[0].get("aria-invalid") for name in fields] == ["true", "true", None, None]


@pytest.mark.django_db
def test_the_chances_are_asked_one_by_one_and_nothing_is_filled_in_for_anybody(client):
    assignment = submitted(spa_study(), until="s2.ask")
    response = client.get(at(assignment, "s2.ask"))
    page = seen(response)
    assert page.words.count("what is the chance that writer") == 4
    assert all(attrs["value"] == "" for attrs in page.of("input") if "data-has-range" in attrs)
    assert response.content.decode().count("you are certain that the first named is the better one") == 1
    # The texts are at hand, one fold a prompt.
    assert len([attrs for attrs in page.of("details") if not attrs]) == 4 and "The tale number" in page.words
    assert "Sent answers cannot be changed." in page.words


@pytest.mark.django_db
def test_a_recorded_page_is_looked_at_and_a_different_resend_is_refused_with_what_is_stored(client):
    assignment = claimed(spa_study())
    client.get(at(assignment, "s1"))
    client.post(at(assignment, "s1"), {"s1.q1": "yes", "go": "1"})
    recorded = seen(client.get(at(assignment, "s1")))
    assert "are stored and can no longer be changed" in recorded.words
    assert all("disabled" in attrs for attrs in recorded.named("s1.q1")) and not recorded.named("go")
    assert f"{at(assignment)}start/" in [attrs.get("href") for attrs in recorded.of("a")]
    again = client.post(at(assignment, "s1"), {"s1.q1": "no", "go": "1"})
    assert again.status_code == 409
    page = seen(again)
    assert "Other answers are already stored" in page.words
    assert [attrs["value"] for attrs in page.named("s1.q1") if "checked" in attrs] == ["yes"]
    assert Response.objects.get(assignment=assignment).choice == "yes"


@pytest.mark.django_db
def test_the_layout_is_a_button_that_keeps_the_draft(client):
    assignment = submitted(spa_study(), until="s3.p1")
    page = seen(client.get(at(assignment, "s3.p1")))
    (button,) = page.named("layout")
    assert button["value"] == "one" and "formnovalidate" in button
    slot = next(attrs["name"] for attrs in page.of("input") if attrs.get("type") == "radio")
    client.post(at(assignment, "s3.p1"), {slot: "4", "layout": "one"})
    page = seen(client.get(at(assignment, "s3.p1")))
    assert "items one" in [attrs.get("class") for attrs in page.of("div")]
    assert [attrs["value"] for attrs in page.named(slot) if "checked" in attrs] == ["4"]
    assert page.named("layout")[0]["value"] == "side"


@pytest.mark.django_db
def test_one_at_a_time_each_prompt_leads_to_the_next_by_fragments(client):
    assignment = submitted(spa_study(), until="s2.read")
    page = seen(client.get(at(assignment, "s2.read")))
    links = [attrs["href"] for attrs in page.of("a") if attrs.get("href", "").startswith("#i")]
    ids = {attrs.get("id") for _, attrs in page.tags}
    assert {link[1:] for link in links} <= ids
    assert [link for link in links if "-" not in link] == ["#i2", "#i1", "#i3", "#i2", "#i4", "#i3"]
    assert [link for link in links if link.startswith("#i1-")] == ["#i1-A", "#i1-B", "#i1-C"]


@pytest.mark.django_db
def test_an_item_page_is_light_without_its_stimuli(client):
    study = spa_draft(systems=("alpha", "beta", "gamma", "delta", "epsilon"), m=5)
    for output in Output.objects.filter(system__study=study):
        Output.objects.filter(pk=output.pk).update(text="x")
    Prompt.objects.filter(study=study).update(text="y")
    assignment = submitted(launched(study), until="s2.read")
    for key in ("s2.read", "s2.ask", "s3.p1"):
        response = client.get(at(assignment, key))
        assert len(response.content) < 14 * 1024, key
        page = seen(response)
        own = [
            attrs.get("href") or attrs.get("src")
            for tag, attrs in page.tags
            if tag == "script" or attrs.get("rel") == "stylesheet"
        ]
        asks = {"s2.read": [], "s2.ask": ["/static/look.js", "/static/answers.js"], "s3.p1": ["/static/answers.js"]}[
            key
        ]
        assert own == ["/static/tokens.css", "/static/heval.css", "/static/annotate.js", *asks]
        # Without an icon of its own a browser asks for /favicon.ico, which is not there.
        assert [attrs["href"] for attrs in page.of("link") if attrs["rel"] == "icon"] == ["/static/icon.svg"]
        answers = {attrs["name"]: "50" for attrs in page.of("input") if "data-has-range" in attrs}
        answered = client.post(at(assignment, key), answers | {"go": "1"})
        assert answered.status_code == (422 if key == "s3.p1" else 302)
    # The same question is asked of every text: the list of what is missing says of which.
    listed = re.findall(r"Story ([A-Z]): ", seen(answered).words)
    assert listed == sorted(set(listed)) and len(listed) > 1


@pytest.mark.django_db
def test_what_researchers_and_systems_wrote_is_never_run(client):
    hostile = "<img src=x onerror=alert(1)>\"'</script>"
    words = dict.fromkeys(("public_title", "contact", "content_warning", "purpose", "instructions", "consent"), hostile)
    study = draft_study(**words)
    add_survey(study, position=1, questions=[COMMENT | {"text": hostile, "help": hostile}])
    add_spa(study, position=2)
    Output.objects.filter(system__study=study).update(text=hostile)
    Prompt.objects.filter(study=study).update(text=hostile)
    assignment = claimed(launched(study))
    pages = [client.get(f"/e/{recruitment(study).key}/")]
    for key in ("start", "s1", "s2.read"):
        pages.append(client.get(at(assignment, key)))
        client.post(at(assignment, key), {"go": "1"})
    pages += [client.get(at(assignment) + "consent/"), client.get(at(assignment) + "withdraw/")]
    for response in pages:
        assert response.status_code == 200
        assert not [attrs for _, attrs in seen(response).tags if "onerror" in attrs]
        assert "onerror=alert(1)" in seen(response).words
