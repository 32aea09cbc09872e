"""The page at the root: for everybody, about no study."""

import pytest

from tests.builders import spa_study

pytestmark = pytest.mark.postgres


def test_the_root_says_what_this_server_is_without_cookie_or_database(client):
    response = client.get("/")
    page = response.content.decode()
    assert response.status_code == 200 and not response.cookies and "<script" not in page
    assert "the very link that you were given" in page
    for address in ("/admin/", "/docs/"):
        assert f'href="{address}"' in page
    assert client.head("/").status_code == 200 and client.post("/").status_code == 405


@pytest.mark.django_db
def test_the_root_tells_nothing_of_a_study(client):
    before = client.get("/").content
    spa_study(title="Secret", public_title="Reading")
    assert client.get("/").content == before
