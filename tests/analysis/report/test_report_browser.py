"""The report in a browser: readable on a phone, nothing that a screen reader stumbles over, no script, no foreign request."""

import os
from pathlib import Path

import pytest
from django.urls import reverse

from analysis.report.runs import run_analysis
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from studies.services import jobs, lifecycle
from tests.accessibility import violations
from tests.browsing import until
from tests.builders import spa_study, user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# Where a person wants to look at the pages themselves.
SHOTS = os.environ.get("HEVAL_SHOTS")


@pytest.fixture
def report(live_server):
    by = user("jo", is_superuser=True)
    study = spa_study(
        by,
        systems=("ada", "babbage", "curie", "davinci"),
        target_n=30,
        prompts=20,
        rules=[
            ("not_native", {"question": "fluent", "options": ["yes"]}),
            ("incoherent", {"tau": 1.1}),
            ("too_fast", {}),
        ],
    )
    record_simulated_answers(
        study, 32, {"ada": 0, "babbage": 0.6, "curie": 1.2, "davinci": 1.25}, crowd=CrowdSettings(abandoning=0.05)
    )
    run = run_analysis(study, {"origins": ["robot"], "resamples": 199}, by=by)
    return live_server, study, run, by


def logged_in(browser, client, server, by, **options):
    client.force_login(by)
    context = browser.new_context(**options)
    cookie = client.cookies["heval"]
    context.add_cookies([{"name": "heval", "value": cookie.value, "url": server.url}])
    return context


def shot(page, name):
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


# The labels of options that are wider than their list, which the arrow makes narrower.
CUT_OPTIONS = """[...document.querySelectorAll("select")].flatMap(list => {
    const pen = document.createElement("canvas").getContext("2d"), style = getComputedStyle(list)
    pen.font = style.font
    const room = list.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 16
    return [...list.options].map(one => one.label).filter(label => pen.measureText(label).width > room)
})"""


def test_pages_are_accessible_and_fit_a_phone(report, browser, client):
    server, study, run, by = report
    lifecycle.unblind(study, None, "The page Share then lists its files.")
    job = jobs.submit("analyse", study=study, by=by)
    pages = {
        "report": reverse("analysis", args=[study.pk, run.number]),
        "list": reverse("analyses", args=[study.pk]),
        "share": reverse("share", args=[study.pk]),
        "progress": reverse("admin:studies_job_page", args=[job.code]),
    }
    for width, scheme in ((1280, "light"), (375, "dark")):
        context = logged_in(browser, client, server, by, viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        errors, asked = [], []
        page.on(
            "console", lambda message, errors=errors: errors.append(message.text) if message.type == "error" else None
        )
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        for name, path in pages.items():
            answered = page.goto(server.url + path)
            assert answered.status == 200
            for details in page.query_selector_all("details"):
                details.evaluate("one => one.open = true")
            page.wait_for_load_state("networkidle")
            shot(page, f"{name}-{width}-{scheme}")
            assert violations(page) == [], (name, width, scheme)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{name} scrolls sideways by {wide} px at {width}"
            assert page.evaluate(CUT_OPTIONS) == [], (name, width)
            broken = page.evaluate("[...document.images].filter(one => !one.naturalWidth).map(one => one.src)")
            # The frame has two scripts, for the chosen colours and for conveniences. The page is complete without them.
            scripts = page.evaluate("[...document.scripts].map(one => one.src.split('/').pop())")
            assert not broken and scripts == ["theme.js", "admin-heval.js"]
        assert not errors
        assert all(url.startswith(server.url) for url in asked), asked
        context.close()


# Six screens of 800 px: what is open before anything is unfolded.
MOST_HEIGHT = 4800
# Tables that are cut at the right edge, without those in folds.
CUT_TABLES = """[...document.querySelectorAll(".scrolled")].filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
    .map(one => one.querySelector("caption, th")?.innerText)"""


def test_the_first_screen_says_what_was_found(report, browser, client):
    server, study, run, by = report
    context = logged_in(
        browser,
        client,
        server,
        by,
        viewport={"width": 1280, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = context.new_page()
    page.goto(server.url + reverse("analysis", args=[study.pk, run.number]))
    overall, claim = page.locator(".overall").first, page.locator(".claim").first
    assert overall.bounding_box()["y"] < 450 and "planned comparisons" in overall.inner_text()
    assert claim.bounding_box()["y"] < 600 and claim.inner_text().startswith("babbage was preferred to ada, for ")
    systems, figure = page.locator("#table-answer"), page.locator("figure img").first
    assert systems.bounding_box()["y"] < 600 and figure.bounding_box()["y"] < 850
    assert page.locator("#methods").bounding_box()["y"] < 2 * 800
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height <= MOST_HEIGHT, f"{height} px are open"
    assert page.evaluate(CUT_TABLES) == []
    page.locator(".answer > .files").get_by_role("link", name="Markdown").click()
    page.get_by_role("link", name="copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("This analysis uses only answers of robots.") and "2 of 3 planned comparisons" in copied
    page.get_by_role("link", name="image").first.click()
    kinds = "navigator.clipboard.read().then(found => found.flatMap(one => one.types))"
    until(lambda: page.evaluate(kinds) == ["image/png"])
    shot(page, "report-closed-1280")
    page.get_by_role("button", name="Analyse again").click()
    page.wait_for_url("**/job/**")
    assert page.locator("progress").count() == 1
    context.close()


# Ten questions of a reader, each with the element and the words that answer it.
QUESTIONS = {
    "Who won?": (".overall", "curie > babbage > ada"),
    "How sure is it?": (".conclusions", "confidence interval"),
    "Are open results equal, or unknown?": (".conclusions", "which is no evidence that there is none"),
    "How many people?": (".conclusions", "28 annotators"),
    "Who was left out?": (".methods", "excluded"),
    "What may one write?": (".methods", "Bonferroni"),
    "What may one not write?": ("#limits + ul", "equally good"),
    "Where are the raw data?": ("nav[aria-label='On this page'] a", "Raw data"),
    "What does n count?": (".conclusions", "n = 28 annotators"),
    "What would change an open result?": (".conclusions", "to find half of that difference takes about"),
}


def test_ten_questions_of_a_reader_are_answered_at_the_beginning(report, browser, client):
    """On the first two screens of a window, and on a phone on the first one or behind one link of it."""
    server, study, run, by = report
    address = server.url + reverse("analysis", args=[study.pk, run.number])
    context = logged_in(browser, client, server, by, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(address)
    for question, (place, words) in QUESTIONS.items():
        answer = page.locator(place, has_text=words).first
        assert answer.count() == 1, f"{question} {page.locator(place).all_inner_texts()}"
        assert answer.bounding_box()["y"] < 2 * 800, question
    page.set_viewport_size({"width": 375, "height": 740})
    led = [
        one
        for one in page.locator("nav[aria-label='On this page'] a[href^='#']").all()
        if one.bounding_box()["y"] < 740
    ]
    targets = [page.locator(one.get_attribute("href")).bounding_box()["y"] for one in led]
    for question, (place, words) in QUESTIONS.items():
        y = page.locator(place, has_text=words).first.bounding_box()["y"]
        assert y < 740 or any(0 <= y - target < 740 for target in targets), f"{question} {y} {targets}"
    context.close()


def test_a_result_opens_by_itself_but_not_over_what_was_typed(report, browser, client):
    server, study, run, by = report
    context = logged_in(browser, client, server, by)
    page, typing = context.new_page(), context.new_page()
    job = jobs.submit("analyse", study=study, by=by, parameters={"origins": ["robot"], "resamples": 99})
    for one in (page, typing):
        one.goto(server.url + reverse("analyses", args=[study.pk]))
        one.get_by_text("The result opens by itself.").wait_for()
    shot(page, "analyses-running")
    typing.get_by_text("Level, resamples and stars").click()
    typing.get_by_label("Resamples").fill("500")
    assert jobs.claim_and_run_job(job.pk)
    result = reverse("analysis", args=[study.pk, run.number + 1])
    page.wait_for_url(server.url + result)
    typing.get_by_text("What you entered on this page is not sent yet.").wait_for()
    assert typing.get_by_label("Resamples").input_value() == "500"
    typing.get_by_role("link", name="Open it").click()
    typing.wait_for_url(server.url + result)
    context.close()
