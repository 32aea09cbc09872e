"""The README's pictures, taken anew: ``python -m tests.pictures`` starts the demo, plays a little in it and looks at five pages.

It needs Chromium. Look at what it writes to static/docs before it is committed.
"""

import io
import os
import re
import socket
import subprocess
import sys
import tempfile
from datetime import timedelta

from PIL import Image

from tests.browsing import press
from tests.conftest import CHROMIUM, ROOT

FOLDER = ROOT / "static" / "docs"
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 800}
# Two who are done, one who reads: minutes from the start, and those in which the page was looked at.
DONE = ((19, 17), (23, 20))


def started(home: str) -> tuple[subprocess.Popen, str]:
    """The demo as a process, and what it printed when it was ready."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    demo = subprocess.Popen(
        [sys.executable, "-m", "heval_site.management.cli", "demo"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"HEVAL_HOME": home, "PORT": str(port), "PYTHONUNBUFFERED": "1"},
    )
    said = ""
    while "Ctrl-C" not in said:
        line = demo.stdout.readline()
        if not line:
            raise RuntimeError(f"the demo ended:\n{said}")
        said += line
    return demo, said


def played(home: str) -> tuple[int, int]:
    """A draft with its texts and a section that asks nothing yet, and the open study with a few people: the ids of both."""
    os.environ["HEVAL_HOME"], os.environ["DJANGO_SETTINGS_MODULE"] = home, "heval_site.settings"
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.db.models import F

    from annotators.models import Assignment
    from heval_site.management.demo import OPEN_TITLE
    from studies.imports.tables import Options, import_stimuli_file
    from studies.models import Arm, Section, Study, StudyMember
    from tests.players import claimed, submitted

    owner = get_user_model().objects.get()
    draft = Study.objects.create(
        owner=owner,
        title="My first study",
        public_title="Reading short fables",
        target_n=12,
        minutes=10,
        reward="2.00",
        contact="me@example.org",
        consent="You take part of your own free will.",
        purpose="You read short fables.",
    )
    StudyMember.objects.create(study=draft, user=owner, role=StudyMember.Role.OWNER)
    Arm.objects.create(study=draft, name="all")
    import_stimuli_file(draft, FOLDER / "first-study.jsonl", options=Options(creates_systems=True), by=owner)
    Section.objects.create(study=draft, position=1, protocol="spa", m=4)

    collecting = Study.objects.get(title=OPEN_TITLE)
    door = collecting.recruitments.get()
    for n, (minutes, active) in enumerate(DONE):
        made = submitted(collecting, f"person {n}", recruitment=door)
        begun = made.submitted_at - timedelta(minutes=minutes)
        Assignment.objects.filter(pk=made.pk).update(claimed_at=begun, started_at=begun)
        first = made.visits.order_by("pk").first()
        made.visits.filter(pk=first.pk).update(active_seconds=F("active_seconds") + 60 * active)
    reader = submitted(collecting, "a reader", recruitment=door, until="s2.ask")
    Assignment.objects.filter(pk=reader.pk).update(started_at=F("claimed_at"))
    claimed(collecting, "somebody who has just come", recruitment=door)
    return draft.pk, collecting.pk


def take(page, name: str) -> None:
    """What is in sight, with few colours: pages have hardly more, and the file is a quarter."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(256).save(FOLDER / f"{name}.png", optimize=True)
    print(f"{name:12} {page.url}")


def look(browser, said: str, draft: int, collecting: int) -> None:
    base = re.search(r"http://[\d.:]+", said)[0]
    page = browser.new_context(viewport=WIDE).new_page()
    page.goto(f"{base}/admin/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", re.search(r"password (\S+)\)", said)[1])
    press(page, page.locator("[type=submit]").first)
    for name, path in (
        ("study", f"studies/study/{draft}/change"),
        ("collecting", f"studies/study/{collecting}/collecting"),
    ):
        page.goto(f"{base}/admin/{path}/")
        take(page, name)
    page.goto(re.search(r"Report +(\S+)", said)[1])
    # The page that shows how far the analysis is leads on by itself.
    page.get_by_role("heading", name="Answer", exact=True).wait_for(timeout=120_000)
    take(page, "report")
    for viewport, name, until in ((WIDE, "reading", "s2.read"), (PHONE, "question", "s2.ask")):
        scale = 2 if viewport is PHONE else 1
        page = browser.new_context(viewport=viewport, device_scale_factor=scale).new_page()
        page.goto(re.search(r"Annotator +(\S+)", said)[1])
        arrive(page, until)
        if viewport is PHONE:
            first = page.locator("main input[inputmode]:visible").first
            first.fill("70")
            first.evaluate("one => scrollTo(0, one.getBoundingClientRect().top + scrollY - 240)")
        take(page, name)


def arrive(page, until: str) -> None:
    """Agree, and answer page after page until the one whose key ends so."""
    for tick in page.locator("input[type=checkbox]").all():
        tick.check()
    press(page, page.locator("main button").first)
    for _ in range(20):
        if page.url.rstrip("/").endswith(until):
            return
        for name in page.eval_on_selector_all("input[type=radio]", "all => [...new Set(all.map(one => one.name))]"):
            page.locator(f'input[type=radio][name="{name}"]').first.check()
        # On a phone the button is below the last prompt, out of sight.
        with page.expect_navigation():
            page.locator("button[name=go]").first.evaluate("one => one.click()")
    raise RuntimeError(f"{page.url} is no {until}")


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="heval-pictures-") as home:
        demo, said = started(home)
        try:
            draft, collecting = played(home)
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                look(browser, said, draft, collecting)
                browser.close()
        finally:
            demo.terminate()
            demo.wait(30)


if __name__ == "__main__":
    main()
