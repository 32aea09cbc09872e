"""Public pages of boards in Chromium: no accessibility fault, nothing refused by the content policy, at two widths."""

import os
from pathlib import Path

import pytest

from tests.accessibility import TAGS, violations
from tests.boards import stored

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# Where a person wants to look at the pages themselves.
SHOTS = os.environ.get("HEVAL_SHOTS")
PAGES = {
    "list": "/boards/",
    "board": "/boards/tales/",
    "snapshot": "/boards/tales/1/",
    "history": "/boards/tales/history/",
    "examples": "/boards/tales/examples/",
    "embed": "/boards/tales/embed/",
}


def test_pages_are_accessible_and_fit_a_phone(live_server, browser):
    stored.published_board(shows_examples=True, description="Short *tales* by machines and people.")
    context = browser.new_context(java_script_enabled=True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    wrong = []
    for name, path in PAGES.items():
        for width, scheme in ((375, "light"), (1280, "dark")):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            page.goto(live_server.url + path)
            for summary in page.locator("summary").all():
                summary.click()
            if SHOTS:
                Path(SHOTS).mkdir(parents=True, exist_ok=True)
                page.screenshot(path=f"{SHOTS}/{name}-{width}.png", full_page=True)
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            wrong += [f"{name} at {width}: {over} px too wide"] if over > 0 else []
            wrong += [f"{name} at {width}: {found}" for found in violations(page, *TAGS, "best-practice")]
    assert not wrong, wrong
    assert not said
    assert all(url.startswith(live_server.url) for url in asked)
    assert not context.cookies()
    context.close()
