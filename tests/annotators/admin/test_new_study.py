"""The last pages of a new study: a trial, the launch with its link, and the page with what to copy where."""

import re
from unittest.mock import patch

import pytest
from django.test import Client, override_settings

from annotators.models import Assignment, OutcomePay, Recruitment
from annotators.recruitment.links import LinkState, possible_outcomes, recruitment_link_state
from studies.models import Arm, AuditEvent, Job, ResearcherFacts, Study
from studies.services import jobs
from tests.admin_pages import changed, errors_of, form_of, logged_in
from tests.builders import SCREENING, add_choice, add_survey, draft_study, recruitment, user

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return user("owner")


def url(study, page) -> str:
    return f"/admin/studies/study/{study.pk}/new/{page}/"


def launch_url(study) -> str:
    return f"/admin/studies/study/{study.pk}/launch/"


def ready(owner, *, is_screening=False, **columns) -> Study:
    study = draft_study(owner=owner, systems=("alpha", "beta"), target_n=4, wage_per_hour=None, **columns)
    if is_screening:
        add_survey(study, position=1, purpose="screening", questions=[SCREENING])
    add_choice(study, position=1 + is_screening, strategy="any")
    return study


def acknowledged(page) -> list[str]:
    return [problem.key for problem in page.context["warnings"]]


def launch(client, study, **changes):
    page = client.get(launch_url(study))
    form = form_of(page, "launch-form")
    return client.post(launch_url(study), changed(form, **({"acknowledge": acknowledged(page)} | changes)))


def run_jobs():
    assert jobs.run_waiting_jobs()


@override_settings(SITE_URL="https://eval.example.org")
def test_one_press_makes_the_link_and_launches_and_leads_to_the_link(owner):
    client, study = logged_in(owner), ready(owner)
    response = launch(client, study)
    assert response.status_code == 302, errors_of(response)
    job = Job.objects.get(kind="launch")
    assert response.url == f"/admin/studies/job/{job.code}/"
    link = study.recruitments.get()
    assert link.channel == "open_link" and link.wanted is None
    run_jobs()
    assert client.get(response.url).context["result_url"] == url(study, "link")
    page = client.get(url(study, "link"))
    study.refresh_from_db()
    address = f"/e/{link.key}/"
    html = page.content.decode()
    assert (
        study.state == "launched" and html.count(f'value="http://testserver{address}"') + html.count(f'{address}"') >= 1
    )
    assert 'aria-label="QR code of the link"' in html and "<svg" in html and "errornote" not in html
    keep = f"/admin/studies/study/{study.pk}/keep-template/do/"
    assert f'<a href="{keep}">Keep as a template</a>' in html and client.get(keep).status_code == 200
    visitor = Client().get(address).content.decode()
    assert ">Start</button>" in visitor
    # Opened again, the page of the launch leads on, and makes no second link.
    assert client.get(launch_url(study)).status_code == 302 and study.recruitments.count() == 1


def test_a_refused_launch_leaves_no_link_behind(owner):
    client, study = logged_in(owner), ready(owner)
    page = client.get(launch_url(study))
    assert acknowledged(page)
    response = launch(client, study, acknowledge=[])
    assert response.status_code == 422 and "Acknowledge this warning" in response.content.decode()
    assert not study.recruitments.exists() and not Job.objects.exists()
    assert not AuditEvent.objects.filter(verb="recruit").exists()


def test_what_is_missing_names_the_page_that_asks_for_it(owner):
    client = logged_in(owner)
    columns = {"target_n": None, "public_title": "", "consent": "[… the institution] asks", "contact": ""}
    study = draft_study(owner=owner, prompts=0, guide={}, **columns)
    page = client.get(launch_url(study))
    links = {problem.field: problem.url for problem in page.context["blocking"]}
    texts = f"{url(study, 'texts')}?launch"
    assert links["target_n"] == f"{url(study, 'people')}?launch#id_target_n"
    assert links["contact"] == links["consent"] == f"{texts}#facts"
    assert links["public_title"] == f"{texts}#id_public_title"
    assert "Launch</button>" not in page.content.decode()
    # A place to fill in cannot be acknowledged in a draft of these pages, but in others.
    study = ready(owner, consent="[… the institution] asks", guide={})
    refused = launch(client, study, acknowledge=["unfilled:consent"])
    assert refused.status_code == 422 and "place to fill in" in errors_of(refused) and not Job.objects.exists()
    assert launch(client, ready(owner, consent="[… the institution] asks")).status_code == 302


def test_a_draft_of_all_settings_has_the_same_page_and_its_links_stay(owner):
    client, study = logged_in(owner), ready(owner)
    page = client.get(launch_url(study))
    assert "Steps of a new study" not in page.content.decode() and "Workload of one batch" in page.content.decode()
    assert page.context["form"]["channel"].value() == "open_link"
    made_before = recruitment(study, channel="sona")
    assert client.get(launch_url(study)).context["form"]["channel"].value() == "sona"
    assert launch(client, study).status_code == 302 and study.recruitments.get() == made_before
    later = ready(owner)
    assert launch(client, later, channel="").status_code == 302 and not later.recruitments.exists()


def test_the_page_people_asks_how_people_come_and_the_launch_does_as_it_says(owner):
    client = logged_in(owner)
    people = {
        "open_link": ("0.00", "Anyone with the link may take part", []),
        "prolific": ("2.40", "33.3 %", ["full_pay"]),
        "": ("2.40", "makes no link", []),
    }
    for channel, (reward, said, fields) in people.items():
        study = ready(owner, guide={"question": {}}, reward=None)
        assert form_of(client.get(url(study, "people")), "plan-form")["channel"] == ["open_link"]
        form = changed(form_of(client.get(url(study, "people")), "plan-form"), channel=channel)
        shown = client.post(url(study, "people"), form | {"show": "1"}).content.decode()
        assert said in shown, (channel, shown)
        assert client.post(url(study, "people"), form).status_code == 302
        study.refresh_from_db()
        # Nobody is named by an open link, so pay is proposed only where people can be paid.
        assert str(study.reward) == reward and study.guide == {"question": {}, "channel": channel}
        page = client.get(launch_url(study))
        change = f"{url(study, 'people')}?launch#id_channel"
        assert list(page.context["form"].fields) == fields and change in page.content.decode()
        assert launch(client, study).status_code == 302
        assert list(study.recruitments.values_list("channel", flat=True)) == ([channel] if channel else [])


def test_pay_needs_an_amount_or_an_aim(owner):
    client, study = logged_in(owner), ready(owner, reward=None)
    form = changed(form_of(client.get(url(study, "people")), "plan-form"), wage_per_hour="")
    refused = client.post(url(study, "people"), form)
    assert refused.status_code == 422 and "Enter the pay for one person, or the pay for an hour" in errors_of(refused)


def test_pay_of_those_who_cannot_take_part_is_asked_once_and_only_where_it_can_happen(owner):
    client = logged_in(owner)
    plain, screened = ready(owner), ready(owner, is_screening=True)
    assert "screened_out_pay" not in client.get(launch_url(plain)).context["form"].fields
    assert "screened_out_pay" in client.get(launch_url(screened)).context["form"].fields
    refused = launch(client, screened)
    assert refused.status_code == 422 and "This field is required" in errors_of(refused)
    # A panel's people may find no place left.
    refused = launch(client, plain, channel="prolific", full_pay="")
    assert refused.status_code == 422 and "Enter what they get, or 0" in errors_of(refused)
    assert not Recruitment.objects.exists() and not ResearcherFacts.objects.exists()
    assert launch(client, screened, channel="prolific", screened_out_pay="0.30", full_pay="0").status_code == 302
    rules = {row.outcome: (row.rule, row.amount) for row in OutcomePay.objects.all()}
    assert rules["full"] == ("nothing", None) and str(rules["screened_out"][1]) == "0.30"
    assert rules["failed_checks"][0] == rules["fault"][0] == "all" and rules["withdrawn"][0] == "share"
    again = ready(owner, is_screening=True)
    assert list(client.get(launch_url(again)).context["form"].fields) == ["channel"]
    run_jobs()
    link = screened.recruitments.get()
    link.study.refresh_from_db()
    assert recruitment_link_state(link.study, link) is LinkState.OPEN


def test_an_unpaid_study_has_no_pay_that_is_too_low(owner):
    client, study = logged_in(owner), ready(owner)
    for reward, said in (("0.05", "below the target"), ("0", "nobody is paid")):
        Study.objects.filter(pk=study.pk).update(reward=reward, wage_per_hour=12)
        page = client.get(launch_url(study)).content.decode()
        assert [words for words in ("below the target", "nobody is paid") if words in page] == [said]
        assert ("fees" in page) == (reward != "0")


def test_a_paid_open_link_says_how_people_get_their_pay(owner):
    client = logged_in(owner)
    for channel, reward, is_said in (("open_link", "1", True), ("open_link", "0", False), ("prolific", "1", False)):
        study = ready(owner)
        Study.objects.filter(pk=study.pk).update(reward=reward)
        # A warning beside the choice.
        offered = client.get(launch_url(study)).content.decode()
        assert ("#how-people-get-their-pay" in offered) == (reward != "0")
        # It is said of the open link alone, so it is true whatever is chosen.
        assert ("An open link names nobody" in offered) == (reward != "0"), offered
        assert launch(client, study, channel=channel).status_code == 302
        run_jobs()
        page = client.get(url(study, "link")).content.decode()
        assert ("An open link names nobody" in page) == is_said, (channel, reward)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000", "https://eval.example.org"])
def test_a_site_of_one_computer_says_that_others_cannot_open_its_links(owner, address):
    client, study = logged_in(owner), ready(owner)
    with override_settings(SITE_URL=address):
        pages = [client.get(launch_url(study)).content.decode()]
        launch(client, study)
        run_jobs()
        pages.append(client.get(url(study, "link")).content.decode())
    for page in pages:
        assert (f"Only this computer can open {address}" in page) == address.startswith("http://127")


def test_what_is_missing_is_said_before_the_launch_and_its_correction_leads_back(owner):
    client, study = logged_in(owner), ready(owner, minutes=None)
    Study.objects.filter(pk=study.pk).update(guide={}, consent="Yours, [… the institution]")
    step = client.get(url(study, "try")).content.decode()
    assert "The consent still has 1 place" in step and f'<a href="{url(study, "texts")}#facts">Fill it in</a>' in step
    page = client.get(launch_url(study))
    links = {problem.field: problem.url for problem in page.context["blocking"]}
    assert links == {
        "consent": f"{url(study, 'texts')}?launch#facts",
        "minutes": f"{url(study, 'people')}?launch#id_minutes",
    }
    for address, form in ((links["consent"], "texts-form"), (links["minutes"], "plan-form")):
        address = address.partition("#")[0]
        sent = changed(form_of(client.get(address), form), **({"consent": "Yours"} if form == "texts-form" else {}))
        assert client.post(address, sent).url == launch_url(study)
    assert client.get(launch_url(study)).context["blocking"] == []
    assert client.post(url(study, "people"), sent).url == url(study, "texts")


def test_a_panel_is_launched_with_the_values_that_the_page_proposes(owner):
    client = logged_in(owner)
    for channel, said_once in (("open_link", None), ("prolific", 0)):
        study = ready(owner)
        assert form_of(client.get(launch_url(study)), "launch-form")["full_pay"] == ["0"]
        assert launch(client, study, channel=channel).status_code == 302
        # An open link says nothing about the people of a panel.
        assert ResearcherFacts.objects.values_list("full_pay", flat=True).first() == said_once


def test_prolific_gets_exactly_the_codes_that_the_study_needs_in_the_order_of_its_form(owner):
    client = logged_in(owner)
    plain, screened = ready(owner), ready(owner, is_screening=True)
    for study in (plain, screened):
        assert (
            launch(
                client,
                study,
                channel="prolific",
                full_pay="0",
                **({"screened_out_pay": "0.2"} if study == screened else {}),
            ).status_code
            == 302
        )
    run_jobs()
    card = client.get(url(plain, "link")).context["cards"][0]
    assert "Make a study at Prolific." in client.get(url(plain, "link")).content.decode()
    said = {line.label: line.help for line in card["lines"]}
    assert client.get(url(plain, "link")).content.decode().count("Add a completion code there for each code") == 1
    assert said["Code: no place left"] == "Label “other”, review by hand. Nobody is paid for it."
    assert "The first page promises pay for it, which heval lists under Pay." in said["Code: withdrew"]
    assert "People who were at work get what the first page promises" in said["Code: study closed"]
    assert "Prolific pays the reward when it is approved" in said["Code: completed"]
    labels = [line.label for line in card["lines"]]
    assert labels[:3] == ["Title", "Description", "Study link for Prolific: paste it unchanged"]
    assert labels[-3:] == ["Places", "Minutes", "Reward, USD"]
    codes = labels[3:-3]
    assert (
        codes[0] == "Code: completed" and "Code: screened out" not in codes and "Code: failed the checks" not in codes
    )
    assert "Code: did not agree" in codes
    assert [line.value for line in card["lines"]][-3:] == ["4", "12", "2.50"]
    more = [line.label for line in client.get(url(screened, "link")).context["cards"][0]["lines"]]
    assert set(more) - set(labels) == {"Code: screened out"} and not card["qr"]
    stored = plain.recruitments.get().settings
    assert {line.value for line in card["lines"]} >= {
        stored[f"code_{outcome}"] for outcome in possible_outcomes(plain.recruitments.get())
    }


def test_a_link_with_a_missing_promise_is_closed_on_every_path(owner):
    client, study = logged_in(owner), ready(owner, is_screening=True)
    before = recruitment(study, promises="")
    texts = [problem.text for problem in client.get(launch_url(study)).context["warnings"]]
    assert any("closed to visitors: no pay is set for screened out, ended because" in text for text in texts)
    page = client.get(f"/admin/annotators/recruitment/{before.pk}/change/").content.decode()
    assert "closed to visitors" in page
    assert launch(client, study, screened_out_pay="0.2").status_code == 302
    run_jobs()
    after = recruitment(study, promises="")
    for link in (before, after):
        address = f"/e/{link.key}/"
        for response in (Client().get(address), Client().post(address, {"agree": "1", "start": "1"})):
            assert "This link is not open yet" in response.content.decode()
        assert "closed to visitors" in client.get(url(study, "link")).content.decode()
    assert not Assignment.objects.filter(origin="live").exists()
    # With its promises it opens; without pay it needs none.
    for outcome in ("screened_out", "fault", "withdrawn"):
        OutcomePay.objects.create(recruitment=before, outcome=outcome, rule="nothing")
    Recruitment.objects.filter(pk=after.pk).update(reward=0)
    for link in (before, after):
        assert ">Start</button>" in Client().get(f"/e/{link.key}/").content.decode()


def test_a_fresh_open_link_asks_only_what_can_happen_and_greets_without_a_fault(owner):
    client, study = logged_in(owner), ready(owner)
    launch(client, study)
    link = study.recruitments.get()
    page = client.get(f"/admin/annotators/recruitment/{link.pk}/change/")
    html = page.content.decode()
    assert 'class="errornote"' not in html
    assert set(re.findall(r'name="ends_(\w+?)"', html)) == {"fault", "fault_amount", "withdrawn", "withdrawn_amount"}
    # What the form does not ask stays.
    saved = client.post(page.request["PATH_INFO"], changed(form_of(page, "recruitment_form"), ends_withdrawn="all"))
    assert saved.status_code == 302
    rules = dict(link.outcome_pays.values_list("outcome", "rule"))
    assert rules == {"failed_checks": "all", "fault": "all", "withdrawn": "all"}


def test_other_panels_say_what_is_missing_before_anybody_comes(owner):
    client, study = logged_in(owner), ready(owner)
    assert launch(client, study, channel="connect", full_pay="0").status_code == 302
    run_jobs()
    page = client.get(url(study, "link"))
    assert "no redirect address or code for people who complete" in page.content.decode()
    assert page.context["cards"][0]["link"].wanted == 4


def test_a_trial_gives_an_address_and_a_code_that_need_no_account(owner):
    client, study = logged_in(owner), ready(owner)
    page = client.get(url(study, "try"))
    assert "Start a test" in page.content.decode() and not Assignment.objects.exists()
    assert client.post(url(study, "try")).status_code == 302
    run = Assignment.objects.get()
    assert run.origin == "test"
    page = client.get(url(study, "try")).content.decode()
    assert f'href="/p/{run.code}/"' in page and "<svg" in page and f"/p/{run.code}/" in page
    phone = Client().get(f"/p/{run.code}/", follow=True)
    assert phone.status_code == 200 and "Reading short stories" in phone.content.decode()
    with override_settings(SITE_URL="http://127.0.0.1:8000"):
        assert "answers only on this computer" in client.get(url(study, "try")).content.decode()
    with override_settings(SITE_URL="https://eval.example.org"):
        page = client.get(url(study, "try")).content.decode()
        assert "answers only on this computer" not in page and f"https://eval.example.org/p/{run.code}/" in page
    # The launch deletes it, so it never takes a place.
    assert launch(client, study).status_code == 302
    run_jobs()
    assert not Assignment.objects.exists()
    assert client.get(url(study, "try")).url == f"/admin/studies/study/{study.pk}/change/"


@pytest.mark.parametrize("is_screening", [False, True])
def test_the_preview_promises_what_the_link_of_the_launch_promises(owner, is_screening):
    client, study = logged_in(owner), ready(owner, reward=2, is_screening=is_screening)
    ResearcherFacts.objects.create(user=owner, screened_out_pay=1)

    def promises(page: str) -> str:
        return page.partition("<dt>If it ends early</dt>")[2].partition("</dd>")[0]

    before = promises(client.get(f"/admin/studies/study/{study.pk}/preview/landing/").content.decode())
    assert "you leave before the end" in before and ("1.00 USD" in before) is is_screening
    assert not Recruitment.objects.exists()
    assert launch(client, study).status_code == 302
    run_jobs()
    link = study.recruitments.get()
    after = promises(Client().get(f"/e/{link.key}/").content.decode())
    assert after == before


def test_what_try_it_leads_to_leads_back_to_it(owner):
    client, study = logged_in(owner), ready(owner)
    pages = [f"/admin/studies/study/{study.pk}/{name}/" for name in ("preview", "test-run")]
    own, step = f"/admin/studies/study/{study.pk}/change/", url(study, "try")
    for address in pages:
        page = client.get(address).content.decode()
        assert f'<a href="{own}">Back to the study</a>' in page and "sliders" not in page
    Study.objects.filter(pk=study.pk).update(guide={})
    for address in pages:
        assert f'<a href="{step}">Back to the study</a>' in client.get(address).content.decode()


def test_a_draft_that_cannot_be_tried_says_why_and_where(owner):
    without_question, without_texts = draft_study(owner=owner), draft_study(owner=owner, prompts=0)
    add_choice(without_texts)
    for study in (without_question, without_texts):
        response = logged_in(owner).post(url(study, "try"))
        assert response.status_code == 422 and "A test run is not possible yet" in response.content.decode()
        assert launch_url(study) in response.content.decode() and not Assignment.objects.exists()


def test_the_report_with_invented_answers_is_offered_where_the_page_exists(owner):
    study, client = ready(owner), logged_in(owner)
    with patch("annotators.admin.views.workflow.reverse_or_empty", return_value="/invented/"):
        assert 'action="/invented/"' in client.get(url(study, "try")).content.decode()
    with patch("annotators.admin.views.workflow.reverse_or_empty", return_value=""):
        assert "invented answers" not in client.get(url(study, "try")).content.decode()


def test_strangers_and_viewers_reach_none_of_it(owner):
    study = ready(owner)
    viewer = user("viewer")
    study.members.create(user=viewer, role="viewer")
    for page in (url(study, "try"), launch_url(study), url(study, "link")):
        assert logged_in(user("stranger")).get(page).status_code == 404
        assert Client().get(page).status_code == 302
    for page in (url(study, "try"), launch_url(study)):
        assert logged_in(viewer).get(page).status_code in (403, 404)
    launch(logged_in(owner), study)
    run_jobs()
    seen = logged_in(viewer).get(url(study, "link")).content.decode()
    assert "Only editors of the study see its links" in seen and study.recruitments.get().key not in seen


def test_arms_without_pay_need_no_promises(owner):
    study = ready(owner)
    Study.objects.filter(pk=study.pk).update(reward=0)
    link = recruitment(Study.objects.get(pk=study.pk), promises="")
    client = logged_in(owner)
    assert not [p for p in client.get(launch_url(study)).context["warnings"] if "closed to visitors" in p.text]
    Arm.objects.filter(study=study).update(reward=1)
    assert [p for p in client.get(launch_url(study)).context["warnings"] if "closed to visitors" in p.text]
    assert link.pk
