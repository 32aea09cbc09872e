"""Links are made, refused, stopped and opened again."""

import pytest

from annotators.models import Recruitment
from studies.models import AuditEvent
from studies.services import lifecycle
from tests import builders, players
from tests.admin_pages import changed, errors_of, form_of
from tests.annotators.admin.collecting.watched import collecting

pytestmark = pytest.mark.django_db


def test_a_link_can_be_made_before_the_launch(client, owner):
    """Panels get the address, and a rehearsal is played, while the study is still a draft."""
    draft = builders.spa_draft(owner=owner)
    collects = f"/admin/studies/study/{draft.pk}/collecting/"
    html = client.get(f"/admin/studies/study/{draft.pk}/change/").content.decode()
    assert f'href="{collects}"' in html and f"/admin/studies/study/{draft.pk}/analyses/" not in html
    assert f'href="/admin/annotators/recruitment/add/?study={draft.pk}"' in client.get(collects).content.decode()


def test_a_closed_study_without_a_link_does_not_ask_for_one(client, study):
    assert "annotators cannot take part" in collecting(client, study).content.decode()
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    page = collecting(client, study).content.decode()
    assert "annotators cannot take part" not in page and "This study had no links" in page


def test_a_link_begins_with_its_channel_and_asks_for_its_settings(client, study):
    url = f"/admin/annotators/recruitment/add/?study={study.pk}"
    response = client.post(url, changed(form_of(client.get(url), "recruitment_form"), channel="generic"), follow=True)
    made = Recruitment.objects.get()
    assert (made.channel, made.pool, made.study) == ("generic", "generic", study)
    data = changed(
        form_of(response, "recruitment_form"), **{"settings-person_parameter": "who", "settings-return_complete": "C1"}
    )
    client.post(f"/admin/annotators/recruitment/{made.pk}/change/", data)
    made.refresh_from_db()
    assert made.settings["person_parameter"] == "who" and made.settings["return_complete"] == "C1"
    assert f"/e/{made.key}/?who=…" in collecting(client, study).content.decode()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"settings-return_complete": "http://plain.example.org/x"}, "must begin with https"),
        ({"settings-return_full": "https://{person}/x"}, "must not depend on"),
        ({"settings-person_parameter": "a b"}, "valid “slug”"),
        ({"settings-person_parameter": ""}, "required"),
        ({"key": "a/b"}, "valid “slug”"),
        ({"reward": "-1", "wanted": "-5"}, "greater than or equal to 0"),
        ({"currency": "dollars"}, "at most 3"),
        ({"opens_at": "2026-05-02T10:00", "closes_at": "2026-05-01T10:00"}, "would close before it opens"),
        ({"opens_at": "2026-02-30T10:00"}, "valid date/time"),
        ({"shown_arms": ["999"]}, "not one of the available"),
    ],
)
def test_bad_settings_of_a_link_are_refused_with_words(client, study, changes, words):
    made = builders.panel(study)
    url = f"/admin/annotators/recruitment/{made.pk}/change/"
    response = client.post(url, changed(form_of(client.get(url), "recruitment_form"), **changes))
    assert response.status_code == 200 and words in errors_of(response), errors_of(response)


def test_another_links_key_is_refused(client, study):
    first, second = builders.panel(study), builders.panel(study)
    url = f"/admin/annotators/recruitment/{second.pk}/change/"
    response = client.post(url, changed(form_of(client.get(url), "recruitment_form"), key=first.key))
    assert "already has this name" in errors_of(response)


def test_a_link_is_stopped_and_opened_again_on_its_page(client, study):
    made = builders.panel(study)
    page, door = f"/admin/annotators/recruitment/{made.pk}/change/", f"/admin/annotators/recruitment/{made.pk}/state/"
    assert "Stop this link" in client.get(page).content.decode()
    assert client.post(door, {"stop": "1"})["Location"] == page
    made.refresh_from_db()
    shown = client.get(page).content.decode()
    assert made.stopped_at and "this link accepts no new people" in shown and "Open this link again" in shown
    client.post(door, {"stop": "1"})  # pressed twice
    client.post(door, {"open": "1"})
    made.refresh_from_db()
    assert made.stopped_at is None
    verbs = AuditEvent.objects.filter(study=study, verb="stop link") | AuditEvent.objects.filter(verb="open link again")
    assert sorted(verbs.values_list("verb", flat=True)) == ["open link again", "stop link"]


def test_the_address_of_a_used_link_stays(client, study):
    made = builders.panel(study)
    players.claimed(study, "1", made)
    data = form_of(client.get(f"/admin/annotators/recruitment/{made.pk}/change/"), "recruitment_form")
    assert "key" not in data and "pool" not in data
