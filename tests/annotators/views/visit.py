"""A person's visit in a browser, from the door to the end."""

from annotators.models import Response
from tests.builders import panel
from tests.players import submitted


class Visit:
    """A person's browser: what it asked for, what it got, and the pages of a study played in it."""

    def __init__(self, context, base, study, person="anna"):
        self.context, self.base, self.study, self.page = context, base, study, context.new_page()
        self.door = f"{base}/e/{panel(study).key}/?who={person}&session=s1"
        self.requests, self.cookies, self.complaints = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "response",
            lambda response: self.cookies.extend(v for k, v in response.headers.items() if k == "set-cookie"),
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda line: (
                self.complaints.append(line.text) if line.type == "error" and "status of" not in line.text else None
            ),
        )
        self.page.set_default_timeout(8000)

    def go(self, key):
        """Press the page's own button and wait for the next page."""
        self.page.locator("[name=go]").click()
        self.page.wait_for_url(f"**/{key}/")

    def start(self):
        self.page.goto(self.door)
        self.page.locator("#agree").check()
        self.page.get_by_role("button", name="Start").click()
        self.page.wait_for_url("**/s1/")

    def play(self, until):
        """From the door to a page, plausibly."""
        self.start()
        for key, answer, following in (
            ("s1", lambda: self.page.get_by_label("Yes").check(), "start"),
            ("start", lambda: None, "s2.read"),
            ("s2.read", self.to_last_prompt, "s2.ask"),
            ("s2.ask", self.give_chances, "s3.p1"),
            ("s3.p1", self.rate, "s4"),
            ("s4", lambda: self.page.locator("textarea").fill("It was fine."), "done"),
        ):
            if key == until:
                return self.page
            answer()
            self.go(following)
        return self.page

    def open(self, until, person="anna"):
        """A page of somebody who has answered all before it."""
        self.assignment = submitted(self.study, person, until=until)
        self.page.goto(f"{self.base}/p/{self.assignment.code}/{until}/")
        return self.page

    def to_last_prompt(self):
        while (onward := self.page.get_by_role("link", name="Next prompt").locator("visible=true")).count():
            onward.first.click()

    def give_chances(self):
        for n, field in enumerate(self.page.locator("[data-has-range]").all()):
            field.fill(str(10 * n))

    def rate(self):
        for group in self.page.get_by_role("radiogroup").all():
            group.locator("input").nth(3).check()

    @property
    def at(self):
        return self.page.url.removeprefix(self.base)


def stored() -> dict:
    return {r.slot: r for r in Response.objects.all()}
