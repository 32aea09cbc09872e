"""Somebody who follows a tutorial in a browser."""

import re

from tests.browsing import appears, press


class Reader:
    """Somebody who does what the tutorial says, and notes the words that were there to be clicked."""

    def __init__(self, page, base):
        self.page, self.base = page, base
        self.done: set[str] = set()
        self.lost: list[str] = []
        page.set_default_timeout(10_000)

    def fill(self, label, text):
        self.done.add(label)
        self.page.get_by_label(re.compile(f"^{re.escape(label)}:?$")).first.fill(text)

    def tick(self, label):
        self.done.add(label)
        self.page.get_by_label(label, exact=True).first.check()

    def press(self, words):
        self.done.add(words)
        press(self.page, self.page.get_by_role("button", name=words, exact=True))

    def follow(self, words, otherwise=None):
        """Click a link. ``otherwise``: where it should have led, to go on and tell of all that is lost at once."""
        self.done.add(words)
        link = self.page.get_by_role("link", name=words, exact=True).first
        if appears(link, 5_000):
            link.click()
        else:
            self.lost.append(words)
            assert otherwise, f"there is no link {words!r} at {self.page.url}"
            self.page.goto(self.base + otherwise)

    def wait_for(self, heading):
        """Wait as a reader does: pages that show a job renew themselves, and a reload would cut across that."""
        self.page.get_by_role("heading", name=heading).first.wait_for()

    def go(self, path):
        """Open an address. A page whose job ends at this moment renews itself, and Chromium then follows that instead: open it again."""
        from playwright.sync_api import Error

        try:
            self.page.goto(self.base + path)
        except Error as error:
            if "interrupted by another navigation" not in error.message:
                raise
            self.page.wait_for_load_state()
            self.page.goto(self.base + path)
