"""The page of components in Chromium: axe finds nothing in either scheme at either width."""

import pytest
from django.conf import settings
from django.urls import reverse

from tests import builders
from tests.accessibility import violations
from tests.admin_pages import logged_in
from tests.browsing import DESKTOP, PHONE, overflow, shot
from tests.keyboard import unreached

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_components_have_no_fault_in_both_schemes(browser, live_server):
    client = logged_in(builders.user("olga"))
    context = browser.new_context(reduced_motion="reduce")
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page, wrong = context.new_page(), []
    page.goto(live_server.url + reverse("admin:components"))
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            wrong += [f"{size['width']} {scheme}: {found}" for found in violations(page)]
            # The schemes are shown as they are, whatever the browser prefers.
            grounds = page.evaluate(
                "[...document.querySelectorAll('.scheme')].map((one) => getComputedStyle(one).backgroundColor)"
            )
            assert grounds == ["rgb(255, 255, 255)", "rgb(20, 23, 26)"], (scheme, grounds)
        assert overflow(page) <= 0, size
        wrong += [f"{size['width']}: {found}" for found in unreached(page)]
    shot(page, "components")
    # A text that is too light is found.
    page.add_style_tag(content=".scheme-dark { --quiet: #4a5056; }")
    assert any("color-contrast" in found for found in violations(page))
    context.close()
    assert not wrong, "\n".join(wrong)
