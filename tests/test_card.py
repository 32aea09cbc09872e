"""One study on a site as it is deployed: gunicorn, Celery's workers and its clock, Redis and PostgreSQL, from the admin to REST."""

import csv
import io
import os
import re
import shlex
import subprocess
import sys

import httpx
import psycopg
import pytest
import yaml
from psycopg import sql

from tests import ROOT
from tests.annotators.views.touching import FILL
from tests.browsing import PHONE, press, until
from tests.tutorial_reader import Reader
from tools.proofs.bench.machine import Site, end

pytestmark = pytest.mark.browser

SYSTEMS, PROMPTS, SHOWN, PEOPLE = ("first", "second"), 12, 3, 3
FACTS = {
    "institution": "University of Graz",
    "responsible": "Ada Lovelace",
    "contact": "study@example.org",
    "ethics_contact": "ethics@example.org",
    "storage": "on a server in Graz",
    "retention": "for ten years",
}
# The services of compose.yaml that run jobs, and the command of its image.
JOBS = ("worker", "batches", "beat")


@pytest.fixture
def database(postgres_url):
    """The address of a new database, and no word of it afterwards."""
    name = sql.Identifier(f"card_{os.getpid()}")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        yield f"{postgres_url.rpartition('/')[0]}/card_{os.getpid()}"
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.fixture
def site(tmp_path, database, redis_url):
    """The processes of compose.yaml, each with its own command, beside an administrator."""
    site = Site(tmp_path / "site", "heval_site.wsgi:application", "heval_site.settings", database)
    site.environment |= {
        "REDIS_URL": redis_url,
        "STATIC_ROOT": str(tmp_path / "static"),
        "DJANGO_SUPERUSER_PASSWORD": "a password of the card",
    }
    heval = "heval_site.management.cli"
    site.run(heval, "collectstatic", "--noinput", "-v", "0")
    site.run(heval, "prepare")
    site.run(heval, "createsuperuser", "--noinput", "--username", "admin", "--email", "admin@example.org")
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    running, log = [], (tmp_path / "jobs.log").open("w")
    try:
        for name in JOBS:
            words = shlex.split(shlex.join(services[name]["command"]))
            command = [word.replace("/tmp/beat", str(tmp_path / "beat")) for word in words]
            running.append(
                subprocess.Popen(
                    [sys.executable, "-m", *command],
                    env=site.environment,
                    cwd=ROOT,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
        site.start()
        until(lambda: httpx.get(f"{site.address}/readyz").status_code == 200, 120)
        yield site
    finally:
        site.stop()
        for process in running:
            end(process)
        log.close()


def own_file() -> bytes:
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["prompt", *SYSTEMS])
    for n in range(PROMPTS):
        rows.writerow(
            [
                f"Write a story about house number {n}.",
                *(f"House {n} stood where the {name} road ends." for name in SYSTEMS),
            ]
        )
    return text.getvalue().encode()


def define_and_launch(reader: Reader) -> str:
    """A researcher defines systems, prompts, protocol and m, and launches the study. Gives the address for the panel."""
    page = reader.page
    reader.go("/admin/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill("a password of the card")
    page.get_by_role("button", name="Log in").click()

    def go_on(words="Continue"):
        press(page, page.locator("button.go-on, button.first, a.go-on, a.first").filter(has_text=words).first)

    go_on("New study")
    page.fill("#id_title", "The card")
    file = {"name": "stories.csv", "mimeType": "text/csv", "buffer": own_file()}
    page.locator("input[type=file]").first.set_input_files(file)
    go_on()
    go_on("Import")
    page.check("#card-spa")
    page.fill("#id_m", str(SHOWN))
    go_on()
    page.select_option("#id_channel", "generic")
    page.fill("#id_target_n", str(PEOPLE))
    go_on()
    for name, value in FACTS.items():
        page.fill(f"#id_facts-{name}", value)
    go_on()
    go_on()
    for box in page.locator("input[name=acknowledge]").all():
        box.check()
    go_on("Launch")
    page.wait_for_url("**/new/link/", timeout=60_000)
    return next(value for one in page.locator("input[readonly]").all() if "/e/" in (value := one.input_value()))


def take_part(page, address: str) -> int:
    """Somebody whom a panel sent agrees, answers every page, and comes to the end. Gives the number of pages with questions."""
    page.goto(address)
    page.get_by_label("I have read this and agree to take part.").check()
    press(page, page.get_by_role("button", name="Start"))
    n = 0
    while page.locator("#answers").count():
        n += 1
        assert n < 40
        page.evaluate(FILL)
        # Stories are read one prompt at a time.
        while not page.locator("#go").is_visible():
            page.get_by_role("link", name="Next prompt").click()
        press(page, page.locator("#go"))
    page.get_by_role("heading", name="Thank you").wait_for()
    return n


def answer(rest: httpx.Client, path: str, **body):
    return rest.request("POST" if body else "GET", path, **body).raise_for_status().json()


def new_token(reader: Reader) -> str:
    reader.go("/admin/analysis/apitoken/add/")
    reader.page.fill("#id_name", "a program")
    reader.page.select_option("#id_scope", "write")
    press(reader.page, reader.page.get_by_role("button", name="Save"))
    return reader.page.locator("#token").input_value()


def test_a_study_from_the_admin_to_rest(browser, site):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    reader = Reader(context.new_page(), site.address)
    link = define_and_launch(reader)
    for n in range(PEOPLE):
        guest = browser.new_context(viewport=PHONE)
        take_part(guest.new_page(), re.sub(r"\?.*", f"?participant=p{n}", link))
        assert not guest.cookies()
        guest.close()
    headers = {"Authorization": f"Token {new_token(reader)}"}
    with httpx.Client(base_url=f"{site.address}/api/v1/", headers=headers, timeout=30) as rest:
        (study,) = answer(rest, "studies/")["results"]
        at = f"studies/{study['code']}/"
        assert (study["title"], study["state"]) == ("The card", "launched")
        assert {one["name"] for one in answer(rest, f"{at}systems/")["results"]} == set(SYSTEMS)
        batches = answer(rest, f"{at}batches/")["results"]
        assert [len(batch["items"]) for batch in batches] == [SHOWN] * PEOPLE
        people = answer(rest, f"{at}assignments/")["results"]
        assert [one["is_submitted"] for one in people] == [True] * PEOPLE
        assert {one["channel"] for one in people} == {"generic"}
        assert rest.get(f"{at}responses/").status_code == 403  # nobody looks while people answer

        reader.go("/admin/")
        reader.follow("The card")
        reader.follow("Close")
        reader.press("Close")
        # Who is at work keeps a minute. The clock looks once a minute whether it is over, and asks for its turn every 15 seconds.
        until(lambda: answer(rest, at)["state"] == "closed", 180, pause=2)
        assert len(answer(rest, f"{at}responses/")["results"]) >= PEOPLE
        job = answer(rest, f"{at}analyses/", json={"resamples": 99})
        until(lambda: answer(rest, f"{at}jobs/{job['code']}/")["state"] not in ("waiting", "running"), 90, pause=2)
        assert answer(rest, f"{at}jobs/{job['code']}/")["state"] == "done"
        (analysis,) = answer(rest, f"{at}analyses/")["results"]
        result = answer(rest, f"{at}analyses/{analysis['number']}/")["result"]
        assert result["n"] == {"kept": PEOPLE, "arrived": PEOPLE, "submitted": PEOPLE, "kept_paper": PEOPLE}
        # All say the same number, so nobody is judged better, and three people are too few to say more.
        (item,) = result["items"]
        assert (item["protocol"], item["winner"]) == ("spa", "") and {item["x"], item["y"]} == set(SYSTEMS)
        assert analysis["responses_n"] == len(rest.get(f"{at}responses/").json()["results"])
        answers = list(csv.DictReader(io.StringIO(rest.get(f"{at}exports/responses.csv").raise_for_status().text)))
        asked = [row for row in answers if row["protocol"] == "spa"]
        assert len({row["assignment"] for row in asked}) == PEOPLE
        assert {frozenset((row["x"], row["y"])) for row in asked} == {frozenset(SYSTEMS)}
    context.close()
