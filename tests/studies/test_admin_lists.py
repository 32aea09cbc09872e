"""Lists of the admin: what a row says, where it leads, and how moments are written in all of them."""

import re
from pathlib import Path

import pytest
from django.utils import timezone

from analysis.models import ApiToken
from studies import audit, jobs
from tests import builders, players
from tests.admin_pages import logged_in, study_url

pytestmark = pytest.mark.django_db

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d UTC\b")
# What Django writes by itself, and a moment that does not say whose clock it is.
OTHERWISE = re.compile(
    r"[ap]\.m\.|\bnoon\b|\bmidnight\b|\b[A-Z][a-z]{2,3}\. \d+, \d{4}|\d{4}-\d\d-\d\d \d\d:\d\d(?! UTC)"
)


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


@pytest.fixture
def study(owner):
    return builders.spa_study(owner, with_rating=False, with_surveys=False)


def shown(client, url) -> str:
    """The words of a page's content, as a reader sees them."""
    html = client.get(url).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition('id="content"')[2]))


def test_moments_are_written_one_way_in_every_list_and_say_whose_clock_it_is(client, study, owner):
    audit.record("pause", study=study, by=owner)
    players.submitted(study, "1")
    now = timezone.now()
    builders.recruitment(study, stopped_at=now)
    jobs.submit("launch", study=study, by=owner)
    ApiToken.objects.create(user=owner, name="mine", hash="0" * 64, expires_at=now)
    for url in (
        "/admin/studies/auditevent/", "/admin/studies/job/", "/admin/annotators/assignment/", "/admin/annotators/recruitment/",
        "/admin/analysis/apitoken/", study_url(study, "history/"),
    ):  # fmt: skip
        words = shown(client, url)
        assert MOMENT.search(words), (url, words)
        assert not OTHERWISE.search(words), (url, OTHERWISE.search(words))


def test_no_template_of_the_admin_writes_a_moment_in_a_way_of_its_own():
    for template in sorted((TEMPLATES / "admin").rglob("*.html")):
        assert 'date:"Y-m-d H:i"' not in template.read_text(), f"{template}: DATETIME_FORMAT says whose clock it is"
