"""The researcher's pages in Chromium: no accessibility fault, nothing refused by the content policy, at two widths."""

import os
import random
from decimal import Decimal

import pytest
from django.conf import settings
from django.db.models.functions import Now
from django.test import Client

from analysis.coding.codebook import EXPLANATIONS_CODEBOOK, REJECTIONS_CODEBOOK
from analysis.coding.samples import draw_coding_sample
from analysis.report.runs import run_analysis
from annotators.models import Appeal, Inquiry, PanelOrder, PanelSubmission, Payment
from annotators.pay import ledger as pay
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.prolific.client import REJECTION_POLICY
from annotators.recruitment.panels import SubmissionSnapshot
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.orders import get_or_create_order
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places
from studies.imports.tables import run
from studies.models import Job, StudyMember, audit
from studies.services import lifecycle
from tests import builders, players
from tests.accessibility import violations
from tests.annotators.recruitment.pretend import Pretend, speaks
from tests.browsing import appears, press
from tests.keyboard import unreached

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WIDTHS = (1280, 375)
# What sticks out of the page, if it scrolls sideways.
WIDER = """() => document.documentElement.scrollWidth <= window.innerWidth + 1 ? [] :
  [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > window.innerWidth + 1
    && !one.closest(".rows, .scroll, .results")).slice(0, 5).map((one) => one.outerHTML.slice(0, 120))"""
SHOTS = os.environ.get("HEVAL_TEST_SHOTS")


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def page(browser, live_server, owner):
    client = Client()
    client.force_login(owner)
    context = browser.new_context()
    context.add_cookies(
        [
            {
                "name": settings.SESSION_COOKIE_NAME,
                "value": client.cookies[settings.SESSION_COOKIE_NAME].value,
                "url": live_server.url,
            }
        ]
    )
    page = context.new_page()
    page.complaints = []
    page.on("response", lambda got: page.complaints.append(f"{got.status} {got.url}") if got.status >= 400 else None)
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("console", lambda line: page.complaints.append(line.text) if is_told(line) else None)
    page.set_default_timeout(20000)
    yield page
    context.close()


def is_told(line) -> bool:
    return line.type == "error" and "Failed to load" not in line.text  # those are reported with their address


def look(page, url: str, name: str, dark: bool = False) -> list[str]:
    page.goto(url)
    return look_here(page, name, dark)


def look_here(page, name: str, dark: bool = False) -> list[str]:
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        # No colour depends on the width; what a narrow screen hides is looked at on the wide one.
        but = "" if width == max(WIDTHS) else "color-contrast"
        found += [f"{name} at {width}: {fault}" for fault in violations(page, but=but)]
        found += [f"{name} at {width}: wider than the screen: {one}" for one in page.evaluate(WIDER)]
        if SHOTS:
            page.screenshot(path=f"{SHOTS}/{name}-{width}.png", full_page=True)
    found += [f"{name}: {one}" for one in unreached(page)]
    if dark:
        page.emulate_media(color_scheme="dark")
        page.wait_for_timeout(400)  # colours fade from one scheme to the other
        found += [f"{name} in the dark: {fault}" for fault in violations(page, rule="color-contrast")]
        if SHOTS:
            page.screenshot(path=f"{SHOTS}/{name}-dark.png", full_page=True)
        page.emulate_media(color_scheme="light")
    return found


def refused(page, button: str) -> list[str]:
    """Press the button of a form that lacks something: what is wrong has the focus then, and leads to its field."""
    page.locator("form").evaluate_all("forms => forms.forEach((form) => { form.noValidate = true; })")
    told = list(page.complaints)
    press(page, page.get_by_role("button", name=button))
    page.complaints[:] = told + [one for one in page.complaints[len(told) :] if not one.startswith(("400 ", "422 "))]
    said = page.locator(":is([role=alert], .refused):focus")
    if not appears(said, 3000):  # the browser gives the focus with the first picture, not with the page
        return [f"{page.url}: nothing that was refused has the focus after “{button}”"]
    leads = [one.get_attribute("href") for one in said.locator("a[href^='#']").all()]
    return [f"{page.url}: {to} leads nowhere" for to in leads if not page.locator(to).count()]


def test_pages_of_a_draft_have_no_fault(page, live_server, owner):
    study = builders.spa_draft(owner=owner, wage_per_hour="14.00")
    lifecycle.Study.objects.filter(pk=study.pk).update(contact="")
    spa = study.sections.get(protocol="spa")
    base = f"{live_server.url}/admin"
    found = look(page, f"{base}/studies/study/{study.pk}/change/", "study-draft", dark=True)
    found += look(page, f"{base}/studies/study/{study.pk}/change/?part=consent", "study-part")
    page.locator("#id_erase_after_days").fill("-1")
    found += refused(page, "Save")
    found += look(page, f"{base}/studies/study/", "studies")
    found += look(page, f"{base}/studies/section/{spa.pk}/change/", "section", dark=True)
    page.locator("#id_m").fill("-1")
    found += refused(page, "Save and continue editing")
    found += look(page, f"{base}/studies/section/add/?study={study.pk}", "section-add")
    found += look(page, f"{base}/studies/study/{study.pk}/launch/", "launch")
    found += look(page, f"{base}/studies/output/?study={study.pk}", "outputs")
    found += look(page, f"{base}/studies/study/{study.pk}/preview/s2.read/", "preview")
    found += look(page, f"{base}/studies/study/{study.pk}/test-run/", "test run")
    found += page.complaints
    assert not found, "\n".join(found)


# Visible controls of the study's page whose edge lies outside the window, whether or not something around them scrolls.
OUTSIDE = """() => [...document.querySelectorAll("#contrasts-group :is(input, select, textarea, button, summary, label)")]
  .filter((one) => one.checkVisibility() && one.getClientRects().length)
  .filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth || one.getBoundingClientRect().left < 0)
  .map((one) => one.outerHTML.slice(0, 120))"""


def test_comparisons_are_cards_inside_the_window(page, live_server, owner):
    study = builders.spa_draft(owner=owner, with_surveys=False)
    page.goto(f"{live_server.url}/admin/studies/study/{study.pk}/change/")
    page.locator("#contrasts-group").get_by_role("button", name="Add another planned comparison").click()
    for summary in page.locator("#contrasts-group .comparison:not(.empty-form) details:not([open]) > summary").all():
        summary.click()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator("#contrasts-group select[name$='-population']:visible").count() > study.contrasts.count()
        assert page.evaluate(OUTSIDE) == []
    page.locator("#id_title").fill("Saved by the key")
    with page.expect_navigation():
        page.locator("#id_title").press("Enter")
    study.refresh_from_db()
    assert study.title == "Saved by the key" and not page.complaints


# Controls that lie under the bar with the save button when they have the focus.
COVERED = """() => {
  for (const fold of document.querySelectorAll("#content-main details")) fold.open = true;
  const bar = document.querySelector(".submit-row");
  if (getComputedStyle(bar).position !== "sticky") return ["the bar is not sticky"];
  return [...document.querySelectorAll("#content-main form :is(input, select, textarea, button, summary):not(.submit-row *)")]
    .filter((one) => one.type !== "hidden" && !one.disabled && one.checkVisibility() && one.getClientRects().length)
    .filter((one) => {
      scrollTo(0, 0);
      one.focus();
      return one.getBoundingClientRect().bottom > bar.getBoundingClientRect().top + 1;
    }).map((one) => one.outerHTML.slice(0, 120));
}"""


def test_the_save_bar_covers_no_field_that_has_the_focus(page, live_server, owner):
    study = builders.spa_draft(owner=owner, with_surveys=False)
    for url in (f"studies/study/{study.pk}/change/", f"studies/section/{study.sections.first().pk}/change/"):
        for width, height in ((1280, 900), (1280, 500), (768, 500)):
            page.set_viewport_size({"width": width, "height": height})
            page.goto(f"{live_server.url}/admin/{url}")
            assert page.evaluate(COVERED) == [], (url, width, height)


def test_a_link_to_a_folded_field_or_group_opens_it(page, live_server, owner, browser):
    study = builders.spa_draft(owner=owner, with_surveys=False)
    url = f"{live_server.url}/admin/studies/study/{study.pk}/change/"
    page.goto(url)
    assert not page.locator("#id_contact").is_visible() and not page.locator("#id_arms-0-name").is_visible()
    page.evaluate("location.hash = '#id_contact'")
    assert appears(page.locator("#id_contact"), 3000)
    page.goto("about:blank")
    page.goto(f"{url}#arms-group")
    assert appears(page.locator("#id_arms-0-name"), 3000) and not page.locator("#id_contact").is_visible()
    without_script = browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state())
    plain = without_script.new_page()
    plain.goto(f"{url}#id_contact")
    assert appears(plain.locator("#id_contact"), 3000)
    plain.goto(f"{url}#arms-group")
    plain.locator("#arms-group summary").click()
    assert appears(plain.locator("#id_arms-0-name"), 3000)
    without_script.close()


def decided(page, live_server, recruitment, monkeypatch) -> list[str]:
    """From the evidence to the answered appeal, on the researcher's pages and on the person's."""
    monkeypatch.setattr(type(REGISTRY["generic"]), "rejection_policy", REJECTION_POLICY)
    one = PanelSubmission.objects.get(recruitment=recruitment, external_id="S1")
    panel = f"{live_server.url}/admin/annotators/recruitment/{recruitment.pk}/panel"
    mine = f"{live_server.url}/p/{one.assignment.code}"
    page.goto(f"{panel}/submission/{one.pk}/")
    page.get_by_role("radio").last.check()
    page.get_by_label("message to the annotator").last.fill(
        "We saw that nobody who reads could have written this answer to it. " * 2
    )
    page.get_by_role("textbox", name="your observations").fill("Letters at random.")
    press(page, page.get_by_role("button", name="Preview the rejection"))
    assert "Check once more" in page.content()
    found = look_here(page, "verdict")
    press(page, page.get_by_role("button", name="Reject", exact=True))
    assert "Take back the rejection" in page.content()
    PanelOrder.objects.filter(operation="reject").update(state="done", sent_at=Now(), ended_at=Now())
    found += look(page, f"{mine}/done/", "stands-rejected", dark=True)
    press(page, page.get_by_role("button", name="Object to the rejection"))
    assert "This could not be sent" in page.content()
    page.complaints.clear()  # the refusal's own status
    found += look_here(page, "objection")
    page.get_by_label("Write why").fill("It was whole when I sent it.")
    press(page, page.get_by_role("button", name="Object to the rejection"))
    appeal = Appeal.objects.get()
    Appeal.objects.filter(pk=appeal.pk).update(rejected_by=builders.user("ruth"))
    found += look(page, f"{panel}/appeal/{appeal.pk}/", "appeal")
    return found


def test_pages_of_a_launched_study_have_no_fault(page, live_server, owner, monkeypatch):
    study = builders.spa_study(owner, target_n=4, wage_per_hour="14.00")
    recruitment = builders.promised(
        builders.panel(study), failed_checks="all", fault="all", withdrawn="share", full="0.10"
    )
    done = players.submitted(study, "1", recruitment=recruitment, comment="The third text was cut off.")
    players.claimed(study, "2", recruitment)
    Inquiry.objects.create(assignment=done, kind="question", text="May I come back tomorrow?", page_key="s2.ask")
    audit.record("pause", study=study, by=owner)
    job = Job.objects.create(kind="launch", study=study, by=owner, doing="Drawing batches", done=3, total=10)
    base = f"{live_server.url}/admin"
    found = look(page, f"{base}/studies/study/{study.pk}/change/", "study-launched")
    found += look(page, f"{base}/studies/study/{study.pk}/collecting/", "collecting", dark=True)
    found += look(page, f"{base}/annotators/assignment/?study={study.pk}", "assignments")
    found += look(page, f"{base}/annotators/assignment/{done.pk}/change/", "assignment")
    found += look(page, f"{base}/annotators/assignment/exclude/?code={done.code}", "exclude")
    found += look(page, f"{base}/annotators/recruitment/{recruitment.pk}/change/", "recruitment")
    speaks(monkeypatch, Pretend())
    store_or_delete_secrets(recruitment, {"token": "t"}, by=None)
    shown = (("S1", "1", "submitted"), ("S2", "gone elsewhere", "submitted"), ("S3", "2", "working"))
    import_submissions_and_release_places(
        recruitment,
        [SubmissionSnapshot("T", submission, person, state) for submission, person, state in shown],
        "service",
    )
    for name in ("unclear", "waiting"):
        order = get_or_create_order(recruitment, "bonus", name, by=None, amount="1.50", currency="USD", reason="r")
        PanelOrder.objects.filter(pk=order.pk, token="unclear").update(state="unclear", sent_at=order.made_at)
    found += look(page, f"{base}/annotators/recruitment/{recruitment.pk}/panel/", "panel", dark=True)
    page.goto(f"{base}/annotators/recruitment/{recruitment.pk}/panel/publish/")
    press(page, page.get_by_role("button", name="Calculate the cost"))
    assert "Pay per hour" in page.content()
    found += look_here(page, "publish", dark=True)
    pay.add_extra_payments(recruitment, [pay.ExtraPayment(done, Decimal("1.20"), "Thank you")], "bonus", owner)
    pay.mark_payments_paid_and_erase_withdrawn_ids(
        recruitment, list(Payment.objects.filter(kind="base").values_list("pk", flat=True)), owner
    )
    found += look(page, f"{base}/annotators/recruitment/{recruitment.pk}/pay/", "pay", dark=True)
    found += look(page, f"{base}/studies/study/{study.pk}/pay/", "study-pay", dark=True)
    found += look(page, f"{base}/studies/study/{study.pk}/amend/", "amend")
    found += decided(page, live_server, recruitment, monkeypatch)
    found += look(page, f"{base}/studies/study/{study.pk}/close/do/", "close")
    found += look(page, f"{base}/studies/auditevent/?study={study.pk}", "log")
    found += look(page, f"{base}/studies/job/{job.code}/", "job")
    found += look(page, f"{base}/analysis/apitoken/add/", "token-add")
    found += page.complaints
    assert not found, "\n".join(found)


def test_pages_of_practice_and_of_coding_have_no_fault(page, live_server, owner):
    study = builders.humanlike_draft(conditions=("none", "comparison"), domains=("news",), owner=owner, target_n=4)
    training = study.sections.get(purpose="training")
    base = f"{live_server.url}/admin"
    found = look(page, f"{base}/studies/section/{training.pk}/change/", "section-training")
    found += look(page, f"{base}/studies/section/{training.pk}/practice/", "practice", dark=True)
    found += refused(page, "Add")
    study = builders.launched(study, owner)
    for n in range(4):
        players.submitted(
            study, f"w{n}", rng=random.Random(n), comment="It goes on for a while, and then it just stops."
        )
    second = builders.user("cora")
    StudyMember.objects.create(study=study, user=second, role="coder")
    samples = [
        draw_coding_sample(study, kind=kind, rule="union", codebook=book, per_arm=2, coders=[owner, second], by=owner)
        for kind, book in (("explanations", EXPLANATIONS_CODEBOOK), ("rejections", REJECTIONS_CODEBOOK))
    ]
    coding = f"{base}/analysis/codingsample"
    found += look(page, f"{coding}/study/{study.pk}/draw/", "coding-draw", dark=True)
    found += refused(page, "Draw the sample")
    found += look(page, f"{coding}/", "coding-samples")
    found += look(page, f"{coding}/{samples[0].pk}/change/", "coding-sample")
    found += look(page, f"{coding}/{samples[0].pk}/code/1/", "coding-item", dark=True)
    found += refused(page, "Save and continue")
    found += look(page, f"{coding}/{samples[1].pk}/code/1/", "coding-review")
    found += page.complaints
    assert not found, "\n".join(found)


def test_pages_of_templates_and_of_imported_answers_have_no_fault(page, live_server, owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    study = builders.draft_study(systems=("alpha", "beta"), prompts=3, owner=owner)
    builders.add_choice(study, strategy="any", stopping="none")
    head = "annotator,prompt_key,shown:A,shown:B,chosen\n"
    kept = {
        name: run.store_upload(
            [(head + rows).encode()],
            "old.csv",
            study_id=study.pk,
            user_id=owner.pk,
            options={"columns": {}},
            kind="answers",
        )
        for name, rows in (
            ("good", "w1,p000,alpha,beta,beta\n"),
            ("bad", "w1,p009,alpha,beta,beta\nw2,p000,alpha,zoe,beta\n"),
        )
    }
    base = f"{live_server.url}/admin/studies/study/{study.pk}/import"
    found = look(page, f"{live_server.url}/admin/studies/study/new/templates/", "templates", dark=True)
    found += look(page, f"{base}/answers/", "import-answers", dark=True)
    found += refused(page, "Check the file")
    for name, upload in kept.items():
        run.process_or_queue_upload(study, upload, owner, is_confirmed=False)
        found += look(page, f"{base}/{upload.token}/", f"import-answers-{name}")
    run.process_or_queue_upload(study, kept["good"], owner, is_confirmed=True)
    report = run_analysis(lifecycle.Study.objects.get(pk=study.pk), {"resamples": 99}, by=owner)
    found += look(
        page, f"{live_server.url}/admin/studies/study/{study.pk}/analyses/{report.number}/", "import-answers-report"
    )
    found += look(page, f"{live_server.url}/admin/studies/study/{study.pk}/change/", "import-answers-study")
    found += page.complaints
    assert not found, "\n".join(found)


def test_only_the_parts_of_a_scale_that_its_kind_uses_are_in_sight(page, live_server, owner):
    study = builders.spa_draft(owner=owner)
    section = study.sections.get(protocol="rating")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{live_server.url}/admin/studies/section/{section.pk}/change/")
    assert page.locator("#id_questions-0-scale_labels").is_visible()
    assert not page.locator("#id_questions-0-scale_options").is_visible()
    page.locator("#id_questions-0-scale_kind").select_option("choice")
    assert page.locator("#id_questions-0-scale_options").is_visible()
    assert not page.locator("#id_questions-0-scale_labels").is_visible()


def test_a_job_renews_itself_and_shows_its_end(page, live_server, owner):
    study = builders.spa_draft(owner=owner)
    job = Job.objects.create(kind="launch", study=study, by=owner, doing="Drawing batches", done=1, total=10)
    page.goto(f"{live_server.url}/admin/studies/job/{job.code}/")
    Job.objects.filter(pk=job.pk).update(done=7, doing="Freezing the design")
    page.get_by_text("7 of 10").wait_for()
    Job.objects.filter(pk=job.pk).update(state="failed", error="There are not enough prompts.", ended_at=job.created_at)
    page.get_by_text("There are not enough prompts.").wait_for()


def test_a_draft_from_a_template_is_saved_twice_and_stays_as_it_is(page, live_server, owner):
    """Its rule holds a list, its texts have line breaks: what Chromium sends of them changes nothing."""
    from studies.design.serialization import canonical_json, serialize_design
    from studies.imports.study_templates import STUDY_TEMPLATES, create_draft_from_template

    blueprint = next(one for one in STUDY_TEMPLATES if "not_native" in one.text)
    study = create_draft_from_template(blueprint, owner)
    before, version = canonical_json(serialize_design(study)), study.version
    for url in (f"studies/study/{study.pk}/change/", f"studies/section/{study.sections.first().pk}/change/"):
        for _ in range(2):
            page.goto(f"{live_server.url}/admin/{url}")
            page.locator("input[name=_save]").last.click()
            page.wait_for_load_state()
            assert "saved" in page.locator(".messagelist").inner_text().lower()
            study.refresh_from_db()
            assert (canonical_json(serialize_design(study)), study.version) == (before, version)
    page.goto(f"{live_server.url}/admin/studies/study/{study.pk}/change/")
    options = page.locator("[name$=parameters-options]").first
    assert options.input_value() == "yes"
    # The same form does change what a person changes.
    page.locator("#exclusion_rules-group summary").click()
    options.fill("yes, nearly")
    page.locator("input[name=_save]").last.click()
    page.wait_for_load_state()
    assert study.exclusion_rules.get(rule="not_native").settings["options"] == ["yes", "nearly"]
