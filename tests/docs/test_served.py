"""The documentation is served without a login, and it can be read by all."""

import re

import pytest
from django.test import override_settings
from django.urls import get_resolver

from heval_site.views import docs
from tests.accessibility import TAGS, violations
from tests.docs.pages import FENCE, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_served_without_a_login(name, client):
    response = client.get(docs.page_url(name))
    html = response.content.decode()
    assert response.status_code == 200
    assert f"<title>{PAGES[name].title if name != 'index' else 'heval documentation'}" in html
    assert not response.cookies
    assert ".md" not in re.findall(r'href="([^"]*)"', html)
    assert html.count("<h1") == 1
    for code in FENCE.findall(PAGES[name].text):
        assert code[2].strip()


def test_serving_asks_the_database_nothing(client, django_assert_num_queries, db):
    with django_assert_num_queries(0):
        assert client.get("/docs/").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "nothing/",
        "_page/",
        "decisions/",
        "decisions/README/",
        "decisions/jobs-are-rows/",
        "../settings/",
        "%2e%2e/%2e%2e/heval_site/settings.py/",
        "how-to//deploy/",
        "tutorial/first-study.md/",
        "%00/",
    ],
)
def test_what_is_no_page_is_404(path, client):
    assert client.get(f"/docs/{path}").status_code == 404


def test_pages_are_only_looked_at(client):
    assert client.post("/docs/").status_code == 405
    assert client.head("/docs/").status_code == 200


@override_settings(DEBUG=True)
def test_a_changed_file_is_seen_while_debugging(monkeypatch, tmp_path, client):
    (tmp_path / "index.md").write_text("# Here\n\nOne.\n", encoding="utf-8")
    monkeypatch.setattr(docs, "read_pages", lambda: dict(docs_pages(tmp_path)))
    assert "One." in client.get("/docs/").content.decode()
    (tmp_path / "index.md").write_text("# Here\n\nTwo.\n", encoding="utf-8")
    assert "Two." in client.get("/docs/").content.decode()


read_pages = docs.read_pages


def docs_pages(folder):
    return read_pages(folder)


def test_links_headings_and_wide_parts_are_made_usable(tmp_path):
    (tmp_path / "index.md").write_text("# A\n\n[b](how-to/b.md#some-part)\n", encoding="utf-8")
    (tmp_path / "how-to").mkdir()
    (tmp_path / "how-to" / "b.md").write_text(
        "# B\n\n## Some part\n\n| a |\n|---|\n| b |\n\n## Some part\n\n<b>raw</b>\n", encoding="utf-8"
    )
    with (tmp_path / "how-to" / "b.md").open("a") as file:
        file.write('\n![Dots & "lines"](../../../static/docs/report.png)\n\n![elsewhere](https://example.org/x.png)\n')
    pages = read_pages(tmp_path)
    assert list(pages) == ["index", "how-to/b"]
    assert 'href="/docs/how-to/b/#some-part"' in docs.render_html(pages["index"])
    html = docs.render_html(pages["how-to/b"])
    assert 'id="some-part"' in html and 'id="some-part-2"' in html
    assert 'class="scrolled" role="region" tabindex="0"' in html
    assert "&lt;b&gt;" in html
    assert 'src="/static/docs/report.png" alt="Dots &amp; &quot;lines&quot;"' in html and html.count("<img") == 1


def test_documentation_is_reached_by_names_alone():
    names = {pattern.name for pattern in get_resolver("heval_site.views.docs_urls").url_patterns}
    assert names == {"docs", "docs-page"}


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_no_page_has_an_accessibility_violation_or_scrolls_sideways(browser, live_server):
    colourful = {"index", "reference/environment", "how-to/write-a-protocol"}
    wrong = []
    context = browser.new_context(viewport={"width": 375, "height": 740})
    page = context.new_page()
    for name in PAGES:
        page.set_viewport_size({"width": 375, "height": 740})
        page.emulate_media(color_scheme="light")
        page.goto(live_server.url + docs.page_url(name))
        if (over := page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")) > 0:
            wrong.append(f"{name} is {over} px too wide")
        # Colours are the costly part, and three pages have them all.
        but = "" if name in colourful else "color-contrast"
        wrong += [f"{name} {found}" for found in violations(page, *TAGS, "best-practice", but=but)]
        if name in colourful:
            page.set_viewport_size({"width": 1280, "height": 800})
            page.emulate_media(color_scheme="dark")
            wrong += [f"{name} in the dark {found}" for found in violations(page, rule="color-contrast")]
    context.close()
    assert not wrong
