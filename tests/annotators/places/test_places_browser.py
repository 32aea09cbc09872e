"""The line of the place in Chromium, with the browser's clock set by hand: what it says and announces is what the database knows."""

import re
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from annotators.models import Assignment
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import places
from studies.models import Study
from studies.services import lifecycle
from tests.accessibility import violations
from tests.browsing import DESKTOP, PHONE, overflow, until
from tests.builders import panel, promised, spa_study
from tests.players import submitted

from .passing_time import close, give_away, pass_time, row, truth

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGE = "s2.ask"


@pytest.fixture
def study():
    return spa_study(target_n=4, prompts=16)


class Clocked:
    """A page of somebody at work, whose computer's clock is hours wrong. Time passes for the browser and for the rows together."""

    def __init__(self, browser, base, study, **options):
        door = promised(panel(study), fault="all")
        self.mine = submitted(study, "w", until=PAGE, recruitment=door, is_consented=True)
        places.extend_reservation(row(self.mine))
        self.context = browser.new_context(viewport=DESKTOP, timezone_id="Asia/Tokyo", **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(8000)
        self.page.clock.install(time="2031-05-05T03:00:00")
        self.page.goto(f"{base}/p/{self.mine.code}/{PAGE}/")
        self.page.clock.run_for(1500)  # until the script of the place has come
        until(lambda: "until" in self.line)
        # Whatever is announced, once for each time.
        self.page.evaluate("""() => {
          window.said = [];
          new MutationObserver(() => said.push(document.querySelector('.saved').innerText)).observe(
            document.querySelector('.saved'), { childList: true, subtree: true, characterData: true });
        }""")

    @property
    def line(self) -> str:
        return self.page.locator("#place-status").inner_text()

    @property
    def said(self) -> list[str]:
        return [words for words in self.page.evaluate("said") if words and not words.startswith("Saved")]

    def pass_time(self, **elapsed):
        pass_time(self.mine, **elapsed)
        self.page.clock.fast_forward(int(timedelta(**elapsed).total_seconds() * 1000))
        self.page.clock.run_for(6000)

    def waits_for(self, words):
        def is_there():
            self.page.clock.run_for(1000)
            return words in self.line

        until(is_there)

    def hears(self):
        """On a busy machine, the answer of the server comes late, and the end of the place with it: let the page's clock go on."""

        def is_said():
            self.page.clock.run_for(1000)
            return self.said

        until(is_said, seconds=20)

    def types(self):
        self.page.locator("[data-has-range]").first.fill("7")
        before = row(self.mine).reserved_until
        self.page.clock.run_for(2000)
        until(lambda: row(self.mine).reserved_until > before)
        until(lambda: self.page.locator(".saved").inner_text().startswith("Saved"))

    def minutes_said(self) -> float:
        """How long the line says, by the clock that the person has before them."""
        hours, minutes, half = re.search(r"until (\d+):(\d+)\s*([AP]M)", self.line).groups()
        now = datetime.fromisoformat(self.page.evaluate("new Date().toLocaleString('sv')"))
        end = now.replace(hour=int(hours) % 12 + 12 * (half == "PM"), minute=int(minutes), second=0)
        return (end - now).total_seconds() / 60 + 24 * 60 * (end < now - timedelta(minutes=2))

    def is_true(self):
        minutes, _, is_closed = truth(self.mine)
        until(lambda: abs(self.minutes_said() - minutes) < 1.2)
        assert abs(self.minutes_said() - minutes) < 1.2, (self.line, minutes)
        assert ("study has been closed" in self.line) == is_closed


@pytest.fixture
def clocked(browser, live_server, study):
    made = []

    def make(**options):
        made.append(Clocked(browser, live_server.url, study, **options))
        return made[-1]

    yield make
    for one in made:
        one.context.close()


def test_the_line_is_renewed_warns_once_and_says_when_the_time_is_over(clocked):
    person = clocked()
    page = person.page
    person.is_true()
    assert page.locator(".saved").get_attribute("role") == "status"
    # A draft makes it longer, and the line follows.
    person.pass_time(minutes=20)
    person.is_true()
    person.types()
    person.is_true()
    assert not person.said
    # Five minutes before the end, once, and it is so.
    person.pass_time(minutes=31, seconds=30)
    person.hears()
    person.pass_time(seconds=50)
    person.pass_time(seconds=50)
    assert person.said == ["Minutes left: 5. Press More time to keep your place."]
    # In another tab somebody pressed the button: nothing is over at the old end.
    places.extend_reservation(row(person.mine))
    person.pass_time(minutes=5)
    person.waits_for("Place kept until")
    person.is_true()
    assert len(person.said) == 1
    # Over.
    person.pass_time(minutes=40)
    person.waits_for("no longer kept")
    assert "your answers count if no other person takes the place" in person.line
    assert "you are still paid" in person.line and person.said[1:] == [person.line]
    page.get_by_role("button", name="More time").click()
    page.wait_for_selector("text=You have more time now.")
    person.is_true()


def test_who_lost_the_place_reads_so_and_why_there_is_no_more_time(clocked):
    person = clocked()
    page = person.page
    give_away(person.mine)
    person.pass_time(minutes=6)
    person.waits_for("Another person has your place now")
    assert "stored and marked as late" in person.line and person.said == [person.line]
    page.get_by_role("button", name="More time").click()
    page.wait_for_selector("text=You cannot get more time. Another person has your place now.")
    page.locator("[data-has-range]").first.fill("9")
    page.clock.run_for(2000)
    page.wait_for_selector("text=/^Saved/")
    assert "Another person has your place now" in person.line
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        assert not violations(page) and overflow(page) <= 0


def test_the_page_announces_the_closing_and_afterwards_what_becomes_of_the_answers(clocked):
    person = clocked()
    close(person.mine)
    person.pass_time(minutes=6)
    person.waits_for("The study has been closed. You can finish until")
    person.is_true()
    person.types()
    person.is_true()
    lifecycle.end_grace_period(Study.objects.get(), by=None)
    person.pass_time(minutes=6)
    person.waits_for("marked as late")
    assert (
        "study has been closed" in person.line and not person.page.get_by_role("button", name="More time").is_visible()
    )
    assert len(person.said) == 2
    assert not violations(person.page) and overflow(person.page) <= 0


def test_without_a_connection_the_line_says_nothing_that_is_not_so(clocked):
    person = clocked()
    person.context.set_offline(True)
    person.pass_time(minutes=40)
    person.waits_for("Your place was kept until")
    assert "Place kept" not in person.line
    person.context.set_offline(False)
    person.pass_time(minutes=2)
    person.waits_for("no longer kept")


def test_the_first_tab_says_that_the_study_was_left_in_the_second(clocked):
    person = clocked()
    withdraw_annotator_and_erase_texts(row(person.mine))
    person.page.locator("[data-has-range]").first.fill("9")
    person.page.clock.run_for(2000)
    person.page.wait_for_selector("text=You have left this study. We do not store answers that you send now.")
    person.page.locator("[name=go]").click()
    person.page.wait_for_selector("text=These answers were not stored")
    person.page.get_by_role("link", name="Go to the end of the study").click()
    person.page.wait_for_url("**/done/")
    assert "You have left the study" in person.page.inner_text("h1")
    assert Assignment.objects.get().withdrawn_at < timezone.now()


def test_without_a_script_more_time_says_what_came_of_it(clocked, browser, live_server):
    mine = clocked().mine
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{live_server.url}/p/{mine.code}/{PAGE}/")
    assert "Your place is kept for 3" in page.locator("#place-status").inner_text()
    give_away(mine)
    page.get_by_role("button", name="More time").click()
    assert "Another person has your place now" in page.locator("#place-status").inner_text()
    context.close()
