"""What a browser comes to see from one address, with all pages that lead on from it."""

import re

from django.test import Client

from annotators.models import Assignment
from annotators.pages.record import full_page_state
from annotators.places.places import assignment_code
from annotators.views.urls import assignment_urlpatterns
from tests.annotators.views.visitors import START
from tests.robots import Page

# What a person has sent, and what they have typed and not sent.
WORDS, DRAFT = "Zebras sleep at noon.", "Unsent words of mine."


class Look:
    """All that a browser comes to see from an address: every page below it, what their forms offer, and where they lead."""

    def __init__(self, path: str):
        self.client, self.html, self.offers, self.addresses = Client(), "", set(), set()
        self.read(path)
        for address in sorted(self.addresses):
            for route in self.routes(address):
                self.read(f"/p/{address}/{route}")

    @staticmethod
    def routes(address: str) -> list[str]:
        mine = Assignment.objects.get(code=assignment_code(address))
        keys = list(full_page_state(mine).steps) if mine.batch_id else []
        routes = [str(pattern.pattern) for pattern in assignment_urlpatterns]
        return [route for route in routes if "<" not in route] + [f"{key}/" for key in keys]

    def read(self, path: str) -> None:
        for _ in range(9):
            response = self.client.get(path)
            self.addresses.update(re.findall(r"^/p/([^/]+)/", path) if response.status_code != 404 else ())
            assert response.status_code in (200, 302, 404, 405), (path, response.status_code)
            if response.status_code != 302:
                break
            path = response["Location"]
        else:
            raise AssertionError(f"{path} leads round in circles")
        html = response.content.decode() if response.status_code == 200 else ""
        self.html += html
        page = Page(html)
        self.offers |= {name for form in page.forms for name, _ in form.buttons}
        self.offers |= {link for link in page.links if "withdraw" in link}
        self.addresses.update(found for link in page.links for found in re.findall(r"^/p/([^/]+)/", link))

    def starts(self, path: str) -> None:
        """Press Start, or Go on here."""
        reply = self.client.post(path, START)
        assert reply.status_code in (200, 302), reply.status_code
        if reply.status_code == 302 and reply["Location"].startswith("/p/"):
            address = reply["Location"].split("/")[2]
            self.addresses.add(address)
            for route in ("", *self.routes(address)):
                self.read(f"/p/{address}/{route}")

    def cell(self, mine: Assignment | None) -> tuple[bool, bool, str]:
        personal = (WORDS, DRAFT, 'data-state="recorded"', 'id="barring"', 'appeal/"')
        answers = any(words in self.html for words in personal)
        leave = any("withdraw" in offer or offer == "leave" for offer in self.offers)
        codes = {assignment_code(address) for address in self.addresses}
        whose = "none" if not codes else "own" if mine is None or codes & {mine.code} else "another's"
        if mine and whose == "own" and all(len(address) > 32 for address in self.addresses):
            whose = "limited"
            assert mine.code not in self.html
        return answers, leave, whose
