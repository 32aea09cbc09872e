"""Images in Chromium: a page is sent when they were seen, or with a note that says which were not. For every protocol."""

import re

import pytest
from django.test import Client

from annotators.models import PageVisit
from annotators.pages.form_data import page_image_names
from annotators.pages.record import full_page_state
from annotators.places.batch_plan import get_batch_plan
from studies.protocols import REGISTRY
from tests.accessibility import violations
from tests.browsing import DESKTOP, until
from tests.builders import launched, recruitment
from tests.illustrated import Line, illustrated
from tests.players import claimed, sent_from

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


class Reader:
    """Somebody at the pages of one assignment, whose answers are there as a draft when a page is opened."""

    def __init__(self, page, base, study, person):
        self.page, self.base, self.line = page, base, Line(page)
        self.assignment = claimed(study, person, recruitment(study))
        self.client = Client()
        page.set_default_timeout(6000)

    @property
    def key(self) -> str:
        return full_page_state(self.assignment).next_key

    def path(self, key: str) -> str:
        return f"/p/{self.assignment.code}/{key}/"

    def open(self, key: str, mode: str = "loads") -> None:
        path = self.path(key)
        self.client.get(path)
        answers = sent_from(path) | {"save": "1"}
        del answers["go"]
        assert self.client.post(path, answers).status_code == 302
        self.line.mode = mode
        self.page.goto(self.base + path, wait_until="load" if mode != "waits" else "domcontentloaded")

    def press(self) -> None:
        self.page.locator("[name=go]").click()

    def names(self, key: str) -> list[str]:
        """The images that the page shows."""
        shown = set(self.page.eval_on_selector_all(".image .unseen input", "all => all.map(one => one.name)"))
        page = full_page_state(self.assignment).steps[key].page
        return [
            name for name in page_image_names(page, get_batch_plan(self.assignment).images) if f"unseen.{name}" in shown
        ]

    def visit(self, key: str) -> PageVisit:
        return PageVisit.objects.get(assignment=self.assignment, key=key)

    def is_held(self, key: str) -> bool:
        """Nothing is stored, the page is still there, and the reason is beside the button that names it."""
        held = self.page.locator("#held")
        described = self.page.locator("[name=go]").get_attribute("aria-describedby")
        is_here = self.page.url.endswith(self.path(key)) or f"{self.path(key)}#" in self.page.url
        return bool(held.inner_text()) and described == "held" and is_here and not self.visit(key).recorded_at

    def is_stored(self, key: str, *unseen: str) -> None:
        until(lambda: self.visit(key).recorded_at is not None)
        assert self.visit(key).unseen == ";".join(unseen)


def is_asked(reader: Reader) -> int:
    """How many images of the page must be there before it is sent."""
    return reader.page.locator(".image:not(details:not([open]) .image)").count()


# The others take minutes, and send their images in the same way.
QUICK_PROTOCOLS = ("marks", "ranking", "spa")


@pytest.mark.parametrize(
    "slug",
    [pytest.param(slug, marks=() if slug in QUICK_PROTOCOLS else pytest.mark.slow) for slug in sorted(REGISTRY)],
)
def test_a_page_is_sent_when_its_images_were_seen_or_with_a_note_which_were_not(
    slug, browser, live_server, tmp_path, settings
):
    settings.MEDIA_ROOT = tmp_path
    draft = illustrated(slug, tmp_path, m=2, target_n=3)
    if draft is None:
        assert not REGISTRY[slug].has_items
        return
    study = launched(draft)
    played = 0
    # The second person makes the first page's end another one.
    for person, first_end, most in (("anna", 0, None), ("bert", 1, 1)):
        context = browser.new_context(viewport=DESKTOP)
        played += play(Reader(context.new_page(), live_server.url, study, person), first_end, most)
        context.close()
    assert played >= 2
    context = browser.new_context(viewport=DESKTOP, java_script_enabled=False)
    play_without_script(Reader(context.new_page(), live_server.url, study, "carl"))
    context.close()


def play(reader: Reader, first_end: int, most: int | None) -> int:
    """Go through the pages, at most so many that must show images: how many of those there were."""
    page, n_asked = reader.page, 0
    while (key := reader.key) is not None and n_asked != most:
        reader.open(key, "fails")
        if not is_asked(reader):
            # Its images lie in closed boxes, or it shows none: nothing holds it back.
            reader.press()
            reader.is_stored(key)
            continue
        end = (first_end + n_asked) % 3
        n_asked += 1
        names = reader.names(key)
        boxes, notes = page.locator(".image"), page.locator(".image .said:visible")
        assert len(names) == boxes.count() == notes.count()
        assert {note.inner_text().split("\n")[0] for note in notes.all()} == {"This image did not load."}
        reader.press()
        assert reader.is_held(key) and "did not load" in page.locator("#held").inner_text()
        assert page.evaluate("document.activeElement.closest('.image .said') !== null")
        if end == 0:
            assert not violations(page)
            # It loads when it is tried again, and then nothing holds the page back.
            reader.line.mode = "loads"
            while left := notes.count():
                notes.first.locator("button").click()
                until(lambda notes=notes, left=left: notes.count() < left)
            assert page.locator("#held").inner_text() == "You can send the page now."
            # Slow: held with a word, and sent by itself when all are there.
            reader.open(key, "waits")
            reader.press()
            assert reader.is_held(key) and "still loading" in page.locator("#held").inner_text()
            reader.line.let_go()
            reader.is_stored(key)
        elif end == 1:
            # One fails, and the person says so.
            reader.line.failing = re.search(r"/m/(\w+)", page.locator(".image img").last.get_attribute("src"))[1]
            reader.open(key)
            reader.press()
            assert reader.is_held(key) and "Images that did not load: 1." in page.locator("#held").inner_text()
            page.locator(".image .unseen:visible input").check()
            reader.press()
            reader.is_stored(key, names[-1])
            reader.line.failing = None
        else:
            for tick in page.locator(".image .unseen:visible input").all():
                tick.check()
            reader.press()
            reader.is_stored(key, *names)
        page.wait_for_url(lambda url, key=key: not url.partition("#")[0].endswith(reader.path(key)))
    return n_asked


def play_without_script(reader: Reader) -> None:
    """Each image asks, for nobody knows which of them is there."""
    key = reader.key
    reader.open(key, "fails")
    ticks = reader.page.locator(".image .unseen input:visible")
    names = [name.removeprefix("unseen.") for name in (tick.get_attribute("name") for tick in ticks.all())]
    assert names and len(names) == reader.page.locator(".image").count()
    for tick in ticks.all():
        tick.check()
    reader.press()
    reader.is_stored(key, *names)
