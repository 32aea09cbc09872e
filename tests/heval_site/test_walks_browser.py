"""A researcher with a file of their own launches a study, in Chromium: pages, fields and refusals are counted from the first page on."""

import csv
import io
from dataclasses import dataclass, field

import pytest
from django.test import Client

from studies.imports.study_templates import keep_as_template
from studies.models import Output, Study
from studies.services import jobs
from studies.services.drafts import store_facts
from tests.browsing import press, until
from tests.builders import user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SYSTEMS = ("our-model", "gpt-4o", "llama-3")
MOST_LOADS, MOST_FIELDS = 12, 10
# What an account says once; the walk of a first study fills it in and counts it.
FACTS = {
    "institution": "University of Graz",
    "responsible": "Ada Lovelace",
    "contact": "study@example.org",
    "ethics_contact": "ethics@example.org",
    "storage": "on a server in Graz",
    "retention": "for ten years",
}


def own_file() -> bytes:
    """A table as people have it: a question, and a column for each system."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["question", *SYSTEMS])
    for n in range(40):
        answers = [f"{name} would look first whether number {n} is plugged in, and then wait." for name in SYSTEMS]
        rows.writerow([f"What should one do when printer {n} does not work?", *answers])
    return text.getvalue().encode()


@dataclass
class Walk:
    """What a walk cost: pages that were loaded, fields that were filled in or ticked, and refusals."""

    page: object
    loads: list[str] = field(default_factory=list)
    fields: int = 0
    refused: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.page.on("load", lambda page: self.loads.append(page.url))
        self.page.on("response", self.note)

    def note(self, response):
        if response.request.is_navigation_request() and response.status >= 400:
            self.refused.append(f"{response.status} {response.url}")

    def fill(self, selector: str, value: str):
        self.page.fill(selector, value)
        self.fields += 1

    def check(self, selector: str):
        self.page.check(selector)
        self.fields += 1

    def choose(self, selector: str, value: str):
        self.page.select_option(selector, value)
        self.fields += 1

    def go_on(self, name="Continue"):
        button = self.page.locator("button.go-on, button.first, a.go-on, a.first").filter(has_text=name)
        press(self.page, button.first)


@pytest.fixture
def walk(browser, live_server, settings, tmp_path):
    settings.SITE_URL, settings.MEDIA_ROOT = live_server.url, tmp_path / "media"
    client = Client()
    client.force_login(user("olga"))
    name = settings.SESSION_COOKIE_NAME
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
    walk = Walk(context.new_page())
    walk.page.goto(f"{live_server.url}/admin/")
    yield walk
    context.close()


def bring_file(walk):
    walk.page.locator("input[type=file]").first.set_input_files(
        {"name": "answers.csv", "mimeType": "text/csv", "buffer": own_file()}
    )
    walk.fields += 1


def launch(walk):
    for box in walk.page.locator("input[name=acknowledge]").all():
        box.check()
        walk.fields += 1
    walk.go_on("Launch")
    assert jobs.run_waiting_jobs() >= 1
    walk.page.wait_for_url("**/new/link/")
    until(lambda: walk.loads[-1].endswith("/new/link/"))


@pytest.mark.parametrize(
    ("card", "more", "channel"),
    [
        ("two_choice", (), "open_link"),
        ("rating", ("fluency",), "open_link"),
        pytest.param("spa", (), "open_link", marks=pytest.mark.slow),
        pytest.param("ranking", (), "open_link", marks=pytest.mark.slow),
        ("two_choice", (), "prolific"),
    ],
)
def test_from_a_file_to_the_link(walk, card, more, channel):
    walk.go_on("New study")
    walk.fill("#id_title", "Which answers help")
    bring_file(walk)
    walk.go_on()
    walk.go_on("Import")
    walk.check(f"#card-{card}")
    for criterion in more:
        walk.page.get_by_text("Add more criteria").click()
        walk.check(f"input[name=more][value={criterion}]")
    walk.go_on()
    if channel != "open_link":
        walk.choose("#id_channel", channel)
    walk.go_on()
    for name, value in FACTS.items():
        walk.fill(f"#id_facts-{name}", value)
    walk.fields -= len(FACTS)  # entered once for the account
    walk.go_on()
    walk.go_on()
    launch(walk)
    study = Study.objects.get()
    assert study.state == "launched" and study.sections.filter(protocol=card).exists()
    assert study.recruitments.get().channel == channel and (study.reward > 0) == (channel != "open_link")
    assert study.prompts.count() == 40 and study.contrasts.exists()
    criteria = set(study.sections.get(protocol=card).questions.values_list("criterion", flat=True))
    assert len(criteria) == 1 + len(more), criteria
    to_copy = [one.input_value() for one in walk.page.locator("input[readonly]").all()]
    assert any(f"/e/{study.recruitments.get().key}/" in one for one in to_copy), to_copy
    assert walk.refused == []
    assert len(walk.loads) <= (MOST_LOADS if channel == "open_link" else MOST_LOADS + 2), walk.loads
    assert walk.fields <= MOST_FIELDS, walk.fields


def test_a_second_study_knows_the_account(walk):
    store_facts(user("olga"), FACTS | {"legal_basis": "your consent"})
    walk.go_on("New study")
    walk.fill("#id_title", "Which answers help, again")
    bring_file(walk)
    walk.go_on()
    walk.go_on("Import")
    walk.check("#card-two_choice")
    walk.go_on()
    walk.go_on()
    walk.go_on()
    walk.go_on()
    launch(walk)
    assert "University of Graz" in Study.objects.get().consent and walk.refused == []
    assert len(walk.loads) <= MOST_LOADS and walk.fields <= 6, (walk.loads, walk.fields)


def test_a_study_from_a_template_of_ones_own_needs_a_title_and_a_file(walk):
    walk.go_on("New study")
    walk.page.fill("#id_title", "The first one")
    bring_file(walk)
    walk.go_on()
    walk.go_on("Import")
    walk.check("#card-two_choice")
    walk.go_on()
    walk.go_on()
    for name, value in FACTS.items():
        walk.page.fill(f"#id_facts-{name}", value)
    walk.go_on()
    first = Study.objects.get()
    keep_as_template(first, first.owner, "Pairs of answers")
    walk.page.goto(f"{walk.page.url.partition('/admin')[0]}/admin/")
    walk.loads[:], walk.fields = walk.loads[-1:], 0
    press(walk.page, walk.page.get_by_role("link", name="New study from a template"))
    walk.fill("input[name=title]", "The second one")
    bring_file(walk)
    press(walk.page, walk.page.get_by_role("button", name="New study from Pairs of answers"))
    walk.go_on("Import")
    assert walk.page.url.endswith("/launch/")
    typed = walk.fields
    launch(walk)
    second = Study.objects.get(title="The second one")
    assert second.state == "launched" and second.prompts.count() == 40 and second.target_n == first.target_n
    assert walk.refused == [] and typed == 2
    # The page of the launch's job is loaded again when the job ends.
    assert len(walk.loads) <= 7, walk.loads


def test_a_system_is_left_out_by_a_tick_and_another_is_removed_later(walk):
    page = walk.page
    walk.go_on("New study")
    walk.fill("#id_title", "Which answers help")
    bring_file(walk)
    walk.go_on()
    walk.check(f"input[name=leave_out][value={SYSTEMS[2]}]")
    walk.go_on("Import")
    study = Study.objects.get()
    assert set(study.systems.values_list("name", flat=True)) == set(SYSTEMS[:2]) and len(walk.loads) == 4
    press(page, page.get_by_role("link", name="1. Your file"))
    press(page, page.get_by_role("button", name=f"Remove {SYSTEMS[1]}"))
    assert Output.objects.count() == 80 and page.get_by_text("40 outputs").is_visible()
    press(page, page.get_by_role("button", name="Remove", exact=True))
    assert study.systems.get().name == SYSTEMS[0] and Output.objects.count() == 40
    assert walk.refused == []
