"""What a person does in Chromium that takes more than one of Playwright's steps."""

import os
import time

from tests.accessibility import violations
from tests.keyboard import unreached


def press(page, button):
    """Press a button and wait for the page that it leads to: after a bare click the old one is, now and then, still there."""
    with page.expect_navigation():
        button.click()


def appears(what, milliseconds: int) -> bool:
    """Whether it is there within so long."""
    from playwright.sync_api import TimeoutError

    try:
        what.wait_for(timeout=milliseconds)
    except TimeoutError:
        return False
    return True


DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 375, "height": 740}
STORY = "When the train came to a halt between two stations nobody spoke at first. " * 12


def until(holds, seconds=8, pause=0.05):
    """Wait for something that the page's own content policy lets no browser function watch."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(pause)


def overflow(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def look_at(page, name, wrong):
    """Both sizes, one light and one dark (no colour depends on the size): what axe finds, what must be scrolled sideways, what no key
    reaches."""
    for size, scheme in ((DESKTOP, "dark"), (PHONE, "light")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        wrong += [f"{name} {size['width']} {scheme} {found}" for found in violations(page)]
        if overflow(page) > 0:
            wrong.append(f"{name} is {overflow(page)} px too wide at {size['width']}")
    # On the phone, where what sticks to the edges of the screen may lie over what has the focus.
    wrong += [f"{name}: {found}" for found in unreached(page)]
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")


def shot(page, name):
    """Kept where HEVAL_SHOTS says, at both widths, to be looked at."""
    if folder := os.environ.get("HEVAL_SHOTS"):
        for size in (DESKTOP, PHONE):
            page.set_viewport_size(size)
            page.screenshot(path=f"{folder}/{name}-{size['width']}.png", full_page=True)
        page.set_viewport_size(DESKTOP)


def start(person):
    page = person.page
    page.goto(person.door)
    page.locator("#agree").check()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/s1.p1/")
    return page
