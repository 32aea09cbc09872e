"""What browser tests stand on: a Chromium that is there for each of them."""

import pytest

dead = []


@pytest.mark.browser
def test_where_chromium_dies_the_test_is_played_once_more_in_a_new_one(browser):
    if not dead:
        dead.append(browser)
        browser.new_browser_cdp_session().send("Browser.crash")
    assert browser is not dead[0] and browser.is_connected() and not dead[0].is_connected()
