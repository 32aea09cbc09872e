"""The list of studies, and the lists of one study."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests import builders
from tests.admin_pages import logged_in, study_url

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("url", ["studies/study", "studies/prompt", "studies/output", "studies/auditevent"])
def test_queries_of_a_list_do_not_grow_with_its_rows(client, owner, study, url):
    def queries():
        with CaptureQueriesContext(connection) as context:
            assert client.get(f"/admin/{url}/").status_code == 200
        return len(context)

    from studies.models import audit

    audit.record("pause", study=study, by=owner)
    queries()
    few = queries()
    for n in range(3):
        more = builders.spa_draft(owner=owner, title=f"study {n}", with_surveys=False)
        audit.record("pause", study=more, by=owner)
    assert queries() == few


def test_the_list_shows_what_one_looks_for(client, study):
    from tests import players

    builders.launched(study)
    players.submitted(study, "1")
    html = client.get("/admin/studies/study/").content.decode()
    for words in ("1 of 6", "launched", "olga", "ago</time>"):
        assert words in html


def test_the_list_of_one_study_names_it_once_and_leads_back(client, study):
    html = client.get(f"/admin/studies/prompt/?study={study.pk}").content.decode()
    assert 'class="field-study' not in html and f"<h2>{study.title}</h2>" in html
    assert html.count(f'href="{study_url(study)}"') == 2
    assert 'class="field-study' in client.get("/admin/studies/prompt/").content.decode()
    stranger = logged_in(builders.user("stranger"))
    assert study.title not in stranger.get(f"/admin/studies/prompt/?study={study.pk}").content.decode()
