"""A whole study in a frame of another site, in Chromium with third-party cookies blocked: no cookie is asked for, none is missed."""

import json

import pytest

from annotators.models import Assignment
from annotators.places.places import compute_receipt
from tests.annotators.recruitment.worker_site import WorkerSite
from tests.browsing import DESKTOP, look_at, shot
from tests.builders import add_rating, draft_study, launched, recruitment
from tests.conftest import CHROMIUM

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def site():
    site = WorkerSite()
    yield site
    site.close()


@pytest.fixture
def blocking(browser, tmp_path):
    """A profile of its own: only a profile can say that cookies of other sites are refused."""
    (tmp_path / "Default").mkdir()
    preferences = {"profile": {"cookie_controls_mode": 1, "block_third_party_cookies": True}}
    (tmp_path / "Default/Preferences").write_text(json.dumps(preferences))
    context = browser.browser_type.launch_persistent_context(
        str(tmp_path), executable_path=CHROMIUM, viewport=DESKTOP, args=["--no-sandbox", "--disable-gpu"]
    )
    yield context
    context.close()


def test_a_study_is_done_in_the_frame_without_a_cookie_and_the_panel_gets_the_receipt(
    site, blocking, live_server, settings
):
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
    settings.EXTERNAL_QUESTION_SITES = (site.origin,)
    study = draft_study(systems=("alpha", "beta"), prompts=2, target_n=3, instructions="", debriefing="")
    add_rating(study, position=1, m=2)
    study = launched(study)
    door = recruitment(study, "external_question", settings={"site": site.origin})
    base = live_server.url.replace("localhost", "127.0.0.1")
    site.door = f"{base}/e/{door.key}/"
    page, asked, set_cookies, complaints = blocking.pages[0], [], [], []
    page.set_default_timeout(8000)
    page.on("request", lambda request: asked.append(request.url))
    page.on(
        "response", lambda response: set_cookies.extend(v for k, v in response.headers.items() if k == "set-cookie")
    )
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)

    page.goto(f"{site.origin}/probes")
    page.frame_locator("iframe").get_by_text("Seen.").wait_for()
    assert site.cookies == [""], "this browser keeps cookies of framed sites: the rest would prove nothing"
    for kept in (asked, set_cookies, complaints):
        kept.clear()

    page.goto(f"{site.origin}/task?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=H1")
    frame = page.frame_locator("iframe")
    frame.get_by_text("Accept the task to start.").wait_for()
    shot(page, "frame-preview")
    assert not Assignment.objects.exists()

    page.goto(f"{site.origin}/task?assignmentId=ASG1&hitId=H1&workerId=W1")
    frame.get_by_label("I have read this").check()
    frame.get_by_role("button", name="Start").click()
    for number in (1, 2):
        frame.get_by_text(f"{number} of 2").wait_for()
        for group in frame.get_by_role("radiogroup").all():
            group.locator("input").nth(3).check()
        frame.locator("[name=go]").click()
    frame.get_by_role("heading", name="Thank you").wait_for()
    assert not site.submitted, "the page is seen before it leaves"
    shot(page, "frame-done")
    frame.get_by_text("successfully submitted").wait_for()
    assignment = Assignment.objects.get()
    expected = {"assignmentId": "ASG1", "receipt": compute_receipt(assignment.code), "study": str(study.code)}
    assert site.submitted == [expected]
    assert not set_cookies and not complaints
    assert {url.split("/")[2] for url in asked} == {site.origin.split("/")[2], base.split("/")[2]}

    # Opened again it waits for the person.
    blocking.add_init_script("try { sessionStorage['gone:' + location.pathname] = 1 } catch {}")
    again, wrong = blocking.new_page(), []
    again.goto(f"{base}/p/{assignment.code}/done/")
    shot(again, "frame-done-alone")
    look_at(again, "the last page", wrong)
    assert not wrong and again.get_by_role("button", name="Submit the task").is_visible()
    assert len(site.submitted) == 1
