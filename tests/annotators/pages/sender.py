"""Somebody who opens the pages of an assignment and sends them."""

from django.test import Client

from annotators.models import PageVisit
from annotators.pages.record import full_page_state
from tests.builders import recruitment
from tests.players import claimed, sent_from


class Sender:
    """Somebody who opens pages and sends them with further fields."""

    def __init__(self, study, person="anna"):
        self.assignment, self.client = claimed(study, person, recruitment(study)), Client()

    @property
    def key(self) -> str:
        return full_page_state(self.assignment).next_key

    def send(self, *, answers=True, **more):
        path = f"/p/{self.assignment.code}/{self.key}/"
        self.client.get(path)
        self.sent = (sent_from(path) if answers else {"go": "1"}) | more
        return self.client.post(path, self.sent)

    def visit(self, key) -> PageVisit:
        return PageVisit.objects.get(assignment=self.assignment, key=key)
